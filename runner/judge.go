package runner

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
)

// Verdict is what the host thinks of a crew.
type Verdict struct {
	Path     string // of the crew, absolute
	Issues   crew.Issues
	Warnings crew.Issues
	Agents   int
	Tasks    int
	Tools    int // distinct tool names that agents and tasks name
	Servers  []mcp.ServerReport
}

// The codes of issues that the host finds in a crew that is well-formed.
const (
	CodeUnsupported = "unsupported" // the crew asks for what this version does not do
	CodeLoad        = "load"        // the crew's files could not be read
	CodeUnused      = "unused"      // a variable that no text of the crew mentions
	CodeDeliverable = "deliverable" // a file that no mount takes
	CodeVendor      = "vendor"      // a crew names another vendor than the profile that it uses
)

// Judge collects everything that is wrong with a crew: what [crew.Load] found,
// and what it finds itself against the tools and profiles that are there. loaded
// may be nil, or incomplete, where loadErr is set.
func (h *Host) Judge(loaded *crew.Crew, loadErr error, inputs crew.Inputs) Verdict {
	v := Verdict{Servers: h.Servers()}
	var issues crew.Issues
	switch {
	case errors.As(loadErr, &issues):
		v.Issues = append(v.Issues, issues...)
	case loadErr != nil:
		v.Issues = append(v.Issues, crew.Issue{Code: CodeLoad, Message: loadErr.Error()})
	}
	if loaded == nil {
		return v
	}
	v.Path, v.Agents, v.Tasks = loaded.Path, len(loaded.Agents), len(loaded.Tasks)
	judged := loaded
	if loadErr != nil { // nothing was started for it
		judged = unarmed(loaded)
	}
	v.Tools = len(h.held(judged))
	v.Issues = append(v.Issues, judged.Validate(h.catalog(), inputs)...)
	v.Warnings = append(v.Warnings, loaded.Warnings...)
	for _, name := range loaded.Unused(inputs) {
		unused := crew.Issue{Code: CodeUnused, Message: fmt.Sprintf("the variable %q is given and not used", name)}
		if near := nearestVariable(name, loaded); near != "" {
			unused.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		v.Warnings = append(v.Warnings, unused)
	}
	v.Warnings = append(v.Warnings, h.models.vendors(loaded)...)
	issues, changes := h.models.judgeModels(loaded)
	v.Issues = append(v.Issues, issues...)
	v.Warnings = append(v.Warnings, changes...)
	issues, changes = h.unmounted(loaded)
	v.Issues, v.Warnings = append(v.Issues, issues...), append(v.Warnings, changes...)
	issues, changes = h.deliverables(loaded.Expand(inputs))
	v.Issues, v.Warnings = append(v.Issues, issues...), append(v.Warnings, changes...)
	v.Issues = append(v.Issues, judgeSchemas(loaded)...)
	for _, judge := range []func(*crew.Crew) (issues, warnings crew.Issues){h.judgeMemory, h.judgeKnowledge, h.judgePolicy} {
		issues, warnings := judge(loaded)
		v.Issues, v.Warnings = append(v.Issues, issues...), append(v.Warnings, warnings...)
	}
	drift, unknown := h.Drift()
	v.Issues, v.Warnings = append(v.Issues, drift...), append(v.Warnings, unknown...)
	v.Warnings = append(v.Warnings, unsupported(loaded)...)
	v.Issues.Sort()
	v.Warnings.Sort()
	return v
}

// nearestVariable is the variable of a crew that a name which it does not use was
// probably meant to be, or "".
func nearestVariable(name string, c *crew.Crew) string {
	names := []string{crew.InitialContext}
	for _, v := range c.Variables() {
		names = append(names, v.Name)
	}
	return strict.Nearest(name, names)
}

// unsupported warns of what a crew asks for and this version does not do: the run
// is the same without it.
func unsupported(c *crew.Crew) (warnings crew.Issues) {
	without := func(pos crew.Pos, message string) {
		warnings = append(warnings, crew.Issue{Pos: pos, Code: CodeUnsupported, Message: message})
	}
	if len(c.Links) > 0 {
		without(c.Links[0].To.Pos, "links: this version has no hub between crews")
	}
	return warnings
}

// modelsOf returns the model blocks of a crew.
func modelsOf(c *crew.Crew) []*crew.LLM {
	all := []*crew.LLM{c.LLM}
	for _, a := range c.Agents {
		all = append(all, a.LLM)
	}
	for _, t := range c.Tasks {
		all = append(all, t.LLM)
	}
	return slices.DeleteFunc(all, func(l *crew.LLM) bool { return l == nil })
}

func join(words []string) string { return strings.Join(words, ", ") }
