package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// list reads the server's tools.
func (s *session) list(ctx context.Context, conn *connection) (catalog, error) {
	refused := make(map[string]bool)
	var until time.Time
	p := pager{what: "tools", member: "tools", items: s.limits.Tools, pages: s.limits.Pages, warn: s.warn}
	listed, err := p.read(ctx, func(ctx context.Context, cursor *string) (json.RawMessage, error) {
		raw, err := s.page(ctx, conn, cursor, refused)
		var page struct {
			TTL json.Number `json:"ttlMs"`
		}
		_ = json.Unmarshal(raw, &page) // the pager says what is wrong with it
		until = soonest(until, page.TTL)
		return raw, err
	})
	var f *fault
	switch {
	case errors.As(err, &f):
		return catalog{}, s.wrap(f.code, f.detail, nil)
	case err != nil:
		return catalog{}, err
	}
	c := catalogue(s.server, s.limits, listed, refused)
	c.until = until
	return c, nil
}

// soonest is the earlier of a time and the end of the time to live of a page, in
// milliseconds. Without a time to live, or with one that is no number above zero, a
// page is good until it is said to have changed.
func soonest(until time.Time, ttl json.Number) time.Time {
	ms, err := ttl.Float64()
	if err != nil || ms <= 0 || ms > maxTTL.Seconds()*1000 {
		return until
	}
	end := time.Now().Add(time.Duration(ms * float64(time.Millisecond)))
	if until.IsZero() || end.Before(until) {
		return end
	}
	return until
}

// maxTTL is the longest time to live that is kept track of.
const maxTTL = 365 * 24 * time.Hour

// page asks for one page of the list and returns the result as it came. It adds to
// refused the tools that must not be used over HTTP: those that want headers made of
// arguments which can't be.
func (s *session) page(ctx context.Context, conn *connection, cursor *string, refused map[string]bool) (json.RawMessage, error) {
	ctx, end, err := s.beginOn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	ctx, ex := withExchange(ctx)
	if cursor != nil && *cursor == "" {
		// The SDK's own parameters leave an empty cursor out.
		_, err = sdk.CallCustomMethod[*emptyCursor, *sdk.ListToolsResult](ctx, conn.client, methodListTools, new(emptyCursor))
	} else {
		params := new(sdk.ListToolsParams)
		if cursor != nil {
			params.Cursor = *cursor
		}
		var page *sdk.ListToolsResult
		if page, err = conn.client.ListTools(ctx, params); err == nil && s.server.Transport.Remote() {
			result, _, _ := ex.get()
			missing(result, page.Tools, refused)
		}
	}
	result, refusal, _ := ex.get()
	switch {
	case err == nil:
		return result, nil
	case refusal != nil && refusal.Code == jsonrpc.CodeMethodNotFound:
		s.warn("offers no tools")
		return json.RawMessage(`{"tools":[]}`), nil
	}
	return nil, s.failure(ctx, conn.link, ex, err)
}

// missing adds the names of a result to refused that the SDK left out of its own.
func missing(result json.RawMessage, kept []*sdk.Tool, refused map[string]bool) {
	var page struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if json.Unmarshal(reduce(methodListTools, result), &page) != nil {
		return
	}
	names := make(map[string]bool, len(kept))
	for _, t := range kept {
		names[t.Name] = true
	}
	for _, t := range page.Tools {
		if !names[t.Name] {
			refused[t.Name] = true
		}
	}
}

// emptyCursor are the parameters of a page whose cursor is the empty string.
type emptyCursor struct {
	sdk.ParamsBase
	Cursor string `json:"cursor"`
}
