package server

import (
	"encoding/base64"
	"slices"
	"strings"
)

// A listing is a list that is answered in pages.
type listing[T any] struct {
	member string                // of the result
	items  []T                   // in the order in which they are listed
	key    func(T) string        // what tells an item from all others
	render func(T) []byte        // an item as MCP writes it
	after  func(last string) int // where to go on where the last item is gone; nil: nowhere
}

// page answers one page. It is shorter than PageSize where more would not fit into
// an answer. A cursor says which item was the last, and means nothing to clients.
func page[T any](s *Server, x exchange, l listing[T], cursor string) (*answer, error) {
	start := 0
	if cursor != "" {
		last, ok := openCursor(l.member, cursor)
		if !ok {
			return nil, invalid("the cursor is none that a list of %s gave: begin again without one", l.member)
		}
		start = slices.IndexFunc(l.items, func(t T) bool { return l.key(t) == last }) + 1
		if start == 0 {
			if l.after == nil {
				return nil, invalid("the cursor is of a list that has changed: begin again")
			}
			start = l.after(last)
		}
	}
	room := s.budgets.ResponseBytes - 4<<10 // for all around the items
	var rendered [][]byte
	next := start
	for ; next < len(l.items) && next-start < s.budgets.PageSize; next++ {
		one := l.render(l.items[next])
		if room -= len(one) + 1; room < 0 && next > start {
			break
		}
		rendered = append(rendered, one)
	}
	o := newObject()
	o.list(l.member, rendered)
	if next < len(l.items) {
		o.text("nextCursor", sealCursor(l.member, l.key(l.items[next-1])))
	}
	if x.modern {
		o.value("ttlMs", listTTL.Milliseconds())
		o.text("cacheScope", cacheScope)
	}
	return s.answer(x, o.end())
}

func sealCursor(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + "\x00" + last))
}

func openCursor(list, cursor string) (last string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(string(b), list+"\x00")
}
