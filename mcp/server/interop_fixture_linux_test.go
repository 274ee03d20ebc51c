//go:build interop

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// A fixtureTool is a tool of the fixture.
type fixtureTool struct {
	def  tools.Definition
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (t fixtureTool) Definition() tools.Definition { return t.def }
func (t fixtureTool) Call(ctx context.Context, c tools.Call) (tools.Result, error) {
	return t.call(ctx, c)
}

const noArguments = `{"type":"object","properties":{}}`

// tools are those that the suite calls. What each does is said in the suite.
func (f *fixture) tools() []tools.Tool {
	var out []tools.Tool
	add := func(name, schema string, call func(context.Context, tools.Call) (tools.Result, error)) {
		def := tools.Definition{Name: name, Description: "Does what the suite wants of " + name + ".", InputSchema: json.RawMessage(schema)}
		out = append(out, fixtureTool{def, call})
	}
	says := func(name string, content ...tools.Content) {
		add(name, noArguments, func(context.Context, tools.Call) (tools.Result, error) {
			return tools.Result{Content: content}, nil
		})
	}
	asks := func(name, schema string, ask func(context.Context, server.Caller, tools.Call) (string, error)) {
		add(name, schema, func(ctx context.Context, c tools.Call) (tools.Result, error) {
			caller, ok := server.CallerFrom(ctx)
			if !ok {
				return tools.Result{}, errors.New("nobody calls")
			}
			said, err := ask(ctx, caller, c)
			return tools.Text(said), err
		})
	}
	text := tools.Content{Kind: tools.KindText, Text: "This is a simple text response for testing."}
	picture := tools.Content{Kind: tools.KindImage, MIME: "image/png", Data: dot()}
	embedded := tools.Content{Kind: tools.KindResource, URI: "test://embedded-resource", MIME: "text/plain", Text: "This is an embedded resource content."}
	says("test_simple_text", text)
	says("test_image_content", picture)
	says("test_audio_content", tools.Content{Kind: tools.KindAudio, MIME: "audio/wav", Data: silence()})
	says("test_embedded_resource", embedded)
	says("test_multiple_content_types", text, picture, embedded)
	says("test_streaming_elicitation", text)
	says("test_reconnection", text)
	says("json_schema_2020_12_tool", text)
	out[len(out)-1] = fixtureTool{tools.Definition{Name: "json_schema_2020_12_tool", Description: "Has a schema of the revision 2020-12.", InputSchema: json.RawMessage(schema2020)}, out[len(out)-1].(fixtureTool).call}
	add("test_x_mcp_header", `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"level":{"type":"integer"}}}`,
		func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Text(string(c.Arguments)), nil
		})
	add("test_error_handling", noArguments, func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Failure("This tool intentionally returns an error for testing"), nil
	})
	add("test_tool_with_progress", noArguments, func(ctx context.Context, c tools.Call) (tools.Result, error) {
		for _, done := range []float64{0, 50, 100} {
			if c.Progress != nil {
				c.Progress(tools.Progress{Done: done, Total: 100, Message: fmt.Sprintf("%v of 100", done)})
			}
			if err := pause(ctx, 150*time.Millisecond); err != nil { // all of them are told
				return tools.Result{}, err
			}
		}
		return tools.Text("done"), nil
	})
	asks("test_tool_with_logging", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		for _, line := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			c.Log(ctx, "info", "fixture", line)
			if err := pause(ctx, 50*time.Millisecond); err != nil {
				return "", err
			}
		}
		return "logged", nil
	})
	asks("test_logging_tool", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		c.Log(ctx, "info", "fixture", "not asked for")
		return "logged", nil
	})
	add("test_trigger_tool_change", noArguments, func(context.Context, tools.Call) (tools.Result, error) {
		if !f.registry.Remove("transient") {
			if err := f.registry.Add(fixtureTool{tools.Definition{Name: "transient", Description: "Comes and goes."}, nil}); err != nil {
				return tools.Result{}, err
			}
		}
		f.server.Refresh()
		return tools.Text("changed"), nil
	})
	add("test_trigger_prompt_change", noArguments, func(context.Context, tools.Call) (tools.Result, error) {
		f.server.Refresh()
		return tools.Text("changed"), nil
	})
	f.asking(asks)
	return out
}

// asking are the tools that ask their client.
func (f *fixture) asking(asks func(string, string, func(context.Context, server.Caller, tools.Call) (string, error))) {
	argument := func(c tools.Call, name string) string {
		var arguments map[string]string
		_ = json.Unmarshal(c.Arguments, &arguments)
		return arguments[name]
	}
	form := func(ctx context.Context, c server.Caller, name, message, schema string) (string, error) {
		e, err := c.Elicit(server.AskAs(ctx, name), message, json.RawMessage(schema))
		return fmt.Sprintf("action=%s, content=%v", e.Action, e.Content), err
	}
	sample := func(ctx context.Context, c server.Caller, prompt string) (string, error) {
		raw, err := c.Sample(ctx, encoded(map[string]any{
			"messages":  []any{map[string]any{"role": "user", "content": map[string]any{"type": "text", "text": prompt}}},
			"maxTokens": 100,
		}))
		return string(raw), err
	}
	roots := func(ctx context.Context, c server.Caller) (string, error) {
		raw, err := c.Roots(server.AskAs(ctx, "client_roots"))
		return string(raw), err
	}
	const named = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	asks("test_sampling", `{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}`, func(ctx context.Context, c server.Caller, call tools.Call) (string, error) {
		said, err := sample(ctx, c, argument(call, "prompt"))
		return "LLM response: " + said, err
	})
	asks("test_missing_capability", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return sample(ctx, c, "Say something.")
	})
	asks("test_elicitation", `{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}`, func(ctx context.Context, c server.Caller, call tools.Call) (string, error) {
		return form(ctx, c, "user", argument(call, "message"), `{"type":"object","properties":{"response":{"type":"string","description":"User's response"}},"required":["response"]}`)
	})
	asks("test_elicitation_sep1034_defaults", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return form(ctx, c, "defaults", "Please review and update the form fields with defaults", defaultsForm)
	})
	asks("test_elicitation_sep1330_enums", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return form(ctx, c, "enums", "Please choose", enumsForm)
	})
	asks("test_input_required_result_elicitation", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return form(ctx, c, "user_name", "What is your name?", named)
	})
	asks("test_input_required_result_sampling", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return sample(server.AskAs(ctx, "capital_question"), c, "What is the capital of France?")
	})
	asks("test_input_required_result_list_roots", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return roots(ctx, c)
	})
	confirm := func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		said, err := form(ctx, c, "confirm", "Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
		return "state-ok: " + said, err
	}
	asks("test_input_required_result_request_state", noArguments, confirm)
	asks("test_input_required_result_tampered_state", noArguments, confirm)
	asks("test_input_required_result_multi_round", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		one, err := form(ctx, c, "step1", "Step 1: What is your name?", named)
		if err != nil {
			return "", err
		}
		two, err := form(ctx, c, "step2", "Step 2: What is your favorite color?", `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`)
		return one + "; " + two, err
	})
	asks("test_input_required_result_multiple_inputs", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		return all(
			func() (string, error) { return form(ctx, c, "user_name", "What is your name?", named) },
			func() (string, error) { return sample(server.AskAs(ctx, "greeting"), c, "Generate a greeting") },
			func() (string, error) { return roots(ctx, c) },
		)
	})
	// Whatever its client can't be asked, it does without.
	asks("test_input_required_result_capabilities", noArguments, func(ctx context.Context, c server.Caller, _ tools.Call) (string, error) {
		able := func(said string, err error) (string, error) {
			if errors.Is(err, server.ErrNoClient) {
				return "not asked", nil
			}
			return said, err
		}
		return all(
			func() (string, error) { return able(form(ctx, c, "user_name", "What is your name?", named)) },
			func() (string, error) {
				return able(sample(server.AskAs(ctx, "greeting"), c, "Generate a short greeting"))
			},
			func() (string, error) { return able(roots(ctx, c)) },
		)
	})
}

// all asks everything at the same time.
func all(asks ...func() (string, error)) (string, error) {
	said, errs := make([]string, len(asks)), make([]error, len(asks))
	var group sync.WaitGroup
	for i, ask := range asks {
		group.Go(func() { said[i], errs[i] = ask() })
	}
	group.Wait()
	return strings.Join(said, "; "), errors.Join(errs...)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func encoded(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return b
}

// dot is a picture of one pixel.
func dot() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1)))
	return b.Bytes()
}

// silence is one sample of sound.
func silence() []byte {
	return []byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00")
}

const watchedURI = "test://watched-resource"

// Resources implements [server.Resources].
func (f *fixture) Resources(context.Context) ([]server.Resource, error) {
	return []server.Resource{
		{URI: "test://static-text", Name: "Static text", Description: "A text.", MIME: "text/plain"},
		{URI: "test://static-binary", Name: "Static picture", Description: "A picture.", MIME: "image/png"},
		{URI: watchedURI, Name: "Watched", Description: "What may be watched.", MIME: "text/plain"},
	}, nil
}

// Templates implements [server.Resources].
func (f *fixture) Templates(context.Context) ([]server.Template, error) {
	return []server.Template{{Template: "test://template/{id}/data", Name: "Data", Description: "Data by an id.", MIME: "application/json"}}, nil
}

// Read implements [server.Resources].
func (f *fixture) Read(_ context.Context, uri string) ([]tools.Content, error) {
	c := tools.Content{Kind: tools.KindResource, URI: uri, MIME: "text/plain"}
	id, isData := strings.CutPrefix(uri, "test://template/")
	id, ends := strings.CutSuffix(id, "/data")
	switch {
	case uri == "test://static-text":
		c.Text = "This is the content of the static text resource."
	case uri == "test://static-binary":
		c.MIME, c.Data = "image/png", dot()
	case uri == watchedURI:
		c.Text = "Watched resource content"
	case isData && ends:
		c.MIME, c.Text = "application/json", string(encoded(map[string]any{"id": id, "templateTest": true, "data": "Data for ID: " + id}))
	default:
		return nil, server.ErrNotFound
	}
	return []tools.Content{c}, nil
}

// Watch implements [server.Watcher].
func (f *fixture) Watch(context.Context, string, func()) (func(), error) {
	return func() {}, nil // nothing ever changes
}

// Complete implements [server.Completer].
func (f *fixture) Complete(_ context.Context, _, _, written string, _ map[string]string) ([]string, bool, error) {
	return []string{written + "is", written + "est"}, false, nil
}

// Prompts implements [server.Prompts].
func (f *fixture) Prompts(context.Context) ([]server.Prompt, error) {
	return []server.Prompt{
		{Name: "test_simple_prompt", Description: "A prompt."},
		{Name: "test_prompt_with_arguments", Description: "A prompt with arguments.", Arguments: []server.PromptArgument{
			{Name: "arg1", Description: "First test argument", Required: true},
			{Name: "arg2", Description: "Second test argument", Required: true},
		}},
		{Name: "test_prompt_with_embedded_resource", Description: "A prompt with a resource.", Arguments: []server.PromptArgument{
			{Name: "resourceUri", Description: "URI of the resource to embed", Required: true},
		}},
		{Name: "test_prompt_with_image", Description: "A prompt with a picture."},
		{Name: "test_input_required_result_prompt", Description: "A prompt that asks."},
	}, nil
}

// Prompt implements [server.Prompts].
func (f *fixture) Prompt(ctx context.Context, name string, arguments map[string]string) (server.PromptText, error) {
	text := func(s string) tools.Content { return tools.Content{Kind: tools.KindText, Text: s} }
	var said []tools.Content
	switch name {
	case "test_simple_prompt":
		said = []tools.Content{text("This is a simple prompt for testing.")}
	case "test_prompt_with_arguments":
		said = []tools.Content{text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", arguments["arg1"], arguments["arg2"]))}
	case "test_prompt_with_embedded_resource":
		said = []tools.Content{
			{Kind: tools.KindResource, URI: arguments["resourceUri"], MIME: "text/plain", Text: "Embedded resource content for testing."},
			text("Please process the embedded resource above."),
		}
	case "test_prompt_with_image":
		said = []tools.Content{{Kind: tools.KindImage, MIME: "image/png", Data: dot()}, text("Please analyze the image above.")}
	case "test_input_required_result_prompt":
		caller, ok := server.CallerFrom(ctx)
		if !ok {
			return server.PromptText{}, errors.New("nobody calls")
		}
		e, err := caller.Elicit(server.AskAs(ctx, "user_context"), "What context should the prompt use?", json.RawMessage(`{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`))
		if err != nil {
			return server.PromptText{}, err
		}
		said = []tools.Content{text(fmt.Sprint("Context: ", e.Content["context"]))}
	default:
		return server.PromptText{}, server.ErrNotFound
	}
	var out server.PromptText
	for _, c := range said {
		out.Messages = append(out.Messages, server.PromptMessage{Role: "user", Content: c})
	}
	return out, nil
}

const schema2020 = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`

const defaultsForm = `{"type": "object", "properties": {
  "name": {"type": "string", "default": "John Doe"},
  "age": {"type": "integer", "default": 30},
  "score": {"type": "number", "default": 95.5},
  "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
  "verified": {"type": "boolean", "default": true}
}}`

const enumsForm = `{"type": "object", "properties": {
  "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
  "titledSingle": {"type": "string", "oneOf": [
    {"const": "value1", "title": "First Option"}, {"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}
  ]},
  "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
  "untitledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
  "titledMulti": {"type": "array", "minItems": 1, "maxItems": 3, "items": {"anyOf": [
    {"const": "value1", "title": "First Choice"}, {"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}
  ]}}
}}`
