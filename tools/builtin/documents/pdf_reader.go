package documents

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const pdfReaderSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a PDF file, such as /data/report.pdf."
    },
    "page_range": {
      "type": "string", "maxLength": 200,
      "description": "The pages to read, which count from 1: 3, or 1-3,7, or 10- for all from page 10 on, or last. Default: all."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first character of these pages' text to return; characters count from 1. A text that was cut says which offset goes on."
    },
    "max_chars": {
      "type": "integer", "minimum": 100, "maximum": 30000, "default": 16000,
      "description": "The most characters of text to return."
    },
    "include_metadata": {
      "type": "boolean", "default": false,
      "description": "First list what the file says of itself: title, author, dates and the program that made it."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

const (
	maxPDF        = 1 << 30 // bytes; it is read in place
	pdfTime       = 2 * time.Minute
	defaultLength = 16_000 // characters
	maxLength     = 30_000
)

func pdfReader(fsys *mount.FS, engine *pdfEngine) native.Tool {
	return native.Tool{
		Name: "pdf_reader", Title: "Read PDF",
		Description: "Reads the text of a PDF file, page by page. It does not recognize text in images: pages that were scanned have none, and are named.",
		Schema:      pdfReaderSchema, Effect: native.ReadOnly, Timeout: pdfTime,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			path := args.Need("path")
			spans, err := parsePages(args.Text("page_range", "1-"))
			if err != nil {
				args.Note("the argument %q can't be read: %v; give 1-3,7, or 10-, or last", "page_range", err)
			}
			r := pdfText{
				skip: args.Integer("offset", 1, 1, math.MaxInt32) - 1,
				room: args.Integer("max_chars", defaultLength, 100, maxLength),
			}
			r.start = r.skip
			about := args.Flag("include_metadata")
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := r.read(ctx, fsys, engine, path, spans, about)
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "pdf_reader")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(text), nil
		},
	}
}

// pdfText gathers the text of pages, from a character on and as far as there is room.
type pdfText struct {
	b           strings.Builder
	start, skip int // characters to leave out, at first and still
	room        int // characters that may still be taken

	taken  []int  // pages that text was taken of
	empty  []int  // pages without text
	images int    // in those
	rest   string // how to go on, where something is left
}

// at puts the path before an error that does not name it.
func at(path string, err error) error { return fmt.Errorf("%s can't be read: %w", path, err) }

func (r *pdfText) read(ctx context.Context, fsys *mount.FS, engine *pdfEngine, path string, spans []pageSpan, about bool) (string, error) {
	file, err := fsys.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	size := file.Info().Size
	switch {
	case size > maxPDF:
		return "", at(path, fmt.Errorf("the file has %d bytes, and at most %d can be read", size, maxPDF))
	case size == 0:
		return "", at(path, errors.New("the file is empty"))
	}
	return guarded(func() (string, error) {
		var text string
		err := engine.use(ctx, untilEnd{ctx, file}, size, func(doc *pdfDocument) error {
			var err error
			text, err = r.gather(ctx, doc, spans, about)
			return err
		})
		if err != nil {
			return "", at(path, err)
		}
		return text, nil
	})
}

func (r *pdfText) gather(ctx context.Context, doc *pdfDocument, spans []pageSpan, about bool) (string, error) {
	if doc.pages == 0 {
		return "", errors.New("it has no pages")
	}
	spans, err := within(spans, doc.pages)
	if err != nil {
		return "", err
	}
	head := ""
	if about {
		head = strings.Join(append(doc.about(), native.Plural(doc.pages, "page", "pages")), "\n") + "\n\n"
	}
	for i, s := range spans {
		for n := s.from; n <= s.to && r.rest == ""; n++ {
			if err := ctx.Err(); err != nil {
				return "", err
			}
			if err := r.page(doc, n); err != nil {
				return "", err
			}
			if r.room <= 0 && r.rest == "" && (n < s.to || i < len(spans)-1) {
				r.goOn()
			}
		}
	}
	return head + r.b.String() + r.note(doc.pages), nil
}

// page takes the text of a page.
func (r *pdfText) page(doc *pdfDocument, n int) error {
	text, whole, err := doc.text(n)
	if err != nil {
		return fmt.Errorf("page %d is damaged, or too large; leave it out with page_range", n)
	}
	if strings.TrimSpace(text) == "" {
		r.empty = append(r.empty, n)
		r.images += doc.images(n)
		return nil
	}
	if !whole {
		text += fmt.Sprintf("\n[the text of this page goes on behind %d characters, which can't be read]", maxPageText)
	}
	text = fmt.Sprintf("--- page %d ---\n%s\n", n, text)
	length := utf8.RuneCountInString(text)
	if length <= r.skip {
		r.skip -= length
		return nil
	}
	runes := []rune(text)[r.skip:]
	r.skip = 0
	r.taken = append(r.taken, n)
	if len(runes) > r.room {
		runes = runes[:r.room]
		r.room = 0
		r.b.WriteString(string(runes))
		r.goOn()
		return nil
	}
	r.room -= len(runes)
	r.b.WriteString(string(runes))
	return nil
}

func (r *pdfText) goOn() {
	r.rest = fmt.Sprintf("the text goes on with offset %d", r.start+utf8.RuneCountInString(r.b.String())+1)
}

// note says what was read and what was not.
func (r *pdfText) note(pages int) string {
	var notes []string
	switch behind := r.start - r.skip; {
	case len(r.taken) > 0:
		notes = append(notes, fmt.Sprintf("%s of %d", numbers(r.taken), pages))
	case behind > 0:
		notes = append(notes, fmt.Sprintf("the text of these pages has %d characters; offset lies behind them", behind))
	}
	if r.rest != "" {
		notes = append(notes, r.rest)
	}
	if len(r.empty) > 0 {
		note := "no text on " + numbers(r.empty)
		if r.images > 0 {
			note += ", but images: it may be scanned, and text in images is not recognized here"
		}
		notes = append(notes, note)
	}
	note := "[" + strings.Join(notes, "; ") + "]"
	if r.rest != "" {
		note = "\n" + note
	}
	return note
}

// numbers lists pages, runs of them as 3-7, the first few.
func numbers(list []int) string {
	if len(list) == 1 {
		return fmt.Sprintf("page %d", list[0])
	}
	const most = 20
	var parts []string
	const before = "pages "
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		part := fmt.Sprint(list[i])
		if j > i {
			part += fmt.Sprintf("-%d", list[j])
		}
		if len(parts) == most {
			return before + strings.Join(parts, ", ") + fmt.Sprintf(" and %d more", len(list)-i)
		}
		parts = append(parts, part)
		i = j + 1
	}
	return before + strings.Join(parts, ", ")
}
