package crew

import (
	"errors"
	"fmt"
	"slices"

	"crewhost/config/strict"
)

// Override is what one run changes of the agents of a crew, which stays as it is
// (A5): their servers and their tools, as a file says.
//
//	agents:
//	  researcher:
//	    mcp_servers: [{name: notes, url: https://staging.example.com/mcp}]
//	    tools: null
//
// A field that is left out is inherited, one that is null or empty is cleared, and
// one with a value takes the place of the crew's as a whole: nothing is merged.
//
//	o, err := crew.LoadOverride("staging.yaml")
//	c, err = o.Apply(c) // err is Issues
type Override struct {
	Path   string
	agents []strict.Named[overrideDoc]
}

// overrideDoc has the fields that a run may replace.
type overrideDoc struct {
	Servers overridden[serversDoc] `key:"mcpServers"`
	Tools   overridden[toolsDoc]   `key:"tools"`
}

// overridden is a field that may be given, be it null.
type overridden[T any] struct {
	v     T
	given bool
}

// UnmarshalNode implements [strict.Unmarshaler].
func (o *overridden[T]) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if o.given = true; n.Kind != strict.Null {
		d.Decode(n, &o.v, "")
	}
}

// toolsDoc are the tools of an agent.
type toolsDoc struct{ list []toolDoc }

// UnmarshalNode implements [strict.Unmarshaler].
func (t *toolsDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) { d.Decode(n, &t.list, "") }

// LoadOverride reads an override: a file of YAML or JSON. The error is [Issues].
func LoadOverride(path string) (*Override, error) {
	data, err := readFile(path, maxFile)
	if err != nil {
		var issue Issue
		if !errors.As(err, &issue) {
			issue = Issue{Pos: Pos{File: path}, Code: CodeUnreadable, Message: reason(err)}
		}
		return nil, Issues{issue}
	}
	o, issues := parseOverride(path, data)
	return o, issues.Err()
}

func parseOverride(path string, data []byte) (*Override, Issues) {
	n, issues := strict.Parse(path, data, strict.Limits{Bytes: maxFile, Nodes: maxNodes})
	if len(issues) > 0 {
		return nil, issues
	}
	if n == nil {
		n = &strict.Node{Pos: Pos{File: path}, Kind: strict.Map}
	}
	var doc struct {
		Agents []strict.Named[overrideDoc] `key:"agents,required"`
	}
	if issues := strict.Decode(n, &doc); len(issues) > 0 {
		issues.Sort()
		return nil, issues
	}
	return &Override{Path: path, agents: doc.Agents}, nil
}

// Apply returns a copy of the crew with the fields replaced. The error is [Issues],
// with the crew as it would be beside it: the rules of a crew file are those of an
// override, too.
func (o *Override) Apply(c *Crew) (*Crew, error) {
	b := &builder{doubtful: map[string]bool{}}
	over := *c
	over.Agents = slices.Clone(c.Agents)
	for _, e := range o.agents {
		i := slices.IndexFunc(over.Agents, func(a *Agent) bool { return a.Key == e.Key })
		if i < 0 {
			b.fail(e.KeyPos, CodeDanglingReference, fmt.Sprintf("agents.%s: the crew has no agent %s", word(e.Key), strict.Quote(e.Key)),
				strict.DidYouMean(e.Key, keys(over.Agents, func(a *Agent) string { return a.Key })))
			continue
		}
		agent, at := *over.Agents[i], "agents."+e.Key
		if e.V.Servers.given {
			agent.Servers = b.servers(e.V.Servers.v, at+".mcpServers")
		}
		if e.V.Tools.given {
			var doubtful bool
			if agent.Tools, agent.Toolsets, doubtful = b.tools(e.V.Tools.v.list, at+".tools"); doubtful {
				b.doubtful[e.Key] = true
			}
		}
		over.Agents[i] = &agent
	}
	company(over.Agents, b.doubtful, b.fail)
	b.issues.Sort()
	b.warnings.Sort()
	over.Warnings = append(slices.Clone(c.Warnings), b.warnings...)
	return &over, b.issues.Err()
}
