package runner

import (
	"context"
	"fmt"
	"strings"

	"crewhost/config"
	"crewhost/runner/index"
	"crewhost/runner/llm"
)

// embedder embeds what a run remembers and reads, as the settings say. Its use is
// written into the run's ledger as that of models is, and bounded by its budget.
type embedder struct {
	llm.Embedder
	settings config.Embeddings
	book     *ledger
}

// embedder makes what embeds for a run; it is nil where the settings say nothing
// of it.
func (h *Host) embedder(ctx context.Context, book *ledger) (index.Embedder, error) {
	inner, err := h.Embedder(ctx)
	if inner == nil || err != nil {
		return nil, err
	}
	return &embedder{inner, *h.cfg.Settings.LLM.Embeddings, book}, nil
}

// Model implements [index.Embedder].
func (e *embedder) Model() string {
	return fmt.Sprintf("%s/%s/%d", e.settings.Provider, e.settings.Model, e.settings.Dimensions)
}

// Embed implements [index.Embedder].
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := e.book.afford(); err != nil {
		return nil, err
	}
	vectors, usage, err := e.Embedder.Embed(ctx, e.settings.Model, texts)
	switch {
	case err == nil:
		asked := llm.Request{Model: e.settings.Model, Messages: []llm.Message{llm.User(strings.Join(texts, "\n"))}}
		res := estimated(asked, llm.Response{Usage: usage}, e.settings.Profile)
		e.book.write(asked, &res, e.settings.Profile)
	case chargeable(err):
		e.book.lost()
	}
	return vectors, err
}
