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
		if strict.Nearest(r.Tool.V, v.tools) != "" {
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

// ToolNames returns the names of the tools that agents and tasks have, each
// once, sorted.
func (c *Crew) ToolNames() []string {
	var names []string
	for _, a := range c.Agents {
		names = append(names, values(a.Tools)...)
	}
	for _, t := range c.Tasks {
		names = append(names, values(t.Tools)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
