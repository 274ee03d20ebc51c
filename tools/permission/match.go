package permission

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxValue bounds the values that conditions are compared with, in bytes.
const maxValue = 64 << 10

// matcher matches one request against rules. It reads the arguments once, and
// only when a rule wants them.
type matcher struct {
	request Request
	base    string

	read    bool
	members []member
	object  bool // the arguments were one JSON object
}

// member is one member of the arguments, in the order of the text.
type member struct {
	name  string
	value json.RawMessage
}

func (m *matcher) matches(c *compiled) bool {
	if !m.named(c) {
		return false
	}
	for i := range c.conditions {
		if !m.holds(&c.conditions[i], c.strict) {
			return false
		}
	}
	return true
}

func (m *matcher) named(c *compiled) bool {
	if c.source.Host && m.request.Server != "" {
		return false
	}
	if len(c.name.tokens) > 0 && c.name.match(m.request.Tool) {
		return true
	}
	if m.request.Server == "" {
		return false
	}
	return slices.ContainsFunc(c.readings, func(r reading) bool {
		return r.server.match(m.request.Server) && r.tool.match(m.request.ServerTool)
	})
}

// holds reports whether a condition is met. What can't be judged meets the
// conditions of a strict rule and no others.
func (m *matcher) holds(c *condition, strict bool) bool {
	if !m.read {
		m.members, m.object = members(m.request.Arguments)
		m.read = true
	}
	if !m.object {
		return strict
	}
	var found []member
	for _, mem := range m.members {
		if strings.EqualFold(mem.name, c.member) {
			found = append(found, mem)
		}
	}
	if strict {
		return slices.ContainsFunc(found, func(mem member) bool { return m.suspect(c, mem.value) })
	}
	return len(found) == 1 && found[0].name == c.member && m.trusted(c, found[0].value)
}

// suspect reports whether any way to read the value meets a strict condition.
func (m *matcher) suspect(c *condition, raw json.RawMessage) bool {
	text, state := scalar(raw)
	switch state {
	case absent:
		return false
	case unreadable:
		return true
	}
	spellings := []string{text, strings.TrimSpace(text)}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		// 5, 5.0 and 5e0 are one number.
		spellings = append(spellings, strconv.FormatFloat(f, 'f', -1, 64))
	}
	return slices.ContainsFunc(spellings, func(s string) bool {
		if c.any(s) {
			return true
		}
		switch c.form {
		case filePath:
			return m.suspectPath(c, s)
		case webURL:
			forms, ok := urlForms(s)
			return !ok || slices.ContainsFunc(forms, c.any)
		default:
			return false
		}
	})
}

func (m *matcher) suspectPath(c *condition, s string) bool {
	if len(s) > 7 && strings.EqualFold(s[:7], "file://") {
		s = s[7:]
	}
	for _, p := range []string{path.Clean(s), path.Clean(strings.ReplaceAll(s, `\`, "/"))} {
		switch {
		case c.any(p):
			return true
		case !c.rooted || path.IsAbs(p):
			continue
		case m.request.Server == "" && m.base != "":
			if c.any(path.Join(m.base, p)) {
				return true
			}
		case c.anyTail(p):
			return true
		}
	}
	return false
}

// trusted reports whether the value meets an allow rule's condition whichever
// way it is read.
func (m *matcher) trusted(c *condition, raw json.RawMessage) bool {
	text, state := scalar(raw)
	if state != readable || strings.ContainsFunc(text, unicode.IsControl) {
		return false
	}
	switch c.form {
	case filePath:
		for _, p := range []string{path.Clean(text), path.Clean(strings.ReplaceAll(text, `\`, "/"))} {
			if c.rooted && !path.IsAbs(p) && m.request.Server == "" && m.base != "" {
				p = path.Join(m.base, p)
			}
			if !c.any(p) {
				return false
			}
		}
		return true
	case webURL:
		u, err := url.Parse(text)
		if err != nil || u.User != nil || strings.ContainsAny(text, `\ `) {
			return false
		}
		forms, ok := urlForms(text)
		return ok && !slices.ContainsFunc(forms, func(f string) bool { return !c.any(f) })
	default:
		return c.any(text)
	}
}

func (c *condition) any(s string) bool {
	return slices.ContainsFunc(c.values, func(g glob) bool { return g.match(s) })
}

// anyTail reports whether some folder would make the relative path p match.
func (c *condition) anyTail(p string) bool {
	for strings.HasPrefix(p, "../") {
		p = p[3:]
	}
	if p == "." || p == ".." {
		return true
	}
	return slices.ContainsFunc(c.values, func(g glob) bool { return g.matchTail("/" + p) })
}

// urlForms returns the URL in canonical spellings: scheme and host in lower
// case, without user, default port and fragment, the path cleaned, once as it
// was written and once decoded. A URL of the web has a host; one of a file or of
// a server's own scheme needs none.
func urlForms(s string) ([]string, bool) {
	u, err := url.Parse(strings.ReplaceAll(s, `\`, "/"))
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return nil, false
	}
	switch u.Scheme {
	case "http", "https", "ws", "wss", "ftp":
		if u.Host == "" {
			return nil, false
		}
	case "file":
		if strings.EqualFold(u.Host, "localhost") {
			u.Host = ""
		}
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if p := u.Port(); p != "" && (u.Scheme != "http" || p != "80") && (u.Scheme != "https" || p != "443") {
		host += ":" + p
	}
	var forms []string
	for _, p := range []string{u.EscapedPath(), u.Path} {
		form := u.Scheme + "://" + host + path.Clean("/"+p)
		if u.RawQuery != "" {
			form += "?" + u.RawQuery
		}
		forms = append(forms, form)
	}
	return forms, true
}

type state byte

const (
	readable state = iota
	absent
	unreadable
)

// scalar returns the text of a string, number or boolean.
func scalar(raw json.RawMessage) (string, state) {
	raw = bytes.TrimSpace(raw)
	switch {
	case len(raw) > maxValue || len(raw) == 0 || raw[0] == '{' || raw[0] == '[':
		return "", unreadable
	case string(raw) == "null":
		return "", absent
	case raw[0] != '"':
		return string(raw), readable
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", unreadable
	}
	return s, readable
}

// members returns the members of the one JSON object that raw holds, repeated
// ones included. Nothing, and null, are an object without members.
func members(raw json.RawMessage) ([]member, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return nil, true
	}
	if raw[0] != '{' || !json.Valid(raw) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, false
	}
	var all []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		mem := member{name: name.(string)}
		if err := dec.Decode(&mem.value); err != nil {
			return nil, false
		}
		all = append(all, mem)
	}
	return all, true
}
