package crew

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// aliasLine is a line that is nothing but *name, or \*name for the text "*name".
var aliasLine = regexp.MustCompile(`^([ \t]*)(\\?)\*([A-Za-z_][A-Za-z0-9_]*)[ \t]*$`)

// expansion is a file after its anchors block was applied: a text pass before
// YAML is parsed, for texts that many places share. The block is
//
//	anchors:
//	  house_style: |
//	    Write plainly.
//	    Cite every source.
//
// and a later line of nothing but "*house_style", also inside a block scalar, is
// replaced by the text at the line's indentation. Native anchors work beside it:
// the block stays in the document, and a name that it does not define is left
// to YAML where the file has "&name".
type expansion struct {
	text    []byte
	block   bool  // there was an anchors block
	refused bool  // the text grew beyond its limit, and an issue says so
	lines   []int // of each line of text: the line of the file; nil: the same
	columns map[int]int
	issues  Issues
}

// expandAnchors applies the anchors block of a file. What the text grows to is
// bounded by limit bytes.
func expandAnchors(file string, data []byte, limit int) *expansion {
	x := &expansion{text: data}
	if !bytes.Contains(data, []byte("anchors:")) {
		return x
	}
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), "\n")
	start := slices.IndexFunc(lines, func(l string) bool {
		return strings.TrimRight(strings.TrimPrefix(l, "\ufeff"), " \t") == "anchors:"
	})
	if start < 0 {
		return x
	}
	end := start + 1
	for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || lines[end][0] == ' ' || lines[end][0] == '\t') {
		end++
	}
	x.block = true
	texts, names := x.anchorTexts(file, lines, start, end, limit)

	var out []string
	size := 0
	add := func(line string, n int) {
		out, x.lines = append(out, line), append(x.lines, n)
		size += len(line) + 1
	}
	for i, line := range lines {
		m := aliasLine.FindStringSubmatch(line)
		if i < end || m == nil {
			add(line, i+1)
			continue
		}
		indent, escaped, name := m[1], m[2] != "", m[3]
		pos := Pos{File: file, Line: i + 1, Column: len(indent) + 1}
		text, defined := texts[name]
		switch {
		case escaped:
			add(indent+"*"+name, i+1)
		case defined:
			if x.columns == nil {
				x.columns = map[int]int{}
			}
			x.columns[i+1] = pos.Column
			for _, t := range strings.Split(text, "\n") {
				if t != "" {
					t = indent + t
				}
				add(t, i+1)
			}
		case bytes.Contains(data, []byte("&"+name)):
			add(line, i+1)
		default:
			x.fail(pos, CodeUndefinedAlias, fmt.Sprintf("*%s stands for nothing in the anchors block", name),
				cmp.Or(strict.DidYouMean(name, names), `write \*`+name+` for the text itself`))
			add("", i+1)
		}
		if size > limit {
			x.fail(pos, strict.CodeTooLarge, fmt.Sprintf("with its anchors applied the file has more than %d bytes", limit), "")
			x.refused = true
			return x
		}
	}
	x.text = []byte(strings.Join(out, "\n"))
	return x
}

// anchorTexts parses the lines of the block, which keep their places, and
// returns its texts and their names. Values that are no text are native YAML's
// to use.
func (x *expansion) anchorTexts(file string, lines []string, start, end, limit int) (map[string]string, []string) {
	block := strings.Repeat("\n", start) + strings.Join(lines[start:end], "\n")
	n, _ := strict.Parse(file, []byte(block), strict.Limits{Bytes: 2 * limit}) // the whole file's parse reports the issues
	anchors := n.Get("anchors")
	if anchors == nil {
		return nil, nil
	}
	texts := map[string]string{}
	var names []string
	for _, e := range anchors.Entries {
		if e.Value.Kind != strict.String {
			continue
		}
		text := strings.TrimRight(e.Value.Text, "\n")
		for line := range strings.SplitSeq(text, "\n") {
			if m := aliasLine.FindStringSubmatch(line); m != nil && m[2] == "" {
				x.fail(e.KeyPos, CodeNestedAlias, fmt.Sprintf("the anchor %q uses *%s; anchors do not use each other", e.Key, m[3]), "")
			}
		}
		texts[e.Key], names = text, append(names, e.Key)
	}
	return texts, names
}

func (x *expansion) fail(pos Pos, code, message, hint string) {
	x.issues = append(x.issues, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

// place turns a place of the expanded text into that of the file.
func (x *expansion) place(p Pos) Pos {
	if n := p.Line - 1; n >= 0 && n < len(x.lines) {
		p.Line = x.lines[n]
		if column, ok := x.columns[p.Line]; ok {
			p.Column = column
		}
	}
	return p
}

// restore gives a tree and the issues of parsing it the places of the file.
func (x *expansion) restore(n *strict.Node, issues Issues) {
	if x.lines == nil {
		return
	}
	for i := range issues {
		issues[i].Pos = x.place(issues[i].Pos)
		if issues[i].Code == strict.CodeDuplicateKey {
			issues[i].Hint = "keep one" // the parser's hint counts the lines of the expanded text
		}
	}
	seen := map[*strict.Node]bool{}
	var walk func(*strict.Node)
	walk = func(n *strict.Node) {
		if n == nil || seen[n] {
			return
		}
		seen[n] = true
		n.Pos = x.place(n.Pos)
		for _, item := range n.Items {
			walk(item)
		}
		for i := range n.Entries {
			n.Entries[i].KeyPos = x.place(n.Entries[i].KeyPos)
			walk(n.Entries[i].Value)
		}
	}
	walk(n)
}
