package openai

import (
	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"crewhost/runner/llm"
)

// think asks for thinking in the field that the server has for it: the API's own,
// in p, or another, in the options. Nothing is sent where nothing is asked for.
func think(p *openai.ChatCompletionNewParams, field ThinkingField, t *llm.Thinking) []option.RequestOption {
	if t == nil {
		return nil
	}
	set := func(key string, value any) []option.RequestOption {
		return []option.RequestOption{option.WithJSONSet(key, value)}
	}
	switch field {
	case Reasoning:
		reasoning := map[string]any{"enabled": t.Enabled}
		switch {
		case !t.Enabled:
		case t.BudgetTokens > 0:
			reasoning = map[string]any{"max_tokens": t.BudgetTokens}
		case t.Effort != "":
			reasoning = map[string]any{"effort": t.Effort}
		}
		return set("reasoning", reasoning)
	case EnableThinking:
		options := set("enable_thinking", t.Enabled)
		if t.Enabled && t.BudgetTokens > 0 {
			options = append(options, option.WithJSONSet("thinking_budget", t.BudgetTokens))
		}
		return options
	case TypedThinking:
		kind := "disabled"
		if t.Enabled {
			kind = "enabled"
		}
		return set("thinking", map[string]any{"type": kind})
	case TemplateSwitch:
		return set("chat_template_kwargs", map[string]any{"enable_thinking": t.Enabled})
	case Gemini:
		if t.Enabled && t.BudgetTokens > 0 {
			return set("extra_body", map[string]any{"google": map[string]any{"thinking_config": map[string]any{"thinking_budget": t.BudgetTokens}}})
		}
	}
	switch {
	case t.Enabled:
		p.ReasoningEffort = shared.ReasoningEffort(t.Effort)
	case field == Gemini:
		p.ReasoningEffort = shared.ReasoningEffortNone
	}
	return nil
}
