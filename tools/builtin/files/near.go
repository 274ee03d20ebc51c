package files

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/agnivade/levenshtein"
)

// missing is the error of a text that the file does not have, with what is like it.
func (e *editor) missing(ctx context.Context, from, to string) error {
	where := fmt.Sprintf("old_text is not in %s", e.name)
	lines := strings.Split(e.text, "\n")
	wanted := strings.Split(strings.Trim(from, "\n"), "\n")
	if bare, ok := withoutNumbers(wanted); ok && strings.Contains(e.text, strings.Join(bare, "\n")) {
		return errors.New(where + ": it begins its lines with the numbers that file_read shows; leave them out")
	}
	if at := strings.Index(e.text, to); at >= 0 && len(strings.TrimSpace(to)) > 3 {
		where += fmt.Sprintf(", but new_text is, on line %d: perhaps this edit was made before", e.lineAt(at))
	}
	if at, ok := e.folded(ctx, lines, wanted); ok {
		return fmt.Errorf("%s. Lines %d to %d differ from it only in spaces, tabs, letter case, quotation marks or dashes; take them as they are:\n%s",
			where, at+1, at+len(wanted), numbered(lines, at, len(wanted)))
	}
	if at, ok := nearest(ctx, lines, wanted); ok {
		const around = 2
		first := max(0, at-around)
		return fmt.Errorf("%s. The line that is most like its first one is line %d:\n%s",
			where, at+1, numbered(lines, first, at-first+len(wanted)+around))
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return errors.New(where + ", and no line of it is like one there; read the file, or use grep to find the place")
}

// withoutNumbers takes the numbers and tabs off that file_read puts before lines.
func withoutNumbers(lines []string) ([]string, bool) {
	number := regexp.MustCompile(`^ *\d+(\t|: |- )`)
	var bare []string
	for _, l := range lines {
		n := number.FindString(l)
		if n == "" {
			return nil, false
		}
		bare = append(bare, l[len(n):])
	}
	return bare, true
}

// folded finds the lines that are like the wanted ones but for what people and models
// mistake.
func (e *editor) folded(ctx context.Context, lines, wanted []string) (at int, ok bool) {
	all, some := foldAll(lines), foldAll(wanted)
	if strings.Join(some, "") == "" {
		return 0, false
	}
	for i := 0; i+len(some) <= len(all); i++ {
		if i%1000 == 0 && ctx.Err() != nil {
			return 0, false
		}
		same := true
		for k, w := range some {
			// The first and the last one may be parts of lines.
			l := all[i+k]
			switch {
			case len(some) == 1:
				same = strings.Contains(l, w)
			case k == 0:
				same = strings.HasSuffix(l, w)
			case k == len(some)-1:
				same = strings.HasPrefix(l, w)
			default:
				same = l == w
			}
			if !same {
				break
			}
		}
		if same {
			return i, true
		}
	}
	return 0, false
}

func foldAll(lines []string) []string {
	folded := make([]string, len(lines))
	for i, l := range lines {
		folded[i] = strings.Map(func(r rune) rune {
			switch {
			case unicode.IsSpace(r):
				return -1
			case r <= unicode.MaxASCII && r != '`':
				return unicode.ToLower(r)
			case unicode.Is(unicode.Cf, r):
				return -1
			case strings.ContainsRune("\u2018\u2019\u201a\u2032`", r):
				return '\''
			case strings.ContainsRune("\u201c\u201d\u201e\u00ab\u00bb\u2033", r):
				return '"'
			case unicode.Is(unicode.Pd, r), r == '\u2212':
				return '-'
			}
			return unicode.ToLower(r)
		}, l)
	}
	return folded
}

// nearest finds the line that is most like the first of the wanted ones that says
// something.
func nearest(ctx context.Context, lines, wanted []string) (at int, ok bool) {
	const (
		longest = 200        // characters of a line that are compared
		work    = 20_000_000 // pairs of characters that are compared at all
	)
	skip := 0
	for skip < len(wanted)-1 && len(strings.TrimSpace(wanted[skip])) < 3 {
		skip++
	}
	want := []rune(strings.TrimSpace(wanted[skip]))
	want = want[:min(len(want), longest)]
	if len(want) < 3 {
		return 0, false
	}
	least, done := len(want)/2+1, 0 // half of it must be the same
	for i, l := range lines {
		if i%1000 == 0 && ctx.Err() != nil || done > work {
			break
		}
		have := strings.TrimSpace(l[:min(len(l), 4*longest)])
		n := len([]rune(have))
		if n > longest || n-len(want) >= least || len(want)-n >= least {
			continue
		}
		done += n * len(want)
		if d := levenshtein.ComputeDistance(string(want), have); d < least {
			least, at, ok = d, i, true
		}
	}
	return max(0, at-skip), ok
}

// numbered shows n lines from the line at on, with their numbers.
func numbered(lines []string, at, n int) string {
	const most, longest = 20, 300
	var b strings.Builder
	for i := at; i < min(at+n, len(lines)); i++ {
		if i-at == most {
			fmt.Fprintf(&b, "[... up to line %d]\n", min(at+n, len(lines)))
			break
		}
		fmt.Fprintf(&b, "%d\t%s\n", i+1, cutLine(strings.TrimSuffix(lines[i], "\r"), longest))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
