// Package permission decides who may call which tool, and stands in front of
// every call.
//
// A [Policy] is pure: it looks at a [Request] and answers with a [Decision],
// which names the rule that made it. A [Guard] is the one way from an agent, or
// from another client, to the tools of a registry: it asks the policy, asks a
// person where the policy says so, and then calls.
//
//	policy, err := permission.New(permission.Config{
//		Allow: []permission.Rule{{Pattern: "mcp__files__*", Place: "crewhost.yaml:9"}},
//		Deny:  []permission.Rule{{Pattern: "file_write:path=/etc/**", Place: "crewhost.yaml:11"}},
//	})
//	guard := permission.NewGuard(registry, policy, approver)
//	res, err := guard.Call(ctx, tools.Call{Name: "file_write", Arguments: args})
//
// # Order
//
// A deny rule that matches wins over every ask rule, and an ask rule over every
// allow rule. How specific a rule is, and where it stands, never matters; within
// a class the first rule that matches is the one reported. What no rule matches
// gets the default, which is to ask (A4).
//
// # Toolsets
//
// A crew file says of its agents' tools what it wants asked about, and what not.
// [Policy.With] takes that up for one crew: each entry of a [Toolset] is a rule of
// the class that it names, for one agent, and stands in the same order with those of
// the settings. What a crew file allows lifts neither a default of deny nor, by
// [Config.Narrow], anything at all. Where no rule matches, a tool of an MCP server
// that an agent brought along is asked about, whatever the default but deny, and a
// tool of the host that the agent has by a toolset is allowed, where the default is
// to ask.
//
// The tools of a server that agents brought along ([Config.Private]) are for those
// whose toolsets name it, and denied to everybody else, callers that are no agent
// included.
//
// # Approvals
//
// What a person is asked about, it may allow once, for all of a run, or always. An
// approval that holds for longer than one call is bound to the rule that asked and to
// the tool's definition ([Approval]): another rule asks again, as does a server that
// changes what its tool is. It answers an ask; what is denied stays denied.
//
// Annotations, titles and descriptions of a tool are the server's own words and
// are not looked at (R4).
//
// # Patterns
//
// A pattern is a tool's name, and after a colon, where wanted, conditions on its
// arguments:
//
//	file_read                       the tool of that name
//	file_*                          every tool whose name starts with file_
//	mcp__files__*                   every tool of the server files
//	mcp__files                      the same
//	mcp__files__delete_*            some tools of the server files
//	file_write:path=/output/**      calls whose argument path is below /output
//	http_api:method=GET,url=https://example.com/**
//
// In names, * stands for any characters and ? for one. In conditions * and ?
// stop at a slash and ** does not. A backslash takes the meaning from the
// character after it; [ ] { } ( ) and a leading ! are refused without one,
// since they mean nothing here and would silently match nothing.
//
// The form mcp__<server>__<tool> speaks of the server that a tool came from and
// of the name that the tool has there, so it matches a tool of a host-level
// server that is registered under its plain name, too (A9). The server's name
// ends at the first "__" of the pattern. A deny or ask rule is also tried with
// each later "__" as that end, and against the registered name as plain text, so
// that a clever name doesn't slip through; an allow rule is not, so that
// mcp__a__* never opens the server "a__b".
//
// # Conditions
//
// A condition speaks of one member of the arguments, a string, a number or a
// boolean. All conditions of a pattern must hold. Where a condition can't be
// judged (the arguments are no JSON object, the member is a list or an object,
// it is longer than 64 KiB), a deny or ask rule matches and an allow rule does
// not. An absent or null member matches no condition.
//
// A value is compared as a path when the condition has a slash: cleaned, so that
// /output/../etc/passwd is below /etc and not below /output. A deny or ask rule
// also looks at the value as it was written, at members whose names differ in
// letter case alone and at every one of repeated members, because a tool might;
// an allow rule wants one spelling, once. Since only the tool knows what a
// relative path is relative to, a deny or ask rule with an absolute path matches
// a relative value wherever some folder would make it match, and an allow rule
// matches none; [Config.Base] answers the question for built-in tools. In a
// deny or ask condition without any slash, * does not stop at one: command=rm *
// means "rm -rf /" too. In one with a slash, letter case doesn't matter, as it
// doesn't to many file systems.
//
// A pattern with "://" is compared with URLs: without user, fragment and default
// port, with the host in lower case and the path cleaned; ? is no wildcard there.
// An allow rule matches no URL that holds a user, a space or a backslash, and no
// value with line breaks or other control characters. Beyond that, text is text:
// command=git * also allows "git log; rm x", so commands of a shell are better
// asked about.
package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
)

// Verdict is what a policy says to a call.
type Verdict string

// The verdicts.
const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask"
	Deny  Verdict = "deny"
)

// Rule is a pattern, and where it was written.
type Rule struct {
	Pattern string
	// Place says where the rule stands, as "file:line"; it may be empty.
	Place string
	// Agent is the key of the agent whose toolset the rule is an entry of; empty:
	// it is one of the settings.
	Agent string
	// Host says that the rule speaks of tools of the host alone. A tool of an MCP server
	// is another one, whatever name its server gives it.
	Host bool
}

// String returns the pattern, quoted, whose it is where it is an agent's, and its
// place.
func (r Rule) String() string {
	text := fmt.Sprintf("%q", r.Pattern)
	if r.Agent != "" {
		text += fmt.Sprintf(" of agent %q", r.Agent)
	}
	if r.Place != "" {
		text += " (" + r.Place + ")"
	}
	return text
}

// brief is the rule with its file by its name alone.
func (r Rule) brief() *Rule {
	if r.Place != "" {
		r.Place = filepath.Base(r.Place)
	}
	return &r
}

// Config is what a policy is made of. The zero value asks about everything.
type Config struct {
	// Default is the verdict where no rule matches; empty is Ask.
	Default Verdict
	// Allow, Ask and Deny are the rules of each class.
	Allow, Ask, Deny []Rule
	// Headless is the answer to Ask where nobody can be asked: Allow or Deny;
	// empty is Deny (R3).
	Headless Verdict
	// Base is the folder that built-in tools resolve relative paths against,
	// such as "/output"; empty means that it is unknown.
	Base string
	// Private names the MCP servers that agents brought along: a tool of theirs is
	// denied to every caller but an agent that has a [Toolset] of the server.
	Private []string
	// Narrow says that what toolsets allow counts for nothing: they can narrow what
	// the settings permit, and that is all.
	Narrow bool
	// Apart names the tools that agents have by other parts of a crew than their
	// toolsets, whose defaults don't speak of them.
	Apart []string
}

// Policy decides about calls. It is immutable and safe for concurrent use. The
// zero Policy, and a nil one, ask about everything and answer headless asks with
// Deny.
type Policy struct {
	fallback Verdict
	headless Verdict
	base     string
	classes  []class // deny, ask, allow
	private  []string
	narrow   bool
	apart    []string
	sets     map[string][]toolset // by agent
}

// class is the rules of one verdict.
type class struct {
	verdict Verdict
	rules   []compiled
}

// New returns the policy that c describes. The error joins every problem of c,
// each naming the rule and its place.
func New(c Config) (*Policy, error) {
	var problems []error
	p := &Policy{
		fallback: c.Default, headless: c.Headless, base: c.Base,
		private: slices.Clone(c.Private), narrow: c.Narrow, apart: slices.Clone(c.Apart),
	}
	if p.fallback == "" {
		p.fallback = Ask
	}
	switch c.Default {
	case "", Allow, Ask, Deny:
	default:
		problems = append(problems, fmt.Errorf("the default %q is none of allow, ask and deny", c.Default))
	}
	switch c.Headless {
	case "", Allow, Deny:
	default:
		problems = append(problems, fmt.Errorf("the headless answer %q is neither allow nor deny", c.Headless))
	}
	for _, in := range []struct {
		verdict Verdict
		rules   []Rule
	}{{Deny, c.Deny}, {Ask, c.Ask}, {Allow, c.Allow}} {
		rules := make([]compiled, 0, len(in.rules))
		for _, r := range in.rules {
			rule, err := compile(r, in.verdict != Allow)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s rule %s: %w", in.verdict, r, err))
				continue
			}
			rules = append(rules, rule)
		}
		p.classes = append(p.classes, class{in.verdict, rules})
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return p, nil
}

// Request is a call as a policy sees it. What a server says of its tool is no part of
// it.
type Request struct {
	// Tool is the registered name.
	Tool string
	// Server is the MCP server that the tool came from, or empty, and
	// ServerTool the tool's name there.
	Server, ServerTool string
	// Agent is the key of the calling agent, or empty. Its toolsets have a say; no
	// rule of the settings looks at it.
	Agent string
	// Arguments should be one JSON object; empty means none.
	Arguments json.RawMessage
}

// Decision is a verdict and where it came from.
type Decision struct {
	Verdict Verdict
	// Rule is the rule that decided, or nil for the default.
	Rule *Rule
	// Reason says the same in one line. It holds no argument's value.
	Reason string
}

// Brief is Reason for models and clients, who are told no folder of this machine: it has
// the files of rules by their names alone, and is the same wherever the files are.
func (d Decision) Brief() string {
	if d.Rule == nil {
		return d.Reason
	}
	return decided(d.Verdict, d.Rule.brief()).Reason
}

// Decide answers r. It looks at nothing but r, the rules and the toolsets.
func (p *Policy) Decide(r Request) Decision {
	p = p.orZero()
	m := &matcher{request: r, base: p.base}
	own := p.own(r)
	if d, ok := p.stranger(r, own); ok {
		return d
	}
	var settings [3]*Rule
	for i, c := range p.classes {
		if settings[i] = c.first(m.matches); settings[i] != nil {
			break // deny over ask over allow
		}
	}
	return p.combine(settings, own)
}

// combine is the one order of rules: of the settings, of each class the one that
// matches or nil, and of the calling agent's toolsets.
func (p *Policy) combine(settings [3]*Rule, own claims) Decision {
	deny, ask, allow := settings[0], settings[1], settings[2]
	switch {
	case deny != nil:
		return decided(Deny, deny)
	case own.deny != nil:
		return decided(Deny, own.deny)
	case ask != nil:
		return decided(Ask, ask)
	case allow == nil && p.fallback == Deny: // which no crew file lifts
		return Decision{Verdict: Deny, Reason: "no rule of the settings matches, and the default is deny"}
	case own.ask != nil:
		return decided(Ask, own.ask)
	case allow != nil:
		return decided(Allow, allow)
	case own.allow != nil && !p.narrow:
		return decided(Allow, own.allow)
	}
	ignored := ""
	if own.allow != nil {
		ignored = fmt.Sprintf("; allow rule %s counts for nothing, since permissions.crew_grants is off", own.allow.brief())
	}
	switch {
	case own.remote:
		return Decision{Verdict: Ask, Reason: fmt.Sprintf("no rule matches, and the tools of MCP servers that agents bring along are asked about%s", ignored)}
	case own.host && p.fallback == Ask && !p.narrow:
		return Decision{Verdict: Allow, Reason: fmt.Sprintf("no rule matches, and agent %q has the tool by a toolset (%s)", own.agent, filepath.Base(own.place))}
	}
	return Decision{Verdict: p.fallback, Reason: "no rule matches, and the default is " + string(p.fallback) + ignored}
}

func decided(v Verdict, rule *Rule) Decision {
	return Decision{Verdict: v, Rule: rule, Reason: fmt.Sprintf("%s rule %s", v, rule)}
}

// first returns a copy of the first rule that fits, or nil.
func (c class) first(fits func(*compiled) bool) *Rule {
	for i := range c.rules {
		if fits(&c.rules[i]) {
			source := c.rules[i].source
			return &source
		}
	}
	return nil
}

// orZero is p, or the zero Policy.
func (p *Policy) orZero() *Policy {
	if p == nil || p.fallback == "" {
		return &Policy{fallback: Ask}
	}
	return p
}

// Idle returns the rules whose names fit none of the offered tools, in the order
// deny, ask, allow, and then the entries of toolsets, sorted by agent: a name that is
// written wrongly protects nothing. Arguments are not looked at.
func (p *Policy) Idle(offered []Request) []Rule {
	if p == nil {
		return nil
	}
	var idle []Rule
	for _, c := range p.classes {
		for i := range c.rules {
			if !slices.ContainsFunc(offered, func(r Request) bool {
				m := matcher{request: r}
				return m.named(&c.rules[i])
			}) {
				idle = append(idle, c.rules[i].source)
			}
		}
	}
	for _, agent := range slices.Sorted(maps.Keys(p.sets)) {
		for _, set := range p.sets[agent] {
			idle = append(idle, set.idle(offered)...)
		}
	}
	return idle
}

// Headless returns the answer to Ask where nobody can be asked: Allow or Deny.
func (p *Policy) Headless() Verdict {
	if p == nil || p.headless != Allow {
		return Deny
	}
	return Allow
}
