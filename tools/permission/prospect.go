package permission

import (
	"slices"

	"crewhost/tools"
)

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

// Outlook returns what calls of a tool by an agent come to, by the policy alone, and
// such a call as the policy sees it. ok is false where there is no such tool.
func (g *Guard) Outlook(agent, tool string) (o Outlook, r Request, ok bool) {
	t, ok := g.registry.Lookup(tool)
	if !ok {
		return Outlook{}, Request{}, false
	}
	r = requestOf(t, t.Definition(), tools.Call{Name: tool, Agent: agent})
	return g.policy.Outlook(r), r, true
}

// Approved reports whether calls of a tool by an agent that meet no condition of a rule
// were allowed always, as the tool is now.
func (g *Guard) Approved(agent, tool string) bool {
	o, r, ok := g.Outlook(agent, tool)
	if !ok {
		return false
	}
	t, ok := g.registry.Lookup(tool)
	return ok && g.stands(r, o, t)
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
	t, ok := g.registry.Lookup(tool)
	if !ok {
		return Deny, false
	}
	r := requestOf(t, t.Definition(), tools.Call{Name: tool, Agent: agent})
	_, scoped := t.(Scoped)
	scoped = scoped && r.Server == ""
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
		if g.policy.Headless() == Allow || g.stands(r, o, t) {
			return Allow, false
		}
		return Deny, true
	}
	return Ask, false
}
