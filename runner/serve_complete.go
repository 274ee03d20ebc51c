package runner

import (
	"context"
	"fmt"
	"slices"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/mcp/server"
)

// Completion is passed through for what is passed on, and announced only where some
// server of it said that it completes.

// completes reports whether any server that the offers name completes arguments.
func completes(h *Host, offers []config.Offer) bool {
	return slices.ContainsFunc(offers, func(o config.Offer) bool { return h.servers.Completes(o.Server) })
}

// completed asks a server for values. One that completes nothing has none.
func completed(ctx context.Context, h *Host, name string, q mcp.Incomplete) (values []string, more bool, err error) {
	if !h.servers.Completes(name) {
		return nil, false, nil
	}
	c, err := h.Complete(ctx, name, q)
	return c.Values, c.More, err
}

// passed is what a server of MCP is given: with completion or without.
func (p *passedResources) passed() server.Resources {
	if completes(p.host, p.offers) {
		return completedResources{p}
	}
	return p
}

// completedResources are resources whose templates' arguments are completed. It
// implements [server.Completer].
type completedResources struct{ *passedResources }

// Complete implements [server.Completer], for templates that are listed. As with
// a URI, the first server that offers one has it.
func (c completedResources) Complete(ctx context.Context, ref, argument, written string, others map[string]string) ([]string, bool, error) {
	for _, name := range offering(c.host, c.offers) {
		if !c.namedTemplate(name, ref) {
			continue
		}
		list, err := c.host.Resources(ctx, name)
		if ctx.Err() != nil {
			return nil, false, context.Cause(ctx)
		}
		if err != nil {
			c.host.log.Warn("what a server offers is left out", "what", "resource templates", "server", name, "error", err)
			continue
		}
		if slices.ContainsFunc(list.Templates, func(t mcp.ResourceTemplate) bool { return t.URITemplate == ref }) {
			return completed(ctx, c.host, name, mcp.Incomplete{Template: ref, Argument: argument, Written: written, Others: others})
		}
	}
	return nil, false, fmt.Errorf("resource template %s: %w", strict.Quote(ref), server.ErrNotFound)
}

// passed is what a server of MCP is given: with completion or without.
func (p *passedPrompts) passed() server.Prompts {
	if completes(p.host, p.offers) {
		return completedPrompts{p}
	}
	return p
}

// completedPrompts are prompts whose arguments are completed. It implements
// [server.Completer].
type completedPrompts struct{ *passedPrompts }

// Complete implements [server.Completer].
func (c completedPrompts) Complete(ctx context.Context, ref, argument, written string, others map[string]string) ([]string, bool, error) {
	holder, err := c.holder(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	return completed(ctx, c.host, holder, mcp.Incomplete{Prompt: ref, Argument: argument, Written: written, Others: others})
}
