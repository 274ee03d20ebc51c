package files

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const directoryReadSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a folder, such as /data. / lists what is mounted."
    },
    "recursive": {
      "type": "boolean", "default": false,
      "description": "List the folders below, too."
    },
    "pattern": {
      "type": "string", "maxLength": 200,
      "description": "Only entries that match: *.md for names, or src/**/*.go for paths below the folder."
    },
    "max_results": {
      "type": "integer", "minimum": 1, "maximum": 5000, "default": 500,
      "description": "The most entries to return."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

const (
	maxPattern = 200
	maxDepth   = 64
	maxVisited = 200_000 // entries looked at for one call
)

func directoryRead(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "directory_read", Title: "List folder",
		Description: "Lists the files and folders in a folder, one a line: folders end in /, files are followed by their size.",
		Schema:      directoryReadSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			dir := args.Need("path")
			w := walker{
				fsys:      fsys,
				recursive: args.Flag("recursive"),
				pattern:   args.Text("pattern", ""),
				most:      args.Integer("max_results", 500, 1, 5000),
			}
			if len(w.pattern) > maxPattern {
				args.Note("the argument %q is longer than %d bytes", "pattern", maxPattern)
			} else if !doublestar.ValidatePattern(w.pattern) {
				args.Note("the argument %q is no valid pattern: %s", "pattern", w.pattern)
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			info, err := fsys.Stat(dir)
			if err != nil {
				return tools.Failure(err.Error()), nil
			}
			w.root = info.Path
			if err := w.walk(ctx, info.Path, 0); err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "directory_read")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(w.report()), nil
		},
	}
}

// walker lists a folder, depth first and in the order of names.
type walker struct {
	fsys      *mount.FS
	root      string
	recursive bool
	pattern   string
	most      int

	lines   []string
	visited int
	more    bool     // there are more matches than most
	skipped []string // folders that could not be listed
	deep    bool     // folders below maxDepth were left out
}

func (w *walker) walk(ctx context.Context, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.fsys.ReadDir(dir)
	if err != nil {
		if depth == 0 {
			return err
		}
		w.skipped = append(w.skipped, dir)
		return nil
	}
	for _, e := range entries {
		if w.visited++; w.visited > maxVisited {
			return fmt.Errorf("%s holds more than %d entries; name a folder below it", w.root, maxVisited)
		}
		full := path.Join(dir, e.Name)
		if w.matches(full) {
			if len(w.lines) == w.most {
				w.more = true
				return nil
			}
			w.lines = append(w.lines, w.line(full, e))
		}
		if !w.recursive || !e.IsDir() {
			continue
		}
		if depth == maxDepth {
			w.deep = true
			continue
		}
		if err := w.walk(ctx, full, depth+1); err != nil || w.more {
			return err
		}
	}
	return nil
}

// matches applies the pattern to the name, or to the path below the root where
// the pattern has a slash.
func (w *walker) matches(full string) bool {
	subject := path.Base(full)
	switch {
	case w.pattern == "":
		return true
	case strings.Contains(w.pattern, "/"):
		subject = strings.TrimPrefix(strings.TrimPrefix(full, w.root), "/")
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(w.pattern, "/"), subject)
}

func (w *walker) line(full string, e mount.Entry) string {
	switch {
	case e.IsDir():
		return full + "/"
	case e.Type&fs.ModeSymlink != 0:
		// Where it leads is of no use where it leads out of the mount.
		info, err := w.fsys.Stat(full)
		if err != nil {
			return full + " (a link that leads nowhere)"
		}
		return full + " (a link to " + info.Path + ")"
	case !e.Type.IsRegular():
		return full + " (no regular file)"
	}
	info, err := w.fsys.Stat(full)
	if err != nil {
		return full
	}
	return fmt.Sprintf("%s (%s)", full, native.Plural(int(info.Size), "byte", "bytes"))
}

// report joins whole lines up to the bound of a result: a path that is cut in
// the middle would be a wrong path.
func (w *walker) report() string {
	var b strings.Builder
	shown, length := 0, 0
	for _, l := range w.lines {
		if length += utf8.RuneCountInString(l) + 1; length > native.MaxText {
			break
		}
		b.WriteString(l + "\n")
		shown++
	}
	switch left := len(w.lines) - shown; {
	case len(w.lines) == 0 && w.pattern != "":
		fmt.Fprintf(&b, "[nothing in %s matches %s]", w.root, w.pattern)
	case len(w.lines) == 0:
		fmt.Fprintf(&b, "[%s is empty]", w.root)
	case w.more:
		fmt.Fprintf(&b, "[%s shown of more than %d; narrow the list with pattern or a folder below]", native.Plural(shown, "entry", "entries"), w.most)
	case left > 0:
		fmt.Fprintf(&b, "[%s not shown; narrow the list with pattern or a folder below]", native.Plural(left, "more entry is", "more entries are"))
	default:
		fmt.Fprintf(&b, "[%s]", native.Plural(shown, "entry", "entries"))
	}
	if len(w.skipped) > 0 {
		fmt.Fprintf(&b, "\n[%s could not be listed, the first is %s]", native.Plural(len(w.skipped), "folder", "folders"), w.skipped[0])
	}
	if w.deep {
		fmt.Fprintf(&b, "\n[folders more than %d levels down were left out]", maxDepth)
	}
	return b.String()
}
