package anthropic

import (
	"strings"

	"crewhost/runner/llm"
)

// DefaultMaxTokens bounds an answer of a model that is not in the table below,
// where the request sets no bound, since the API demands one.
const DefaultMaxTokens = 8192

// leastBudget is the least thinking budget that the API takes.
const leastBudget = 1024

// traits are what the models of the API differ in.
type traits struct {
	prefix    string
	maxTokens int  // the most that the documentation allows
	adaptive  bool // thinks as much as it sees fit, by effort; else within a budget
	effort    bool // knows efforts
}

// known returns the models whose documentation is known; the longest prefix
// counts. A later model is taken to be as those of today.
func known() []traits {
	return []traits{
		{prefix: "claude-", maxTokens: 128_000, adaptive: true, effort: true},
		{prefix: "claude-3-", maxTokens: 4096},
		{prefix: "claude-3-5-", maxTokens: 8192},
		{prefix: "claude-3-7-", maxTokens: 64_000},
		{prefix: "claude-opus-4-0", maxTokens: 32_000},
		{prefix: "claude-opus-4-1", maxTokens: 32_000},
		{prefix: "claude-opus-4-2", maxTokens: 32_000}, // claude-opus-4-20250514
		{prefix: "claude-opus-4-5", maxTokens: 64_000, effort: true},
		{prefix: "claude-sonnet-4-0", maxTokens: 64_000},
		{prefix: "claude-sonnet-4-2", maxTokens: 64_000}, // claude-sonnet-4-20250514
		{prefix: "claude-sonnet-4-5", maxTokens: 64_000},
		{prefix: "claude-haiku-4-5", maxTokens: 64_000},
	}
}

// traitsOf returns what is known of a model, whatever a reseller puts before its
// name ("anthropic/claude-opus-5"). What answers by another name is taken to know
// both ways of thinking.
func traitsOf(model string) traits {
	at := strings.Index(model, "claude-")
	if at < 0 {
		return traits{maxTokens: DefaultMaxTokens}
	}
	var best traits
	for _, t := range known() {
		if strings.HasPrefix(model[at:], t.prefix) && len(t.prefix) > len(best.prefix) {
			best = t
		}
	}
	return best
}

// thinking says t as the model takes it: by effort, within a budget of tokens, or
// both. With neither, the model decides.
func (m traits) thinking(t llm.Thinking) (effort string, budget int) {
	switch {
	case m.prefix == "":
		return t.Effort, t.BudgetTokens
	case m.adaptive && t.Effort == "" && t.BudgetTokens > 0:
		return llm.EffortOf(t.BudgetTokens), 0
	case m.adaptive:
		return t.Effort, 0
	}
	budget = t.BudgetTokens
	if budget == 0 {
		budget = llm.BudgetOf(t.Effort)
	}
	if budget == 0 {
		budget = llm.BudgetOf("medium")
	}
	if m.effort && t.Effort != "max" { // which came later
		effort = t.Effort
	}
	return effort, min(max(budget, leastBudget), m.maxTokens/2)
}
