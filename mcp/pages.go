package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"crewhost/tools"
)

// A pager reads a list that comes in pages, whatever the server does to make it
// endless.
type pager struct {
	what   string // "resources"
	member string // of a page, that holds its part of the list
	items  int    // the most that are taken
	pages  int    // the most that are asked for
	warn   func(string)
}

// read returns the items of all pages as they came. Ask returns the result for
// one page; the cursor is nil for the first.
func (p pager) read(ctx context.Context, ask func(ctx context.Context, cursor *string) (json.RawMessage, error)) ([]json.RawMessage, error) {
	var listed []json.RawMessage
	var cursor *string
	cursors := make(map[string]bool)
	for page := 1; ; page++ {
		raw, err := ask(ctx, cursor)
		if err != nil {
			return nil, err
		}
		var members map[string]json.RawMessage
		var items []json.RawMessage
		if json.Unmarshal(raw, &members) != nil || members[p.member] != nil && json.Unmarshal(members[p.member], &items) != nil {
			return nil, faultf(tools.CodeProtocolError, "its list of %s is not one", p.what)
		}
		listed = append(listed, items...)
		// Only a cursor that is absent ends the list; an empty one doesn't (K19).
		cursor = nil
		if next := members["nextCursor"]; next != nil && json.Unmarshal(next, &cursor) != nil {
			return nil, faultf(tools.CodeProtocolError, "a cursor of its list of %s is not one", p.what)
		}
		switch {
		case len(listed) > p.items:
			p.warn(fmt.Sprintf("lists more than %d %s: the first %d were taken", p.items, p.what, p.items))
			return listed[:p.items], nil
		case cursor == nil:
			return listed, nil
		case len(*cursor) > maxCursor:
			return nil, faultf(tools.CodeProtocolError, "a cursor of its list of %s is too long", p.what)
		case page == p.pages:
			p.warn(fmt.Sprintf("lists its %s on more than %d pages: the first %d were taken", p.what, p.pages, p.pages))
			return listed, nil
		case cursors[*cursor]:
			p.warn(fmt.Sprintf("repeats the cursor %q of its list of %s: what came so far was taken", oneLine(*cursor, 64), p.what))
			return listed, nil
		}
		cursors[*cursor] = true
	}
}
