package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"crewhost/config/secret"
	"crewhost/tools"
)

// RequiredError says which servers that the settings require could not be
// connected.
type RequiredError struct {
	// Failed are the errors of these servers, in the settings' order.
	Failed []error
}

// Error names every server that failed, in one line.
func (e *RequiredError) Error() string {
	lines := make([]string, len(e.Failed))
	for i, err := range e.Failed {
		lines[i] = err.Error()
	}
	return "required MCP servers could not be connected: " + strings.Join(lines, "; ")
}

// Unwrap returns the errors of the servers.
func (e *RequiredError) Unwrap() []error { return e.Failed }

// A fault is why an answer can't be used, or a transport can't go on. Its text
// is not yet redacted.
type fault struct {
	code   tools.Code
	detail string
	err    error // the cause, may be nil
}

func (f *fault) Error() string { return f.detail }
func (f *fault) Unwrap() error { return f.err }

func faultf(code tools.Code, format string, args ...any) *fault {
	err := fmt.Errorf(format, args...)
	return &fault{code: code, detail: err.Error(), err: errors.Unwrap(err)}
}

// errSessionClosed is the cause that ends the calls of a session being closed.
var errSessionClosed = errors.New("the session is closed")

// masks hides what must not be seen in texts that a server had a hand in.
type masks struct {
	shared *secret.Redactor // the secrets of all settings
	own    secret.Redactor  // also what is merely none of anyone's business: values of env, headers, queries
}

// minOwn is the shortest value of a variable or header that is masked although
// the settings don't mark it as a secret: masking every "true" would hide the
// text and no secret.
const minOwn = 6

// own adds a value that was not marked as a secret.
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
		if unprintable(r) {
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

// cause is the plain reason in err: without the layers that would repeat
// the URL, whose query may be secret.
func cause(err error) error {
	for {
		var u *url.Error
		if !errors.As(err, &u) {
			return err
		}
		err = u.Err
	}
}

// ended reports whether ctx is over, and whether a deadline was the reason.
func ended(ctx context.Context) (over, late bool) {
	return ctx.Err() != nil, errors.Is(ctx.Err(), context.DeadlineExceeded)
}
