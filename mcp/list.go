package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

// list reads the server's tools, page by page.
func (s *session) list(ctx context.Context, conn *connection) (catalog, error) {
	var listed []json.RawMessage
	var cursor *string
	cursors := make(map[string]bool)
	refused := make(map[string]bool)
	var until time.Time
	for page := 1; ; page++ {
		raw, err := s.page(ctx, conn, cursor, refused)
		if err != nil {
			return catalog{}, err
		}
		var p struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor *string           `json:"nextCursor"`
			TTL        json.Number       `json:"ttlMs"`
		}
		if err := json.Unmarshal(raw, &p); err != nil {
			return catalog{}, s.wrap(tools.CodeProtocolError, "its list of tools is not one", nil)
		}
		listed = append(listed, p.Tools...)
		until = soonest(until, p.TTL)
		// Only a cursor that is absent ends the list; an empty one doesn't (K19).
		cursor = p.NextCursor
		switch {
		case len(listed) > s.limits.Tools:
			s.warn(fmt.Sprintf("lists more than %d tools: the first %d were taken", s.limits.Tools, s.limits.Tools))
			listed = listed[:s.limits.Tools]
		case cursor == nil:
		case len(*cursor) > maxCursor:
			return catalog{}, s.wrap(tools.CodeProtocolError, "a cursor of its list of tools is too long", nil)
		case page == s.limits.Pages:
			s.warn(fmt.Sprintf("lists its tools on more than %d pages: the first %d were taken", s.limits.Pages, s.limits.Pages))
		case cursors[*cursor]:
			s.warn(fmt.Sprintf("repeats the cursor %q of its list: what came so far was taken", cut(*cursor, 64)))
		default:
			cursors[*cursor] = true
			continue
		}
		catalog := catalogue(s.server, s.limits, listed, refused)
		catalog.until = until
		return catalog, nil
	}
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
