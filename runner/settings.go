package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/agent"
	"crewhost/tools/permission"
)

// The codes of issues that the host finds in settings that are well-formed.
const (
	CodeBadRule        = "bad-rule"
	CodeUnknownProfile = "unknown-profile"
)

// policyOf compiles the rules. Built-in tools resolve relative paths against the
// base of the mounts, and so must the policy. Where the default is to ask,
// human_input is allowed: it is a question to a person already, and asking
// whether to ask would be one too many. So are the tools by which agents put work
// to one another: what a coworker calls is judged in its own turn. And so are those
// that find what prompts are made of anyway: the crew's own memory and documents; and
// those that touch nothing. A crew has all but these last by other words than a toolset's.
//
// The servers tell which of them agents brought along.
func policyOf(p config.Permissions, base string, servers []config.Server) (*permission.Policy, error) {
	rules := func(list []config.Rule) []permission.Rule {
		var rules []permission.Rule
		for _, r := range list {
			place := ""
			if r.Pos.File != "" {
				place = r.Pos.String()
			}
			rules = append(rules, permission.Rule{Pattern: r.Pattern, Place: place})
		}
		return rules
	}
	allow := rules(p.Allow)
	if verdict := permission.Verdict(p.Default); verdict == permission.Ask || verdict == "" {
		for _, tool := range append(ownTools(), harmlessTools()...) {
			allow = append(allow, permission.Rule{Pattern: tool, Place: "built in", Host: true})
		}
	}
	var private []string
	for _, s := range servers {
		if s.Agents != nil {
			private = append(private, s.Name)
		}
	}
	return permission.New(permission.Config{
		Default:  permission.Verdict(p.Default),
		Allow:    allow,
		Ask:      rules(p.Ask),
		Deny:     rules(p.Deny),
		Headless: permission.Verdict(p.Headless),
		Base:     base,
		Private:  private,
		Narrow:   !p.CrewGrants,
		Apart:    slices.Concat(ownTools(), agent.Apart()),
	})
}

// ownTools are the tools that agents have by what they are, or by a task.
func ownTools() []string {
	return []string{humanInput, agent.AskCoworker, agent.DelegateWork, toolRecall, toolConsult}
}

// harmlessTools are those that touch nothing at all: a person who is asked about them could
// only wonder why.
func harmlessTools() []string { return []string{"think", "todo"} }

// policyFor is the policy of the runs of a crew: the toolsets of its agents have a say.
func (h *Host) policyFor(c *crew.Crew) (*permission.Policy, error) {
	return h.policy.With(toolsetsOf(c))
}

// guardFor is the guard of one run of a crew.
func (h *Host) guardFor(c *crew.Crew) (*permission.Guard, error) {
	policy, err := h.policyFor(c)
	if err != nil {
		return nil, err
	}
	guard := h.guard.With(policy)
	guard.Approvals = h.approvals(c.Path)
	return guard, nil
}

// issuesOf makes issues of an error, which may join several, or be nil.
func issuesOf(code string, err error) strict.Issues {
	var issues strict.Issues
	if err == nil {
		return nil
	}
	if errors.As(err, &issues) {
		return issues
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			issues = append(issues, issuesOf(code, e)...)
		}
		return issues
	}
	return strict.Issues{{Code: code, Message: err.Error()}}
}

// CheckModel makes the model of the default profile, key and all, without
// calling it, and says which it is.
func (h *Host) CheckModel(ctx context.Context) (string, error) {
	if err := h.models.prepare(ctx, ""); err != nil {
		return "", err
	}
	p := h.models.llm.Profile
	name := strings.TrimSuffix(p.Provider+"/"+p.Model, "/")
	if p.Tape != "" {
		name += " " + p.Tape
	}
	return name, nil
}

// IdleRules says which rules of the policy fit no tool that is there, a line each:
// a deny rule with a slip in its name protects nothing. Rules about a server that
// could not be connected, or is not to be, are left alone.
func (h *Host) IdleRules() []string {
	var offered []permission.Request
	for _, d := range h.registry.Definitions() {
		r := permission.Request{Tool: d.Name, Server: d.Server}
		if d.Server != "" {
			r.ServerTool = d.ServerName()
		}
		offered = append(offered, r)
		if t, ok := h.registry.Lookup(d.Name); ok {
			if _, scoped := t.(permission.Scoped); scoped { // a tool of every server
				for _, server := range h.Servers() {
					offered = append(offered, permission.Request{Tool: d.Name, Server: server.Name, ServerTool: d.Name})
				}
			}
		}
	}
	for _, o := range h.native { // a rule about a tool that may be turned on is no slip
		offered = append(offered, permission.Request{Tool: o.Tool.Name})
	}
	offered = append(offered, permission.Request{Tool: agent.AskCoworker}, permission.Request{Tool: agent.DelegateWork})
	idle := h.policy.Idle(offered)
	if len(idle) > 0 { // crews are read for that alone
		for _, name := range servedCrews(h.cfg.Settings.MCP.Served) {
			offered = append(offered, permission.Request{Tool: name})
		}
		idle = h.policy.Idle(offered)
	}
	var lines []string
	for _, rule := range idle {
		absent := !h.cfg.Settings.MCP.Enabled && strings.HasPrefix(rule.Pattern, "mcp__") || slices.ContainsFunc(h.Servers(), func(r mcp.ServerReport) bool {
			return r.State != mcp.StateConnected && strings.HasPrefix(rule.Pattern, "mcp__"+r.Name)
		})
		if !absent {
			lines = append(lines, fmt.Sprintf("the permission rule %s fits no tool", rule))
		}
	}
	return lines
}
