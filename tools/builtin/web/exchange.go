package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"crewhost/tools"
	"crewhost/tools/native"
)

const (
	maxURL       = 8_000 // characters of a URL
	maxRedirects = 10
)

// userAgent is who asks, where a model does not say otherwise.
const userAgent = "crewhost"

// An answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	url    *url.URL // that it is from, after redirects
	moved  bool     // whether there were any
	body   []byte   // unpacked
	more   bool     // whether there is more of it than may be read
	mask   func(string) string
}

// good reports whether the request was granted.
func (a answer) good() bool { return a.status >= 200 && a.status <= 299 }

// kind is the media type, as the server says it; empty where it doesn't.
func (a answer) kind() string {
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// exchange sends a request and reads the answer. The error is a sentence for a model,
// or else ctx has ended.
func (c Config) exchange(client *http.Client, req *http.Request, follow bool) (answer, error) {
	if client == nil {
		return answer{}, errors.New("Nothing can be reached: this host gives its tools no way into the network.")
	}
	own := *client
	own.CheckRedirect = func(next *http.Request, before []*http.Request) error { return redirected(next, before, follow) }
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	resp, err := own.Do(req)
	if err != nil {
		return answer{}, c.unanswered(req, err)
	}
	defer resp.Body.Close()
	a := answer{status: resp.StatusCode, header: resp.Header, url: resp.Request.URL, moved: resp.Request.Response != nil, mask: c.Mask}
	a.body, err = io.ReadAll(io.LimitReader(resp.Body, c.MaxBytes+1))
	if err == nil {
		err = req.Context().Err() // a server that sees the client leave may end its answer as if it were whole
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s answered %d, and broke off after %s: %w.", shown(a.url), a.status, native.Plural(len(a.body), "byte", "bytes"), inner(err))
	}
	if int64(len(a.body)) > c.MaxBytes {
		a.body, a.more = a.body[:c.MaxBytes], true
	}
	return a, nil
}

// redirected says whether a redirect is followed. What a model says of itself, such as a
// token, stays with the origin that it was said to.
func redirected(next *http.Request, before []*http.Request, follow bool) error {
	last := before[len(before)-1]
	switch {
	case !follow:
		return http.ErrUseLastResponse
	case len(before) > maxRedirects:
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	case next.URL.User != nil:
		return errors.New("it redirects to a URL with a user's name in it")
	case last.URL.Scheme == "https" && next.URL.Scheme != "https":
		return errors.New("it redirects from https to " + native.Shorten(next.URL.Scheme))
	}
	next.Header.Del("Referer") // a URL may hold what is nobody else's business
	if next.Body == nil {
		next.Header.Del("Content-Type")
	}
	away := false
	for _, b := range before {
		away = away || origin(b.URL) != origin(next.URL)
	}
	if !away {
		return nil
	}
	if !safe(next.Method) {
		return http.ErrUseLastResponse // nobody asked for it to be done there
	}
	for name := range next.Header {
		switch name {
		case "Accept", "Accept-Language", "User-Agent":
		default:
			delete(next.Header, name)
		}
	}
	return nil
}

// safe reports whether a method changes nothing (RFC 9110).
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// origin is scheme, host and port of a URL.
func origin(u *url.URL) string {
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "http":
		port = "80"
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// unanswered says in a sentence why no answer came.
func (c Config) unanswered(req *http.Request, err error) error {
	where := shown(req.URL)
	var u *url.Error
	if errors.As(err, &u) {
		if to, perr := url.Parse(u.URL); perr == nil && origin(to) != origin(req.URL) {
			where += " redirects to " + native.Shorten(to.Host) + ", which"
		}
	}
	return fmt.Errorf("%s was not reached: %w.", where, inner(err))
}

// inner is an error of an HTTP client without the URL, which its reader knows.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// shown is a URL as a message may show it: without what may be a secret of the query.
func shown(u *url.URL) string {
	plain := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return tools.Truncate(clean(plain.String()), 300)
}

// failed is the result of a call for which there is no answer.
func failed(ctx context.Context, tool string, err error) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, native.Ended(ctx, tool)
	}
	return tools.Failure(tools.Truncate(clean(err.Error()), native.MaxText)), nil
}

// address takes the argument url.
func address(args *native.Arguments) *url.URL {
	text := strings.TrimSpace(args.Need("url"))
	if !args.Has("url") {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case len(text) > maxURL:
		args.Note("the url is longer than %d characters", maxURL)
	case err != nil:
		args.Note("the url is not a URL; write https://HOST/PATH, and %%-encode what is special in it")
	case u.Scheme == "" && u.Host == "":
		args.Note("the url %q has no scheme; write https://HOST/PATH", native.Shorten(text))
	case u.Scheme != "https" && u.Scheme != "http":
		args.Note("the url has the scheme %q; only https and, where it is allowed, http are spoken", native.Shorten(u.Scheme))
	case u.Hostname() == "":
		args.Note("the url %q names no host; write https://HOST/PATH", native.Shorten(text))
	case u.User != nil:
		args.Note("the url has a user's name in it; give the headers an Authorization instead")
	default:
		u.Fragment, u.RawFragment = "", ""
		return u
	}
	return nil
}
