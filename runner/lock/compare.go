package lock

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// The codes of drift.
const (
	CodeServerAdded   = "lock-server-added"
	CodeServerRemoved = "lock-server-removed"
	CodeServerMoved   = "lock-server-moved"   // it is reached in another way
	CodeServerChanged = "lock-server-changed" // it calls itself otherwise, or says something else to models
	CodeToolAdded     = "lock-tool-added"
	CodeToolRemoved   = "lock-tool-removed"
	CodeToolChanged   = "lock-tool-changed"
	CodeServerDown    = "lock-server-down" // it could not be looked at
)

// Compare says what is not as it is locked, an issue each, in the file at path: with the
// line of what is locked, or of what it belongs to. Servers that are down are compared
// as far as they are known, and each is in down: that they have changed, nobody knows.
func Compare(path string, locked, found []Server) (drift, down strict.Issues) {
	c := comparison{path: path}
	for _, now := range sorted(found, func(s Server) string { return s.Name }) {
		was := find(locked, now.Name)
		if was == nil {
			c.add(strict.Pos{}, CodeServerAdded, fmt.Sprintf("the server %s is not locked", strict.Quote(now.Name)), relock)
			continue
		}
		c.server(*was, now)
	}
	for _, was := range locked {
		if find(found, was.Name) == nil {
			c.add(was.Pos, CodeServerRemoved, fmt.Sprintf("the server %s is locked, and is not there any more", strict.Quote(was.Name)), relock)
		}
	}
	c.drift.Sort()
	c.down.Sort()
	return c.drift, c.down
}

// relock is what to do about most of it.
const relock = "crewhost lock accepts it, once it was looked at"

func find(servers []Server, name string) *Server {
	if i := slices.IndexFunc(servers, func(s Server) bool { return s.Name == name }); i >= 0 {
		return &servers[i]
	}
	return nil
}

type comparison struct {
	path        string
	drift, down strict.Issues
}

func (c *comparison) add(pos strict.Pos, code, message, hint string) {
	c.drift = append(c.drift, c.issue(pos, code, message, hint))
}

func (c *comparison) issue(pos strict.Pos, code, message, hint string) strict.Issue {
	pos.File = c.path
	return strict.Issue{Pos: pos, Code: code, Message: message, Hint: hint}
}

func (c *comparison) server(was, now Server) {
	name := strict.Quote(now.Name)
	for _, part := range []struct{ what, was, now string }{
		{"transport", was.Transport, now.Transport},
		{"command", was.Command, now.Command},
		{"args", list(was.Args), list(now.Args)},
		{"url", was.URL, now.URL},
	} {
		if part.was != part.now {
			c.add(was.Pos, CodeServerMoved, fmt.Sprintf("the server %s: its %s is locked as %s, and is %s", name, part.what, shown(part.was), shown(part.now)), relock)
		}
	}
	if now.Down != "" {
		c.down = append(c.down, c.issue(was.Pos, CodeServerDown, fmt.Sprintf("the server %s could not be looked at: %s", name, now.Down), ""))
		return
	}
	for _, part := range []struct{ what, was, now string }{
		{"name of itself", was.Reported, now.Reported},
		{"version", was.Version, now.Version},
		{"instructions to models", short(was.Instructions), short(now.Instructions)},
	} {
		if part.was != part.now {
			c.add(was.Pos, CodeServerChanged, fmt.Sprintf("the server %s: its %s is locked as %s, and is %s", name, part.what, shown(part.was), shown(part.now)), relock)
		}
	}
	c.tools(name, was, now)
}

func (c *comparison) tools(server string, was, now Server) {
	locked := make(map[string]Tool, len(was.Tools))
	for _, t := range was.Tools {
		locked[t.Name] = t
	}
	for _, t := range sorted(now.Tools, func(t Tool) string { return t.Name }) {
		old, there := locked[t.Name]
		delete(locked, t.Name)
		switch {
		case !there:
			c.add(was.Pos, CodeToolAdded, fmt.Sprintf("the server %s: the tool %s is not locked", server, strict.Quote(t.Name)), reads(t))
		case !old.Same(t):
			hint := relock
			if old.Description != t.Description {
				hint = reads(t)
			}
			c.add(old.Pos, CodeToolChanged, fmt.Sprintf("the server %s: of the tool %s %s", server, strict.Quote(t.Name), old.changes(t)), hint)
		}
	}
	for _, t := range was.Tools {
		if _, gone := locked[t.Name]; gone {
			c.add(t.Pos, CodeToolRemoved, fmt.Sprintf("the server %s: the tool %s is locked, and is not there any more", server, strict.Quote(t.Name)), relock)
		}
	}
}

// Same reports whether two tools are defined alike.
func (t Tool) Same(other Tool) bool {
	return t.Definition == other.Definition && t.Description == other.Description && t.Schema == other.Schema
}

// changes says what of a tool is another one now.
func (t Tool) changes(now Tool) string {
	var what []string
	if t.Description != now.Description {
		what = append(what, fmt.Sprintf("the description (%s, locked as %s)", short(now.Description), short(t.Description)))
	}
	if t.Schema != now.Schema {
		what = append(what, fmt.Sprintf("the schema (%s, locked as %s)", short(now.Schema), short(t.Schema)))
	}
	switch {
	case len(what) == 0:
		return fmt.Sprintf("the annotations have changed (of all, %s, locked as %s)", short(now.Definition), short(t.Definition))
	case len(what) == 1:
		return what[0] + " has changed"
	default:
		return strings.Join(what, " and ") + " have changed"
	}
}

// reads is the hint that shows what a model would read.
func reads(t Tool) string {
	if t.Text == "" {
		return relock
	}
	return "it now reads " + strict.Quote(t.Text) + "; " + relock
}

// short is as much of a digest as a reader needs to find it.
func short(digest string) string {
	const shown = len("sha256:") + 12
	if len(digest) > shown {
		return digest[:shown] + "…"
	}
	return digest
}

func shown(s string) string {
	if s == "" {
		return "none"
	}
	return strict.Quote(s)
}

func list(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = word(arg)
	}
	return strings.Join(quoted, " ")
}
