package permission

import "slices"

// Outlook is what calls of a tool come to, by their arguments.
type Outlook struct {
	// Decision is about calls that meet no condition of any rule.
	Decision Decision
	// Conditional are the decisions of rules of the tool's name that have conditions,
	// in the order deny, ask, allow: about calls that meet them, as far as no other
	// rule goes first.
	Conditional []Decision
}

// Best is the best verdict that any call gets: Deny where every call is denied.
func (o Outlook) Best() Verdict {
	best := o.Decision.Verdict
	for _, d := range o.Conditional {
		best = better(best, d.Verdict)
	}
	return best
}

// better is the one of two verdicts that permits more.
func better(a, b Verdict) Verdict {
	for _, v := range []Verdict{Allow, Ask} {
		if a == v || b == v {
			return v
		}
	}
	return Deny
}

// Outlook returns what calls of a tool come to. What r.Arguments hold does not matter.
func (p *Policy) Outlook(r Request) Outlook {
	p = p.orZero()
	m := &matcher{request: r}
	own := p.own(r)
	if d, ok := p.stranger(r, own); ok {
		return Outlook{Decision: d}
	}
	var always [3]*Rule
	for i, c := range p.classes {
		always[i] = c.first(func(rule *compiled) bool { return len(rule.conditions) == 0 && m.named(rule) })
	}
	o := Outlook{Decision: p.combine(always, own)}
	for i, c := range p.classes {
		for j := range c.rules {
			rule := &c.rules[j]
			if len(rule.conditions) == 0 || !m.named(rule) {
				continue
			}
			// With the condition met, and none before it.
			one := always
			if one[i] == nil {
				one[i] = &rule.source
			}
			if d := p.combine(one, own); d.Rule != nil && *d.Rule == rule.source {
				d.Rule = new(rule.source)
				o.Conditional = append(o.Conditional, d)
			} else if d.Verdict != o.Decision.Verdict {
				o.Conditional = append(o.Conditional, d) // it opens what the default had closed
			}
		}
	}
	return o
}

// Prospect returns the best verdict that any call of a tool can get, whatever its
// arguments: Deny where every call is denied. What r.Arguments hold does not matter.
func (p *Policy) Prospect(r Request) Verdict { return p.Outlook(r).Best() }

// somewhere reports whether a rule lets calls of a tool of the host through that
// concern some MCP server: its own name is theirs there.
func (p *Policy) somewhere(tool string) bool {
	return p != nil && slices.ContainsFunc(p.classes, func(c class) bool {
		return c.verdict != Deny && slices.ContainsFunc(c.rules, func(rule compiled) bool {
			return slices.ContainsFunc(rule.readings, func(r reading) bool { return r.tool.match(tool) })
		})
	})
}

// requestOf is a call of a tool as the policy sees it, without arguments.
func (g *Guard) requestOf(agent, tool string) (r Request, scoped, ok bool) {
	t, ok := g.registry.Lookup(tool)
	if !ok {
		return Request{}, false, false
	}
	def := t.Definition()
	r = Request{Tool: def.Name, Server: def.Server, Agent: agent}
	if def.Server != "" {
		r.ServerTool = def.ServerName()
	}
	_, scoped = t.(Scoped)
	return r, scoped && def.Server == "", true
}

// Prospect returns the best that any call of a tool by an agent can come to (by
// nobody's: ""): Allow, Ask where a person has to say so, and Deny where every call is
// refused, be it that nobody can be asked.
func (g *Guard) Prospect(agent, tool string) Verdict {
	verdict, _ := g.prospect(agent, tool)
	return verdict
}

// Unanswered reports whether every call of a tool by an agent is refused because the
// policy asks about it and nobody can be asked, nor has been.
func (g *Guard) Unanswered(agent, tool string) bool {
	_, unanswered := g.prospect(agent, tool)
	return unanswered
}

func (g *Guard) prospect(agent, tool string) (verdict Verdict, unanswered bool) {
	r, scoped, ok := g.requestOf(agent, tool)
	if !ok {
		return Deny, false
	}
	o := g.policy.Outlook(r)
	verdict = o.Best()
	switch {
	case scoped && (verdict == Ask || o.Decision.Rule == nil && g.policy.somewhere(tool)):
		return Allow, false // a rule about some server may
	case verdict != Ask:
		return verdict, false
	}
	switch approver := g.approver.(type) {
	case Constant:
		if approver.Always().Allow {
			return Allow, false
		}
		return Deny, true
	case nil:
		t, _ := g.registry.Lookup(tool)
		if g.policy.Headless() == Allow || g.stands(r, o, t) {
			return Allow, false
		}
		return Deny, true
	}
	return Ask, false
}
