package files

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"crewhost/tools/native"
)

const (
	maxPattern  = 200   // bytes of one
	maxPatterns = 50    // of a list
	maxChoices  = 1_000 // that the braces of one stand for
)

// matches applies a pattern to a path: to its last name where the pattern has no slash,
// to the whole path where it begins with one, and else to the path below root.
func matches(pattern, root, full string) bool {
	switch {
	case !strings.Contains(pattern, "/"):
		return doublestar.MatchUnvalidated(pattern, path.Base(full))
	case strings.HasPrefix(pattern, "/"):
		return doublestar.MatchUnvalidated(pattern, full)
	}
	below := strings.TrimPrefix(strings.TrimPrefix(full, root), "/")
	if doublestar.MatchUnvalidated(pattern, below) {
		return true
	}
	if root != "/" {
		return false
	}
	// Nobody thinks of the mount's own name.
	_, below, ok := strings.Cut(below, "/")
	return ok && doublestar.MatchUnvalidated(pattern, below)
}

func matchesAny(patterns []string, root, full string) bool {
	for _, p := range patterns {
		if matches(p, root, full) {
			return true
		}
	}
	return false
}

// checkPattern notes what is wrong with a pattern.
func checkPattern(args *native.Arguments, name, pattern string) {
	switch {
	case len(pattern) > maxPattern:
		args.Note("the argument %q is longer than %d bytes", name, maxPattern)
	case !doublestar.ValidatePattern(pattern):
		args.Note("the argument %q is no valid pattern: %s", name, pattern)
	case choices(pattern) > maxChoices:
		args.Note("the argument %q has braces that stand for more than %d patterns", name, maxChoices)
	}
}

// choices bounds what the braces of a pattern stand for: each group multiplies what has
// to be tried.
func choices(pattern string) int {
	total := 1
	var groups []int
	for _, c := range pattern {
		switch {
		case c == '{':
			groups = append(groups, 1)
		case c == ',' && len(groups) > 0:
			groups[len(groups)-1]++
		case c == '}' && len(groups) > 0:
			if total *= groups[len(groups)-1]; total > maxChoices {
				return total
			}
			groups = groups[:len(groups)-1]
		}
	}
	return total
}

// patternsOf takes a list of patterns. Models give one pattern as a string, and what is
// meant is plain.
func patternsOf(args *native.Arguments, name string) []string {
	var list []string
	if raw := args.Raw(name); len(raw) > 0 && raw[0] == '"' {
		var one string
		if json.Unmarshal(raw, &one) == nil && one != "" {
			list = []string{one}
		}
	} else {
		list = args.List(name)
	}
	if len(list) > maxPatterns {
		args.Note("the argument %q has more than %d items", name, maxPatterns)
		return nil
	}
	for _, p := range list {
		checkPattern(args, name, p)
	}
	return list
}
