package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"crewhost/tools"
)

// The tools by which agents reach the resources of servers. The settings turn
// them on (mcp.resource_tools).
const (
	ListResourcesTool = "mcp_list_resources"
	ReadResourceTool  = "mcp_read_resource"
)

const (
	maxListedText = 16_000 // characters of a list of resources
	maxReadText   = 32_000 // characters of each text of a resource
)

// A resourceTool is one of the two. Each call concerns one server, and the
// policy judges it as a call of a tool of that server (R5).
type resourceTool struct {
	def tools.Definition
	run func(ctx context.Context, args resourceArguments) (tools.Result, error)
	uri bool // whether it takes one
}

type resourceArguments struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// resourceTools makes the tools for the servers that offer resources.
func (all *Sessions) resourceTools() []*resourceTool {
	var servers []string
	for _, s := range all.sessions {
		if s.offersResources() && len(s.server.Agents) == 0 { // an agent's server lends its tools, and to that agent
			servers = append(servers, s.server.Name)
		}
	}
	return []*resourceTool{
		{
			def: resourceDefinition(ListResourcesTool, "List resources of an MCP server",
				"Lists what an MCP server lets be read, by URI. Its templates show how further URIs are made.", servers, false),
			run: all.listForAgent,
		},
		{
			def: resourceDefinition(ReadResourceTool, "Read a resource of an MCP server",
				"Reads a resource of an MCP server by its URI, as "+ListResourcesTool+" lists it.", servers, true),
			run: all.readForAgent, uri: true,
		},
	}
}

// resourceDefinition describes one of the tools.
func resourceDefinition(name, title, description string, servers []string, uri bool) tools.Definition {
	type property struct {
		Type        string   `json:"type"`
		Enum        []string `json:"enum,omitempty"`
		Description string   `json:"description"`
	}
	properties := []any{property{"string", servers, "The server, by its name in the settings."}}
	required := []string{"server"}
	if uri {
		properties = append(properties, property{Type: "string", Description: "The URI of the resource."})
		required = append(required, "uri")
	}
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{`)
	for i, p := range properties {
		data, _ := json.Marshal(p) // texts encode
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", required[i], data)
	}
	data, _ := json.Marshal(required)
	fmt.Fprintf(&b, `},"required":%s,"additionalProperties":false}`, data)
	readOnly := true
	return tools.Definition{
		Name: name, Title: title, Description: description,
		InputSchema: json.RawMessage(b.String()),
		Annotations: tools.Annotations{ReadOnly: &readOnly},
	}
}

// Definition implements tools.Tool.
func (t *resourceTool) Definition() tools.Definition { return t.def }

// Server implements permission.Scoped.
func (t *resourceTool) Server(arguments json.RawMessage) string {
	args, err := t.arguments(arguments)
	if err != nil {
		return ""
	}
	return args.Server
}

// Call implements tools.Tool. What the server refuses is a Result, so that a
// model can try something else.
func (t *resourceTool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	args, err := t.arguments(call.Arguments)
	if err != nil {
		return tools.Failure(fmt.Sprintf("Bad arguments for %s: %v.", t.def.Name, err)), nil
	}
	res, err := t.run(ctx, args)
	var e *tools.Error
	if errors.As(err, &e) {
		switch e.Code {
		case tools.CodeProtocolError, tools.CodeMethodNotFound, tools.CodeArgumentsInvalid, tools.CodeTransportFailed:
			return tools.Failure(e.Error()), nil
		}
		own := *e
		own.Tool = t.def.Name
		return res, &own
	}
	return res, err
}

// arguments reads the arguments, in the one way by which the policy and the tool
// know them.
func (t *resourceTool) arguments(raw json.RawMessage) (resourceArguments, error) {
	var args resourceArguments
	if raw = bytes.TrimSpace(raw); len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	members, err := membersOf(raw)
	if err != nil {
		return args, errors.New("they are not one JSON object")
	}
	for _, m := range members {
		into := &args.Server
		switch {
		case m.name == "server":
		case m.name == "uri" && t.uri:
			into = &args.URI
		default:
			return args, fmt.Errorf("there is no argument %q", cut(m.name, 64))
		}
		if json.Unmarshal(m.value, into) != nil {
			return args, fmt.Errorf("the argument %q must be a string", m.name)
		}
	}
	switch {
	case args.Server == "":
		return args, errors.New(`the argument "server" is missing`)
	case t.uri && args.URI == "":
		return args, errors.New(`the argument "uri" is missing`)
	}
	return args, nil
}

// ofAgents is what a model is told that asks for what a server has besides tools
// which an agent brought along, or "".
func (all *Sessions) ofAgents(server string) string {
	for _, s := range all.sessions {
		if s.server.Name == server && len(s.server.Agents) > 0 {
			return fmt.Sprintf("MCP server %q lends its tools, and nothing else.", server)
		}
	}
	return ""
}

func (all *Sessions) listForAgent(ctx context.Context, args resourceArguments) (tools.Result, error) {
	if refusal := all.ofAgents(args.Server); refusal != "" {
		return tools.Failure(refusal), nil
	}
	list, err := all.Resources(ctx, args.Server)
	if err != nil {
		return tools.Result{}, err
	}
	var b strings.Builder
	line := func(uri, name, mime, description string) {
		b.WriteString(uri)
		if name != "" && name != uri {
			b.WriteString(" " + name)
		}
		if mime != "" {
			b.WriteString(" (" + mime + ")")
		}
		if description = oneLine(description, maxDetail); description != "" {
			b.WriteString(": " + description)
		}
		b.WriteByte('\n')
	}
	for _, r := range list.Resources {
		line(r.URI, r.Name, r.MIME, r.Description)
	}
	if len(list.Templates) > 0 {
		b.WriteString("Templates, whose parts in braces are to be filled in:\n")
	}
	for _, r := range list.Templates {
		line(r.URITemplate, r.Name, r.MIME, r.Description)
	}
	if b.Len() == 0 {
		return tools.Text(fmt.Sprintf("MCP server %q offers no resources.", args.Server)), nil
	}
	return tools.Text(tools.Truncate(b.String(), maxListedText)), nil
}

func (all *Sessions) readForAgent(ctx context.Context, args resourceArguments) (tools.Result, error) {
	if refusal := all.ofAgents(args.Server); refusal != "" {
		return tools.Failure(refusal), nil
	}
	contents, err := all.ReadResource(ctx, args.Server, args.URI)
	if err != nil {
		return tools.Result{}, err
	}
	var res tools.Result
	for _, c := range contents {
		res.Content = append(res.Content, tools.Content{
			Kind: tools.KindResource, URI: c.URI, MIME: c.MIME, Text: tools.Truncate(c.Text, maxReadText), Data: c.Data,
		})
	}
	if len(res.Content) == 0 {
		res = tools.Text("The resource is empty.")
	}
	return res, nil
}
