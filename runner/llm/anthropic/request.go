package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	anthropic "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/param"

	"crewhost/runner/llm"
)

const (
	jsonObjectPrompt = "Answer with exactly one JSON object and nothing around it."
	jsonSchemaPrompt = "Answer with exactly one JSON value that is valid against this JSON Schema, and nothing around it:\n"
)

// params says req in the API's terms; the options hold what the SDK's parameters
// have no field for.
func (m *Model) params(req llm.Request) (anthropic.MessageNewParams, []option.RequestOption, error) {
	p := anthropic.MessageNewParams{Model: m.model}
	var options []option.RequestOption
	if req.Model != "" {
		p.Model = req.Model
	}
	if p.Model == "" {
		return p, nil, fmt.Errorf("no model is named")
	}
	traits := traitsOf(p.Model)
	p.MaxTokens = int64(traits.maxTokens)
	if req.MaxTokens > 0 {
		p.MaxTokens = int64(req.MaxTokens)
	}
	p.Messages = messages(req.Messages)
	for _, t := range req.Tools {
		schema := t.Schema
		if len(schema) == 0 || string(schema) == "null" {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		if err := checkObject(schema); err != nil {
			return p, nil, fmt.Errorf("schema of tool %q: %w", t.Name, err)
		}
		tool := &anthropic.ToolParam{Name: t.Name, InputSchema: param.Override[anthropic.ToolInputSchemaParam](schema)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: tool})
	}
	switch req.ToolChoice {
	case "", llm.ToolAuto: // the API's default
		if req.OneCall && len(p.Tools) > 0 {
			p.ToolChoice.OfAuto = &anthropic.ToolChoiceAutoParam{DisableParallelToolUse: param.NewOpt(true)}
		}
	case llm.ToolNone:
		if len(p.Tools) > 0 {
			p.ToolChoice.OfNone = &anthropic.ToolChoiceNoneParam{}
		}
	default:
		return p, nil, fmt.Errorf("tool choice %q is unknown", req.ToolChoice)
	}
	if req.Temperature != nil {
		options = append(options, option.WithJSONSet("temperature", *req.Temperature))
	}
	if req.TopP != nil {
		options = append(options, option.WithJSONSet("top_p", *req.TopP))
	}
	if t := req.Thinking; t != nil && t.Enabled {
		think(&p, traits, *t)
	}
	system := req.System
	if f := req.Format; f != nil {
		switch f.Type {
		case "json_object":
			system = strings.TrimSpace(system + "\n\n" + jsonObjectPrompt)
		case "json_schema":
			if err := checkObject(f.Schema); err != nil {
				return p, nil, fmt.Errorf("schema of the response format: %w", err)
			}
			if schema, ok := outputSchema(f.Schema, 0); ok {
				p.OutputConfig.Format = param.Override[anthropic.JSONOutputFormatParam](
					json.RawMessage(`{"type":"json_schema","schema":` + string(schema) + `}`))
			} else {
				system = strings.TrimSpace(system + "\n\n" + jsonSchemaPrompt + string(f.Schema))
			}
		default:
			return p, nil, fmt.Errorf("response format %q is unknown", f.Type)
		}
	}
	if system != "" {
		p.System = []anthropic.TextBlockParam{{Text: system}}
	}
	if req.Cache != nil {
		mark(&p, *req.Cache)
	}
	return p, options, nil
}

// mark marks the ends of what is to be cached. The tools come before the system
// prompt, so a mark behind that one covers them as well.
func mark(p *anthropic.MessageNewParams, c llm.Cache) {
	control := anthropic.NewCacheControlEphemeralParam()
	control.TTL = anthropic.CacheControlEphemeralTTL(c.TTL)
	if n := len(p.Tools); c.Tools && n > 0 {
		p.Tools[n-1].OfTool.CacheControl = control
	}
	if n := len(p.System); c.System && n > 0 {
		p.System[n-1].CacheControl = control
	}
}

// think asks for thinking, in the way that the model knows. A bound of the answer
// that leaves no room behind the budget is raised by it.
func think(p *anthropic.MessageNewParams, model traits, t llm.Thinking) {
	effort, budget := model.thinking(t)
	config := `{"type":"adaptive"}`
	if budget > 0 {
		config = fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, budget)
		if int64(budget) >= p.MaxTokens {
			p.MaxTokens += int64(budget)
		}
	}
	// As raw JSON: for some models the SDK writes a warning to standard error
	// when it sees its own type of a budget.
	p.Thinking = param.Override[anthropic.ThinkingConfigParamUnion](json.RawMessage(config))
	p.OutputConfig.Effort = anthropic.OutputConfigEffort(effort)
}

func checkObject(raw json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	if fields == nil {
		return fmt.Errorf("null is no object")
	}
	return nil
}

// messages says the conversation in the API's terms. Neighbouring messages of the
// tools, and the user's behind them, become one user's message, in which the
// results come first as the API demands.
func messages(all []llm.Message) []anthropic.MessageParam {
	var out []anthropic.MessageParam
	for i := 0; i < len(all); {
		if all[i].Role == llm.RoleAssistant {
			if blocks := assistant(all[i]); len(blocks) > 0 {
				out = append(out, anthropic.NewAssistantMessage(blocks...))
			}
			i++
			continue
		}
		var blocks []anthropic.ContentBlockParamUnion
		for ; i < len(all) && all[i].Role == llm.RoleTool; i++ {
			blocks = append(blocks, toolResult(all[i]))
		}
		if i < len(all) && all[i].Role == llm.RoleUser {
			blocks = append(blocks, user(all[i])...)
			i++
		}
		out = append(out, anthropic.NewUserMessage(blocks...))
	}
	return out
}

// user returns the blocks of a user's message. The API refuses blocks without
// text and messages without blocks.
func user(m llm.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	for _, p := range m.Parts {
		switch {
		case isImage(p.MIME):
			blocks = append(blocks, anthropic.NewImageBlockBase64(p.MIME, base64.StdEncoding.EncodeToString(p.Data)))
		case p.MIME == "application/pdf":
			blocks = append(blocks, anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: base64.StdEncoding.EncodeToString(p.Data)}))
		case p.MIME != "":
			blocks = append(blocks, anthropic.NewTextBlock(placeholder(p)))
		case strings.TrimSpace(p.Text) != "":
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		}
	}
	if len(blocks) == 0 {
		blocks = append(blocks, anthropic.NewTextBlock("(no text)"))
	}
	return blocks
}

// toolResult returns the block of a tool's message, which may hold images and may
// be empty.
func toolResult(m llm.Message) anthropic.ContentBlockParamUnion {
	result := &anthropic.ToolResultBlockParam{ToolUseID: m.CallID}
	if m.IsError {
		result.IsError = param.NewOpt(true)
	}
	for _, p := range m.Parts {
		var c anthropic.ToolResultBlockParamContentUnion
		switch {
		case isImage(p.MIME):
			c.OfImage = anthropic.NewImageBlockBase64(p.MIME, base64.StdEncoding.EncodeToString(p.Data)).OfImage
		case p.MIME != "":
			c.OfText = &anthropic.TextBlockParam{Text: placeholder(p)}
		case p.Text != "":
			c.OfText = &anthropic.TextBlockParam{Text: p.Text}
		default:
			continue
		}
		result.Content = append(result.Content, c)
	}
	if m.IsError && len(result.Content) == 0 { // the API wants an error to say something
		result.Content = append(result.Content, anthropic.ToolResultBlockParamContentUnion{
			OfText: &anthropic.TextBlockParam{Text: "The tool failed and said nothing."},
		})
	}
	return anthropic.ContentBlockParamUnion{OfToolResult: result}
}

// assistant returns the blocks of a turn of the model: as they came where it kept
// them and calls the same tools still, otherwise made anew.
func assistant(m llm.Message) []anthropic.ContentBlockParamUnion {
	var blocks []anthropic.ContentBlockParamUnion
	if kept := keptBlocks(m); kept != nil {
		for _, raw := range kept {
			blocks = append(blocks, param.Override[anthropic.ContentBlockParamUnion](raw))
		}
		return blocks
	}
	for _, p := range m.Parts {
		if p.MIME == "" && strings.TrimSpace(p.Text) != "" {
			blocks = append(blocks, anthropic.NewTextBlock(p.Text))
		}
	}
	for _, c := range m.Calls {
		blocks = append(blocks, anthropic.NewToolUseBlock(c.ID, c.Object(), c.Name))
	}
	return blocks
}

// keptBlocks returns the blocks in m.Opaque, or nil if there are none of this
// package's or the message's calls are no longer those that it came with: a call
// without a result, or the reverse, would be refused.
func keptBlocks(m llm.Message) []json.RawMessage {
	var kept opaque
	if len(m.Opaque) == 0 || json.Unmarshal(m.Opaque, &kept) != nil {
		return nil
	}
	var had, has []string
	for _, raw := range kept.Anthropic {
		var b struct{ Type, ID string }
		if json.Unmarshal(raw, &b) == nil && b.Type == "tool_use" {
			had = append(had, b.ID)
		}
	}
	for _, c := range m.Calls {
		has = append(has, c.ID)
	}
	if !slices.Equal(had, has) {
		return nil
	}
	return kept.Anthropic
}

func isImage(mime string) bool {
	switch mime {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		return true
	}
	return false
}

func placeholder(p llm.Part) string {
	return fmt.Sprintf("[%s, %d bytes, not shown]", p.MIME, len(p.Data))
}
