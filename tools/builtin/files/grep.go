package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const grepSchema = `{
  "type": "object",
  "properties": {
    "pattern": {
      "type": "string", "minLength": 1, "maxLength": 500,
      "description": "Regular expression (RE2 syntax: no look-around, no back-references) that a part of a line must match, such as func \\w+\\(ctx. With fixed, plain text."
    },
    "path": {
      "type": "string", "default": "/",
      "description": "The file to search, or the folder, with all below it, such as /data. Default: all mounts."
    },
    "include": {
      "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 50,
      "description": "Search only files that match one of these patterns: [\"*.{go,md}\"] for names, [\"src/**/*.go\"] for paths below path."
    },
    "exclude": {
      "type": "array", "items": {"type": "string", "maxLength": 200}, "maxItems": 50,
      "description": "Patterns of files and folders to leave out, such as [\"node_modules\", \"*.min.js\"]."
    },
    "hidden": {
      "type": "boolean", "default": false,
      "description": "Search files and folders whose names begin with a dot, too."
    },
    "fixed": {
      "type": "boolean", "default": false,
      "description": "Take pattern as plain text: a dot is a dot."
    },
    "ignore_case": {
      "type": "boolean", "default": false,
      "description": "Let capital and small letters be the same."
    },
    "output_mode": {
      "type": "string", "enum": ["content", "files_with_matches", "count"], "default": "content",
      "description": "content: the matching lines with their numbers; files_with_matches: the paths of the files alone; count: the number of matching lines of each file."
    },
    "before": {
      "type": "integer", "minimum": 0, "maximum": 50, "default": 0,
      "description": "Lines to show before each match."
    },
    "after": {
      "type": "integer", "minimum": 0, "maximum": 50, "default": 0,
      "description": "Lines to show after each match."
    },
    "max_results": {
      "type": "integer", "minimum": 1, "maximum": 2000, "default": 200,
      "description": "The most matching lines to return, or files in the other modes."
    },
    "encoding": {
      "type": "string", "maxLength": 64,
      "description": "Encoding of all the files, such as windows-1251. Default: what the bytes of each say."
    }
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

const (
	maxExpression  = 500       // bytes of a regular expression
	maxInstruction = 2_000     // of its program: each may be tried at each character
	maxScan        = 2 << 30   // bytes of text that are searched
	maxLine        = 400       // characters of a line that are shown
	grepContent    = "content" // the modes
	grepFiles      = "files_with_matches"
	grepCount      = "count"
)

func grep(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "grep", Title: "Search in files",
		Description: "Searches the lines of text files, in whatever encoding they are, for a regular expression or a plain text. " +
			"Files that are no text are left out.",
		Schema: grepSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			s := searching{fsys: fsys, pattern: args.Need("pattern"), path: args.Text("path", "/")}
			s.include, s.exclude = patternsOf(args, "include"), patternsOf(args, "exclude")
			s.hidden = args.Flag("hidden")
			s.mode = args.OneOf("output_mode", grepContent, grepContent, grepFiles, grepCount)
			s.before, s.after = args.Integer("before", 0, 0, 50), args.Integer("after", 0, 0, 50)
			s.most = args.Integer("max_results", 200, 1, 2000)
			s.encoding = encodingOf(args)
			var err error
			if s.re, err = expression(s.pattern, args.Flag("fixed"), args.Flag("ignore_case")); err != nil && s.pattern != "" {
				args.Note("the argument %q %v", "pattern", err)
			}
			if s.pattern == "" && args.Has("pattern") {
				args.Note("the argument %q is empty", "pattern")
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			text, err := s.run(ctx)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "grep")
				}
				return tools.Failure(err.Error()), nil
			}
			return tools.Text(text), nil
		},
	}
}

// expression compiles a pattern, if it is of a size that is searched in bounded time.
func expression(pattern string, fixed, ignoreCase bool) (*regexp.Regexp, error) {
	if len(pattern) > maxExpression {
		return nil, fmt.Errorf("is longer than %d bytes", maxExpression)
	}
	if fixed {
		pattern = regexp.QuoteMeta(pattern)
	}
	if ignoreCase {
		pattern = "(?i)" + pattern
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		var se *syntax.Error
		if errors.As(err, &se) {
			return nil, fmt.Errorf("is no regular expression of RE2: %s: %s; with fixed it is searched for as plain text", se.Code, native.Shorten(se.Expr))
		}
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxInstruction {
		return nil, errors.New("is too large a regular expression; lower the numbers of its repetitions")
	}
	return regexp.Compile(pattern)
}

// searching is a call of grep.
type searching struct {
	fsys             *mount.FS
	pattern, path    string
	re               *regexp.Regexp
	include, exclude []string
	hidden           bool
	mode             string
	before, after    int
	most             int
	encoding         string

	out      strings.Builder
	length   int // characters in out
	results  int // lines or files of it
	lines    int // that match
	files    int // with such lines
	searched int // files
	scanned  int64
	long     int // lines that were searched in pieces
	binary   []string
	failed   []string
	why      error  // the last file could not be searched
	full     bool   // nothing more fits into out
	ended    string // why the search ended early
}

func (s *searching) run(ctx context.Context) (string, error) {
	info, err := s.fsys.Stat(s.path)
	if err != nil {
		return "", err
	}
	within, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	w := walker{fsys: s.fsys, root: info.Path, recursive: true, hidden: s.hidden, exclude: s.exclude}
	w.visit = func(full string, e mount.Entry) error {
		if e.IsDir() || e.Type&fs.ModeSymlink != 0 || len(s.include) > 0 && !matchesAny(s.include, w.root, full) {
			return nil
		}
		return s.search(within, full)
	}
	if info.IsDir() {
		err = w.walk(within)
	} else if err = s.search(within, info.Path); errors.Is(err, errEnough) {
		err = nil
	} else if err == nil {
		err = s.why
	}
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		s.ended = fmt.Sprintf("stopped after %v; name a folder below %s, or include fewer files", maxTime, info.Path)
	case err != nil:
		return "", err
	}
	return s.report(&w), nil
}

// search searches a file. errEnough ends the whole search.
func (s *searching) search(ctx context.Context, name string) error {
	text, err := openText(ctx, s.fsys, name, s.encoding)
	var noText *noTextError
	s.why = err
	switch {
	case ctx.Err() != nil:
		if err == nil {
			text.close()
		}
		return ctx.Err()
	case errors.As(err, &noText):
		s.binary = append(s.binary, name)
		return nil
	case err != nil:
		s.failed = append(s.failed, name)
		return nil
	}
	defer text.close()
	s.searched++
	f := fileSearch{searching: s, name: name}
	err = pieces(ctx, text, f.piece)
	switch {
	case ctx.Err() != nil:
		f.finish()
		return ctx.Err()
	case err != nil:
		s.failed = append(s.failed, name)
	}
	f.finish()
	if s.ended != "" {
		return errEnough
	}
	return nil
}

// fileSearch is the search of one file.
type fileSearch struct {
	*searching
	name string

	line    int
	matches int  // lines
	matched bool // this line is one
	shown   int  // the last line that was shown
	rest    int  // lines to show after the match
	past    []string
}

// piece searches a piece of a line, and reports whether to go on.
func (f *fileSearch) piece(p piece) bool {
	if p.first {
		f.line, f.matched = f.line+1, false
		if !p.last {
			f.long++
		}
	}
	if f.scanned += int64(len(p.data)) + 1; f.scanned > maxScan {
		f.ended = fmt.Sprintf("stopped after %d MB of text; name a folder below, or include fewer files", maxScan>>20)
		return false
	}
	if f.matched {
		return true
	}
	at := f.re.FindIndex(p.data)
	if at == nil {
		if f.mode == grepContent && p.last {
			f.context(p.data)
		}
		return true
	}
	f.matched = true
	f.matches++
	f.lines++
	switch f.mode {
	case grepFiles:
		return false // one is all that is asked for
	case grepCount:
		return true
	}
	if f.results == f.most {
		f.lines-- // it is not shown
		f.matches--
		f.ended = fmt.Sprintf("there are more matches than %d; narrow pattern, path or include, or raise max_results", f.most)
		return false
	}
	f.results++
	return f.show(excerpt(p.data, at))
}

// context keeps a line that does not match, or shows it after one that does.
func (f *fileSearch) context(line []byte) {
	switch {
	case f.rest > 0:
		f.rest--
		f.shown = f.line
		f.print(fmt.Sprintf("%d- %s\n", f.line, excerpt(line, []int{0, 0})))
	case f.before > 0:
		if len(f.past) == f.before {
			f.past = f.past[1:]
		}
		f.past = append(f.past, excerpt(line, []int{0, 0}))
	}
}

// show shows a line that matches, with those before it.
func (f *fileSearch) show(line string) bool {
	first := f.line - len(f.past)
	switch {
	case f.shown == 0 && f.out.Len() > 0:
		f.print("\n" + f.name + "\n")
	case f.shown == 0:
		f.print(f.name + "\n")
	case first > f.shown+1 && f.before+f.after > 0:
		f.print("--\n")
	}
	for i, l := range f.past {
		f.print(fmt.Sprintf("%d- %s\n", first+i, l))
	}
	f.past = nil
	f.print(fmt.Sprintf("%d: %s\n", f.line, line))
	f.shown, f.rest = f.line, f.after
	return f.ended == ""
}

// finish notes what the file has in all.
func (f *fileSearch) finish() {
	if f.matches == 0 {
		return
	}
	f.files++
	switch {
	case f.mode == grepContent:
		return
	case f.results == f.most:
		f.files--
		f.lines -= f.matches
		f.ended = fmt.Sprintf("there are more files that match than %d; narrow pattern, path or include, or raise max_results", f.most)
		return
	case f.mode == grepFiles:
		f.print(f.name + "\n")
	default:
		f.print(fmt.Sprintf("%s: %d\n", f.name, f.matches))
	}
	f.results++
}

// print adds to the result, until it is full.
func (s *searching) print(text string) {
	n := utf8.RuneCountInString(text)
	if s.full = s.full || s.length+n > maxList; s.full {
		s.ended = "the result is cut here, since it is long; narrow pattern, path or include"
		return
	}
	s.length += n
	s.out.WriteString(text)
}

// excerpt is a line as it is shown: of a long one, what is around the match.
func excerpt(line []byte, match []int) string {
	if len(line) <= maxLine {
		return string(line)
	}
	const lead = maxLine / 4
	start := max(0, match[0]-lead)
	for start > 0 && !utf8.RuneStart(line[start]) {
		start--
	}
	end := start + runeOffset(line[start:], maxLine)
	text := string(line[start:end])
	if start > 0 {
		text = fmt.Sprintf("[%d bytes ...]%s", start, text)
	}
	if end < len(line) {
		text += fmt.Sprintf("[... %d bytes]", len(line)-end)
	}
	return text
}

func (s *searching) report(w *walker) string {
	var notes []string
	where := native.Plural(s.searched, "file was", "files were") + " searched"
	switch {
	case s.lines == 0 && s.ended == "":
		notes = append(notes, fmt.Sprintf("no line matches %s in %s; %s", native.Shorten(s.pattern), w.root, where))
	case s.mode == grepFiles:
		notes = append(notes, fmt.Sprintf("%s; %s", native.Plural(s.files, "file matches", "files match"), where))
	default:
		notes = append(notes, fmt.Sprintf("%s in %s; %s",
			native.Plural(s.lines, "line matches", "lines match"), native.Plural(s.files, "file", "files"), where))
	}
	if s.ended != "" {
		notes = append(notes, s.ended)
	}
	if n := len(s.binary); n > 0 {
		notes = append(notes, native.Plural(n, "file is", "files are")+" no text, or in an encoding that must be named, and left out; the first is "+s.binary[0])
	}
	if n := len(s.failed); n > 0 {
		notes = append(notes, native.Plural(n, "file", "files")+" could not be read; the first is "+s.failed[0])
	}
	if s.long > 0 {
		notes = append(notes, native.Plural(s.long, "line is", "lines are")+" longer than 64 KB and searched in pieces")
	}
	return s.out.String() + bracketed(append(notes, w.notes()...))
}
