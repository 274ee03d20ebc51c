package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// Prompt is a text that a server has ready, to be filled in with arguments. Its
// texts are untrusted, as those of a [Resource].
type Prompt struct {
	Name        string
	Title       string // may be empty
	Description string // may be empty
	Arguments   []PromptArgument
}

// PromptArgument is one argument of a [Prompt], always a text.
type PromptArgument struct {
	Name        string
	Title       string
	Description string
	Required    bool
}

// PromptList is the prompts that a server offers.
type PromptList struct {
	Prompts []Prompt // in the server's order
	// Warnings are what else there is to know of the list, a line each.
	Warnings []string
}

// PromptText is a prompt that was filled in. What the messages say is the
// server's, unchanged.
type PromptText struct {
	Description string
	Messages    []PromptMessage
}

// PromptMessage is one message of a [PromptText].
type PromptMessage struct {
	Role    string // "user" or "assistant"
	Content tools.Content
}

const (
	methodListPrompts = "prompts/list"
	methodGetPrompt   = "prompts/get"

	maxPromptArguments = 1000
)

// Prompts lists the prompts of a server, within the time of a call. A server that
// offers none has an empty list. The error is a *tools.Error.
func (all *Sessions) Prompts(ctx context.Context, server string) (PromptList, error) {
	var list PromptList
	s, err := all.session(server)
	if err != nil {
		return list, err
	}
	listed, err := s.listed(ctx, methodListPrompts, "prompts", "prompts", &list.Warnings)
	if err != nil {
		return list, err
	}
	skipped := 0
	for _, raw := range listed {
		var p struct {
			described
			Arguments []struct {
				described
				Required bool `json:"required"`
			} `json:"arguments"`
		}
		if json.Unmarshal(raw, &p) != nil || !usable(text(p.Name)) || len(p.Arguments) > maxPromptArguments {
			skipped++
			continue
		}
		_, title, description := p.texts(s)
		prompt := Prompt{Name: text(p.Name), Title: title, Description: description}
		for _, a := range p.Arguments {
			name, title, description := a.texts(s)
			prompt.Arguments = append(prompt.Arguments, PromptArgument{name, title, description, a.Required})
		}
		list.Prompts = append(list.Prompts, prompt)
	}
	if skipped > 0 {
		list.Warnings = append(list.Warnings, fmt.Sprintf("%d of its prompts can't be used and were left out", skipped))
	}
	return list, nil
}

// GetPrompt fills in a prompt, within the time of a call. The error is a
// *tools.Error; a server's own refusal has the code [tools.CodeProtocolError].
func (all *Sessions) GetPrompt(ctx context.Context, server, name string, arguments map[string]string) (PromptText, error) {
	s, err := all.session(server)
	if err != nil {
		return PromptText{}, err
	}
	raw, err := s.request(ctx, fmt.Sprintf("prompt %q", name), methodGetPrompt, func(ctx context.Context, client *sdk.ClientSession, r round) error {
		_, err := sdk.CallCustomMethod[*sdk.GetPromptParams, *sdk.GetPromptResult](ctx, client, methodGetPrompt,
			&sdk.GetPromptParams{Name: name, Arguments: arguments, InputResponses: r.responses, RequestState: r.state})
		return err
	})
	if err != nil {
		return PromptText{}, err
	}
	var result struct {
		Description json.RawMessage `json:"description"`
		Messages    []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Messages) > maxBlocks {
		return PromptText{}, s.wrap(tools.CodeProtocolError, "the messages of its prompt can't be read", nil)
	}
	p := PromptText{Description: cut(readable(s.masks.redact(text(result.Description))), s.limits.DescriptionLength)}
	for _, m := range result.Messages {
		p.Messages = append(p.Messages, PromptMessage{Role: oneLine(m.Role, maxName), Content: parseBlock(m.Content)})
	}
	return p, nil
}
