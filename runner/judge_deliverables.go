package runner

import (
	"fmt"
	"path"
	"slices"

	"crewhost/crew"
	"crewhost/runner/agent"
)

// deliverables finds files that a run could not leave where the crew wants them,
// which is known before a model is asked for them. Of two tasks that leave one file
// the later one has the last word, which is worth a warning.
func (h *Host) deliverables(c *crew.Crew) (issues, warnings crew.Issues) {
	by := map[string]string{} // tasks by the files that they leave
	for _, t := range c.Tasks {
		d := t.Deliverable
		if d == nil || d.Source == "none" || d.Path.V == "" {
			continue
		}
		file := path.Clean(d.Path.V)
		if first, twice := by[file]; twice {
			warnings = append(warnings, crew.Issue{
				Pos: d.Path.Pos, Code: CodeDeliverable,
				Message: fmt.Sprintf("tasks.%s.deliverable is the file of tasks.%s: one replaces the other", t.Key, first),
				Hint:    "give each a path of its own",
			})
		}
		by[file] = t.Key
		if err := h.fs.CanWrite(d.Path.V); err != nil {
			issues = append(issues, crew.Issue{
				Pos: d.Path.Pos, Code: CodeDeliverable,
				Message: fmt.Sprintf("tasks.%s.deliverable can't be written: %v", t.Key, err),
				Hint:    "mount a folder for it: --mount DIR:/ROOT:rw, or mounts: in the settings",
			})
			continue
		}
		if d.Source == "tool_call" && !mayWrite(c, t) {
			issues = append(issues, crew.Issue{
				Pos: d.Path.Pos, Code: CodeDeliverable,
				Message: fmt.Sprintf("tasks.%s.deliverable is to be written with a tool, and nobody who does the task holds one", t.Key),
				Hint:    "source: final_message leaves the answer; or give the agent file_write",
			})
		}
	}
	return issues, warnings
}

// mayWrite reports whether some agent that may do a task holds a tool, or may put
// work to another one that does. Which tools write, nobody knows.
func mayWrite(c *crew.Crew, t *crew.Task) bool {
	holds := (*crew.Agent).HoldsTools
	anybody := slices.ContainsFunc(c.Agents, holds)
	if len(t.Tools) > 0 {
		return true
	}
	switch c.Process {
	case crew.Consensual: // the answer that is kept is the file
		return true
	case crew.Hierarchical, crew.Autonomous:
		return anybody
	}
	a := c.Agent(t.Agent.V)
	if a == nil {
		return anybody
	}
	return holds(a) || anybody && a.AllowDelegation && agent.Delegates(c.Process)
}
