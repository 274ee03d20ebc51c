package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

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
      "description": "Path of a text file, such as /data/notes.md. Use directory_read to find files."
    },
    "encoding": {
      "type": "string", "enum": ["utf-8", "utf-16le", "utf-16be", "iso-8859-1"],
      "description": "Encoding of the file. Default: utf-8, or what the file's byte order mark says."
    },
    "max_length": {
      "type": "integer", "minimum": 1, "maximum": 1000000, "default": 32000,
      "description": "The most characters to return. A longer text keeps its beginning and its end."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first line to return; lines count from 1."
    },
    "limit": {
      "type": "integer", "minimum": 1,
      "description": "How many lines to return. Default: all."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

func fileRead(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "file_read", Title: "Read file",
		Description: "Reads a text file and returns its content. For a long file, read a part of it with offset and limit.",
		Schema:      fileReadSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			path := args.Need("path")
			encoding := args.Text("encoding", "")
			length := args.Integer("max_length", maxFileText, 1, 1_000_000)
			offset := args.Integer("offset", 1, 1, math.MaxInt32)
			limit := args.Integer("limit", 0, 1, math.MaxInt32)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			data, err := readAll(ctx, fsys, path)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "file_read")
				}
				return tools.Failure(err.Error()), nil
			}
			text, _, err := charset.Decode(data, encoding)
			if err != nil {
				return native.Failuref("%s can't be read: %v.", path, err), nil
			}
			if text == "" {
				return tools.Text("[the file is empty]"), nil
			}
			part, note, err := lines(text, offset, limit)
			if err != nil {
				return native.Failuref("%s: %v.", path, err), nil
			}
			return tools.Text(tools.Truncate(part, length) + note), nil
		},
	}
}

// readAll reads a file of at most maxFile bytes and stops when ctx ends.
func readAll(ctx context.Context, fsys *mount.FS, path string) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(contextReader{ctx, f}, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("read %s: the file has %d bytes, and at most %d can be read", path, f.Info().Size, maxFile)
	}
	return data, nil
}

// contextReader reads until ctx ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // Read has no other way to it
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// lines returns limit lines of text from the line offset on, all where limit is
// zero, and a note that says which, unless they are all.
func lines(text string, offset, limit int) (part, note string, err error) {
	total := strings.Count(text, "\n")
	if !strings.HasSuffix(text, "\n") {
		total++
	}
	if offset == 1 && (limit == 0 || limit >= total) {
		return text, "", nil
	}
	if offset > total {
		return "", "", errors.New(native.Plural(total, "line", "lines") + " is all that it has; offset lies behind them")
	}
	last := total
	if limit > 0 && limit < total-offset+1 {
		last = offset + limit - 1
	}
	start, end, line := 0, len(text), 1
	for i := range len(text) {
		if text[i] != '\n' {
			continue
		}
		line++
		if line == offset {
			start = i + 1
		}
		if line == last+1 {
			end = i + 1
			break
		}
	}
	note = fmt.Sprintf("\n[lines %d to %d of %d", offset, last, total)
	if last < total {
		note += fmt.Sprintf("; go on with offset %d", last+1)
	}
	return text[start:end], note + "]", nil
}
