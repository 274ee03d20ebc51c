package crew

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// Validate judges the crew against what the host offers and the inputs of a
// run, before anything is started (K59, K63): tools and model profiles that are
// not there, variables without a value. It reports every problem, sorted.
//
// It may judge a crew that [Load] returned beside an error; the two lists
// together are then all that is wrong.
func (c *Crew) Validate(catalog Catalog, inputs Inputs) Issues {
	v := &validator{crew: c, catalog: catalog, tools: catalog.Tools(), profiles: catalog.Profiles()}
	v.llm(c.LLM, "llm")
	for _, a := range c.Agents {
		v.each(a.Tools, "agents."+a.Key+".tools")
		v.toolsets(a, "agents."+a.Key)
		v.llm(a.LLM, "agents."+a.Key+".llm")
		v.guardrails(a.Guardrails, "agents."+a.Key+".guardrails")
	}
	for _, t := range c.Tasks {
		v.each(t.Tools, "tasks."+t.Key+".tools")
		v.llm(t.LLM, "tasks."+t.Key+".llmOverride")
		v.guardrails(t.Guardrails, "tasks."+t.Key+".guardrails")
	}
	v.variables(inputs)
	v.issues.Sort()
	return v.issues
}

type validator struct {
	crew            *Crew
	catalog         Catalog
	tools, profiles []string
	own             []string // tools of agents' own servers, by the names that agents see
	issues          Issues
}

func (v *validator) fail(pos Pos, code, message, hint string) {
	if len(v.issues) < maxIssues {
		v.issues = append(v.issues, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
	}
}

func (v *validator) each(tools []Text, at string) {
	for _, t := range tools {
		v.tool(t, at)
	}
}

func (v *validator) tool(t Text, at string) {
	if slices.Contains(v.tools, t.V) {
		return
	}
	if why := v.catalog.Off(t.V); why != "" {
		v.fail(t.Pos, CodeUnknownTool, fmt.Sprintf("%s: the tool %s %s", at, strict.Quote(t.V), why), v.catalog.Missing(t.V))
		return
	}
	message := fmt.Sprintf("%s: unknown tool %s", at, strict.Quote(t.V))
	if why := v.catalog.Missing(t.V); why != "" {
		v.fail(t.Pos, CodeUnknownTool, message+": "+why, "")
		return
	}
	hint := strict.DidYouMean(t.V, v.tools)
	for _, name := range v.tools {
		if strings.EqualFold(name, t.V) {
			hint = "names of tools are case-sensitive: write " + name
			break
		}
	}
	v.fail(t.Pos, CodeUnknownTool, message, hint)
}

// toolsets judges what an agent's toolsets name against what there is, and counts
// what they bring.
func (v *validator) toolsets(a *Agent, at string) {
	for i := range a.Servers {
		s := &a.Servers[i]
		offers, why := v.catalog.Offers(s)
		if why != "" {
			v.fail(s.Name.Pos, CodeServer, fmt.Sprintf("%s.mcpServers: %s: %s", at, strict.Quote(s.Name.V), why), "")
		}
		for _, o := range offers {
			v.own = append(v.own, ToolName(s.Name.V, o.Tool))
		}
	}
	count := len(a.Tools)
	for _, t := range a.Toolsets {
		var server *Server
		if !t.ofHost() {
			if server = a.Server(t.Server.V); server == nil {
				continue // the crew has been told
			}
		}
		offers, why := v.catalog.Offers(server)
		if why != "" {
			continue
		}
		known := make([]string, len(offers))
		for i, o := range offers {
			known[i] = o.Tool
			named := -1
			if server == nil {
				named = slices.IndexFunc(a.Tools, func(n Text) bool { return n.V == o.Tool })
			}
			switch has := t.Has(o); {
			case named < 0 && has:
				count++
			case named >= 0 && !has && (!o.Apart || t.Names(o.Tool)):
				v.fail(a.Tools[named].Pos, CodeConflict, fmt.Sprintf("%s.tools: the agent's toolset of the host's tools (%s) switches %s off", at, t.Pos, strict.Quote(o.Tool)),
					"enable it there: configs: [{name: "+o.Tool+", enabled: true}]")
			}
		}
		for _, e := range t.Tools {
			off := ""
			if server == nil {
				off = v.catalog.Off(e.Tool.V)
			}
			if slices.Contains(known, e.Tool.V) || off != "" && !t.Has(Offer{Tool: e.Tool.V}) {
				continue
			}
			message, registered := fmt.Sprintf("%s.tools: the host has no tool %s of its own", at, strict.Quote(e.Tool.V)), e.Tool.V
			if server != nil {
				message = fmt.Sprintf("%s.tools: the MCP server %s has no tool %s", at, strict.Quote(server.Name.V), strict.Quote(e.Tool.V))
				registered = ToolName(server.Name.V, e.Tool.V)
			}
			hint := strict.DidYouMean(e.Tool.V, known)
			if off != "" {
				message, hint = fmt.Sprintf("%s.tools: the tool %s %s", at, strict.Quote(e.Tool.V), off), ""
			} else if why := v.catalog.Missing(registered); why != "" && server != nil {
				message, hint = message+": "+why, ""
			} else if here := datedName(e.Tool.V); server == nil && here != "" && here != e.Tool.V {
				hint = "did you mean " + strict.Quote(here) + "?"
			} else if len(known) == 0 {
				hint = "it has none"
			}
			v.fail(e.Tool.Pos, CodeUnknownTool, message, hint)
		}
	}
	if len(a.Toolsets) > 0 && count > MaxTools {
		v.fail(a.Toolsets[0].Pos, CodeOutOfRange, fmt.Sprintf("%s.tools: the toolsets bring the agent to %d tools; the limit is %d", at, count, MaxTools),
			"default_config: {enabled: false}, and in configs enable those that it needs")
	}
}

func (v *validator) llm(l *LLM, at string) {
	if l == nil || !l.Profile.Set || slices.Contains(v.profiles, l.Profile.V) {
		return
	}
	hint := strict.DidYouMean(l.Profile.V, v.profiles)
	if len(v.profiles) == 0 {
		hint = "the settings have no profiles"
	}
	v.fail(l.Profile.Pos, CodeUnknownProfile, fmt.Sprintf("%s.profile: unknown model profile %s", at, strict.Quote(l.Profile.V)), hint)
}

// guardrails reports rules for a misspelled tool. Rules for a tool that is just
// not there do no harm: an agent may be given tools, such as those that ask a
// coworker, that no catalog lists.
func (v *validator) guardrails(g *Guardrails, at string) {
	if g == nil {
		return
	}
	for _, r := range g.ToolRules {
		if !slices.Contains(v.own, r.Tool.V) && strict.Nearest(r.Tool.V, v.tools) != "" {
			v.tool(r.Tool, at+".toolRules")
		}
	}
}

// variables reports the placeholders that no input gives a value, one issue for
// each place, and inputs that are one variable under two names.
func (v *validator) variables(inputs Inputs) {
	v.twins(inputs)
	v.twins(v.crew.Inputs)
	all := inputs.over(v.crew.Inputs)
	known, values := all.names(), all.folded()
	v.crew.texts(func(at string, t *Text) {
		for _, name := range variables(t.V) {
			if _, ok := values[foldName(name)]; ok {
				continue
			}
			hint := `give it a value, by --var ` + name + `=… or inputs: in the crew; \{` + name + `} is the text itself`
			if near := strict.Nearest(name, known); near != "" {
				hint = "did you mean {" + near + `}? \{` + name + "} is the text itself"
			}
			v.fail(t.Pos, CodeUndefinedVariable, fmt.Sprintf("%s: the variable {%s} has no value", at, name), hint)
		}
	})
}

func (v *validator) twins(inputs Inputs) {
	first := map[string]string{}
	for _, name := range inputs.names() {
		if before, twice := first[foldName(name)]; twice {
			v.fail(Pos{}, CodeAmbiguousVariable, fmt.Sprintf("the inputs %s and %s are the same variable", before, name), "keep one")
			continue
		}
		first[foldName(name)] = name
	}
}

// texts calls f for every text that may hold variables, with its place in the
// crew: the goal of the crew; role, goal and backstory of agents; description,
// expected output, context and the deliverable's path of tasks.
func (c *Crew) texts(f func(at string, t *Text)) {
	f("goal", &c.Goal)
	for _, a := range c.Agents {
		at := "agents." + a.Key
		f(at+".role", &a.Role)
		f(at+".goal", &a.Goal)
		f(at+".backstory", &a.Backstory)
	}
	for _, t := range c.Tasks {
		at := "tasks." + t.Key
		f(at+".description", &t.Description)
		f(at+".expectedOutput", &t.ExpectedOutput)
		for i := range t.Context {
			f(at+".context."+word(t.Context[i].Name), &t.Context[i].Value)
		}
		if t.Deliverable != nil {
			f(at+".deliverable.path", &t.Deliverable.Path)
		}
	}
}

// Expand returns a copy of the crew with the variables of its texts replaced.
// Its Inputs are those given, laid over the crew's own. A variable without a
// value stays as it is; [Crew.Validate] reports it.
func (c *Crew) Expand(inputs Inputs) *Crew {
	d := *c
	d.Inputs = inputs.over(c.Inputs)
	d.Agents, d.Tasks = slices.Clone(c.Agents), slices.Clone(c.Tasks)
	for i, a := range d.Agents {
		agent := *a
		d.Agents[i] = &agent
	}
	for i, t := range d.Tasks {
		task := *t
		task.Context = slices.Clone(t.Context)
		if t.Deliverable != nil {
			deliverable := *t.Deliverable
			task.Deliverable = &deliverable
		}
		d.Tasks[i] = &task
	}
	values := d.Inputs.folded()
	d.texts(func(_ string, t *Text) {
		t.V = expand(t.V, func(name string) (string, bool) {
			value, ok := values[foldName(name)]
			return value, ok
		})
	})
	return &d
}

// Unused returns the inputs that no text of the crew uses, sorted. A prompt may
// list them all the same. [InitialContext] is never among them.
func (c *Crew) Unused(inputs Inputs) []string {
	used := map[string]bool{InitialContext: true}
	c.texts(func(_ string, t *Text) {
		for _, name := range variables(t.V) {
			used[foldName(name)] = true
		}
	})
	return slices.DeleteFunc(inputs.names(), func(name string) bool { return used[foldName(name)] })
}

// ToolNames returns the names of the tools that agents and tasks have by name, each
// once, sorted.
func (c *Crew) ToolNames() []string {
	var names []string
	for _, a := range c.Agents {
		names = append(names, values(a.Tools)...)
		for _, t := range a.Toolsets {
			for _, tool := range t.named() {
				if !t.ofHost() {
					tool = ToolName(t.Server.V, tool)
				}
				names = append(names, tool)
			}
		}
	}
	for _, t := range c.Tasks {
		names = append(names, values(t.Tools)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
