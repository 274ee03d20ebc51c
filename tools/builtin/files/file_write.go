package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

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
    "encoding": {
      "type": "string", "enum": ["utf-8", "utf-16le", "utf-16be", "iso-8859-1"], "default": "utf-8",
      "description": "Encoding to write."
    },
    "append": {
      "type": "boolean", "default": false,
      "description": "Add to the end of the file instead of replacing what it holds."
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
		Description: "Writes text to a file, replacing it unless append is true. Only folders that are mounted for writing can be written to.",
		Schema:      fileWriteSchema, EffectOf: writes, WritesFiles: true,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			name := args.Need("path")
			content := args.Need("content")
			format, ferr := charset.Find(args.Text("encoding", "utf-8"))
			add, backup := args.Flag("append"), args.Flag("create_backup")
			if ferr != nil {
				args.Note("the argument %q: %v", "encoding", ferr)
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			data, err := charset.Encode(content, format)
			switch {
			case err != nil:
				return native.Failuref("%s was not written: %v.", name, err), nil
			case len(data) > maxWrite:
				return native.Failuref("%s was not written: the content has %d bytes, and at most %d can be written.", name, len(data), maxWrite), nil
			}
			done, err := writeFile(ctx, fsys, name, data, add, backup)
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

// writeFile writes and says what it did. Nothing is changed when ctx has ended.
func writeFile(ctx context.Context, fsys *mount.FS, name string, data []byte, add, backup bool) (string, error) {
	info, err := fsys.Stat(name)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	kept := ""
	if there && backup {
		old, err := readAll(ctx, fsys, name)
		if err != nil {
			return "", err
		}
		backup, err := unused(fsys, info.Path+".bak")
		if err != nil {
			return "", err
		}
		if err := fsys.WriteFile(backup, old); err != nil {
			return "", err
		}
		kept = fmt.Sprintf(" The old content is in %s.", backup)
	}
	if !there {
		if err := fsys.MkdirAll(path.Dir(path.Clean(name))); err != nil {
			return "", err
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	act, verb := fsys.WriteFile, "Replaced"
	switch {
	case add && there:
		act, verb = fsys.Append, "Appended to"
	case add:
		act, verb = fsys.Append, "Created"
	case !there:
		verb = "Created"
	}
	if err := act(name, data); err != nil {
		return "", err
	}
	if info, err = fsys.Stat(name); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s: %s written.%s", verb, info.Path, native.Plural(len(data), "byte", "bytes"), kept), nil
}

// writes is the effect of a call: what is added would be there twice, and the backup of
// a second call be what the first one wrote.
func writes(arguments json.RawMessage) native.Effect {
	var args map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &args)
	if args["append"] != nil || args["create_backup"] != nil {
		return native.Once
	}
	return native.Repeatable
}
