package runner

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/yosida95/uritemplate/v3"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/mcp/server"
	"crewhost/tools"
)

// What servers offer besides tools is passed on where the settings name it, and
// nowhere else (R5). It is asked for with each request and not kept. Where two
// servers offer one URI, the first in the settings' order has it.

// offering are the names of the servers that some offer names, in the order of
// the settings; those that are not connected, and agents' own, are left out.
func offering(h *Host, offers []config.Offer) []string {
	var servers []string
	for _, r := range h.Servers() {
		if r.State == mcp.StateConnected && r.Agents == nil && slices.ContainsFunc(offers, func(o config.Offer) bool { return o.Server == r.Name }) {
			servers = append(servers, r.Name)
		}
	}
	return servers
}

// each asks all servers at once, and returns their answers in the servers' order.
// One that fails, or breaks down, is left out, with a line in the log.
func each[T any](ctx context.Context, h *Host, servers []string, what string, ask func(ctx context.Context, server string) (T, error)) ([]T, error) {
	answers, errs := make([]T, len(servers)), make([]error, len(servers))
	var asking sync.WaitGroup
	for i, s := range servers {
		asking.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("it broke down: %v", p)
					h.log.Error("asking a server for what it offers broke down", "what", what, "server", s, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
				}
			}()
			answers[i], errs[i] = ask(ctx, s)
		})
	}
	asking.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for i, err := range errs {
		if err != nil {
			h.log.Warn("what a server offers is left out", "what", what, "server", servers[i], "error", err)
		}
	}
	return answers, nil
}

// passedResources are the resources of servers. It implements [server.Resources].
type passedResources struct {
	host   *Host
	offers []config.Offer
}

// named reports whether a resource of a server is one that an offer names.
func (p *passedResources) named(server, uri string) bool {
	return slices.ContainsFunc(p.offers, func(o config.Offer) bool {
		return o.Server == server && (o.Pattern == "" || !climbs(uri) && matches(o.Pattern, uri))
	})
}

// namedTemplate reports whether a template of a server may be used as a whole.
func (p *passedResources) namedTemplate(server, template string) bool {
	return slices.ContainsFunc(p.offers, func(o config.Offer) bool {
		return o.Server == server && (o.Pattern == "" || o.Pattern == template || matches(o.Pattern, template))
	})
}

// climbs reports whether a URI, in whatever way it is escaped, has a part "..", by
// which it may lead out of what a pattern seems to name.
func climbs(uri string) bool {
	for range 3 { // some servers take escapes away more than once
		for _, part := range strings.FieldsFunc(uri, func(r rune) bool { return strings.ContainsRune(`/\?#&=;:`, r) }) {
			if strings.TrimSpace(part) == ".." {
				return true
			}
		}
		plain, err := url.PathUnescape(uri)
		if err != nil {
			return strings.Contains(uri, "..") // it is no URI, and read by guessing
		}
		uri = plain
	}
	return false
}

// matches compares a URI with a pattern, in which * is anything but a slash and
// ** anything.
func matches(pattern, uri string) bool {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i, part := range strings.Split(pattern, "**") {
		if i > 0 {
			b.WriteString(`.*`)
		}
		for j, literal := range strings.Split(part, "*") {
			if j > 0 {
				b.WriteString(`[^/]*`)
			}
			b.WriteString(regexp.QuoteMeta(literal))
		}
	}
	b.WriteString(`\z`)
	re, err := regexp.Compile(b.String())
	return err == nil && re.MatchString(uri)
}

// Resources implements [server.Resources].
func (p *passedResources) Resources(ctx context.Context) ([]server.Resource, error) {
	servers := offering(p.host, p.offers)
	lists, err := each(ctx, p.host, servers, "resources", p.host.Resources)
	if err != nil {
		return nil, err
	}
	var all []server.Resource
	taken := map[string]bool{}
	for i, list := range lists {
		for _, r := range list.Resources {
			if taken[r.URI] || !p.named(servers[i], r.URI) {
				continue
			}
			taken[r.URI] = true
			all = append(all, server.Resource{URI: r.URI, Name: first(r.Name, r.URI), Title: r.Title, Description: r.Description, MIME: r.MIME, Size: max(r.Size, 0)})
		}
	}
	return all, nil
}

// Templates implements [server.Resources].
func (p *passedResources) Templates(ctx context.Context) ([]server.Template, error) {
	servers := offering(p.host, p.offers)
	lists, err := each(ctx, p.host, servers, "resource templates", p.host.Resources)
	if err != nil {
		return nil, err
	}
	var all []server.Template
	taken := map[string]bool{}
	for i, list := range lists {
		for _, t := range list.Templates {
			if taken[t.URITemplate] || !p.namedTemplate(servers[i], t.URITemplate) {
				continue
			}
			taken[t.URITemplate] = true
			all = append(all, server.Template{Template: t.URITemplate, Name: first(t.Name, t.URITemplate), Title: t.Title, Description: t.Description, MIME: t.MIME})
		}
	}
	return all, nil
}

// Read implements [server.Resources]. It reads what is listed, and what a listed
// template makes, of the first server that offers it.
func (p *passedResources) Read(ctx context.Context, uri string) ([]tools.Content, error) {
	for _, name := range offering(p.host, p.offers) {
		if !p.mayName(name, uri) {
			continue
		}
		list, err := p.host.Resources(ctx, name)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			p.host.log.Warn("what a server offers is left out", "what", "resources", "server", name, "error", err)
			continue
		}
		if !p.offered(name, list, uri) {
			continue
		}
		contents, err := p.host.ReadResource(ctx, name, uri)
		if err != nil {
			return nil, err
		}
		var blocks []tools.Content
		for _, c := range contents {
			blocks = append(blocks, tools.Content{Kind: tools.KindResource, URI: c.URI, MIME: c.MIME, Text: c.Text, Data: c.Data})
		}
		return blocks, nil
	}
	return nil, fmt.Errorf("resource %s: %w", strict.Quote(uri), server.ErrNotFound)
}

// mayName reports whether some offer may speak of a URI, before any list is asked
// for: it fits, or the offer is a template, which says more once it is listed.
func (p *passedResources) mayName(server, uri string) bool {
	return p.named(server, uri) || slices.ContainsFunc(p.offers, func(o config.Offer) bool {
		return o.Server == server && strings.Contains(o.Pattern, "{")
	})
}

// offered reports whether a URI is served: it is listed, or a template makes it,
// and it is named itself or by its template.
func (p *passedResources) offered(name string, list mcp.ResourceList, uri string) bool {
	named := p.named(name, uri)
	if named && slices.ContainsFunc(list.Resources, func(r mcp.Resource) bool { return r.URI == uri }) {
		return true
	}
	return slices.ContainsFunc(list.Templates, func(t mcp.ResourceTemplate) bool {
		if !named && (climbs(uri) || !p.namedTemplate(name, t.URITemplate)) {
			return false
		}
		template, err := uritemplate.New(t.URITemplate)
		return err == nil && template.Match(uri) != nil
	})
}

// passedPrompts are the prompts of servers. It implements [server.Prompts].
type passedPrompts struct {
	host   *Host
	offers []config.Offer
}

func (p *passedPrompts) named(server, prompt string) bool {
	return slices.ContainsFunc(p.offers, func(o config.Offer) bool {
		return o.Server == server && (o.Pattern == "" || o.Pattern == prompt)
	})
}

// all returns the prompts of the servers that are connected, with each server's
// name, and without those that no offer names.
func (p *passedPrompts) all(ctx context.Context) (prompts []mcp.Prompt, servers []string, err error) {
	asked := offering(p.host, p.offers)
	lists, err := each(ctx, p.host, asked, "prompts", p.host.Prompts)
	if err != nil {
		return nil, nil, err
	}
	for i, list := range lists {
		for _, prompt := range list.Prompts {
			if p.named(asked[i], prompt.Name) {
				prompts, servers = append(prompts, prompt), append(servers, asked[i])
			}
		}
	}
	return prompts, servers, nil
}

// collisions refuses prompts of one name, of which a client could get but one. One
// that comes later is left out.
func (p *passedPrompts) collisions(ctx context.Context, fail func(pos strict.Pos, code, message, hint string)) {
	prompts, servers, err := p.all(ctx)
	if err != nil {
		return // ctx has ended
	}
	holder := map[string]string{}
	for i, prompt := range prompts {
		held, taken := holder[prompt.Name]
		if !taken {
			holder[prompt.Name] = servers[i]
			continue
		}
		if held == servers[i] {
			continue
		}
		at := slices.IndexFunc(p.offers, func(o config.Offer) bool { return o.Server == servers[i] })
		fail(p.offers[at].Pos, CodeCollision, fmt.Sprintf("the MCP servers %q and %q both have a prompt %s", held, servers[i], strict.Quote(prompt.Name)), "name the prompts of one of them: SERVER/PROMPT")
	}
}

// Prompts implements [server.Prompts].
func (p *passedPrompts) Prompts(ctx context.Context) ([]server.Prompt, error) {
	prompts, _, err := p.all(ctx)
	if err != nil {
		return nil, err
	}
	var all []server.Prompt
	taken := map[string]bool{}
	for _, prompt := range prompts {
		if taken[prompt.Name] {
			continue
		}
		taken[prompt.Name] = true
		made := server.Prompt{Name: prompt.Name, Title: prompt.Title, Description: prompt.Description}
		for _, a := range prompt.Arguments {
			made.Arguments = append(made.Arguments, server.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
		}
		all = append(all, made)
	}
	return all, nil
}

// holder is the server whose prompt a client gets by a name.
func (p *passedPrompts) holder(ctx context.Context, name string) (string, error) {
	prompts, servers, err := p.all(ctx)
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(prompts, func(prompt mcp.Prompt) bool { return prompt.Name == name })
	if at < 0 {
		return "", fmt.Errorf("prompt %s: %w", strict.Quote(name), server.ErrNotFound)
	}
	return servers[at], nil
}

// Prompt implements [server.Prompts].
func (p *passedPrompts) Prompt(ctx context.Context, name string, arguments map[string]string) (server.PromptText, error) {
	holder, err := p.holder(ctx, name)
	if err != nil {
		return server.PromptText{}, err
	}
	text, err := p.host.GetPrompt(ctx, holder, name, arguments)
	if err != nil {
		return server.PromptText{}, err
	}
	made := server.PromptText{Description: text.Description}
	for _, m := range text.Messages {
		made.Messages = append(made.Messages, server.PromptMessage{Role: m.Role, Content: m.Content})
	}
	return made, nil
}
