package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// get reads what is at a path of the API into v. Segments are escaped here.
func (h *hub) get(ctx context.Context, query url.Values, v any, segments ...string) error {
	address := strings.TrimRight(h.cfg.GitHub.API(), "/")
	for _, s := range segments {
		address += "/" + url.PathEscape(s)
	}
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("The URL of GitHub is not one: tools.github.url of the settings.")
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	a, err := h.cfg.exchange(h.cfg.GitHub.Client, req, true)
	switch {
	case err != nil:
		return err
	case !a.good():
		return errors.New("GitHub " + h.refusal(a))
	case a.more:
		return fmt.Errorf("GitHub answers with more than %d bytes; ask for less by per_page.", h.cfg.MaxBytes)
	}
	if strings.Contains(a.header.Get("Link"), `rel="next"`) {
		h.more = fmt.Sprintf("[There is more: page %d.]", h.page+1)
	}
	if err := decode(a.body, v); err != nil {
		return fmt.Errorf("GitHub answers with what can't be read: %w.", err)
	}
	return nil
}

// refusal says what to do about an answer that is no good.
func (h *hub) refusal(a answer) string {
	var doc struct {
		Message string
		Errors  []struct{ Message, Field, Code string }
	}
	_ = decode([]byte(a.mask(string(a.body))), &doc)
	complaint := doc.Message
	for _, e := range doc.Errors {
		if e.Message != "" {
			complaint += "; " + e.Message
		}
	}
	limited := a.status == http.StatusForbidden || a.status == http.StatusTooManyRequests
	reset, err := strconv.ParseInt(a.header.Get("X-Ratelimit-Reset"), 10, 64)
	switch {
	case limited && a.header.Get("X-Ratelimit-Remaining") == "0" && err == nil:
		return fmt.Sprintf("has answered as often as it does for now: its limit is reached until %s. A token (tools.github.credential of the settings) raises it.", time.Unix(reset, 0).UTC().Format(time.RFC3339))
	case limited && retryAfter(a.header) != "":
		return "was asked too much at once; try again " + retryAfter(a.header) + "."
	case a.status == http.StatusNotFound:
		return "answers HTTP 404: there is no such thing, or it is private, and the operator's token, if there is one, may not see it. Look at the spelling of owner, repo, path and ref."
	}
	return refusal(a, "tools.github.credential of the settings", complaint)
}

// paged are the parameters of a list.
func (h *hub) paged(pairs ...string) url.Values {
	v := url.Values{"page": {strconv.Itoa(h.page)}, "per_page": {strconv.Itoa(h.pageSize)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			v.Set(pairs[i], pairs[i+1])
		}
	}
	return v
}

// day is the day of a time as the API writes it.
func day(stamp string) string {
	d, _, _ := strings.Cut(stamp, "T")
	return line(d, 20)
}

// A list is lines of a result.
type list struct{ strings.Builder }

// row adds a line.
func (l *list) row(format string, args ...any) { fmt.Fprintf(l, format+"\n", args...) }

// field adds a line where there is something to say.
func (l *list) field(name, value string) {
	if value = line(value, 500); value != "" {
		l.row("%s: %s", name, value)
	}
}
