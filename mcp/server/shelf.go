package server

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"crewhost/tools"
)

// A shelf holds the tools that are offered at a time. What is offered and what a
// call reaches are decided here and nowhere else: [Server.stock] fills the shelf,
// [Server.reach] finds what a name means.
type shelf struct {
	items []item // by name
}

// An item is one entry of tools/list.
type item struct {
	name string
	json []byte // a Tool of MCP
}

func (s *shelf) equal(other *shelf) bool {
	return slices.EqualFunc(s.items, other.items, func(a, b item) bool {
		return a.name == b.name && bytes.Equal(a.json, b.json)
	})
}

func (s *shelf) has(name string) bool {
	_, found := slices.BinarySearchFunc(s.items, name, func(i item, name string) int { return compare(i.name, name) })
	return found
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
			out.items = append(out.items, item{name: def.Name, json: renderTool(def)})
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
	if !s.offered().has(name) {
		return nil, false
	}
	return s.cfg.Guard.Call, true
}

// noSchema stands for a schema that isn't known: clients need one of an object.
const noSchema = `{"type":"object"}`

// renderTool is a definition as MCP writes it. Schemas are passed on whole (W7).
func renderTool(def tools.Definition) []byte {
	schema := def.InputSchema
	if !isObject(schema) {
		schema = json.RawMessage(noSchema)
	}
	o := newObject()
	o.text("name", def.Name)
	o.textIf("title", def.Title)
	o.textIf("description", def.Description)
	o.raw("inputSchema", schema)
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
