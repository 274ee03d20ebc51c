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
// written into the run's ledger as that of models is, bounded by its budget, and told.
type embedder struct {
	llm.Embedder
	settings config.Embeddings
	account  account
}

// embedder makes what embeds for a run; it is nil where the settings say nothing
// of it.
func (h *Host) embedder(ctx context.Context, a account) (index.Embedder, error) {
	inner, err := h.Embedder(ctx)
	if inner == nil || err != nil {
		return nil, err
	}
	return &embedder{inner, *h.cfg.Settings.LLM.Embeddings, a}, nil
}

// Model implements [index.Embedder].
func (e *embedder) Model() string {
	return fmt.Sprintf("%s/%s/%d", e.settings.Provider, e.settings.Model, e.settings.Dimensions)
}

// Embed implements [index.Embedder].
func (e *embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if err := e.account.book.afford(); err != nil {
		return nil, err
	}
	vectors, usage, err := stepOfEmbedding(ctx, e.settings.Model, texts, func(ctx context.Context) ([][]float32, llm.Usage, error) {
		return e.Embedder.Embed(ctx, e.settings.Model, texts)
	})
	switch {
	case err == nil:
		asked := llm.Request{Model: e.settings.Model, Messages: []llm.Message{llm.User(strings.Join(texts, "\n"))}}
		res := estimated(asked, llm.Response{Usage: usage}, e.settings.Profile)
		if res.Estimate != (llm.Usage{}) {
			e.account.book.unmeasured.Store(true)
		}
		res.Charge = e.account.book.write(asked, &res, e.settings.Profile)
		e.account.tell(ctx, operationEmbed, e.settings.Profile, e.settings.Model, res)
	case chargeable(err):
		e.account.book.lost()
	}
	return vectors, err
}
