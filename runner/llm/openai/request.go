package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"crewhost/runner/llm"
)

// params says req in the API's terms. Fields that req leaves unset are not sent.
func (m *Model) params(req llm.Request) (openai.ChatCompletionNewParams, error) {
	p := openai.ChatCompletionNewParams{Model: m.model}
	if req.Model != "" {
		p.Model = req.Model
	}
	if p.Model == "" {
		return p, fmt.Errorf("no model is named")
	}
	p.Messages = m.messages(req)
	for _, t := range req.Tools {
		schema, err := object(t.Schema)
		if err != nil {
			return p, fmt.Errorf("schema of tool %q: %w", t.Name, err)
		}
		if schema == nil { // some servers refuse a function without parameters
			schema = map[string]any{"type": "object", "properties": map[string]any{}}
		}
		f := shared.FunctionDefinitionParam{Name: t.Name, Parameters: schema}
		if t.Description != "" {
			f.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, openai.ChatCompletionFunctionTool(f))
	}
	switch req.ToolChoice {
	case "", llm.ToolAuto: // the API's default; some servers know no tool_choice
	case llm.ToolNone:
		if len(p.Tools) > 0 {
			p.ToolChoice = openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: param.NewOpt(string(llm.ToolNone))}
		}
	default:
		return p, fmt.Errorf("tool choice %q is unknown", req.ToolChoice)
	}
	if req.Temperature != nil {
		p.Temperature = param.NewOpt(*req.Temperature)
	}
	if req.TopP != nil {
		p.TopP = param.NewOpt(*req.TopP)
	}
	if req.MaxTokens > 0 {
		if m.tokens == MaxCompletionTokens {
			p.MaxCompletionTokens = param.NewOpt(int64(req.MaxTokens))
		} else {
			p.MaxTokens = param.NewOpt(int64(req.MaxTokens))
		}
	}
	if req.OneCall && len(p.Tools) > 0 && req.ToolChoice != llm.ToolNone {
		p.ParallelToolCalls = param.NewOpt(false)
	}
	if req.OnDelta != nil && !m.noUsage {
		p.StreamOptions.IncludeUsage = param.NewOpt(true)
	}
	return p, format(&p, req.Format)
}

// format sets the form of the answer.
func format(p *openai.ChatCompletionNewParams, f *llm.ResponseFormat) error {
	if f == nil {
		return nil
	}
	switch f.Type {
	case "json_object":
		p.ResponseFormat.OfJSONObject = &shared.ResponseFormatJSONObjectParam{}
	case "json_schema":
		schema, err := object(f.Schema)
		if err != nil {
			return fmt.Errorf("schema of the response format: %w", err)
		}
		s := shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: f.Name, Schema: schema}
		if s.Name == "" {
			s.Name = "answer"
		}
		if f.Strict {
			s.Strict = param.NewOpt(true)
		}
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: s}
	default:
		return fmt.Errorf("response format %q is unknown", f.Type)
	}
	return nil
}

// object splits a JSON object at its first level and keeps the values' bytes, so
// that no number of a schema changes on its way.
func object(raw json.RawMessage) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		return nil, nil
	}
	values := make(map[string]any, len(fields))
	for k, v := range fields {
		values[k] = v
	}
	return values, nil
}

// messages says the conversation in the API's terms. A tool's message holds text
// only there, so the images of tools follow the last of the tools' messages as a
// user's message.
func (m *Model) messages(req llm.Request) []openai.ChatCompletionMessageParamUnion {
	var out []openai.ChatCompletionMessageParamUnion
	if req.System != "" {
		out = append(out, openai.SystemMessage(req.System))
	}
	var images []llm.Part
	flush := func() {
		if len(images) > 0 {
			out = append(out, user(append([]llm.Part{{Text: "Images that the tools returned:"}}, images...)))
			images = nil
		}
	}
	for _, msg := range req.Messages {
		if msg.Role != llm.RoleTool {
			flush()
		}
		switch msg.Role {
		case llm.RoleAssistant:
			out = append(out, m.assistant(msg))
		case llm.RoleTool:
			text, shown := toolText(msg)
			images = append(images, shown...)
			out = append(out, openai.ToolMessage(text, msg.CallID))
		default:
			out = append(out, user(msg.Parts))
		}
	}
	flush()
	return out
}

// toolText is what a tool's message says, and the images it cannot hold.
func toolText(m llm.Message) (string, []llm.Part) {
	var texts []string
	var images []llm.Part
	for _, p := range m.Parts {
		switch {
		case p.MIME == "":
			texts = append(texts, p.Text)
		case strings.HasPrefix(p.MIME, "image/"):
			images = append(images, p)
			texts = append(texts, fmt.Sprintf("[image %d of the message after the tools' results]", len(images)))
		default:
			texts = append(texts, placeholder(p))
		}
	}
	text := strings.Join(texts, "\n")
	switch {
	case text != "":
	case m.IsError:
		text = "The tool failed and said nothing."
	default:
		text = "The tool returned nothing."
	}
	return text, images
}

func placeholder(p llm.Part) string {
	return fmt.Sprintf("[%s, %d bytes, not shown]", p.MIME, len(p.Data))
}

// user returns a user's message: a string where it is all text, because some
// servers know no parts.
func user(parts []llm.Part) openai.ChatCompletionMessageParamUnion {
	plain := true
	for _, p := range parts {
		plain = plain && p.MIME == ""
	}
	if plain {
		return openai.UserMessage(llm.Message{Parts: parts}.Text())
	}
	var out []openai.ChatCompletionContentPartUnionParam
	for _, p := range parts {
		switch {
		case p.MIME == "":
			out = append(out, openai.TextContentPart(p.Text))
		case strings.HasPrefix(p.MIME, "image/"):
			out = append(out, openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{
				URL: "data:" + p.MIME + ";base64," + base64.StdEncoding.EncodeToString(p.Data),
			}))
		default:
			out = append(out, openai.TextContentPart(placeholder(p)))
		}
	}
	return openai.UserMessage(out)
}

// assistant returns an assistant's message, with what the server wants to have
// back of the turn. Its reasoning is not sent unless the server demands it: the
// API has no field for it, and servers that have one refuse or ignore it.
func (m *Model) assistant(msg llm.Message) openai.ChatCompletionMessageParamUnion {
	var a openai.ChatCompletionAssistantMessageParam
	if text := msg.Text(); text != "" || len(msg.Calls) == 0 {
		a.Content.OfString = param.NewOpt(text)
	}
	kept := keptOf(msg)
	extra := map[string]any{}
	if len(kept.ReasoningDetails) > 0 {
		extra["reasoning_details"] = kept.ReasoningDetails
	}
	if m.back && msg.Reasoning != "" && len(msg.Calls) > 0 {
		extra["reasoning_content"] = msg.Reasoning
	}
	if len(extra) > 0 {
		a.SetExtraFields(extra)
	}
	for _, c := range msg.Calls {
		call := &openai.ChatCompletionMessageFunctionToolCallParam{
			ID: c.ID,
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
				Name:      c.Name,
				Arguments: string(c.Object()),
			},
		}
		if raw, ok := kept.ExtraContent[c.ID]; ok {
			call.SetExtraFields(map[string]any{"extra_content": raw})
		}
		a.ToolCalls = append(a.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: call})
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &a}
}
