package agent

import (
	"fmt"
	"strings"

	"crewhost/crew"
)

// preset is a set of rules that a crew file names in one word.
type preset struct {
	header    string
	rules     []string
	toolRules []toolRule
}

type toolRule struct{ tool, rule string }

// presetOf returns the rules of a preset; those of an unknown word are none:
// the crew's validation names it.
func presetOf(name string) preset {
	switch strings.ToLower(name) {
	case "analysis":
		return analysis()
	case "strict":
		p := analysis()
		p.header = "Hold to these rules without exception:"
		p.rules = append(p.rules,
			"Say for every claim where it comes from: the tool's result, the file or the earlier output.",
			"Say how sure you are wherever the evidence is thin or contradicts itself.",
			"Check what you are about to write against its sources once more before you write it.",
		)
		return p
	case "creative":
		return preset{
			header: "Work freely within these rules:",
			rules: []string{
				"Prefer the unexpected to the worn, as long as it serves the task.",
				"Keep what the task states as given; invent only where it leaves room.",
				"Do not pass off something invented as a fact about the world.",
			},
		}
	default:
		return preset{}
	}
}

func analysis() preset {
	return preset{
		header: "Hold to these rules:",
		rules: []string{
			"Invent nothing: no facts, figures, names, quotations or sources.",
			"When a tool fails or returns nothing, say so; do not fill the gap.",
			"When a source that the task needs is missing, stop and name it.",
			"Keep what you found apart from what you conclude from it.",
		},
		toolRules: []toolRule{
			{"file_write", "Write the outputs that the task asks for and nothing else."},
			{"directory_read", "List with a narrow pattern in the folder that matters, not everything."},
		},
	}
}

// guardrails writes the rules of one level, numbered. Rules of tools count only
// for the tools that are held.
func guardrails(b *strings.Builder, title string, g *crew.Guardrails, set *toolset) {
	if g == nil {
		return
	}
	p := presetOf(g.Preset.V)
	header := p.header
	if header == "" {
		header = strings.TrimSpace(g.Header)
	}
	rules := p.rules
	for _, r := range g.Rules {
		rules = append(rules, strings.TrimSpace(r.V))
	}
	for _, r := range p.toolRules {
		if set.holds(r.tool) {
			rules = append(rules, fmt.Sprintf("[%s] %s", set.wireName(r.tool), r.rule))
		}
	}
	for _, of := range g.ToolRules {
		if !set.holds(of.Tool.V) {
			continue
		}
		for _, r := range of.Rules {
			rules = append(rules, fmt.Sprintf("[%s] %s", set.wireName(of.Tool.V), strings.TrimSpace(r.V)))
		}
	}
	if header == "" && len(rules) == 0 {
		return
	}
	fmt.Fprintf(b, "\n\n## %s\n", title)
	if header != "" {
		b.WriteString("\n" + header + "\n")
	}
	for i, r := range rules {
		fmt.Fprintf(b, "\n%d. %s", i+1, r)
	}
}
