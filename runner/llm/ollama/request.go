package ollama

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"crewhost/runner/llm"
)

// The request as the API has it.
type (
	request struct {
		Model    string          `json:"model"`
		Messages []message       `json:"messages"`
		Tools    []tool          `json:"tools,omitempty"`
		Format   json.RawMessage `json:"format,omitempty"`
		Think    any             `json:"think,omitempty"` // bool or effort
		Stream   bool            `json:"stream"`
		Options  *options        `json:"options,omitempty"`
	}
	options struct {
		Context     int      `json:"num_ctx,omitempty"`
		MaxTokens   int      `json:"num_predict,omitempty"`
		Temperature *float64 `json:"temperature,omitempty"`
		TopP        *float64 `json:"top_p,omitempty"`
	}
	message struct {
		Role       string   `json:"role"`
		Content    string   `json:"content"`
		Thinking   string   `json:"thinking,omitempty"`
		Images     [][]byte `json:"images,omitempty"`
		ToolCalls  []call   `json:"tool_calls,omitempty"`
		ToolName   string   `json:"tool_name,omitempty"`
		ToolCallID string   `json:"tool_call_id,omitempty"`
	}
	call struct {
		ID       string       `json:"id,omitempty"`
		Function callFunction `json:"function"`
	}
	callFunction struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	tool struct {
		Type     string       `json:"type"`
		Function toolFunction `json:"function"`
	}
	toolFunction struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// body says req in the API's terms. Fields that req leaves unset are not sent. The
// API has no choice of tools, so where none may be called none is sent.
func (m *Model) body(req llm.Request) ([]byte, error) {
	r := request{Model: cmp.Or(req.Model, m.model), Stream: req.OnDelta != nil}
	if r.Model == "" {
		return nil, errors.New("no model is named")
	}
	r.Messages = messages(req)
	switch req.ToolChoice {
	case "", llm.ToolAuto:
		for _, t := range req.Tools {
			schema := t.Schema
			if len(schema) == 0 || string(schema) == "null" {
				schema = json.RawMessage(`{"type":"object","properties":{}}`)
			}
			if !isObject(schema) {
				return nil, fmt.Errorf("schema of tool %q: it is no JSON object", t.Name)
			}
			r.Tools = append(r.Tools, tool{"function", toolFunction{t.Name, t.Description, schema}})
		}
	case llm.ToolNone:
	default:
		return nil, fmt.Errorf("tool choice %q is unknown", req.ToolChoice)
	}
	switch f := req.Format; {
	case f == nil:
	case f.Type == "json_object":
		r.Format = json.RawMessage(`"json"`)
	case f.Type == "json_schema" && isObject(f.Schema):
		r.Format = f.Schema
	case f.Type == "json_schema":
		return nil, errors.New("schema of the response format: it is no JSON object")
	default:
		return nil, fmt.Errorf("response format %q is unknown", f.Type)
	}
	if t := req.Thinking; t != nil {
		r.Think = t.Enabled
		if t.Enabled && t.Effort != "" {
			r.Think = t.Effort
		}
	}
	if o := (options{m.context, req.MaxTokens, req.Temperature, req.TopP}); o != (options{}) {
		r.Options = &o
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func isObject(raw json.RawMessage) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal(raw, &fields) == nil && fields != nil
}

// messages says the conversation in the API's terms. The images of tools follow
// the last of the tools' messages as a user's message.
func messages(req llm.Request) []message {
	var out []message
	if req.System != "" {
		out = append(out, message{Role: "system", Content: req.System})
	}
	names := map[string]string{} // of tools, by call
	var images [][]byte
	flush := func() {
		if len(images) > 0 {
			out = append(out, message{Role: "user", Content: "Images that the tools returned:", Images: images})
			images = nil
		}
	}
	for _, m := range req.Messages {
		if m.Role != llm.RoleTool {
			flush()
		}
		text, shown := content(m)
		switch m.Role {
		case llm.RoleAssistant:
			a := message{Role: "assistant", Content: text}
			for _, c := range m.Calls {
				names[c.ID] = c.Name
				a.ToolCalls = append(a.ToolCalls, call{c.ID, callFunction{c.Name, c.Object()}})
			}
			if len(m.Calls) > 0 { // a turn goes on, and so do its thoughts
				a.Thinking = m.Reasoning
			}
			out = append(out, a)
		case llm.RoleTool:
			images = append(images, shown...)
			switch {
			case text != "":
			case m.IsError:
				text = "The tool failed and said nothing."
			default:
				text = "The tool returned nothing."
			}
			out = append(out, message{Role: "tool", Content: text, ToolName: names[m.CallID], ToolCallID: m.CallID})
		default:
			out = append(out, message{Role: "user", Content: text, Images: shown})
		}
	}
	flush()
	return out
}

// content is the text of a message, and its images.
func content(m llm.Message) (string, [][]byte) {
	var texts []string
	var images [][]byte
	for _, p := range m.Parts {
		switch {
		case p.MIME == "":
			texts = append(texts, p.Text)
		case strings.HasPrefix(p.MIME, "image/"):
			images = append(images, p.Data)
		default:
			texts = append(texts, fmt.Sprintf("[%s, %d bytes, not shown]", p.MIME, len(p.Data)))
		}
	}
	between := ""
	if m.Role == llm.RoleTool {
		between = "\n"
	}
	return strings.Join(texts, between), images
}
