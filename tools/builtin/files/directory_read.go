package files

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode/utf8"

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
    "show_times": {
      "type": "boolean", "default": false,
      "description": "Tell when each file was changed last, in UTC."
    },
    "max_results": {
      "type": "integer", "minimum": 1, "maximum": 5000, "default": 500,
      "description": "The most entries to return."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

func directoryRead(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "directory_read", Title: "List folder",
		Description: "Lists the files and folders in a folder, one a line: folders end in /, files are followed by their size. " +
			"To find files by name, use glob; by content, grep.",
		Schema: directoryReadSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			dir := args.Need("path")
			l := listing{
				fsys:    fsys,
				pattern: args.Text("pattern", ""),
				times:   args.Flag("show_times"),
				most:    args.Integer("max_results", 500, 1, 5000),
			}
			l.recursive = args.Flag("recursive")
			checkPattern(args, "pattern", l.pattern)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := l.run(ctx, dir)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "directory_read")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(text), nil
		},
	}
}

// listing is a call of directory_read.
type listing struct {
	fsys      *mount.FS
	pattern   string
	recursive bool
	times     bool
	most      int

	lines []string
	more  bool // there are more matches than most
}

func (l *listing) run(ctx context.Context, dir string) (string, error) {
	info, err := l.fsys.Stat(dir)
	if err != nil {
		return "", err
	}
	w := walker{fsys: l.fsys, root: info.Path, recursive: l.recursive, hidden: true}
	w.visit = func(full string, e mount.Entry) error {
		if l.pattern != "" && !matches(l.pattern, w.root, full) {
			return nil
		}
		if len(l.lines) == l.most {
			l.more = true
			return errEnough
		}
		l.lines = append(l.lines, l.line(full, e))
		return nil
	}
	if err := w.walk(ctx); err != nil {
		return "", err
	}
	return l.report(&w), nil
}

func (l *listing) line(full string, e mount.Entry) string {
	if e.IsDir() {
		return full + "/"
	}
	info, err := l.fsys.Stat(full)
	switch {
	case e.Type&fs.ModeSymlink != 0 && err != nil:
		// Where it leads is of no use where it leads out of the mount.
		return full + " (a link that leads nowhere)"
	case e.Type&fs.ModeSymlink != 0:
		return full + " (a link to " + info.Path + ")"
	case !e.Type.IsRegular():
		return full + " (no regular file)"
	case err != nil:
		return full
	}
	size := native.Plural(int(info.Size), "byte", "bytes")
	if l.times {
		size += ", " + stamp(info.ModTime)
	}
	return fmt.Sprintf("%s (%s)", full, size)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func (l *listing) report(w *walker) string {
	text, shown := join(l.lines)
	var note string
	switch left := len(l.lines) - shown; {
	case len(l.lines) == 0 && l.pattern != "":
		note = fmt.Sprintf("nothing in %s matches %s", w.root, l.pattern)
	case len(l.lines) == 0:
		note = w.root + " is empty"
	case l.more:
		note = fmt.Sprintf("%s shown of more than %d; narrow the list with pattern or a folder below", native.Plural(shown, "entry", "entries"), l.most)
	case left > 0:
		note = native.Plural(left, "more entry is", "more entries are") + " not shown; narrow the list with pattern or a folder below"
	default:
		note = native.Plural(shown, "entry", "entries")
	}
	return text + bracketed(append([]string{note}, w.notes()...))
}

// join joins whole lines up to the bound of a list, as a path that is cut in the middle
// would be a wrong path, and says how many they are.
func join(lines []string) (text string, shown int) {
	var b strings.Builder
	length := 0
	for _, l := range lines {
		if length += utf8.RuneCountInString(l) + 1; length > maxList {
			break
		}
		b.WriteString(l + "\n")
		shown++
	}
	return b.String(), shown
}
