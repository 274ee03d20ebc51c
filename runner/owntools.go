package runner

import (
	"fmt"
	"slices"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/tools/builtin"
	"crewhost/tools/native"
)

// What the host knows of its own tools and of nobody else's: which are off and why, what
// they do to the world, and that their results are bounded.

// whyOff says of a tool of the host's own that is off how to turn it on, as the end of a
// sentence that begins with its name; empty: none of the name is off.
func (h *Host) whyOff(name string) string {
	for _, o := range h.native {
		if o.Tool.Name == name {
			return o.Why
		}
	}
	return ""
}

// WritesFiles reports whether all that a tool of the host's own does to the world is in
// the mounts.
func (h *Host) WritesFiles(name string) bool {
	if !slices.Contains(h.builtins, name) {
		return false
	}
	t, _ := h.registry.Lookup(name)
	own, ok := t.(native.Tool)
	return ok && own.WritesFiles
}

// resultChars is how much of the results of the host's own tools reaches a model: all of
// them are bounded, and say themselves where they are cut and how the rest is got.
func (h *Host) resultChars() map[string]int {
	chars := make(map[string]int, len(h.builtins))
	for _, name := range h.builtins {
		chars[name] = native.MaxResult
	}
	return chars
}

// checkDisabled finds names among tools.disabled that no tool of the host has.
func checkDisabled(settings config.Tools) (issues strict.Issues) {
	var known []string
	for _, t := range builtin.All(builtin.Config{}) {
		known = append(known, t.Tool.Name)
	}
	for _, d := range settings.Disabled {
		if slices.Contains(known, d.Pattern) {
			continue
		}
		hint := "crewhost tools list names them"
		if near := strict.Nearest(d.Pattern, known); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		issues = append(issues, strict.Issue{Pos: d.Pos, Code: CodeUnknownTool, Message: fmt.Sprintf("tools.disabled: the host has no tool %q of its own", d.Pattern), Hint: hint})
	}
	return issues
}
