package server

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// This file answers what is about resources, prompts and completion: all of it is
// asked of the [Config] with each request, and nothing is kept.

func (s *Server) listResources(ctx context.Context, x exchange, p *mcp.ListResourcesParams) (*answer, error) {
	if s.cfg.Resources == nil {
		return nil, notServed("resources")
	}
	ctx, err := onward(ctx, p.Meta)
	if err != nil {
		return nil, err
	}
	items, err := s.cfg.Resources.Resources(ctx)
	if err != nil {
		return nil, s.failed(ctx, "listing resources", err)
	}
	return page(s, x, listing[Resource]{
		member: "resources", items: items,
		key: func(r Resource) string { return r.URI },
		render: func(r Resource) []byte {
			o := newObject()
			o.text("uri", r.URI)
			o.text("name", orElse(r.Name, r.URI))
			describe(o, r.Title, r.Description, r.MIME)
			if r.Size > 0 {
				o.value("size", r.Size)
			}
			return o.end()
		},
	}, p.Cursor)
}

func (s *Server) listTemplates(ctx context.Context, x exchange, p *mcp.ListResourceTemplatesParams) (*answer, error) {
	if s.cfg.Resources == nil {
		return nil, notServed("resources")
	}
	ctx, err := onward(ctx, p.Meta)
	if err != nil {
		return nil, err
	}
	items, err := s.cfg.Resources.Templates(ctx)
	if err != nil {
		return nil, s.failed(ctx, "listing resource templates", err)
	}
	return page(s, x, listing[Template]{
		member: "resourceTemplates", items: items,
		key: func(t Template) string { return t.Template },
		render: func(t Template) []byte {
			o := newObject()
			o.text("uriTemplate", t.Template)
			o.text("name", orElse(t.Name, t.Template))
			describe(o, t.Title, t.Description, t.MIME)
			return o.end()
		},
	}, p.Cursor)
}

func describe(o *object, title, description, mime string) {
	o.textIf("title", title)
	o.textIf("description", description)
	o.textIf("mimeType", mime)
}

func (s *Server) readResource(ctx context.Context, x exchange, p *mcp.ReadResourceParams) (*answer, error) {
	if s.cfg.Resources == nil {
		return nil, notServed("resources")
	}
	return s.converse(ctx, x, turn{
		what: "resources/read " + p.URI, state: p.RequestState, responses: p.InputResponses,
	}, func(ctx context.Context) (*answer, error) {
		ctx, err := onward(ctx, p.Meta)
		if err != nil {
			return nil, err
		}
		contents, err := s.cfg.Resources.Read(ctx, p.URI)
		switch {
		case isNotFound(err):
			return nil, noResource(x, p.URI)
		case err != nil:
			return nil, s.failed(ctx, "reading a resource", err)
		}
		blocks := make([][]byte, 0, len(contents))
		for _, c := range contents {
			c.URI = orElse(c.URI, p.URI)
			blocks = append(blocks, renderResource(c))
		}
		o := newObject()
		o.list("contents", blocks)
		if x.modern {
			o.value("ttlMs", 0) // it may change with each look
			o.text("cacheScope", cacheScope)
		}
		return s.answer(x, o.end())
	})
}

func noResource(x exchange, uri string) error {
	e := rpcError(jsonrpc.CodeInvalidParams, "resource not found")
	if !x.modern {
		e.Code = codeResourceNotFound
	}
	e.Data = encode(map[string]string{"uri": uri})
	return e
}

func (s *Server) listPrompts(ctx context.Context, x exchange, p *mcp.ListPromptsParams) (*answer, error) {
	if s.cfg.Prompts == nil {
		return nil, notServed("prompts")
	}
	ctx, err := onward(ctx, p.Meta)
	if err != nil {
		return nil, err
	}
	items, err := s.cfg.Prompts.Prompts(ctx)
	if err != nil {
		return nil, s.failed(ctx, "listing prompts", err)
	}
	return page(s, x, listing[Prompt]{
		member: "prompts", items: items,
		key:    func(p Prompt) string { return p.Name },
		render: renderPrompt,
	}, p.Cursor)
}

func renderPrompt(p Prompt) []byte {
	o := newObject()
	o.text("name", p.Name)
	describe(o, p.Title, p.Description, "")
	var arguments [][]byte
	for _, a := range p.Arguments {
		one := newObject()
		one.text("name", a.Name)
		describe(one, a.Title, a.Description, "")
		if a.Required {
			one.raw("required", []byte("true"))
		}
		arguments = append(arguments, one.end())
	}
	if arguments != nil {
		o.list("arguments", arguments)
	}
	return o.end()
}

func (s *Server) getPrompt(ctx context.Context, x exchange, p *mcp.GetPromptParams) (*answer, error) {
	if s.cfg.Prompts == nil {
		return nil, notServed("prompts")
	}
	return s.converse(ctx, x, turn{
		what: "prompts/get " + p.Name, state: p.RequestState, responses: p.InputResponses,
	}, func(ctx context.Context) (*answer, error) {
		ctx, err := onward(ctx, p.Meta)
		if err != nil {
			return nil, err
		}
		text, err := s.cfg.Prompts.Prompt(ctx, p.Name, p.Arguments)
		switch {
		case isNotFound(err):
			return nil, invalid("unknown prompt %q", p.Name)
		case err != nil:
			return nil, s.failed(ctx, "filling in a prompt", err)
		}
		messages := make([][]byte, 0, len(text.Messages))
		for _, m := range text.Messages {
			one := newObject()
			one.text("role", m.Role)
			one.raw("content", renderContent(x, m.Content))
			messages = append(messages, one.end())
		}
		o := newObject()
		o.textIf("description", text.Description)
		o.list("messages", messages)
		return s.answer(x, o.end())
	})
}

// maxCompletions is how many values an answer may have, by the specification.
const maxCompletions = 100

// completes reports whether anything is completed.
func (s *Server) completes() bool {
	_, resources := s.cfg.Resources.(Completer)
	_, prompts := s.cfg.Prompts.(Completer)
	return resources || prompts
}

func (s *Server) complete(ctx context.Context, x exchange, p *mcp.CompleteParams) (*answer, error) {
	if !s.completes() {
		return nil, notServed("completion")
	}
	if p.Ref == nil || p.Argument.Name == "" {
		return nil, invalid("a reference and an argument's name are needed")
	}
	var completer Completer
	ref := p.Ref.Name
	switch p.Ref.Type {
	case "ref/prompt":
		completer, _ = s.cfg.Prompts.(Completer)
	case "ref/resource":
		completer, _ = s.cfg.Resources.(Completer)
		ref = p.Ref.URI
	default:
		return nil, invalid("the reference is neither ref/prompt nor ref/resource")
	}
	var values []string
	more := false
	if completer != nil {
		var others map[string]string
		if p.Context != nil {
			others = p.Context.Arguments
		}
		var err error
		values, more, err = completer.Complete(ctx, ref, p.Argument.Name, p.Argument.Value, others)
		switch {
		case isNotFound(err):
			return nil, invalid("there is nothing to complete of %q", ref)
		case err != nil:
			return nil, s.failed(ctx, "completing an argument", err)
		}
	}
	completion := newObject()
	if len(values) > maxCompletions {
		values, more = values[:maxCompletions], true
	}
	completion.value("values", append([]string{}, values...))
	completion.value("hasMore", more)
	o := newObject()
	o.raw("completion", completion.end())
	return s.answer(x, o.end())
}

// notServed is the answer to a method of what this server has none of.
func notServed(what string) error {
	return rpcError(jsonrpc.CodeMethodNotFound, fmt.Sprintf("this server has no %s", what))
}
