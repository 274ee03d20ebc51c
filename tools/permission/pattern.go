package permission

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// maxPattern bounds the length of a pattern, in bytes, and with it the time that
// matching takes.
const maxPattern = 1024

// mcpPrefix starts the names that speak of a server (A9).
const mcpPrefix = "mcp__"

// compiled is a rule ready for matching.
type compiled struct {
	source Rule
	strict bool // of a deny or ask rule: what can't be judged matches
	name   glob // over the registered name; empty where readings decide alone
	// readings are the ways to read the name as mcp__<server>__<tool>.
	readings   []reading
	conditions []condition
}

// reading is one way to tell a pattern's server from its tool.
type reading struct {
	server, tool glob
}

// condition is about one member of the arguments.
type condition struct {
	member string
	form   form
	values []glob // one of them must match
	rooted bool   // the pattern is an absolute path
}

// form is how a condition compares a value.
type form byte

const (
	plain    form = iota // as text
	filePath             // as a path with slashes
	webURL               // as a URL
)

// compile parses a rule. strict rules are those of the classes deny and ask.
func compile(r Rule, strict bool) (compiled, error) {
	c := compiled{source: r, strict: strict}
	switch p := r.Pattern; {
	case p == "":
		return c, errors.New("the pattern is empty")
	case len(p) > maxPattern:
		return c, fmt.Errorf("the pattern is longer than %d bytes", maxPattern)
	case strings.TrimSpace(p) != p:
		return c, errors.New("the pattern starts or ends with a space")
	case p[0] == '!':
		return c, errors.New(`a leading "!" does not negate; write the rule in another class, or \! for the character`)
	}
	name, conds, conditional := cut(r.Pattern, ':')
	if err := c.parseName(name); err != nil {
		return c, err
	}
	if !conditional {
		return c, nil
	}
	for rest, more := conds, true; more; {
		var one string
		one, rest, more = cut(rest, ',')
		cond, err := parseCondition(one, strict)
		if err != nil {
			return c, err
		}
		c.conditions = append(c.conditions, cond)
	}
	return c, nil
}

func (c *compiled) parseName(text string) error {
	if text == "" {
		return errors.New("there is no tool name before the colon")
	}
	name, err := parseGlob(text, true)
	if err != nil {
		return err
	}
	rest, ok := strings.CutPrefix(text, mcpPrefix)
	if !ok {
		c.name = name
		return nil
	}
	if c.strict {
		c.name = name
	}
	if rest == "" {
		return errors.New(`no server is named after "mcp__"; mcp__* means every server`)
	}
	// Without a second "__" the whole server is meant.
	if at := separator(rest, 1); at < 0 {
		server, err := parseGlob(rest, true)
		c.readings = []reading{{server: server, tool: anything}}
		return err
	}
	for at := separator(rest, 1); at >= 0; at = separator(rest, at+1) {
		server, err := parseGlob(rest[:at], true)
		if err != nil {
			return err
		}
		tool := anything
		if t := rest[at+2:]; t != "" {
			if tool, err = parseGlob(t, true); err != nil {
				return err
			}
		} else if len(c.readings) == 0 {
			return errors.New(`no tool is named after the second "__"; leave the "__" out, or write __* for the whole server`)
		}
		c.readings = append(c.readings, reading{server, tool})
		if !c.strict {
			break
		}
	}
	return nil
}

func parseCondition(text string, strict bool) (condition, error) {
	member, value, ok := cut(text, '=')
	if !ok || member == "" {
		return condition{}, fmt.Errorf("the condition %q is not of the form argument=pattern (a colon in a tool's name is written \\:)", text)
	}
	name, err := unescape(member)
	if err != nil {
		return condition{}, err
	}
	c := condition{member: name}
	switch {
	case strings.Contains(value, "://"):
		c.form = webURL
		value, err = canonicalURL(value)
	case strings.Contains(value, "/"):
		c.form = filePath
		c.rooted = value[0] == '/'
		// A value is cleaned before it is compared, so a pattern that no clean
		// path fits would never match, without a word.
		if clean := path.Clean(value); clean != value {
			err = fmt.Errorf("the path is not clean; write %s", clean)
		}
	}
	if err != nil {
		return condition{}, fmt.Errorf("the condition %q: %w", text, err)
	}
	texts := []string{value}
	if folder, ok := strings.CutSuffix(value, "/**"); ok && folder != "" && c.form == filePath {
		texts = append(texts, folder) // the folder itself, too
	}
	for _, t := range texts {
		g, err := parseGlob(t, strict && c.form == plain)
		if err != nil {
			return condition{}, err
		}
		if strict && c.form != plain {
			g = g.folded()
		}
		c.values = append(c.values, g)
		if strict && c.form == filePath && !c.rooted {
			c.values = append(c.values, g.below()) // relative to what, only the tool knows
		}
	}
	return c, nil
}

// canonicalURL brings a pattern into the form that URLs are compared in, or says
// why no URL would match it.
func canonicalURL(pattern string) (string, error) {
	scheme, rest, _ := strings.Cut(pattern, "://")
	scheme = strings.ToLower(scheme)
	host, file, _ := strings.Cut(rest, "/")
	host = strings.ToLower(host)
	if scheme == "http" && strings.HasSuffix(host, ":80") || scheme == "https" && strings.HasSuffix(host, ":443") {
		return "", errors.New("write the URL without the default port")
	}
	if strings.Contains(host, "@") {
		return "", errors.New("write the URL without a user")
	}
	if clean := path.Clean("/" + file); clean != "/"+file && !strings.Contains(file, `\`) && !strings.Contains(file, "?") {
		return "", fmt.Errorf("the path of the URL is not clean; write %s://%s%s", scheme, host, clean)
	}
	// A question mark starts the query of a URL and is no wildcard.
	var b strings.Builder
	for rest := scheme + "://" + host + "/" + file; rest != ""; {
		before, after, found := cut(rest, '?')
		b.WriteString(before)
		if found {
			b.WriteString(`\?`)
		}
		rest = after
	}
	return b.String(), nil
}

// cut splits s at the first sep that no backslash precedes.
func cut(s string, sep byte) (before, after string, found bool) {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case sep:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// separator is the offset of the first "__" at or after from that no backslash
// precedes, or -1.
func separator(s string, from int) int {
	for i := 0; i+1 < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case i >= from && s[i] == '_' && s[i+1] == '_':
			return i
		}
	}
	return -1
}

// unescape takes the backslashes out of a text without wildcards.
func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 == len(s):
			return "", errors.New("the backslash at the end escapes nothing")
		case s[i] == '\\':
			i++
		case s[i] == '*' || s[i] == '?':
			return "", fmt.Errorf("the argument's name %q has a wildcard; only its value may", s)
		}
		b.WriteByte(s[i])
	}
	return b.String(), nil
}
