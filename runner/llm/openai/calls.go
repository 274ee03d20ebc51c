package openai

import (
	"encoding/json"
	"fmt"
	"strings"

	"crewhost/runner/llm"
)

// callList puts the tool calls of one answer together. The API says that parts of
// a call share an index and that the first has the id; servers leave out the
// index, use one index for all calls, repeat id and name, or send no ids. Two
// calls stay two, or there is an error; their arguments are never joined (K73).
type callList struct {
	calls []*call
}

type call struct {
	index     *int
	id, name  string
	extra     json.RawMessage
	arguments strings.Builder
	end       objectEnd
}

// whole takes a call that came in one piece.
func (l *callList) whole(part callPart) {
	c := &call{index: part.Index, id: part.ID, name: part.Function.Name}
	c.keep(part)
	c.write(part.Function.arguments())
	l.calls = append(l.calls, c)
}

// part takes a piece of a streamed call.
func (l *callList) part(part callPart) error {
	text := part.Function.arguments()
	c := l.find(part)
	if c == nil || c.isOver(part, text) {
		l.whole(part)
		return nil
	}
	if c.id == "" {
		c.id = part.ID
	}
	if c.name == "" {
		c.name = part.Function.Name
	}
	c.keep(part)
	switch sofar := strings.TrimSpace(c.arguments.String()); {
	case !c.end.over || strings.TrimSpace(text) == "":
		c.write(text)
	case strings.TrimSpace(text) == sofar:
		// Some servers send the whole arguments once more at the end.
	case sofar == "{}":
		c.arguments.Reset() // a placeholder before the arguments proper
		c.end = objectEnd{}
		c.write(text)
	default:
		return malformed(fmt.Sprintf("the arguments of the call of %q go on after their end", c.name), nil)
	}
	return nil
}

// find returns the call that a part belongs to by its id or index, or else the
// last one; nil if it opens a call.
func (l *callList) find(part callPart) *call {
	if len(l.calls) == 0 {
		return nil
	}
	if part.ID != "" {
		for _, c := range l.calls {
			if c.id == part.ID && (c.index == nil || part.Index == nil || *c.index == *part.Index) {
				return c
			}
		}
	}
	last := l.calls[len(l.calls)-1]
	if part.Index != nil {
		last = nil
		for _, c := range l.calls { // the newest at the index: one may be used twice
			if c.index != nil && *c.index == *part.Index {
				last = c
			}
		}
	}
	if last == nil || part.ID != "" && last.id != "" {
		return nil // a new index, or a new id at whatever index
	}
	return last
}

// isOver reports whether a part that names no other call opens one all the same:
// it has another name, or it begins arguments anew behind complete ones.
func (c *call) isOver(part callPart, text string) bool {
	name := part.Function.Name
	if name == "" || c.name == "" {
		return false
	}
	if name != c.name {
		return true
	}
	sameID := part.ID != "" && part.ID == c.id
	return !sameID && c.end.over && strings.TrimSpace(text) != ""
}

func (c *call) keep(part callPart) {
	if !isNull(part.ExtraContent) {
		c.extra = part.ExtraContent
	}
}

func (c *call) write(text string) {
	c.arguments.WriteString(text)
	c.end.feed(text)
}

// all returns the calls, each with an id that no other has, and by that id what
// the server wants to have back with them.
func (l *callList) all() ([]llm.ToolCall, map[string]json.RawMessage, error) {
	var out []llm.ToolCall
	extra := map[string]json.RawMessage{}
	used := map[string]bool{}
	for _, c := range l.calls {
		used[c.id] = true
	}
	given := map[string]bool{}
	next := 0
	for _, c := range l.calls {
		if c.name == "" {
			return nil, nil, malformed("a tool call has no name", nil)
		}
		id := c.id
		for id == "" || given[id] {
			next++
			if id = fmt.Sprintf("call_%d", next); used[id] {
				id = ""
			}
		}
		given[id] = true
		if c.extra != nil {
			extra[id] = c.extra
		}
		out = append(out, llm.ToolCall{ID: id, Name: c.name, Arguments: c.arguments.String()})
	}
	return out, extra, nil
}

// objectEnd watches a JSON text go by and knows when its first object or array
// is complete, without looking at any byte twice.
type objectEnd struct {
	depth             int
	inString, escaped bool
	over              bool
}

func (e *objectEnd) feed(text string) {
	for i := 0; i < len(text) && !e.over; i++ {
		switch c := text[i]; {
		case e.escaped:
			e.escaped = false
		case e.inString:
			e.escaped = c == '\\'
			e.inString = c != '"'
		case c == '"':
			e.inString = true
		case c == '{', c == '[':
			e.depth++
		case c == '}', c == ']':
			e.depth--
			e.over = e.depth <= 0
		}
	}
}
