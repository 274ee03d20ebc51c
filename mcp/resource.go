package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// Resource is something that a server lets be read. Its texts are untrusted (R4):
// bounded, without secrets of the settings and without what is not seen.
type Resource struct {
	URI         string
	Name        string
	Title       string // may be empty
	Description string // may be empty
	MIME        string // may be empty
	Size        int64  // in bytes; negative where the server doesn't say
}

// ResourceTemplate is a family of resources, whose URIs are made of an RFC 6570
// template.
type ResourceTemplate struct {
	URITemplate string
	Name        string
	Title       string
	Description string
	MIME        string
}

// ResourceList is what a server lets be read.
type ResourceList struct {
	Resources []Resource // in the server's order
	Templates []ResourceTemplate
	// Warnings are what else there is to know of the list, a line each.
	Warnings []string
}

// ResourceContents is a resource that was read, or one of several under one URI.
// It is data of the server, unchanged.
type ResourceContents struct {
	URI  string
	MIME string
	Text string // or
	Data []byte
}

const (
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodReadResource  = "resources/read"

	// maxURIBytes is the longest URI of a resource that is taken, in bytes.
	maxURIBytes = 4 << 10
)

// Resources lists what a server lets be read, within the time of a call. A server
// that offers no resources has an empty list. The error is a *tools.Error.
func (all *Sessions) Resources(ctx context.Context, server string) (ResourceList, error) {
	var list ResourceList
	s, err := all.session(server)
	if err != nil {
		return list, err
	}
	resources, err := s.listed(ctx, methodListResources, "resources", "resources", &list.Warnings)
	if err != nil {
		return list, err
	}
	templates, err := s.listed(ctx, methodListTemplates, "resource templates", "resourceTemplates", &list.Warnings)
	if err != nil {
		return list, err
	}
	type item struct {
		URI         string `json:"uri"`
		URITemplate string `json:"uriTemplate"`
		described
		MIMEType json.RawMessage `json:"mimeType"`
		Size     *json.Number    `json:"size"`
	}
	skip := func(what string, n int) {
		if n > 0 {
			list.Warnings = append(list.Warnings, fmt.Sprintf("%d of its %s can't be used and were left out", n, what))
		}
	}
	skipped := 0
	for _, raw := range resources {
		var r item
		if json.Unmarshal(raw, &r) != nil || !usable(r.URI) {
			skipped++
			continue
		}
		size := int64(-1)
		if r.Size != nil {
			if n, err := r.Size.Int64(); err == nil && n >= 0 {
				size = n
			}
		}
		name, title, description := r.texts(s)
		list.Resources = append(list.Resources, Resource{r.URI, name, title, description, s.masks.line(text(r.MIMEType), maxName), size})
	}
	skip("resources", skipped)
	skipped = 0
	for _, raw := range templates {
		var r item
		if json.Unmarshal(raw, &r) != nil || !usable(r.URITemplate) {
			skipped++
			continue
		}
		name, title, description := r.texts(s)
		list.Templates = append(list.Templates, ResourceTemplate{r.URITemplate, name, title, description, s.masks.line(text(r.MIMEType), maxName)})
	}
	skip("resource templates", skipped)
	return list, nil
}

// described are the texts that all things of a server have.
type described struct {
	Name        json.RawMessage `json:"name"`
	Title       json.RawMessage `json:"title"`
	Description json.RawMessage `json:"description"`
}

// texts are the texts as they may be shown.
func (d described) texts(s *session) (name, title, description string) {
	return s.masks.line(text(d.Name), maxName), s.masks.line(text(d.Title), maxName),
		cut(readable(s.masks.redact(text(d.Description))), s.limits.DescriptionLength)
}

// usable reports whether a URI, or a template of one, can be shown and sent back
// as it is.
func usable(uri string) bool {
	return uri != "" && len(uri) <= maxURIBytes && oneLine(uri, maxURIBytes) == uri
}

// ReadResource reads a resource, within the time of a call. The contents are as
// the server sent them. The error is a *tools.Error; a server's own refusal has
// the code [tools.CodeProtocolError].
func (all *Sessions) ReadResource(ctx context.Context, server, uri string) ([]ResourceContents, error) {
	s, err := all.session(server)
	if err != nil {
		return nil, err
	}
	if !usable(uri) {
		return nil, s.wrap(tools.CodeArgumentsInvalid, "the URI of a resource must be one line of at most 4 KiB", nil)
	}
	raw, err := s.request(ctx, fmt.Sprintf("resource %q", uri), methodReadResource, func(ctx context.Context, client *sdk.ClientSession, r round) error {
		_, err := sdk.CallCustomMethod[*sdk.ReadResourceParams, *sdk.ReadResourceResult](ctx, client, methodReadResource,
			&sdk.ReadResourceParams{URI: uri, InputResponses: r.responses, RequestState: r.state})
		return err
	})
	if err != nil {
		return nil, err
	}
	var result struct {
		Contents []struct {
			URI      string `json:"uri"`
			MIMEType string `json:"mimeType"`
			Text     string `json:"text"`
			Blob     []byte `json:"blob"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Contents) > maxBlocks {
		return nil, s.wrap(tools.CodeProtocolError, "the contents of its resource can't be read", nil)
	}
	contents := make([]ResourceContents, len(result.Contents))
	for i, c := range result.Contents {
		contents[i] = ResourceContents{URI: oneLine(c.URI, maxURIBytes), MIME: oneLine(c.MIMEType, maxName), Text: c.Text, Data: c.Blob}
	}
	return contents, nil
}

// session returns the session of a server that was connected once.
func (all *Sessions) session(server string) (*session, error) {
	for _, s := range all.sessions {
		if s.server.Name != server {
			continue
		}
		if r := s.current(); r.State == StateFailed {
			return nil, r.Err
		}
		return s, nil
	}
	return nil, &tools.Error{Code: tools.CodeTransportFailed, Server: server, Detail: "the settings declare no such MCP server"}
}

// Offers reports what a server says that it has besides tools. It has neither where
// it is not connected.
func (all *Sessions) Offers(server string) (resources, prompts bool) {
	s, err := all.session(server)
	if err != nil {
		return false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return false, false
	}
	return offers(s.conn.client, methodListResources), offers(s.conn.client, methodListPrompts)
}

// offersResources reports whether the server is connected and has resources.
func (s *session) offersResources() bool {
	if s.current().State != StateConnected {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return offers(s.conn.client, methodListResources)
}

// offers reports whether the server said that it has what a method is about.
func offers(client *sdk.ClientSession, method string) bool {
	res := client.InitializeResult()
	if res == nil || res.Capabilities == nil {
		return false
	}
	switch kindOf(method) {
	case "prompts":
		return res.Capabilities.Prompts != nil
	case "completion":
		return res.Capabilities.Completions != nil
	}
	return res.Capabilities.Resources != nil
}
