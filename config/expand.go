package config

import (
	"fmt"
	"strings"
)

// The rule of variables, one for every field that knows them (K49, K51): only
// ${NAME}, ${NAME:-default} and ${env:NAME} are variables, where a NAME is made
// of ASCII letters, digits and _ and does not begin with a digit. A default
// takes the place of a variable that is unset or empty. $${NAME} is the text
// ${NAME}. What an expansion gave is not expanded again. A form that means a
// variable to another program, ${input:x} or ${A:?x}, is reported; all other
// text is itself: ab$Q9x$, $$, ${, a${}b, 100%PATH%.

// part is a piece of a text: literal text, or a variable.
type part struct {
	text     string // of literal text; of a variable, as it was written
	name     string // of a variable; else empty
	fallback string // of a variable, after :-
	has      bool   // the variable has a fallback
}

// parse splits a text into parts. The problem, if any, says what is wrong with
// the text, and never holds more of it than a variable's name.
func parse(s string) (parts []part, problem string) {
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{text: literal.String()})
			literal.Reset()
		}
	}
	for s != "" {
		at := strings.Index(s, "${")
		if at < 0 {
			literal.WriteString(s)
			break
		}
		end := strings.IndexByte(s[at:], '}')
		if end < 0 { // no form ends any more
			literal.WriteString(s)
			break
		}
		inner, next := s[at+2:at+end], at+end+1
		v, foreign := reference(inner)
		switch {
		case v.name == "" && foreign == "":
			// Go on after the brace that opens: another form may begin inside.
			literal.WriteString(s[:at+2])
			next = at + 2
		case at > 0 && s[at-1] == '$': // the escape
			literal.WriteString(s[:at-1])
			literal.WriteString(s[at:next])
		case foreign != "":
			if problem == "" {
				problem = foreign
			}
			literal.WriteString(s[:next])
		default:
			literal.WriteString(s[:at])
			flush()
			v.text = s[at:next]
			parts = append(parts, v)
		}
		s = s[next:]
	}
	flush()
	return parts, problem
}

// reference reads what stands between the braces: a variable, or what another
// program would take for one, or neither.
func reference(inner string) (v part, foreign string) {
	name := strings.TrimPrefix(inner, "env:")
	n := nameLength(name)
	rest := name[n:]
	name = name[:n]
	switch {
	case n == 0:
		if strings.HasPrefix(inner, "{") && nameLength(strings.TrimLeft(inner, "{ ")) > 0 {
			return part{}, "${{…}} is not a variable here"
		}
		if n := nameLength(strings.TrimSpace(inner)); n > 0 && n == len(strings.TrimSpace(inner)) {
			return part{}, "${" + inner + "} has spaces around its name"
		}
		return part{}, ""
	case rest == "":
		if isEditorVariable(name) {
			return part{}, "${" + name + "} is a variable of an editor"
		}
		return part{name: name}, ""
	case strings.HasPrefix(rest, ":-"):
		if strings.Contains(rest, "${") {
			return part{}, "${" + name + ":-…} has a variable in its default"
		}
		return part{name: name, fallback: rest[2:], has: true}, ""
	case strings.TrimSpace(rest) == "":
		return part{}, "${" + name + " } has spaces around its name"
	case name == "input" && rest[0] == ':':
		return part{}, "${input:…} is asked for by an editor"
	case rest[0] == ':' && len(rest) > 1 || strings.IndexByte("-?+=#%/^,@[!", rest[0]) >= 0:
		return part{}, fmt.Sprintf("${%s%c…} is not a form that is known here", name, rest[0])
	case rest[0] == '.' && nameLength(rest[1:]) > 0:
		return part{}, "${" + name + ".…} is a variable of another program"
	}
	return part{}, ""
}

// isEditorVariable reports whether a name is one that editors and bundles give
// to places of their own.
func isEditorVariable(name string) bool {
	switch name {
	case "workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "userHome", "pathSeparator", "fileDirname", "file", "__dirname":
		return true
	}
	return false
}

// nameLength is the length of the variable's name that s begins with.
func nameLength(s string) int {
	for i := range len(s) {
		c := s[i]
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(s)
}

// environ are the variables of the environment.
type environ map[string]string

// unsetKey is no name of a variable: what those that are not set mean.
const unsetKey = ""

// newEnviron reads NAME=value lines; of a name given twice, the last counts.
func newEnviron(lines []string) environ {
	e := make(environ, len(lines))
	for _, line := range lines {
		if name, value, ok := strings.Cut(line, "="); ok && name != "" {
			e[name] = value
		}
	}
	return e
}

// value returns what a variable means; given is false where that is its
// default, and ok where it is unset and has none.
func (e environ) value(v part) (value string, given, ok bool) {
	value, given = e[v.name]
	switch {
	case v.has && value == "":
		return v.fallback, false, true
	case !given && e[unsetKey] != "":
		return e[unsetKey], false, true
	}
	return value, given, given
}
