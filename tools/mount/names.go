package mount

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

const (
	maxPath      = 4096 // bytes of a path
	maxComponent = 255  // bytes of one name in it
)

// checkName refuses what no path of an FS may hold.
//
// A name that only looks like another, by letters of another script or by accents
// written otherwise, is another name: rights go by what is found on the disk, not
// by looks. What can't be seen at all, or turns text around, would have a person
// approve another path than the one on the screen, and is refused.
func checkName(p string) error {
	switch {
	case p == "":
		return &reason{"the path is empty", errInvalid}
	case strings.IndexByte(p, 0) >= 0:
		return &reason{"the path holds a NUL byte", errInvalid}
	case !utf8.ValidString(p):
		return &reason{"the path is not valid UTF-8", errInvalid}
	case strings.Contains(p, `\`):
		return &reason{`the path holds a backslash; folders are separated by "/"`, errInvalid}
	case len(p) > maxPath:
		return &reason{fmt.Sprintf("the path is longer than %d bytes", maxPath), errInvalid}
	}
	if at := strings.IndexFunc(p, unseen); at >= 0 {
		r, _ := utf8.DecodeRuneInString(p[at:])
		return &reason{fmt.Sprintf("the path holds %U, which can't be seen", r), errInvalid}
	}
	for part := range strings.SplitSeq(p, "/") {
		if len(part) > maxComponent {
			return &reason{fmt.Sprintf("a name in the path is longer than %d bytes", maxComponent), errInvalid}
		}
		if runtime.GOOS == "windows" {
			if err := checkWindows(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// unseen reports whether r is a control character, or one that changes text and
// has no look of its own. The joiners are let through: whole scripts can't be
// written without them.
func unseen(r rune) bool {
	switch {
	case r == 0x200C, r == 0x200D: // the joiners
		return false
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// checkWindows refuses the names that Windows takes for others: a device, a
// stream of a file, a name without its last dots and spaces.
func checkWindows(part string) error {
	switch {
	case part == "" || part == "." || part == "..":
		return nil
	case strings.ContainsAny(part, `<>:"|?*`):
		return &reason{`a name in the path holds one of < > : " | ? *, which Windows reserves`, errInvalid}
	case strings.TrimRight(part, ". ") != part:
		return &reason{"a name in the path ends in a dot or a space, which Windows drops", errInvalid}
	case windowsDevice(part) || runtime.GOOS == "windows" && !filepath.IsLocal(part):
		return &reason{"a name in the path is that of a device of Windows", errInvalid}
	}
	return nil
}

func windowsDevice(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	kind, number := base[:min(3, len(base))], base[min(3, len(base)):]
	return (kind == "COM" || kind == "LPT") && utf8.RuneCountInString(number) == 1 && strings.Contains("0123456789¹²³", number)
}

// alike reports whether some file system might take one name for the other: those
// of macOS and Windows don't tell letter case, some forms of an accent, or what
// can't be seen.
func alike(a, b string) bool { return a == b || folded(a) == folded(b) }

func folded(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
	return norm.NFKD.String(cases.Fold().String(norm.NFKD.String(s)))
}

// within reports whether p is root or below it.
func within(p, root string) bool {
	rest, ok := strings.CutPrefix(p, root)
	return ok && (rest == "" || rest[0] == '/' || root == "/")
}
