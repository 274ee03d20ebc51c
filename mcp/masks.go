package mcp

import (
	"strings"
	"unicode/utf8"

	"crewhost/config/secret"
)

// masks hides what must not be seen in texts that a server had a hand in.
type masks struct {
	shared *secret.Redactor // the secrets of all settings
	own    secret.Redactor  // what of one server's settings is nobody's business: values of env, headers, queries
}

// minOwn is the shortest value of a variable or header that is masked although
// the settings don't mark it as a secret: masking every "true" would hide the
// text and no secret.
const minOwn = 6

// add adds a value that was not marked as a secret.
func (m *masks) add(value string) {
	if len(value) >= minOwn {
		m.own.Add(secret.New(value))
	}
}

func (m *masks) redact(s string) string { return m.shared.Redact(m.own.Redact(s)) }

// line is s fit for a report: masked, on one line, at most limit bytes.
func (m *masks) line(s string, limit int) string {
	return oneLine(m.redact(s), limit)
}

// maxDetail is the length of the longest text of a server in an error, in bytes.
const maxDetail = 1000

// oneLine joins the lines of s, makes what can't be printed visible, and cuts
// the result to about limit bytes, saying so (W10).
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	s = strings.Map(func(r rune) rune {
		if unprintable(r) && r != pictured {
			return '�'
		}
		return r
	}, s)
	return cut(s, limit)
}

// cut shortens s to at most limit bytes and a mark that says so, at a rune boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

// lastWords is the end of s on one line.
func lastWords(s string) string {
	s = oneLine(s, len(s))
	if len(s) > maxStderr {
		s = "…" + oneLine(s[len(s)-maxStderr:], maxStderr)
	}
	return s
}
