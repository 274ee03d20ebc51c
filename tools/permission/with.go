package permission

import (
	"errors"
	"fmt"
	"slices"
)

// With returns the policy of one crew: p and the toolsets of its agents, in place of
// those that p had. The error joins every problem of the toolsets.
func (p *Policy) With(sets []Toolset) (*Policy, error) {
	var problems []error
	crew := *p.orZero()
	crew.sets = map[string][]toolset{}
	for _, set := range sets {
		fail := func(place, format string, args ...any) {
			at := ""
			if place != "" {
				at = place + ": "
			}
			problems = append(problems, fmt.Errorf("%stoolset of agent %q: "+format, append([]any{at, set.Agent}, args...)...))
		}
		if set.Agent == "" {
			fail(set.Place, "it is of no agent")
		}
		if set.Default.Tool != "" {
			fail(set.Place, "its default names the tool %q", set.Default.Tool)
		}
		for _, entry := range append([]ToolRule{set.Default}, set.Tools...) {
			switch entry.Verdict {
			case "", Allow, Ask:
			default:
				fail(entry.Place, "the verdict %q is neither allow nor ask", entry.Verdict)
			}
		}
		for _, entry := range set.Tools {
			if entry.Tool == "" {
				fail(entry.Place, "an entry names no tool")
			}
		}
		set.Tools = slices.Clone(set.Tools)
		crew.sets[set.Agent] = append(crew.sets[set.Agent], toolset{set})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &crew, nil
}

// toolset is one that was checked.
type toolset struct{ source Toolset }

// claims are what the toolsets of the calling agent say of a tool: of each class the
// first rule, and which kinds of toolsets have the tool.
type claims struct {
	agent            string
	deny, ask, allow *Rule
	remote, host     bool   // by a toolset of the tool's MCP server, or of the host
	place            string // of the toolset of the host
}

// own collects what the toolsets of r's agent say of r's tool.
func (p *Policy) own(r Request) claims {
	c := claims{agent: r.Agent}
	if r.Agent == "" {
		return c
	}
	apart := slices.Contains(p.apart, r.Tool) && r.Server == ""
	for _, set := range p.sets[r.Agent] {
		if set.source.Server != r.Server {
			continue
		}
		name := r.Tool
		if r.Server != "" {
			name = r.ServerTool
		}
		spoken := false
		for _, entry := range set.source.Tools {
			if entry.Tool == name {
				spoken = true
				c.take(set.rule(entry), entry)
			}
		}
		switch {
		case !spoken && apart:
			continue
		case !spoken:
			c.take(set.rule(set.source.Default), set.source.Default)
		}
		if r.Server != "" {
			c.remote = true
		} else if !c.host {
			c.host, c.place = true, set.source.Place
		}
	}
	return c
}

// take adds an entry to the claims, where it is a rule.
func (c *claims) take(rule Rule, entry ToolRule) {
	into := &c.allow
	switch {
	case entry.Disabled:
		into = &c.deny
	case entry.Verdict == Ask:
		into = &c.ask
	case entry.Verdict != Allow:
		return
	}
	if *into == nil {
		*into = &rule
	}
}

// rule is an entry as a rule that can be shown.
func (s toolset) rule(entry ToolRule) Rule {
	pattern := entry.Tool
	if pattern == "" {
		pattern = "*"
	}
	if s.source.Server != "" {
		pattern = mcpPrefix + s.source.Server + "__" + pattern
	}
	place := entry.Place
	if place == "" {
		place = s.source.Place
	}
	return Rule{Pattern: pattern, Place: place, Agent: s.source.Agent}
}

// idle returns the entries that fit none of the offered tools.
func (s toolset) idle(offered []Request) []Rule {
	var idle []Rule
	for _, entry := range s.source.Tools {
		if !slices.ContainsFunc(offered, func(r Request) bool {
			name := r.Tool
			if r.Server != "" {
				name = r.ServerTool
			}
			return r.Server == s.source.Server && name == entry.Tool
		}) {
			idle = append(idle, s.rule(entry))
		}
	}
	return idle
}

// stranger denies what is of a server that agents brought along to callers whose
// toolsets don't name it.
func (p *Policy) stranger(r Request, own claims) (Decision, bool) {
	if r.Server == "" || own.remote || !slices.Contains(p.private, r.Server) {
		return Decision{}, false
	}
	who := "who calls is no agent"
	if r.Agent != "" {
		who = fmt.Sprintf("agent %q has no toolset of it", r.Agent)
	}
	return Decision{Verdict: Deny, Reason: fmt.Sprintf("MCP server %q is for the agents that brought it along, and %s", r.Server, who)}, true
}
