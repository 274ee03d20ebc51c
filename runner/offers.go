package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/tools"
	"crewhost/tools/mount"
)

// Resources lists what a server lets be read.
func (h *Host) Resources(ctx context.Context, server string) (mcp.ResourceList, error) {
	return h.servers.Resources(ctx, server)
}

// ReadResource reads a resource of a server. No policy stands in front: whoever
// calls this names the resource himself. Agents read by a tool, behind the policy.
func (h *Host) ReadResource(ctx context.Context, server, uri string) ([]mcp.ResourceContents, error) {
	return h.servers.ReadResource(ctx, server, uri)
}

// Prompts lists the prompts of a server.
func (h *Host) Prompts(ctx context.Context, server string) (mcp.PromptList, error) {
	return h.servers.Prompts(ctx, server)
}

// GetPrompt fills in a prompt of a server.
func (h *Host) GetPrompt(ctx context.Context, server, name string, arguments map[string]string) (mcp.PromptText, error) {
	return h.servers.GetPrompt(ctx, server, name, arguments)
}

// Complete asks a server for values of an argument of a prompt or of a template.
func (h *Host) Complete(ctx context.Context, server string, q mcp.Incomplete) (mcp.Completion, error) {
	return h.servers.Complete(ctx, server, q)
}

// sampler has the default model answer servers, whose settings allow and bound it.
type sampler struct{ host *Host }

// Sample implements [mcp.Sampler].
func (s sampler) Sample(ctx context.Context, r mcp.SampleRequest) (mcp.Sample, error) {
	model, err := s.host.models.model(ctx, "")
	if err != nil {
		return mcp.Sample{}, err
	}
	profile := s.host.models.settings("")
	req := llm.Request{
		Model: profile.Model, System: r.System, MaxTokens: r.MaxTokens, Temperature: r.Temperature, TopP: profile.TopP,
	}
	if req.Temperature == nil {
		req.Temperature = profile.Temperature
	}
	if profile.MaxTokens > 0 {
		req.MaxTokens = min(req.MaxTokens, profile.MaxTokens)
	}
	for _, m := range r.Messages {
		message := llm.Message{Role: llm.Role(m.Role)}
		for _, c := range m.Content {
			part := llm.Part{Text: c.Text}
			if c.Kind != tools.KindText {
				part = llm.Part{MIME: c.MIME, Data: c.Data}
			}
			message.Parts = append(message.Parts, part)
		}
		req.Messages = append(req.Messages, message)
	}
	own := s.host.account(ctx)
	if err := s.host.models.keeps(profile.Model); err != nil {
		return mcp.Sample{}, err
	}
	p := s.host.models.profile("")
	scope := event.ScopeOf(ctx)
	scope.Operation = operationSample
	res, err := own.book.meter(stepped{model, s.host.models.named(config.DefaultProfile)}, p).Generate(event.NewContext(ctx, scope), req)
	if err != nil {
		return mcp.Sample{}, err
	}
	own.tell(ctx, operationSample, p, profile.Model, *res)
	s.host.log.Info("the model answered an MCP server", "server", r.Server, "stop", res.Stop,
		"input_tokens", res.Usage.Input, "output_tokens", res.Usage.Output)
	switch {
	case res.Stop == llm.StopFilter:
		return mcp.Sample{}, errors.New("the answer was withheld")
	case res.Message.Text() == "":
		return mcp.Sample{}, fmt.Errorf("the answer has no text (stop reason %s)", res.Stop)
	}
	name := res.Model
	if name == "" {
		name = profile.Model
	}
	return mcp.Sample{Model: name, Text: res.Message.Text(), Cut: res.Stop == llm.StopLength}, nil
}

// rootsOf are the folders of the mounts, by the names that agents know.
func rootsOf(mounts []mount.Mount) []mcp.Root {
	roots := make([]mcp.Root, len(mounts))
	for i, m := range mounts {
		roots[i] = mcp.Root{Name: m.Virtual, Path: m.Physical}
	}
	return roots
}

// A bell is heard by all who listen.
type bell struct {
	mu      sync.Mutex
	last    int
	hearing map[int]func()
}

// hear has heard called, which must return at once, until stop is.
func (b *bell) hear(heard func()) (stop func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hearing == nil {
		b.hearing = map[int]func(){}
	}
	b.last++
	id := b.last
	b.hearing[id] = heard
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.hearing, id)
	}
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, heard := range b.hearing {
		heard()
	}
}

// onOffers is what is told of changes to resources and prompts: nobody, where no
// surface passes any on.
func (h *Host) onOffers() func() {
	for _, served := range h.cfg.Settings.MCP.Served {
		if len(served.Resources)+len(served.Prompts) > 0 {
			return h.offers.ring
		}
	}
	return nil
}
