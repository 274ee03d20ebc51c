package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// A shelf holds the tools that are offered at a time. What is offered and what a
// call reaches are decided here and nowhere else: [Server.stock] fills the shelf,
// [Server.reach] finds what a name means.
type shelf struct {
	items []item // by name
}

// An item is one entry of tools/list, a Tool of MCP.
type item struct {
	name    string
	modern  []byte
	legacy  []byte   // for the eras before
	mirrors []mirror // over HTTP
}

func (s *shelf) equal(other *shelf) bool {
	return slices.EqualFunc(s.items, other.items, func(a, b item) bool {
		return a.name == b.name && bytes.Equal(a.modern, b.modern)
	})
}

// find returns the item of a name.
func (s *shelf) find(name string) (item, bool) {
	i, found := slices.BinarySearchFunc(s.items, name, func(i item, name string) int { return compare(i.name, name) })
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
	for _, def := range s.cfg.Guard.Definitions() {
		if s.cfg.Tools == nil || served[def.Name] {
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
	slices.SortFunc(out.items, func(a, b item) int { return compare(a.name, b.name) })
	return &out
}

// offered is the shelf of this moment.
func (s *Server) offered() *shelf {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.shelf
}

// reach returns what a call of a name runs, or false where nothing of that name is
// offered. All ways lead through the guard.
func (s *Server) reach(name string) (run func(context.Context, tools.Call) (tools.Result, error), ok bool) {
	if _, ok := s.offered().find(name); !ok {
		return nil, false
	}
	return s.cfg.Guard.Call, true
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
	i, _ := slices.BinarySearchFunc(s.items, last, func(i item, name string) int { return compare(i.name, name) })
	return i
}
