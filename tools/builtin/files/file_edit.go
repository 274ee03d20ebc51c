package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"crewhost/tools"
	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const fileEditSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a text file that is there, such as /src/main.go."
    },
    "old_text": {
      "type": "string", "minLength": 1,
      "description": "The text to replace, exactly as the file has it, with its indentation, and without the numbers that line_numbers of file_read shows. It must be in the file once; take in lines around it until it is."
    },
    "new_text": {
      "type": "string",
      "description": "The text to put in its place; empty to take old_text out."
    },
    "replace_all": {
      "type": "boolean", "default": false,
      "description": "Replace old_text wherever it is, not just where it is the only one."
    },
    "edits": {
      "type": "array", "minItems": 1, "maxItems": 100,
      "description": "Instead of old_text and new_text: several replacements, made one after the other, all of them or none.",
      "items": {
        "type": "object",
        "properties": {
          "old_text": {"type": "string", "minLength": 1, "description": "The text to replace."},
          "new_text": {"type": "string", "description": "The text to put in its place."},
          "replace_all": {"type": "boolean", "default": false, "description": "Replace it wherever it is."}
        },
        "required": ["old_text", "new_text"],
        "additionalProperties": false
      }
    },
    "encoding": {
      "type": "string", "maxLength": 64,
      "description": "Encoding of the file, such as windows-1251. Default: what its bytes say. The file keeps it."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

const maxEdits = 100

func fileEdit(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "file_edit", Title: "Edit file",
		Description: "Replaces text in a file by other text and shows what it changed. Line ends, encoding and byte order mark stay as they are. " +
			"The text must be found exactly, and once, or else nothing is changed and the result says where something like it is.",
		// A second call finds no old text, or what the first one put there.
		Schema: fileEditSchema, Effect: native.Once, WritesFiles: true, Timeout: time.Minute,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			name := args.Need("path")
			encoding := encodingOf(args)
			edits := editsOf(args)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			done, err := editFile(ctx, fsys, name, encoding, edits)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "file_edit")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(done), nil
		},
	}
}

// edit is a replacement.
type edit struct {
	Old *string `json:"old_text"`
	New *string `json:"new_text"`
	All bool    `json:"replace_all"`
}

// editsOf takes the replacements, in either form, and judges what can be without the
// file.
func editsOf(args *native.Arguments) []edit {
	var list []edit
	if args.Has("edits") {
		for _, name := range []string{"old_text", "new_text", "replace_all"} {
			if args.Has(name) {
				args.Note("the arguments %q and %q are both given; put all replacements into edits", "edits", name)
			}
		}
		dec := json.NewDecoder(bytes.NewReader(args.Raw("edits")))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&list); err != nil {
			args.Note(`the argument %q must be a list such as [{"old_text": "a", "new_text": "b"}]: %s`, "edits", strings.TrimPrefix(err.Error(), "json: "))
			return nil
		}
		if len(list) == 0 || len(list) > maxEdits {
			args.Note("the argument %q has %d items, and must have from 1 to %d", "edits", len(list), maxEdits)
			return nil
		}
	} else {
		list = []edit{{Old: given(args, "old_text"), New: given(args, "new_text"), All: args.Flag("replace_all")}}
	}
	for i, e := range list {
		which := ""
		if args.Has("edits") {
			which = fmt.Sprintf("item %d of edits: ", i+1)
		}
		switch {
		case e.Old == nil:
			args.Note("%sthe argument %q is missing", which, "old_text")
		case *e.Old == "":
			args.Note("%sold_text is empty; use file_write to create a file or to add to its end", which)
		}
		switch {
		case e.New == nil:
			args.Note("%sthe argument %q is missing", which, "new_text")
		case e.Old != nil && *e.Old == *e.New && *e.Old != "":
			args.Note("%sold_text and new_text are the same", which)
		}
	}
	return list
}

// given takes a string that may be empty, and is nil where it isn't given.
func given(args *native.Arguments, name string) *string {
	if !args.Has(name) {
		return nil
	}
	text := args.Text(name, "")
	return &text
}

// editFile changes a file and says how. An error has changed nothing.
func editFile(ctx context.Context, fsys *mount.FS, name, encoding string, edits []edit) (string, error) {
	if err := fsys.CanWrite(name); err != nil {
		return "", err
	}
	before, err := fsys.Stat(name)
	if err != nil {
		return "", err
	}
	data, err := readAll(ctx, fsys, name)
	if err != nil {
		return "", err
	}
	text, format, err := charset.Decode(data, encoding)
	if err != nil {
		return "", fmt.Errorf("%s can't be edited: %w", name, err)
	}
	if back, err := charset.Encode(text, format); err != nil || !bytes.Equal(back, data) {
		return "", fmt.Errorf("%s can't be edited: it is %s, and writing it again would change more of it than was asked for; if that is not its encoding, name it", name, format)
	}
	e := editor{text: text, name: before.Path}
	e.windows()
	for i, ed := range edits {
		if err := e.apply(ctx, ed); err != nil {
			if ctx.Err() == nil && len(edits) > 1 {
				err = fmt.Errorf("nothing was changed; item %d of edits: %w", i+1, err)
			}
			return "", err
		}
	}
	data, err = charset.Encode(e.result(), format)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s was not changed: %w", name, err)
	case len(data) > maxFile:
		return "", fmt.Errorf("%s was not changed: it would have %d bytes, and at most %d can be written", name, len(data), maxFile)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	err = fsys.Replace(name, before, data)
	if errors.Is(err, mount.ErrChanged) {
		err = fmt.Errorf("%s was not changed: somebody else changed it meanwhile; read it again", name)
	}
	if err != nil {
		return "", err
	}
	return e.report(format), nil
}

// editor applies replacements to the text of a file.
type editor struct {
	text, name string
	crlf       bool // each line of the file ends as on Windows; those of text don't

	hunks  []string // what was changed
	places int
}

const maxHunks = 20

// windows takes the carriage returns off where each line has one, as no model writes
// them.
func (e *editor) windows() {
	ends := strings.Count(e.text, "\n")
	if e.crlf = ends > 0 && strings.Count(e.text, "\r\n") == ends; e.crlf {
		e.text = plainEnds(e.text)
	}
}

func plainEnds(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

func (e *editor) result() string {
	if e.crlf {
		return strings.ReplaceAll(e.text, "\n", "\r\n")
	}
	return e.text
}

func (e *editor) apply(ctx context.Context, ed edit) error {
	from, to := *ed.Old, *ed.New
	if e.crlf {
		from, to = plainEnds(from), plainEnds(to)
	}
	found := places(e.text, from)
	if windows := strings.ReplaceAll(from, "\n", "\r\n"); len(found) == 0 && !e.crlf && !strings.Contains(from, "\r") && windows != from {
		// Some lines of the file end so.
		if found = places(e.text, windows); len(found) > 0 {
			from, to = windows, strings.ReplaceAll(to, "\n", "\r\n")
		}
	}
	n := 1
	switch {
	case len(found) == 0:
		return e.missing(ctx, from, to)
	case ed.All:
		n = strings.Count(e.text, from)
	case len(found) > 1:
		return fmt.Errorf("old_text is in %s %s, on the lines %s; take in more of the text around it, or set replace_all", e.name, times(len(found)), e.lineList(found))
	}
	if size := len(e.text) + n*(len(to)-len(from)); size > 2*maxFile {
		return fmt.Errorf("%s would have %d bytes, and at most %d can be written", e.name, size, maxFile)
	}
	for at, i := 0, 0; i < n && len(e.hunks) < maxHunks; i++ {
		at += strings.Index(e.text[at:], from)
		e.hunks = append(e.hunks, e.hunk(at, from, to))
		at += len(from)
	}
	e.text = strings.Replace(e.text, from, to, n)
	e.places += n
	return nil
}

// enough offsets say that a text is not there once.
const enough = 1000

// places are the offsets at which part begins in text, at most enough of them and one.
// They may overlap: which of two such places is meant, nobody knows either.
func places(text, part string) []int {
	var found []int
	for at := 0; len(found) <= enough; at++ {
		i := strings.Index(text[at:], part)
		if i < 0 {
			break
		}
		at += i
		found = append(found, at)
	}
	return found
}

func times(n int) string {
	switch {
	case n == 2:
		return "twice"
	case n > enough:
		return fmt.Sprintf("more than %d times", enough)
	}
	return fmt.Sprintf("%d times", n)
}

// lineAt is the number of the line that holds the offset.
func (e *editor) lineAt(offset int) int { return 1 + strings.Count(e.text[:offset], "\n") }

func (e *editor) lineList(offsets []int) string {
	const most = 10
	var b strings.Builder
	line, last := 1, 0
	for i, at := range offsets {
		line += strings.Count(e.text[last:at], "\n")
		last = at
		if i == most {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%d", line)
	}
	return b.String()
}

// hunk shows the lines that a replacement changes, and one around them on each side.
func (e *editor) hunk(at int, from, to string) string {
	start := strings.LastIndexByte(e.text[:at], '\n') + 1
	end := at + len(from)
	if !strings.HasSuffix(from, "\n") || to != "" && !strings.HasSuffix(to, "\n") {
		// The rest of the line goes with it.
		if i := strings.IndexByte(e.text[end:], '\n'); i >= 0 {
			end += i + 1
		} else {
			end = len(e.text)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "line %d:\n", e.lineAt(start))
	if start > 0 {
		mark(&b, "  ", e.text[strings.LastIndexByte(e.text[:start-1], '\n')+1:start])
	}
	mark(&b, "- ", e.text[start:end])
	mark(&b, "+ ", e.text[start:at]+to+e.text[at+len(from):end])
	if end < len(e.text) {
		next, _, _ := strings.Cut(e.text[end:], "\n")
		mark(&b, "  ", next)
	}
	return b.String()
}

// mark writes the lines of text, each behind the sign, not too many and none too long.
func mark(b *strings.Builder, sign, text string) {
	const most, longest = 30, 300
	if text == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		if i == most && len(lines) > most+1 {
			fmt.Fprintf(b, "%s[... %d more lines]\n", sign, len(lines)-most)
			return
		}
		b.WriteString(sign + cutLine(strings.TrimSuffix(l, "\r"), longest) + "\n")
	}
}

// cutLine is a line of at most max characters.
func cutLine(line string, max int) string {
	n := runeOffset([]byte(line[:min(len(line), 4*max+4)]), max)
	if n >= len(line) {
		return line
	}
	return fmt.Sprintf("%s[... %d more bytes]", line[:n], len(line)-n)
}

func (e *editor) report(f charset.Format) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Changed %s in %s:\n", native.Plural(e.places, "place", "places"), e.name)
	shown := 0
	for _, h := range e.hunks {
		if b.Len()+len(h) > maxList && shown > 0 {
			break
		}
		io.WriteString(&b, h) //nolint:errcheck // a builder takes everything
		shown++
	}
	if shown < e.places {
		fmt.Fprintf(&b, "[%s not shown]\n", native.Plural(e.places-shown, "more place is", "more places are"))
	}
	var kept []string
	if note := f.Note(); note != "" {
		kept = append(kept, note)
	}
	if e.crlf {
		kept = append(kept, "the line ends are those of Windows, CRLF, as they were")
	}
	if len(kept) > 0 {
		fmt.Fprintf(&b, "[%s]\n", strings.Join(kept, "; "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
