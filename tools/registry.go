package tools

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Registry holds tools under unique, case-sensitive names. The zero value is
// an empty registry. It is safe for concurrent use; everything that it returns
// is sorted by name, byte by byte.
type Registry struct {
	mu       sync.RWMutex
	tools    map[string]Tool
	watchers map[int]func()
	watched  int // how many watchers there have been
}

// Add registers t under its definition's name. Where the name is held, the
// holder keeps it (O12) and the error wraps [ErrDuplicate] and names the holder.
func (r *Registry) Add(t Tool) error {
	r.mu.Lock()
	err := r.add(t)
	r.mu.Unlock()
	if err == nil {
		r.tell()
	}
	return err
}

// Replace unregisters the tools of the names in old and registers those of tools,
// in their order, in one step: nobody sees the registry in between. It returns an
// error for each of tools, nil where it was registered, and otherwise as Add
// gives it.
func (r *Registry) Replace(old []string, tools []Tool) []error {
	r.mu.Lock()
	for _, name := range old {
		delete(r.tools, name)
	}
	errs := make([]error, len(tools))
	for i, t := range tools {
		errs[i] = r.add(t)
	}
	r.mu.Unlock()
	if len(old)+len(tools) > 0 {
		r.tell()
	}
	return errs
}

// add registers t. The caller holds mu.
func (r *Registry) add(t Tool) error {
	def := t.Definition()
	if def.Name == "" {
		return fmt.Errorf("registering a tool%s: it has no name", from(def.Server))
	}
	if held, ok := r.tools[def.Name]; ok {
		return fmt.Errorf("registering tool %q%s: held by %s: %w",
			def.Name, from(def.Server), holder(held.Definition()), ErrDuplicate)
	}
	if r.tools == nil {
		r.tools = make(map[string]Tool)
	}
	r.tools[def.Name] = t
	return nil
}

// Remove unregisters the tool of that name and reports whether there was one.
func (r *Registry) Remove(name string) bool {
	r.mu.Lock()
	_, ok := r.tools[name]
	delete(r.tools, name)
	r.mu.Unlock()
	if ok {
		r.tell()
	}
	return ok
}

// Lookup returns the tool of exactly that name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t, ok := r.tools[name]
	return t, ok
}

// Names returns the names of all tools, sorted.
func (r *Registry) Names() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	names := make([]string, 0, len(r.tools))
	for name := range r.tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Definitions returns the definitions of all tools, sorted by name.
func (r *Registry) Definitions() []Definition {
	r.mu.RLock()
	defer r.mu.RUnlock()
	defs := make([]Definition, 0, len(r.tools))
	for _, t := range r.tools {
		defs = append(defs, t.Definition())
	}
	slices.SortFunc(defs, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return defs
}

func from(server string) string {
	if server == "" {
		return ""
	}
	return fmt.Sprintf(" of server %q", server)
}

func holder(d Definition) string {
	if d.Server == "" {
		return "a built-in tool"
	}
	return fmt.Sprintf("server %q", d.Server)
}
