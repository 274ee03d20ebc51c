package files

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"crewhost/tools"
	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const fileReadSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a text file, such as /data/notes.md. glob and directory_read find files."
    },
    "offset": {
      "type": "integer", "default": 1,
      "description": "The first line to return; lines count from 1. A negative number counts from the end: -20 is the twentieth line from the end."
    },
    "limit": {
      "type": "integer", "minimum": 1,
      "description": "How many lines to return. Default: all."
    },
    "line_numbers": {
      "type": "boolean", "default": false,
      "description": "Begin each line with its number and a tab, which are no part of the file."
    },
    "encoding": {
      "type": "string", "maxLength": 64,
      "description": "Encoding of the file, such as windows-1252, iso-8859-15, utf-16le, shift_jis or gb18030. Default: what its bytes say; the result tells it where it is not UTF-8."
    },
    "max_length": {
      "type": "integer", "minimum": 1, "maximum": 1000000, "default": 32000,
      "description": "The most characters of the file to return. What is longer is cut, and the result says where to go on."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

// maxCount is how many bytes are read behind what is shown, to tell how many lines
// there are.
const maxCount = 64 << 20

func fileRead(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "file_read", Title: "Read file",
		Description: "Reads a text file of any size and returns its content, or a part of it by offset and limit. " +
			"Line ends of Windows are returned as plain line ends. Other tools read PDF, DOCX and XLSX files.",
		Schema: fileReadSchema, Effect: native.ReadOnly, Timeout: 2 * time.Minute,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			r := reading{fsys: fsys, path: args.Need("path"), encoding: encodingOf(args)}
			r.length = args.Integer("max_length", maxFileText, 1, 1_000_000)
			r.offset = args.Integer("offset", 1, math.MinInt32, math.MaxInt32)
			if r.offset == 0 {
				args.Note("the argument %q is 0, and lines count from 1, or from -1 at the end", "offset")
			}
			r.limit = args.Integer("limit", 0, 1, math.MaxInt32)
			r.numbers = args.Flag("line_numbers")
			r.part = args.Has("offset") || args.Has("limit")
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := r.run(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "file_read")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(text), nil
		},
	}
}

// encodingOf takes the name of an encoding; empty means that the bytes tell it.
func encodingOf(args *native.Arguments) string {
	label := args.Text("encoding", "")
	if label == "" {
		return ""
	}
	if _, err := charset.Find(label); err != nil {
		args.Note("the argument %q: %v", "encoding", err)
	}
	return label
}

// reading is a call of file_read.
type reading struct {
	fsys           *mount.FS
	path, encoding string
	length         int
	offset, limit  int  // limit is 0 for all lines
	part           bool // a range is asked for
	numbers        bool

	line, last int  // lines so far, and the last one of the range
	windows    int  // lines among them that end as on Windows
	cut        int  // the line that did not fit, or 0
	more       bool // there are lines that were not counted
}

func (r *reading) run(ctx context.Context) (string, error) {
	if r.offset < 0 {
		total, err := r.count(ctx)
		if err != nil {
			return "", err
		}
		r.offset = max(1, total+1+r.offset)
	}
	r.last = math.MaxInt
	if r.limit > 0 {
		r.last = r.offset + r.limit - 1
	}
	text, err := openText(ctx, r.fsys, r.path, r.encoding)
	if err != nil {
		return "", err
	}
	defer text.close()
	shown := newClip(r.length, !r.part)
	behind := 0
	err = pieces(ctx, text, func(p piece) bool {
		if p.first {
			r.line++
		}
		if p.crlf {
			r.windows++
		}
		switch {
		case r.line < r.offset:
		case r.line <= r.last && (!r.part || r.cut == 0):
			r.show(shown, p)
		default:
			if behind += len(p.data) + 1; behind > maxCount {
				r.more = true
				return false
			}
		}
		return true
	})
	if err != nil {
		return "", err
	}
	if r.line == 0 {
		return "[the file is empty]", nil
	}
	if r.offset > r.line {
		return "", fmt.Errorf("%s has %s; offset %d lies behind them", r.path, native.Plural(r.line, "line", "lines"), r.offset)
	}
	return r.report(shown, text), nil
}

// show adds a piece of a line in the range.
func (r *reading) show(shown *clip, p piece) {
	fits := true
	if p.first && r.numbers {
		fits = shown.write(fmt.Appendf(nil, "%d\t", r.line))
	}
	fits = shown.write(p.data) && fits
	if p.ended {
		fits = shown.write([]byte("\n")) && fits
	}
	if !fits && r.cut == 0 {
		r.cut = r.line
	}
}

// count counts the lines of the file.
func (r *reading) count(ctx context.Context) (int, error) {
	text, err := openText(ctx, r.fsys, r.path, r.encoding)
	if err != nil {
		return 0, err
	}
	defer text.close()
	total := 0
	err = pieces(ctx, text, func(p piece) bool {
		if p.first {
			total++
		}
		return true
	})
	return total, err
}

// report joins what is shown with what must be said of it.
func (r *reading) report(shown *clip, text *text) string {
	var b strings.Builder
	b.Write(shown.head)
	last := min(r.last, r.line)
	switch {
	case r.cut == 0:
	case r.part:
		// What is shown ends in line r.cut; go on with a line that begins there.
		next := r.cut
		if complete := bytes.Count(shown.head, []byte("\n")); complete > 0 {
			head := shown.head[:bytes.LastIndexByte(shown.head, '\n')+1]
			b.Reset()
			b.Write(head)
			last = next - 1
		} else {
			fmt.Fprintf(&b, "\n[line %d is longer than max_length and was cut after %s]", next, native.Plural(r.length, "character", "characters"))
			last = next
		}
	default:
		shown.shrink()
		if shown.left > 0 {
			notice := func() string {
				from := 1 + bytes.Count(shown.head, []byte("\n"))
				return fmt.Sprintf("\n\n[... %d characters left out here, from line %d on; read them with offset %d and limit, or a larger max_length ...]\n\n",
					shown.left, from, from)
			}
			shown.spare(len(notice()) + 2)
			b.Reset()
			b.Write(shown.head)
			b.WriteString(notice())
		}
		b.Write(shown.tail)
	}
	notes := r.notes(last, text)
	if len(notes) > 0 {
		if !strings.HasSuffix(b.String(), "\n") {
			b.WriteByte('\n')
		}
		b.WriteString("[" + strings.Join(notes, "; ") + "]")
	}
	return b.String()
}

func (r *reading) notes(last int, text *text) []string {
	var notes []string
	if r.part && (r.offset > 1 || last < r.line || r.more) {
		of := fmt.Sprintf("%d", r.line)
		if r.more {
			of = "more than " + of
		}
		note := fmt.Sprintf("lines %d to %d of %s", r.offset, last, of)
		if last < r.line || r.more {
			note += fmt.Sprintf("; go on with offset %d", last+1)
		}
		notes = append(notes, note)
	}
	if note := text.format.Note(); note != "" && (r.encoding == "" || !sameEncoding(r.encoding, text.format)) {
		notes = append(notes, note)
	}
	if n := text.Replaced(); n > 0 {
		notes = append(notes, fmt.Sprintf("%s not valid %s and shown as \uFFFD", native.Plural(n, "byte or character is", "bytes or characters are"), text.format))
	}
	switch {
	case r.windows == 0:
	case r.windows >= r.line-1:
		notes = append(notes, "the line ends are those of Windows, CRLF")
	default:
		notes = append(notes, native.Plural(r.windows, "line end is that", "line ends are those")+" of Windows, CRLF, the others are not")
	}
	return notes
}

// sameEncoding reports whether a label names the format's encoding.
func sameEncoding(label string, f charset.Format) bool {
	named, err := charset.Find(label)
	return err == nil && (named.Encoding == f.Encoding || named.Encoding == "utf-16" && strings.HasPrefix(f.Encoding, "utf-16"))
}
