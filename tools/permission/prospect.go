package permission

// Prospect returns the best verdict that any call of a tool can get, whatever its
// arguments: Deny where every call is denied. What r.Arguments hold does not matter.
func (p *Policy) Prospect(r Request) Verdict {
	if p == nil {
		return Ask
	}
	m := matcher{request: r, base: p.base}
	for _, c := range p.classes { // deny, ask, allow
		for i := range c.rules {
			rule := &c.rules[i]
			// A condition of a rule that refuses may not hold; of one that allows, it may.
			if m.named(rule) && (len(rule.conditions) == 0 || c.verdict == Allow) {
				return c.verdict
			}
		}
	}
	if p.fallback == "" {
		return Ask
	}
	return p.fallback
}

// Prospect returns the best that any call of a tool can come to: Allow, Ask where a
// person has to say so, and Deny where every call is refused, be it that nobody can
// be asked.
func (g *Guard) Prospect(tool string) Verdict {
	t, ok := g.registry.Lookup(tool)
	if !ok {
		return Deny
	}
	def := t.Definition()
	r := Request{Tool: def.Name, Server: def.Server}
	if def.Server != "" {
		r.ServerTool = def.ServerName()
	}
	verdict := g.policy.Prospect(r)
	if _, scoped := t.(Scoped); scoped && verdict == Ask {
		return Allow // a rule about some server may
	}
	if verdict != Ask {
		return verdict
	}
	switch approver := g.approver.(type) {
	case nil:
		return g.policy.Headless()
	case Constant:
		if approver.Always().Allow {
			return Allow
		}
		return Deny
	}
	return Ask
}
