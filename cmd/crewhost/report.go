package main

import (
	"cmp"
	"path/filepath"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/tools/permission"
)

// The formats of results.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatJUnit = "junit" // of what a CI server shows as tests
	formatSARIF = "sarif" // of what it shows beside the lines of the files
)

// report is what there is to say of a crew before it is run: one set of facts, which
// --format writes in its ways. What could not be found out, since the host did not
// start, is nil.
type report struct {
	path     string // of the crew, absolute
	approve  string // who answers for calls that the policy asks about
	verdict  runner.Verdict
	settings *config.Settings
	crew     *crew.Crew
	policy   *runner.Effective
	weights  *runner.Weights
	lock     string // the file that servers are held to; empty: they are held to none
}

// newReport is the report of what the host makes of a crew, which may be nil.
func newReport(s *session, target, approve string, host *runner.Host, c *crew.Crew, v runner.Verdict, w runner.Weights) report {
	effective := host.Effective(c)
	return report{
		path: pathOf(target, v), approve: approve, verdict: v,
		settings: s.settings, crew: c, policy: &effective, weights: &w, lock: host.LockFile(),
	}
}

// pathOf is the crew that a verdict is of.
func pathOf(target string, v runner.Verdict) string {
	if v.Path != "" {
		return v.Path
	}
	if path, err := filepath.Abs(target); err == nil {
		return path
	}
	return target
}

// owners are the agents that bring a server along, in the crew's order (A1).
func (r report) owners(server string) []string {
	if r.crew == nil {
		return nil
	}
	var keys []string
	for _, a := range r.crew.Agents {
		for _, s := range a.Servers {
			if s.Name.V == server {
				keys = append(keys, a.Key)
			}
		}
	}
	return keys
}

// declared is where a server is declared.
func (r report) declared(server string) crew.Pos {
	if r.settings != nil {
		for _, s := range r.settings.MCP.Servers {
			if s.Name == server {
				return s.Pos
			}
		}
	}
	if r.crew != nil {
		for _, a := range r.crew.Agents {
			for _, s := range a.Servers {
				if s.Name.V == server {
					return s.Pos
				}
			}
		}
	}
	return crew.Pos{}
}

// jsonReport is a report as JSON; schema/validate.schema.json is its schema.
type jsonReport struct {
	OK       bool         `json:"ok"`
	Crew     string       `json:"crew"`
	Settings string       `json:"settings,omitempty"` // the file
	Agents   int          `json:"agents"`
	Tasks    int          `json:"tasks"`
	Tools    int          `json:"toolsResolved"`
	Issues   []jsonIssue  `json:"issues"`
	Warnings []jsonIssue  `json:"warnings"`
	Servers  []jsonServer `json:"servers"`
	Policy   *jsonPolicy  `json:"policy,omitempty"`
	Tokens   *jsonTokens  `json:"tokens,omitempty"`
}

type jsonPolicy struct {
	Default  permission.Verdict `json:"default"`
	Headless permission.Verdict `json:"headless"`
	Approve  string             `json:"approve"`
	Rules    jsonRules          `json:"rules"`
	Idle     []string           `json:"idle"` // rules that fit no tool
	// Held are the tools of agents whose calls are asked about or denied, as far as
	// no rule speaks of their arguments.
	Held []jsonHeld `json:"held"`
}

type jsonRules struct {
	Allow int `json:"allow"`
	Ask   int `json:"ask"`
	Deny  int `json:"deny"`
}

type jsonHeld struct {
	Agent   string             `json:"agent"`
	Tool    string             `json:"tool"`
	Verdict permission.Verdict `json:"verdict"`
	Reason  string             `json:"reason"`
}

// jsonTokens is what tools' definitions take of a model's context.
type jsonTokens struct {
	Estimated bool           `json:"estimated"` // always: no vendor was asked
	Providers []jsonProvider `json:"providers"`
	Agents    []jsonWeight   `json:"agents"`
}

type jsonProvider struct {
	Provider string       `json:"provider"`
	Profiles []string     `json:"profiles"`
	InText   bool         `json:"inText,omitempty"` // the prompt tells of them
	Servers  []jsonBurden `json:"servers"`
	Tools    int          `json:"tools"`
	Tokens   int          `json:"tokens"`
}

type jsonBurden struct {
	Server string `json:"server"` // empty: the host's own tools
	Tools  int    `json:"tools"`
	Tokens int    `json:"tokens"`
}

type jsonWeight struct {
	Agent    string `json:"agent"`
	Task     string `json:"task,omitempty"`
	Profile  string `json:"profile"`
	Provider string `json:"provider"`
	Tools    int    `json:"tools"`
	Tokens   int    `json:"tokens"`
}

// jsonReport is a report as it is encoded.
func (o *output) jsonReport(r report) jsonReport {
	j := jsonReport{
		OK: len(r.verdict.Issues) == 0, Crew: r.path, Agents: r.verdict.Agents, Tasks: r.verdict.Tasks, Tools: r.verdict.Tools,
		Issues: o.jsonIssues(r.verdict.Issues), Warnings: o.jsonIssues(r.verdict.Warnings), Servers: o.servers(r.verdict.Servers),
	}
	for i := range j.Servers {
		j.Servers[i].Agents = r.owners(j.Servers[i].Name)
	}
	if r.settings != nil {
		j.Settings = r.settings.Path
	}
	if p := r.policy; p != nil {
		j.Policy = &jsonPolicy{
			Default: p.Default, Headless: p.Headless, Approve: r.approve,
			Rules: jsonRules{p.Allow, p.Ask, p.Deny}, Idle: []string{}, Held: []jsonHeld{},
		}
		for _, rule := range p.Idle {
			j.Policy.Idle = append(j.Policy.Idle, o.mask(rule))
		}
		for _, h := range p.Held {
			j.Policy.Held = append(j.Policy.Held, jsonHeld{h.Agent, h.Tool, h.Decision.Verdict, o.mask(h.Decision.Reason)})
		}
	}
	if w := r.weights; w != nil {
		j.Tokens = &jsonTokens{Estimated: true, Providers: []jsonProvider{}, Agents: []jsonWeight{}}
		for _, p := range w.Providers {
			provider := jsonProvider{p.Provider, p.Profiles, p.InText, []jsonBurden{}, p.Tools, p.Tokens}
			for _, s := range p.Servers {
				provider.Servers = append(provider.Servers, jsonBurden(s))
			}
			j.Tokens.Providers = append(j.Tokens.Providers, provider)
		}
		for _, a := range w.Agents {
			j.Tokens.Agents = append(j.Tokens.Agents, jsonWeight(a))
		}
	}
	return j
}

// hostOr names whose tools they are, for people.
func hostOr(server string) string { return cmp.Or(server, "the host's own") }

// failedServers are the reports of servers that could not be connected.
func failedServers(reports []mcp.ServerReport) []mcp.ServerReport {
	var failed []mcp.ServerReport
	for _, r := range reports {
		if r.Err != nil {
			failed = append(failed, r)
		}
	}
	return failed
}
