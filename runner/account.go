package runner

import (
	"cmp"
	"context"

	"crewhost/config"
	"crewhost/runner/event"
	"crewhost/runner/llm"
)

// What is paid for that no agent asks its model, as events and accounts tell it.
const (
	operationEmbed  = "embed"  // texts of a crew's memory and documents
	operationSample = "sample" // answers for MCP servers that ask
)

// account is what use is written down in, and who is told of it. That of a run goes
// with the run's context, so that what its calls cause further down is its own.
type account struct {
	book   *ledger
	events *event.Stream
}

type accountKey struct{}

func (a account) bind(ctx context.Context) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// account is that of the run of a context, or else the host's own: of what servers
// ask in calls that are no run's, or in several at once.
func (h *Host) account(ctx context.Context) account {
	if a, ok := ctx.Value(accountKey{}).(account); ok {
		return a
	}
	return h.own
}

// tell has an answer that the book knows already be counted and told under an
// operation. It is the task's in whose work it was asked for, and no agent's.
func (a account) tell(ctx context.Context, operation string, p config.Profile, model string, res llm.Response) {
	a.book.beside(operation, res.Usage)
	note(ctx, spending{Operation: operation, Model: model, Usage: res.Usage, Estimate: res.Estimate, Charge: res.Charge, Reported: res.Model})
	e := event.Event{Kind: event.CostUpdated, Provider: p.Provider, Model: cmp.Or(res.Model, model), Operation: operation}
	used := res.Usage
	if !used.Measured {
		used = used.Add(res.Estimate)
		e.EstimatedTokens = res.Estimate.Input + res.Estimate.Output
	}
	e.InputTokens, e.OutputTokens, e.CacheHitTokens = used.Input, used.Output, used.CacheRead
	if c := res.Charge; c != nil {
		e.Cost, e.Currency, e.CostSource = c.Amount.Float(), c.Currency, c.Source
	}
	e = event.ScopeOf(ctx).Within(e)
	e.Agent, e.Role = "", ""
	a.events.Emit(e)
}

// profileOf is the profile that such operations are asked through.
func (l *ledger) profileOf(operation string) config.Profile {
	if e := l.settings.Embeddings; e != nil && operation == operationEmbed {
		return e.Profile
	}
	p, _ := l.settings.Select("")
	return p
}
