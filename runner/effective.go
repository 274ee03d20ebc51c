package runner

import (
	"cmp"

	"crewhost/crew"
	"crewhost/tools/permission"
)

// Effective is the policy as it stands for one crew.
type Effective struct {
	Default  permission.Verdict
	Headless permission.Verdict
	// Allow, Ask and Deny count the rules of the settings.
	Allow, Ask, Deny int
	Idle             []string // rules that fit no tool, a line each
	// Held are the tools of agents whose calls are not simply allowed, by agent in
	// the crew's order and then by name.
	Held []HeldTool
}

// HeldTool is a tool that an agent holds, and what the policy says to a call of it
// of whose arguments no rule speaks.
type HeldTool struct {
	Agent    string // its key
	Tool     string
	Decision permission.Decision
}

// Effective says what the policy comes to. The crew may be nil.
func (h *Host) Effective(c *crew.Crew) Effective {
	p := h.cfg.Settings.Permissions
	e := Effective{
		Default: cmp.Or(permission.Verdict(p.Default), permission.Ask), Headless: h.policy.Headless(),
		Allow: len(p.Allow), Ask: len(p.Ask), Deny: len(p.Deny), Idle: h.IdleRules(),
	}
	if c == nil {
		return e
	}
	matrix, err := h.Matrix(c, "")
	if err != nil {
		return e // the crew's toolsets are none, as its verdict says
	}
	for _, m := range matrix {
		if d := m.Outlook.Decision; m.There && d.Verdict != permission.Allow {
			e.Held = append(e.Held, HeldTool{m.Agent, m.Tool, d})
		}
	}
	return e
}
