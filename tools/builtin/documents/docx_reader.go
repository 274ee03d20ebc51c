package documents

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const docxReaderSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a text in the format .docx, such as /data/contract.docx. Needed, unless file_path is given."
    },
    "file_path": {
      "type": "string", "minLength": 1,
      "description": "Another name for path; give one of them."
    },
    "include_tables": {
      "type": "boolean", "default": true,
      "description": "Give tables, as Markdown. With false they are left out and counted."
    },
    "include_metadata": {
      "type": "boolean", "default": false,
      "description": "First list title, author and dates."
    },
    "include_comments": {
      "type": "boolean", "default": false,
      "description": "Mark the places of comments, such as [^c1], and give the comments at the end."
    },
    "include_headers": {
      "type": "boolean", "default": false,
      "description": "Give what stands above and below each page, too, at the beginning."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first character of the text to return; characters count from 1. A text that was cut says which offset goes on."
    },
    "max_chars": {
      "type": "integer", "minimum": 100, "maximum": 30000, "default": 16000,
      "description": "The most characters to return."
    }
  },
  "additionalProperties": false
}`

const docxKind = ".docx"

func docxReader(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "docx_reader", Title: "Read text document",
		Description: "Reads a .docx file as Markdown: headings, lists with their numbers, tables, links, and notes such as [^f1] at the end. Of tracked changes, what was inserted is given and what was deleted is not; hidden text is left out.",
		Schema:      docxReaderSchema, Effect: native.ReadOnly, Timeout: xlsxTime,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			path := pathOf(args)
			d := docxText{
				tables:   !args.Has("include_tables") || args.Flag("include_tables"),
				comments: args.Flag("include_comments"),
				styles:   map[string]docxStyle{}, lists: map[string][maxListLevels]listLevel{},
				counts: map[string]*[maxListLevels]int{}, seen: map[string]bool{},
			}
			about, headers := args.Flag("include_metadata"), args.Flag("include_headers")
			offset := args.Integer("offset", 1, 1, math.MaxInt32)
			most := args.Integer("max_chars", defaultLength, 100, maxLength)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := withOffice(ctx, fsys, path, docxKind, func(p *officePackage) (string, error) {
				text, err := d.read(p, about, headers)
				if err != nil {
					return "", err
				}
				return excerpt(text, offset, most)
			})
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "docx_reader")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(text), nil
		},
	}
}

// read returns the whole text.
func (d *docxText) read(p *officePackage, about, headers bool) (string, error) {
	d.officePackage = p
	main, err := p.main()
	if err != nil {
		return "", err
	}
	if d.rels, err = p.relations(main); err != nil {
		return "", err
	}
	if part, is := firstOf(d.rels, "styles"); is {
		if err := d.readStyles(part); err != nil {
			return "", err
		}
	}
	if part, is := firstOf(d.rels, "numbering"); is {
		if err := d.readLists(part); err != nil {
			return "", err
		}
	}
	var text []string
	if about {
		lines, err := d.about()
		if err != nil {
			return "", err
		}
		text = append(text, lines...)
	}
	if headers {
		lines, err := d.headers()
		if err != nil {
			return "", err
		}
		text = append(text, lines...)
	}
	body, full, err := d.body(main)
	if err != nil {
		return "", err
	}
	text = append(text, body...)
	notes, err := d.allNotes()
	if err != nil {
		return "", err
	}
	text = append(text, notes...)
	if note := d.note(len(body) == 0, full); note != "" {
		text = append(text, note)
	}
	return tight(text), nil
}

// tight joins blocks with empty lines, but for the items of a list.
func tight(blocks []string) string {
	var b strings.Builder
	for i, block := range blocks {
		if i > 0 {
			b.WriteByte('\n')
			if !isItem(block) || !isItem(blocks[i-1]) {
				b.WriteByte('\n')
			}
		}
		b.WriteString(block)
	}
	return b.String()
}

// isItem tells an item of a list by its label, such as 2. or (iv).
func isItem(block string) bool {
	first, _, _ := strings.Cut(strings.TrimLeft(block, " "), " ")
	return first == "-" || len(first) > 1 && len(first) < 12 && strings.ContainsAny(first[len(first)-1:], ".)")
}

// body reads the text itself, and whether there was more than can be held.
func (d *docxText) body(part string) (list []string, full bool, err error) {
	root := ""
	err = d.each(part, func(x *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is {
			return nil
		}
		if root == "" {
			root = start.Name.Local
		}
		if start.Name.Local != "body" || root != "document" {
			return nil
		}
		more, err := d.blocks(x)
		list = append(list, more...)
		if errors.Is(err, errFull) {
			full, err = true, errDone
		}
		return err
	})
	if err == nil && root != "document" {
		err = errors.New("it is no text document")
	}
	return list, full, err
}

// about returns what the file says of itself.
func (d *docxText) about() ([]string, error) {
	rels, err := d.relations("")
	if err != nil {
		return nil, err
	}
	part, is := firstOf(rels, "core-properties")
	if !is {
		return nil, nil
	}
	names := map[string]string{"title": "Title", "creator": "Author", "lastModifiedBy": "Last modified by", "subject": "Subject", "keywords": "Keywords", "description": "Description", "created": "Created", "modified": "Modified"}
	values := map[string]string{}
	err = d.each(part, func(x *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || names[start.Name.Local] == "" {
			return nil
		}
		text, err := x.text(1000)
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			values[names[start.Name.Local]] = shorten(text)
		}
		return err
	})
	if err != nil || len(values) == 0 {
		return nil, err
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, name+": "+values[name])
	}
	return []string{strings.Join(lines, "\n")}, nil
}

// headers returns what stands above and below the pages, each text once.
func (d *docxText) headers() ([]string, error) {
	var lines []string
	own := d.rels
	defer func() { d.rels = own }()
	for _, id := range slices.Sorted(maps.Keys(own)) {
		r := own[id]
		if r.kind != "header" && r.kind != "footer" || r.external {
			continue
		}
		var err error
		if d.rels, err = d.relations(r.target); err != nil {
			return nil, err
		}
		err = d.each(r.target, func(x *xmlReader, token xml.Token) error {
			if _, is := token.(xml.StartElement); !is {
				return nil
			}
			list, err := d.blocks(x)
			line := "[" + r.kind + ": " + strings.Join(list, " ") + "]"
			if len(list) > 0 && !slices.Contains(lines, line) && len(lines) < 50 {
				lines = append(lines, line)
			}
			return err
		})
		if err != nil && !errors.Is(err, errFull) {
			return nil, err
		}
	}
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(b[:7], a[:7]) }) // headers first
	return lines, nil
}

// allNotes returns the notes and comments that were referred to, in the order of the text.
func (d *docxText) allNotes() ([]string, error) {
	if len(d.refs) == 0 {
		return nil, nil
	}
	found := map[string]string{}
	own := d.rels
	defer func() { d.rels = own }()
	for _, n := range []struct{ relation, kind, element string }{{"footnotes", "f", "footnote"}, {"endnotes", "e", "endnote"}, {"comments", "c", "comment"}} {
		part, is := firstOf(own, n.relation)
		if !is {
			continue
		}
		var err error
		if d.rels, err = d.relations(part); err != nil {
			return nil, err
		}
		if err := d.notes(part, n.kind, n.element, found); err != nil && !errors.Is(err, errFull) {
			return nil, err
		}
	}
	var lines []string
	for _, key := range d.refs {
		if text, is := found[key]; is {
			lines = append(lines, "[^"+key+"]: "+text)
		}
	}
	return lines, nil
}

// note says what was left out.
func (d *docxText) note(empty, full bool) string {
	var notes []string
	if empty {
		notes = append(notes, "the document has no text")
	}
	if full {
		notes = append(notes, fmt.Sprintf("the text goes on behind %d bytes, which is all that can be read", maxDocx))
	}
	if d.skipped > 0 {
		notes = append(notes, native.Plural(d.skipped, "table was", "tables were")+" left out")
	}
	if d.deleted {
		notes = append(notes, "the document has tracked changes; what they delete is left out")
	}
	if d.hidden {
		notes = append(notes, "hidden text is left out")
	}
	if len(notes) == 0 {
		return ""
	}
	return "[" + strings.Join(notes, "; ") + "]"
}
