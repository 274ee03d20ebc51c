package runner

import (
	"errors"
	"fmt"
	"slices"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/replay"
)

// The codes of what the host finds about the models that a crew asks for.
const (
	CodeCapability   = "capability"    // the provider can't do what the crew asks, and what happens instead
	CodeUnknownModel = "unknown-model" // the profile does not offer the model
	CodeUnpriced     = "unpriced"      // a budget that can't be kept, for want of a price
	CodeTape         = "tape"          // a file that is not there, or is no tape
)

// judgeModels finds what a crew asks of models and its providers can't do: a
// model that the profile does not offer, a budget that can't be kept, and, as
// warnings, what will be asked for in another way or not at all. A vendor would
// refuse it in the middle of the run.
func (m *models) judgeModels(c *crew.Crew) (issues, warnings crew.Issues) {
	once := map[crew.Issue]bool{}
	add := func(list *crew.Issues, i crew.Issue) {
		if !once[i] {
			once[i] = true
			*list = append(*list, i)
		}
	}
	for _, a := range asksOf(c) {
		id := agent.Elect(a.levels...)
		p, err := m.llm.Select(id)
		if err != nil {
			continue // which is an issue already
		}
		if i, bad := m.judgeTape(id, p); bad {
			add(&issues, i)
		}
		s := m.settings(id).Over(a.levels...)
		pos := a.place(p, func(l *crew.LLM) (crew.Pos, bool) { return l.Model.Pos, l.Model.V != "" })
		if !offers(p, s.Model) {
			add(&issues, crew.Issue{
				Pos: pos, Code: CodeUnknownModel,
				Message: fmt.Sprintf("the profile %q does not offer the model %q", idOr(id), s.Model),
				Hint:    strict.DidYouMean(s.Model, p.AvailableModels),
			})
		}
		row, ok := rowOf(p)
		if !ok {
			continue
		}
		if p.APIVersion != "" && s.Model != p.Model {
			add(&warnings, crew.Issue{Pos: pos, Code: CodeCapability,
				Message: fmt.Sprintf("the model %q is not asked for: with an api_version, the provider %s is asked by its deployment", s.Model, row.Name)})
		}
		if b := m.llm.Budget; b.Cost != nil && !row.StatesCost() {
			if _, priced := priceOf(m.llm.Prices, p, s.Model, ""); !priced {
				add(&issues, unpriced(b, s.Model))
			}
		}
		for _, part := range a.parts(s, p) {
			_, changes := row.Capabilities.Fit(part.req)
			for _, change := range changes {
				add(&warnings, crew.Issue{
					Pos: part.pos, Code: CodeCapability, Message: fmt.Sprintf("%s (the provider %s)", change, row.Name),
				})
			}
		}
	}
	if i, ok := m.unpricedEmbeddings(c); ok {
		add(&issues, i)
	}
	return issues, warnings
}

// judgeTape finds that the tape of a profile can't be read.
func (m *models) judgeTape(id string, p config.Profile) (crew.Issue, bool) {
	if p.Provider != config.ProviderReplay || m.taped != nil {
		return crew.Issue{}, false
	}
	_, err := replay.Open(p.Tape)
	if err == nil {
		return crew.Issue{}, false
	}
	return crew.Issue{Pos: p.TapePos, Code: CodeTape, Message: fmt.Sprintf("the tape of the profile %q: %v", m.named(idOr(id)), err)}, true
}

// unpricedEmbeddings finds that what embeds for a crew has no price, and a budget of
// the cost is to be kept. Vendors tell no cost of embeddings.
func (m *models) unpricedEmbeddings(c *crew.Crew) (crew.Issue, bool) {
	e, b := m.llm.Embeddings, m.llm.Budget
	if b.Cost == nil || e == nil || !c.Memory && c.RAG == nil {
		return crew.Issue{}, false
	}
	if _, priced := priceOf(m.llm.Prices, e.Profile, e.Model, ""); priced || !e.Vendor() {
		return crew.Issue{}, false
	}
	return unpriced(b, e.Model), true
}

// keeps is an error where the default profile's model has no price, and a budget of the
// cost is to be kept: no crew is judged where a server asks.
func (m *models) keeps(model string) error {
	p := m.profile("")
	row, vendor := rowOf(p)
	if m.llm.Budget.Cost == nil || !vendor || row.StatesCost() {
		return nil
	}
	if _, priced := priceOf(m.llm.Prices, p, model, ""); priced {
		return nil
	}
	return errors.New(unpriced(m.llm.Budget, model).Message)
}

func unpriced(b config.RunBudget, model string) crew.Issue {
	return crew.Issue{
		Pos: b.Pos, Code: CodeUnpriced, Message: fmt.Sprintf("llm.budget.cost can't be kept: the model %q has no price", model),
		Hint: fmt.Sprintf("llm.prices: {%s: {input: N, output: N}}", model),
	}
}

// part is one thing that is asked of a model, and where that is said.
type part struct {
	req llm.Request
	pos crew.Pos
}

// parts takes apart what is asked, so that each change has its own place.
func (a ask) parts(s agent.Settings, p config.Profile) []part {
	var tools []llm.Tool
	if !s.TextCalls && (a.agent != nil && a.agent.HoldsTools() || a.task != nil && len(a.task.Tools) > 0) {
		tools = []llm.Tool{{}}
	}
	format := part{llm.Request{Format: s.Format, Tools: tools}, a.place(p, func(l *crew.LLM) (crew.Pos, bool) {
		if l.ResponseSchema != nil {
			return l.ResponseSchema.Pos, true
		}
		return l.ResponseFormat.Pos, l.ResponseFormat.Set
	})}
	if a.task != nil && a.task.Deliverable != nil && a.task.Deliverable.Source == "structured_output" {
		d := a.task.Deliverable
		format.req.Format, format.pos = &llm.ResponseFormat{Type: "json_schema", Schema: []byte(d.SchemaInline.V)}, d.Pos
	}
	return []part{
		format,
		{llm.Request{Cache: s.Cache}, a.place(p, func(l *crew.LLM) (crew.Pos, bool) { return l.Pos, l.Cache != nil })},
		{llm.Request{Thinking: s.Thinking, Temperature: s.Temperature, TopP: s.TopP}, a.place(p, func(l *crew.LLM) (crew.Pos, bool) {
			if l.Thinking != nil && l.Thinking.Effort.Set {
				return l.Thinking.Effort.Pos, true
			}
			return l.Pos, l.Thinking != nil
		})},
	}
}

// place is where the narrowest level that says something says it, or else the
// profile.
func (a ask) place(p config.Profile, at func(*crew.LLM) (crew.Pos, bool)) crew.Pos {
	for _, l := range slices.Backward(a.levels) {
		if l == nil {
			continue
		}
		if pos, said := at(l); said {
			return pos
		}
	}
	return p.Pos
}

// offers reports whether a profile offers a model.
func offers(p config.Profile, model string) bool {
	return len(p.AvailableModels) == 0 || model == "" || slices.ContainsFunc(p.AvailableModels, func(pattern string) bool {
		return llm.MatchModel(pattern, model)
	})
}

func idOr(id string) string {
	if id == "" {
		return config.DefaultProfile
	}
	return id
}
