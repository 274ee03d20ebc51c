package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"crewhost/mcp/wire"
	"crewhost/tools"
	"crewhost/tools/search"
)

// A shelf holds the tools that are offered at a time. What is offered and what a
// call reaches are decided here and nowhere else: [Server.stock] fills the shelf,
// [Server.reach] finds what a name means.
type shelf struct {
	items []item // all that can be called, by name

	// listed is what tools/list shows, by name: all, or what stands in for them
	// where they are too many, and then stoodFor is set.
	listed   []item
	stoodFor bool
	index    func() *search.Index // of all, made when it is first used
}

// An item is one entry of tools/list, a Tool of MCP.
type item struct {
	name    string
	modern  []byte
	legacy  []byte   // for the eras before
	mirrors []mirror // over HTTP
}

// equal reports whether clients are shown the same.
func (s *shelf) equal(other *shelf) bool {
	return slices.EqualFunc(s.listed, other.listed, func(a, b item) bool {
		return a.name == b.name && bytes.Equal(a.modern, b.modern)
	})
}

// find returns the item of a name.
func (s *shelf) find(name string) (item, bool) {
	i, found := slices.BinarySearchFunc(s.items, name, func(i item, name string) int { return strings.Compare(i.name, name) })
	if !found {
		return item{}, false
	}
	return s.items[i], true
}

// stock is a shelf with the tools that are to be served and that the guard knows,
// in the ordinal order of their names (O8).
func (s *Server) stock() *shelf {
	served := map[string]bool{}
	for _, name := range s.cfg.Tools {
		served[name] = true
	}
	var out shelf
	var defs []tools.Definition
	for _, def := range s.cfg.Guard.Definitions() {
		if s.cfg.Tools == nil || served[def.Name] {
			defs = append(defs, def)
			one := item{name: def.Name, modern: renderTool(def), mirrors: mirrors(def.InputSchema)}
			if one.legacy = one.modern; !ofObject(def.OutputSchema) {
				// Before the modern era structured content is an object, and clients
				// refuse a whole list for a schema of anything else.
				def.OutputSchema = nil
				one.legacy = renderTool(def)
			}
			out.items = append(out.items, one)
		}
	}
	slices.SortFunc(out.items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	out.listed = out.items
	if most := s.budgets.SearchThreshold; most > 0 && len(out.items) > most {
		out.listed, out.stoodFor = s.standIns(len(out.items)), true
	}
	out.index = sync.OnceValue(func() *search.Index { return search.New(defs) })
	return &out
}

// offered is the shelf of this moment.
func (s *Server) offered() *shelf {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shelf
}

// reach runs a call, or refuses it, as where nothing of its name is offered. All ways
// lead through the guard. Where the call asks for another one, call is that one then.
func (s *Server) reach(ctx context.Context, x exchange, call *tools.Call) (res tools.Result, refused, err error) {
	shelf := s.offered()
	if shelf.isStandIn(call.Name) {
		if call.Name == searchName {
			return s.searchTools(x, shelf, call.Arguments), nil, nil
		}
		return s.callFound(ctx, x, shelf, call)
	}
	if _, ok := shelf.find(call.Name); !ok {
		return res, s.unknownTool(call.Name), nil
	}
	res, err = s.cfg.Guard.Call(ctx, *call)
	return res, nil, err
}

// noSchema stands for a schema that isn't known: clients need one of an object.
const noSchema = `{"type":"object"}`

// ofObject reports whether a schema says that it is one of an object.
func ofObject(schema json.RawMessage) bool {
	if !isObject(schema) {
		return false
	}
	kind, _ := wire.Member(schema, "type")
	return string(kind) == `"object"`
}

// inputSchema is a tool's schema as it is passed on: whole (W7), but that every
// tool takes an object, and clients refuse a whole list where a schema doesn't say so.
func inputSchema(schema json.RawMessage) json.RawMessage {
	switch {
	case ofObject(schema):
		return schema
	case !isObject(schema):
		return json.RawMessage(noSchema)
	}
	if _, other := wire.Member(schema, "type"); other {
		return json.RawMessage(noSchema)
	}
	rest := bytes.TrimSpace(bytes.TrimSpace(schema)[1:])
	if rest[0] == '}' {
		return json.RawMessage(noSchema)
	}
	return append([]byte(`{"type":"object",`), rest...)
}

// renderTool is a definition as MCP writes it.
func renderTool(def tools.Definition) []byte {
	o := newObject()
	o.text("name", def.Name)
	o.textIf("title", def.Title)
	o.textIf("description", def.Description)
	o.raw("inputSchema", inputSchema(def.InputSchema))
	if isObject(def.OutputSchema) {
		o.raw("outputSchema", def.OutputSchema)
	}
	if def.Annotations != (tools.Annotations{}) {
		o.value("annotations", def.Annotations)
	}
	return o.end()
}

// after is where the list goes on behind a name that is not on it any more.
func (s *shelf) after(last string) int {
	i, _ := slices.BinarySearchFunc(s.listed, last, func(i item, name string) int { return strings.Compare(i.name, name) })
	return i
}
