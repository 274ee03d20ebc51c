package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools of a Standard server that ask, in whichever form the client's era has:
//
//   - ask: {"message":…,"schema":…,"url":…}: asks so, and answers with the JSON of
//     what came back. With "again":n it asks n times more.
//   - ask_model: {"prompt":…,"max_tokens":n,"stop":[…]}: the same, of the model
//   - ask_roots: the same, for the client's folders
//   - capabilities: the JSON of what the client announced
//   - busy: asks to be asked again once, and for nothing else
//
// They are there only if -tools names them.

func askTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	var in struct {
		Message string
		Schema  json.RawMessage
		URL     string
		Again   int
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return failure(err.Error())
	}
	p := &mcp.ElicitParams{Mode: "form", Message: in.Message}
	if len(in.Schema) > 0 {
		p.RequestedSchema = in.Schema
	}
	if in.URL != "" {
		p = &mcp.ElicitParams{Mode: "url", Message: in.Message, URL: in.URL, ElicitationID: "e-1"}
	}
	var rounds int
	if req.Params.RequestState != "" {
		if _, err := fmt.Sscan(req.Params.RequestState, &rounds); err != nil {
			return failure(err.Error())
		}
	}
	if rounds <= in.Again {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": p}, RequestState: fmt.Sprint(rounds + 1)}
	}
	return responses(req)
}

func askModelTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	if len(req.Params.InputResponses) > 0 {
		return responses(req)
	}
	var in struct {
		Prompt    string
		MaxTokens int64 `json:"max_tokens"`
		Stop      []string
	}
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return failure(err.Error())
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"m": &mcp.CreateMessageParams{
		SystemPrompt: "Be brief.", MaxTokens: in.MaxTokens, StopSequences: in.Stop,
		Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}},
	}}}
}

func askRootsTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	if len(req.Params.InputResponses) > 0 {
		return responses(req)
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"r": &mcp.ListRootsParams{}}}
}

func busyTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	if req.Params.RequestState == "" {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}, RequestState: "later"}
	}
	return text("not busy any more")
}

func capabilitiesTool(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
	announced := req.Params.GetMeta()[mcp.MetaKeyClientCapabilities]
	if p := req.Session.InitializeParams(); announced == nil && p != nil {
		announced = p.Capabilities
	}
	data, err := json.Marshal(announced)
	if err != nil {
		return failure(err.Error())
	}
	return text(string(data))
}

// responses are what came back, as JSON.
func responses(req *mcp.CallToolRequest) *mcp.CallToolResult {
	data, err := json.Marshal(req.Params.InputResponses)
	if err != nil {
		return failure(err.Error())
	}
	return text(string(data))
}

// complete suggests values for the arguments of what addContents adds: one that says
// what was asked, and with "many" 150 of them.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	p := req.Params
	if p.Argument.Value == "fail" {
		return nil, errors.New("nothing comes to mind")
	}
	said := p.Ref.Name + p.Ref.URI + " " + p.Argument.Name + " " + p.Argument.Value
	if p.Context != nil {
		said += " " + p.Context.Arguments["other"]
	}
	values := []string{said}
	if p.Argument.Value == "many" {
		values = slices.Repeat(values, 150)
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: append(values, strings.Repeat("x", 5000)), HasMore: p.Argument.Value == "more"}}, nil
}

// addContents adds what a Standard server offers besides tools with its flag
// -contents: two resources, a template, two prompts. The resource "asking:///" and
// the prompt "asks" want the field "who" first.
func addContents(server *mcp.Server) {
	who := json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]}`)
	ask := mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "Who reads?", RequestedSchema: who}}
	server.AddResource(&mcp.Resource{
		URI: "notes:///tide", Name: "tide", Title: "The tide", Description: "When it is\u202e high.", MIMEType: "text/plain", Size: 11,
	}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{
			{URI: "notes:///tide", MIMEType: "text/plain", Text: "high at six"},
			{URI: "notes:///tide#chart", MIMEType: "image/png", Blob: []byte("a chart")},
		}}, nil
	})
	server.AddResource(&mcp.Resource{URI: "asking:///", Name: "asking"}, func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		if len(req.Params.InputResponses) == 0 {
			return &mcp.ReadResourceResult{InputRequests: ask}, nil
		}
		data, err := json.Marshal(req.Params.InputResponses)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "asking:///", Text: string(data)}}}, err
	})
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "notes:///{name}", Name: "note", Description: "Any note."},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(req.Params.URI)
		})
	server.AddPrompt(&mcp.Prompt{
		Name: "greet", Title: "Greet", Description: "Greets somebody.",
		Arguments: []*mcp.PromptArgument{{Name: "who", Description: "Whom.", Required: true}},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Description: "A greeting.", Messages: []*mcp.PromptMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Say hello to " + req.Params.Arguments["who"] + "."}},
			{Role: "assistant", Content: &mcp.TextContent{Text: "Hello!"}},
		}}, nil
	})
	server.AddPrompt(&mcp.Prompt{Name: "asks"}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		if len(req.Params.InputResponses) == 0 {
			return &mcp.GetPromptResult{InputRequests: ask}, nil
		}
		data, err := json.Marshal(req.Params.InputResponses)
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: string(data)}}}}, err
	})
}
