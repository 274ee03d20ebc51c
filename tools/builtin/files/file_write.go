package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"

	"crewhost/tools"
	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const fileWriteSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of the file, such as /output/report.md. Missing folders are created."
    },
    "content": {
      "type": "string",
      "description": "The whole new content, or with append what to add. Give JSON as a string, too."
    },
    "append": {
      "type": "boolean", "default": false,
      "description": "Add to the end of the file instead of replacing what it holds. The file's own encoding and line ends are kept."
    },
    "overwrite": {
      "type": "boolean", "default": true,
      "description": "With false, a file that is there already is left as it is, and the call fails. It has no meaning with append."
    },
    "encoding": {
      "type": "string", "maxLength": 64,
      "description": "Encoding to write, such as utf-8-sig, utf-16 (both with a byte order mark), windows-1252 or shift_jis. Default: utf-8, and with append that of the file."
    },
    "create_backup": {
      "type": "boolean", "default": false,
      "description": "First copy an existing file to the same path with .bak added."
    }
  },
  "required": ["path", "content"],
  "additionalProperties": false
}`

func fileWrite(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "file_write", Title: "Write file",
		Description: "Writes text to a file, replacing it unless append is true. A reader sees the old content or the new, never a part. " +
			"Only folders that are mounted for writing can be written to. To change a part of a file, use file_edit.",
		Schema: fileWriteSchema, EffectOf: writes, WritesFiles: true,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			w := writing{fsys: fsys, path: args.Need("path"), content: args.Need("content"), encoding: encodingOf(args)}
			w.add, w.backup = args.Flag("append"), args.Flag("create_backup")
			w.fresh = args.Has("overwrite") && !args.Flag("overwrite") && !w.add
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			done, err := w.run(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "file_write")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(done), nil
		},
	}
}

// writing is a call of file_write.
type writing struct {
	fsys                    *mount.FS
	path, content, encoding string
	add, backup             bool
	fresh                   bool // no file may be there
}

// run writes and says what it did. Nothing is changed when ctx has ended.
func (w *writing) run(ctx context.Context) (string, error) {
	info, err := w.fsys.Stat(w.path)
	there := err == nil
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", err
	case there && w.fresh:
		return "", w.taken()
	}
	if err := w.fsys.CanWrite(w.path); err != nil {
		return "", err
	}
	data, note, err := w.encode(ctx, there && info.Size > 0)
	if err != nil {
		return "", err
	}
	if there && w.backup {
		kept, err := w.keep(ctx, info.Path)
		if err != nil {
			return "", err
		}
		note += " The old content is in " + kept + "."
	}
	if !there {
		if err := w.fsys.MkdirAll(path.Dir(path.Clean(w.path))); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	act, verb := w.fsys.WriteFile, "Replaced"
	switch {
	case w.fresh:
		act, verb = w.create, "Created"
	case w.add && there:
		act, verb = w.fsys.Append, "Appended to"
	case w.add:
		act, verb = w.fsys.Append, "Created"
	case !there:
		verb = "Created"
	case w.backup: // what is replaced is what was kept
		act = func(name string, data []byte) error { return w.fsys.Replace(name, info, data) }
	}
	if err := act(w.path, data); err != nil {
		return "", err
	}
	if info, err = w.fsys.Stat(w.path); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s: %s written.%s", verb, info.Path, native.Plural(len(data), "byte", "bytes"), note), nil
}

// create writes a file that must not be there.
func (w *writing) create(name string, data []byte) error {
	err := w.fsys.Replace(name, mount.Info{}, data)
	if errors.Is(err, fs.ErrExist) {
		err = w.taken()
	}
	return err
}

func (w *writing) taken() error {
	return fmt.Errorf("%s is there already and was not written; take another path, or leave overwrite out", w.path)
}

// encode is what to write, and what must be said of it. old says that the file has
// content already.
func (w *writing) encode(ctx context.Context, old bool) (data []byte, note string, err error) {
	format := charset.Format{Encoding: charset.UTF8}
	if w.encoding != "" {
		if format, err = charset.Find(w.encoding); err != nil {
			return nil, "", err
		}
	}
	content := w.content
	if old && w.add {
		var windows bool
		if format, windows, err = w.present(ctx); err != nil {
			return nil, "", err
		}
		if windows && !strings.Contains(content, "\r") {
			content = strings.ReplaceAll(content, "\n", "\r\n")
			note = ", with line ends of Windows"
		}
		if format.Encoding != charset.UTF8 || note != "" {
			note = fmt.Sprintf(" They are %s%s, as the file is.", format, note)
		}
		format.Mark = false // one at its beginning is enough
	}
	data, err = charset.Encode(content, format)
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("%s was not written: %w", w.path, err)
	case len(data) > maxWrite:
		return nil, "", fmt.Errorf("%s was not written: the content has %d bytes, and at most %d can be written at once; write the first part, and the others with append", w.path, len(data), maxWrite)
	}
	return data, note, nil
}

// present is the format of the file that is added to, and whether its lines end as on
// Windows.
func (w *writing) present(ctx context.Context) (f charset.Format, windows bool, err error) {
	const enough = 1 << 20
	file, err := w.fsys.Open(w.path)
	if err != nil {
		return f, false, err
	}
	defer file.Close()
	r, f, err := charset.NewReader(native.Reader(ctx, file), "")
	if err != nil && w.encoding != "" && ctx.Err() == nil {
		// The bytes don't tell, and the caller does.
		if file, err = w.fsys.Open(w.path); err != nil {
			return f, false, err
		}
		defer file.Close()
		r, f, err = charset.NewReader(native.Reader(ctx, file), w.encoding)
	}
	if err != nil {
		return f, false, fmt.Errorf("%s was not written: what it holds can't be added to: %w", w.path, err)
	}
	r.Lossy = true
	head, err := io.ReadAll(io.LimitReader(r, enough))
	if err != nil {
		return f, false, err
	}
	if w.encoding != "" && !sameEncoding(w.encoding, f) {
		named, err := charset.Find(w.encoding)
		if err != nil {
			return f, false, err
		}
		ascii := f.Encoding == charset.UTF8 && !f.Mark && bytes.IndexFunc(head, func(r rune) bool { return r > unicode.MaxASCII }) < 0
		wide := strings.HasPrefix(named.Encoding, "utf-16") || strings.HasPrefix(named.Encoding, "utf-32")
		if wide || !ascii && !f.Guessed {
			return f, false, fmt.Errorf("%s was not written: it is %s, and text in another encoding can't be added; leave encoding out", w.path, f)
		}
		f = named
	}
	ends := bytes.Count(head, []byte("\n"))
	return f, ends > 0 && bytes.Count(head, []byte("\r\n")) == ends, nil
}

// keep copies the file to a backup, and returns its path.
func (w *writing) keep(ctx context.Context, name string) (string, error) {
	old, err := readAll(ctx, w.fsys, w.path)
	if err != nil {
		return "", err
	}
	backup, err := unused(w.fsys, name+".bak")
	if err != nil {
		return "", err
	}
	return backup, w.fsys.Replace(backup, mount.Info{}, old)
}

// unused returns name, or name with a number behind it, where no file is: the
// policy judged the path that is written, and a backup must not cost another file.
func unused(fsys *mount.FS, name string) (string, error) {
	const tries = 100
	for i := range tries {
		candidate := name
		if i > 0 {
			candidate += strconv.Itoa(i)
		}
		if _, err := fsys.Stat(candidate); errors.Is(err, fs.ErrNotExist) {
			return candidate, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s and %d more are there already; remove some", name, tries-1)
}

// writes is the effect of a call: what is added would be there twice, the backup of a
// second call be what the first one wrote, and a file that must be new is there then.
func writes(arguments json.RawMessage) native.Effect {
	var args map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &args)
	says := func(name, word string) bool {
		v := string(args[name])
		return v == word || v == `"`+word+`"`
	}
	if says("append", "true") || says("create_backup", "true") || says("overwrite", "false") {
		return native.Once
	}
	return native.Repeatable
}
