package files

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const globSchema = `{
  "type": "object",
  "properties": {
    "pattern": {
      "type": "string", "minLength": 1, "maxLength": 200,
      "description": "What the files are called: *.md for names in any folder, src/**/*.{go,mod} for paths below path, /data/2024-*/*.csv for whole paths. ** stands for any folders."
    },
    "path": {
      "type": "string", "default": "/",
      "description": "The folder to look in, with all below it, such as /data. Default: all mounts."
    },
    "exclude": {
      "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 50,
      "description": "Patterns of files and folders to leave out, such as [\"node_modules\", \"**/testdata/**\"]."
    },
    "hidden": {
      "type": "boolean", "default": false,
      "description": "Look at files and folders whose names begin with a dot, too. A pattern that names one does so by itself."
    },
    "sort": {
      "type": "string", "enum": ["path", "modified"], "default": "path",
      "description": "The order: path, or modified for those that were changed last first, with the time in UTC."
    },
    "max_results": {
      "type": "integer", "minimum": 1, "maximum": 5000, "default": 500,
      "description": "The most files to return."
    }
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

func glob(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "glob", Title: "Find files",
		Description: "Finds files by their names or paths and returns their paths, one a line.",
		Schema:      globSchema, Effect: native.ReadOnly, Timeout: time.Minute,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			f := finding{
				fsys: fsys, pattern: args.Need("pattern"), path: args.Text("path", "/"), exclude: patternsOf(args, "exclude"),
				byTime: args.OneOf("sort", "path", "path", "modified") == "modified",
				most:   args.Integer("max_results", 500, 1, 5000),
			}
			f.hidden = args.Flag("hidden") || strings.Contains("/"+f.pattern, "/.")
			checkPattern(args, "pattern", f.pattern)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := f.run(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "glob")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(text), nil
		},
	}
}

// finding is a call of glob.
type finding struct {
	fsys          *mount.FS
	pattern, path string
	exclude       []string
	hidden        bool
	byTime        bool
	most          int
}

// found is a file.
type found struct {
	path string
	time time.Time
}

func (f *finding) run(ctx context.Context) (string, error) {
	if strings.HasPrefix(f.pattern, "/") && f.path == "/" {
		f.path, _ = doublestar.SplitPattern(f.pattern)
	}
	info, err := f.fsys.Stat(f.path)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%s is a file; path is the folder to look in", info.Path)
	}
	w := walker{fsys: f.fsys, root: info.Path, recursive: true, hidden: f.hidden, exclude: f.exclude}
	var list []found
	more := false
	w.visit = func(full string, e mount.Entry) error {
		if e.IsDir() || !matches(f.pattern, w.root, full) {
			return nil
		}
		if !f.byTime {
			if more = len(list) == f.most; more {
				return errEnough
			}
			list = append(list, found{path: full})
			return nil
		}
		if info, err := f.fsys.Stat(full); err == nil {
			list = append(list, found{full, info.ModTime})
		}
		return nil
	}
	if err := w.walk(ctx); err != nil {
		return "", err
	}
	if f.byTime {
		slices.SortStableFunc(list, func(a, b found) int { return b.time.Compare(a.time) })
		if more = len(list) > f.most; more {
			list = list[:f.most]
		}
	}
	return f.report(&w, list, more), nil
}

func (f *finding) report(w *walker, list []found, more bool) string {
	var lines []string
	for _, l := range list {
		if f.byTime {
			l.path += " (" + stamp(l.time) + ")"
		}
		lines = append(lines, l.path)
	}
	text, shown := join(lines)
	var note string
	switch left := len(lines) - shown; {
	case len(lines) == 0:
		note = fmt.Sprintf("no file in %s matches %s", w.root, f.pattern)
		if !f.hidden {
			note += "; those whose names begin with a dot were not looked at"
		}
	case more:
		note = fmt.Sprintf("%s shown of more than %d; narrow the pattern or the path", native.Plural(shown, "file", "files"), f.most)
	case left > 0:
		note = native.Plural(left, "more file is", "more files are") + " not shown; narrow the pattern or the path"
	default:
		note = native.Plural(shown, "file", "files")
	}
	return text + bracketed(append([]string{note}, w.notes()...))
}
