package oauth

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

const (
	maxAnswer   = 1 << 20          // of an OAuth endpoint, in bytes
	maxText     = 200              // of somebody else's words in an error, in bytes
	maxRedirect = 5                // within an origin
	timeLimit   = 20 * time.Second // of a request to an OAuth endpoint
)

// newClient is the client for OAuth endpoints: no cookies, no redirect to another
// origin, bounded in size and time.
func (a *Authorizer) newClient(base http.RoundTripper) *http.Client {
	return &http.Client{
		Timeout:   timeLimit,
		Transport: guarded{a, base},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0]
			switch {
			case origin(req.URL) != origin(first.URL):
				return fmt.Errorf("the OAuth endpoint redirects to another origin, %s", brief(origin(req.URL)))
			case req.Method != first.Method:
				return fmt.Errorf("the OAuth endpoint redirects a %s", first.Method)
			case len(via) >= maxRedirect:
				return fmt.Errorf("the OAuth endpoint redirects for ever")
			}
			return nil
		},
	}
}

// guarded is the round trip of OAuth requests.
type guarded struct {
	a    *Authorizer
	base http.RoundTripper
}

func (g guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.a.admissible(req.URL); err != nil {
		return nil, err
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	return resp, nil
}

// read reads an answer's JSON, and leaves the body open. It tells an answer of
// success from others by ok.
func read(resp *http.Response, into any) (ok bool, err error) {
	ok = resp.StatusCode >= 200 && resp.StatusCode < 300
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if kind != "application/json" {
		if !ok {
			return false, fmt.Errorf("HTTP status %d", resp.StatusCode)
		}
		return ok, fmt.Errorf("its answer is %q, not application/json", brief(kind))
	}
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		if !ok {
			return false, fmt.Errorf("HTTP status %d", resp.StatusCode)
		}
		return ok, fmt.Errorf("its answer is not the JSON expected")
	}
	return ok, nil
}

// brief is somebody else's text, fit for an error: printable, on one line, short.
func brief(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "�")), " ")
	s = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf) {
			return '�'
		}
		return r
	}, s)
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	return s
}

// form is the body of a request to an OAuth endpoint.
func form(values url.Values) io.Reader { return strings.NewReader(values.Encode()) }
