package agent

import (
	"encoding/json"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// Settings are what a request asks of a model beyond its messages. Nil and zero
// fields are not sent.
type Settings struct {
	Provider    string // of the model, for events
	Model       string
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	Thinking    *llm.Thinking
	Format      *llm.ResponseFormat
	Cache       *llm.Cache
	// TextCalls: the model has no calls of its own. Its tools stand in the
	// prompt, and it calls them in its text.
	TextCalls bool
}

// levels are the overrides of a task, from the widest to the narrowest.
func (in Input) levels() []*crew.LLM { return []*crew.LLM{in.Crew.LLM, in.Agent.LLM, in.Task.LLM} }

// resolve is the cascade profile → crew → agent → task for a task.
func (l *Loop) resolve(in Input) (llm.Model, Settings, error) {
	levels := in.levels()
	model, s, err := l.models(Elect(levels...))
	if err != nil {
		return nil, s, err
	}
	s = s.Over(levels...)
	if in.Format != nil {
		s.Format = in.Format
	}
	if f := s.Format; f != nil && f.Name != "" {
		fit := *f // APIs want of a format's name what they want of a tool's
		fit.Name = fitName(f.Name)
		s.Format = &fit
	}
	return model, s, nil
}

// Elect returns the profile that levels choose, which come from the widest to the
// narrowest and may be nil: the narrowest that names one chooses. Empty is the
// default profile.
func Elect(levels ...*crew.LLM) string {
	profile, _ := elect(levels)
	return profile
}

// elect also returns which level chose.
func elect(levels []*crew.LLM) (profile string, from int) {
	for i, level := range levels {
		if level != nil && level.Profile.V != "" {
			profile, from = level.Profile.V, i
		}
	}
	return profile, from
}

// Over returns the settings of the profile that levels chose with what the levels
// override, field by field: thinking by its own fields, a response schema and
// marks for caching whole. A model's name belongs to its provider, so those
// above the level that chose the profile do not count.
func (s Settings) Over(levels ...*crew.LLM) Settings {
	_, from := elect(levels)
	for i, level := range levels {
		name := s.Model
		s = s.override(level)
		if i < from {
			s.Model = name
		}
	}
	return s
}

// override returns s with what o sets.
func (s Settings) override(o *crew.LLM) Settings {
	if o == nil {
		return s
	}
	if o.Model.V != "" {
		s.Model = o.Model.V
	}
	if o.Temperature != nil {
		s.Temperature = o.Temperature
	}
	if o.TopP != nil {
		s.TopP = o.TopP
	}
	if o.MaxTokens != nil {
		s.MaxTokens = *o.MaxTokens
	}
	if c := o.Cache; c != nil {
		s.Cache = &llm.Cache{System: c.System, Tools: c.Tools, TTL: c.TTL}
	}
	s.Thinking = overrideThinking(s.Thinking, o.Thinking)
	s.Format = overrideFormat(s.Format, o)
	return s
}

// overrideThinking merges field by field, unlike a response's schema.
func overrideThinking(base *llm.Thinking, o *crew.Thinking) *llm.Thinking {
	if o == nil {
		return base
	}
	var t llm.Thinking
	if base != nil {
		t = *base
	} else {
		// Who gives an effort or a budget wants thinking, unless said otherwise.
		t.Enabled = true
	}
	if o.Enabled != nil {
		t.Enabled = *o.Enabled
	}
	if o.Effort.V != "" {
		t.Effort = o.Effort.V
	}
	if o.BudgetTokens != nil {
		t.BudgetTokens = *o.BudgetTokens
	}
	return &t
}

// overrideFormat: a schema alone means json_schema, json_schema without a schema
// can only mean json_object, and text takes a wider level's format back.
func overrideFormat(base *llm.ResponseFormat, o *crew.LLM) *llm.ResponseFormat {
	kind, schema := o.ResponseFormat.V, o.ResponseSchema
	switch {
	case kind == "text":
		return nil
	case schema != nil && (kind == "" || kind == "json_schema"):
		return &llm.ResponseFormat{Type: "json_schema", Name: schema.Name, Schema: json.RawMessage(schema.Schema), Strict: schema.Strict}
	case kind == "":
		return base
	case kind == "json_schema" && base != nil && base.Type == "json_schema":
		return base
	case kind == "json_schema":
		return &llm.ResponseFormat{Type: "json_object"}
	default:
		return &llm.ResponseFormat{Type: kind}
	}
}
