package shell

import (
	"fmt"
	"strings"

	"crewhost/tools/native"
)

// A refusal is what a command line has that only a shell would understand, with what to
// do instead.
type refusal struct{ what, instead string }

func (r *refusal) Error() string { return r.what + ": " + r.instead }

// words splits a command line as a POSIX shell would, without being one: there are quotes
// and backslashes, and nothing is expanded. What a shell would do more than that with is
// refused by its name.
func words(line string) ([]string, error) {
	const (
		bare   = iota
		single // '…'
		double // "…"
	)
	var out []string
	var word strings.Builder
	state, open := bare, false // open: a word has begun, though it may be empty yet
	if strings.Contains(line, "\x00") {
		return nil, &refusal{"a NUL character", "leave it out"}
	}
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case state == single:
			if c == '\'' {
				state = bare
			} else {
				word.WriteByte(c)
			}
		case c == '\\':
			if i++; i == len(line) {
				return nil, &refusal{"a backslash at the end", `write \\ for a backslash`}
			}
			switch next := line[i]; {
			case next == '\n': // the line goes on
				continue
			case state == double && strings.IndexByte("\"\\$`", next) < 0:
				word.WriteByte('\\')
			}
			word.WriteByte(line[i])
			open = true
		case c == '$' && expands(line[i+1:], state == double), c == '`':
			return nil, expansion(line[i:])
		case state == double:
			if c == '"' {
				state = bare
			} else {
				word.WriteByte(c)
			}
		case c == '\'':
			state, open = single, true
		case c == '"':
			state, open = double, true
		case c == ' ' || c == '\t':
			if open {
				out = append(out, word.String())
				word.Reset()
				open = false
			}
		default:
			if err := special(line[i:], word.String()); err != nil {
				return nil, err
			}
			word.WriteByte(c)
			open = true
		}
	}
	if state != bare {
		return nil, &refusal{"a quote that is not closed", "close it, or write a backslash before it"}
	}
	if open {
		out = append(out, word.String())
	}
	return out, nil
}

// expands reports whether a dollar sign with this behind it is more than itself.
func expands(rest string, quoted bool) bool {
	if rest == "" {
		return false
	}
	c := rest[0]
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || strings.IndexByte("({[@*#?$!-", c) >= 0 ||
		!quoted && (c == '\'' || c == '"')
}

func expansion(rest string) error {
	switch {
	case rest[0] == '`', strings.HasPrefix(rest, "$("):
		return &refusal{"a command in a command", "run the inner one first, and write what it gave"}
	case strings.HasPrefix(rest, "$'"), strings.HasPrefix(rest, `$"`):
		return &refusal{"the quotes $'…'", "use plain single quotes"}
	}
	return &refusal{"a variable", "write its value; for a dollar sign itself use single quotes, as in '$1'"}
}

// special says what an unquoted character would be to a shell; before is what its word
// has so far.
func special(rest, before string) error {
	const quote = "put it in single quotes where it is meant literally"
	c := rest[0]
	name := func(what, instead string) error {
		return &refusal{what, instead + "; " + quote}
	}
	switch {
	case c == '>' && (before == "2" || strings.HasPrefix(rest, ">&")), strings.HasPrefix(rest, "&>"):
		return &refusal{"a redirection (" + native.Shorten(before+beforeSpace(rest)) + ")", "leave it out: the tool returns what is written to stdout and to stderr"}
	case strings.HasPrefix(rest, "&&"), strings.HasPrefix(rest, "||"), c == ';', c == '&', c == '\n', c == '\r':
		return name(fmt.Sprintf("more than one command (%q)", strings.TrimSpace(rest[:min(2, len(rest))])), "call the tool once for each, with the argument working_directory in place of cd")
	case c == '|':
		return name("a pipe (|)", "run the first program, and give what you need of its output to the next in the argument stdin")
	case c == '<':
		return name("a redirection (<)", "name the file as an argument, or give its content in the argument stdin")
	case c == '>':
		return name("a redirection (>)", "write files with the tool file_write")
	case c == '(' || c == ')':
		return name("a parenthesis", "a command is one program and its arguments")
	case c == '*' || c == '?' || c == '[':
		return name(fmt.Sprintf("a pattern (%c)", c), "name the files (the tools glob and directory_read list them), or their folder")
	case c == '~' && before == "":
		return name("the home folder (~)", "name a path of a mount")
	case c == '#' && before == "":
		return name("a comment (#)", "leave it out")
	case c == '{' && (strings.Contains(beforeSpace(rest), ",") || strings.Contains(beforeSpace(rest), "..")):
		return name("a list in braces", "write each of its items")
	}
	return nil
}

func beforeSpace(s string) string {
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i]
	}
	return s
}
