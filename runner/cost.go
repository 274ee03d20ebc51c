package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"

	"crewhost/config"
	"crewhost/runner/llm"
)

// Cost is what the models of a run cost, by the prices of the settings.
type Cost struct {
	Amount   llm.Amount
	Currency string
	// Complete is false where some of it is not known: a model without a price,
	// an answer without figures, a request that broke off. The amount is then
	// what is known of it, and nobody should take it for the whole.
	Complete bool
	// Priced is true where the cost of anything is known at all.
	Priced bool
}

// BudgetError says that a run was stopped since its models had used what the
// settings allow them, or that servers which ask the model outside of runs had.
type BudgetError struct {
	Reason string
	of     string // the budget; empty: the run's
}

// Error says what was used up.
func (e *BudgetError) Error() string {
	return cmp.Or(e.of, "the run's budget") + " is spent: " + e.Reason
}

// ledger counts what the models of one run use, and stops the run when that is
// more than its budget. It stands between the run and its models, so nothing is
// asked of them beside it. It is safe for concurrent use.
type ledger struct {
	settings config.LLM
	stop     context.CancelCauseFunc
	of       string // see [BudgetError]

	unmeasured atomic.Bool // a vendor's answer came without figures

	mu     sync.Mutex
	cost   Cost
	tokens int
	// guessed is the cost of answers without figures, estimated, for the budget
	// alone.
	guessed llm.Amount
	spent   *BudgetError         // set once a request was refused
	besides map[string]llm.Usage // what no agent asked for, by operation
}

func newLedger(settings config.LLM, stop context.CancelCauseFunc) *ledger {
	return &ledger{settings: settings, stop: stop, cost: Cost{Currency: settings.Currency, Complete: true}}
}

// meter returns m, which is the model of a profile, with its use written down.
func (l *ledger) meter(m llm.Model, p config.Profile) llm.Model {
	return &metered{model: m, ledger: l, profile: p}
}

// total returns what there was until now, and why the run was stopped, if it was.
func (l *ledger) total() (Cost, *BudgetError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cost, l.spent
}

// afford says whether another request may be sent. What it will use nobody knows,
// so a budget is passed by what was under way when it was reached.
func (l *ledger) afford() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, cost := l.settings.Budget, l.cost.Amount.Add(l.guessed)
	switch {
	case l.spent != nil:
	case b.Tokens > 0 && l.tokens >= b.Tokens:
		l.spent = l.over("%d tokens of %d (llm.budget.tokens)", l.tokens, b.Tokens)
	case b.Cost != nil && cost >= llm.Millionths(*b.Cost):
		l.spent = l.over("%s %s of %s (llm.budget.cost)", l.cost.Currency, cost, llm.Millionths(*b.Cost))
	default:
		return nil
	}
	l.stop(l.spent)
	return l.spent
}

func (l *ledger) over(format string, args ...any) *BudgetError {
	return &BudgetError{fmt.Sprintf(format, args...), l.of}
}

// beside adds to what was used that no agent asked for.
func (l *ledger) beside(operation string, u llm.Usage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.besides == nil {
		l.besides = map[string]llm.Usage{}
	}
	l.besides[operation] = l.besides[operation].Add(u)
}

// asked returns what was used that no agent asked for, by operation.
func (l *ledger) asked() map[string]llm.Usage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.besides)
}

// write writes down what an answer used, and returns what it cost; nil where that
// is not known. The vendor's own figure goes before the prices; what asks no
// vendor costs nothing unless a price says otherwise.
func (l *ledger) write(req llm.Request, res *llm.Response, p config.Profile) *llm.Charge {
	charge := res.Charge
	price, priced := priceOf(l.settings.Prices, p, req.Model, res.Model)
	if charge == nil && priced && res.Usage.Measured {
		charge = &llm.Charge{Amount: price.Cost(res.Usage), Currency: l.settings.Currency, Source: llm.ChargePrices}
	}
	used := res.Usage
	if !used.Measured {
		used = res.Estimate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tokens += used.Input + used.Output
	if charge == nil && priced {
		l.guessed = l.guessed.Add(price.Cost(used))
	}
	switch {
	case charge == nil && !p.Vendor():
		return nil
	case charge == nil || charge.Currency != l.settings.Currency:
		l.cost.Complete = false
		return charge
	}
	l.cost.Priced = true
	l.cost.Amount = l.cost.Amount.Add(charge.Amount)
	return charge
}

// lost writes down that a request failed which the vendor may have charged.
func (l *ledger) lost() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cost.Complete = false
}

// metered is a model whose use is written down.
type metered struct {
	model   llm.Model
	ledger  *ledger
	profile config.Profile
}

// SchemaDialect implements [llm.Dialectal].
func (m *metered) SchemaDialect() llm.SchemaDialect { return llm.DialectOf(m.model) }

// Capabilities implements [llm.Capable].
func (m *metered) Capabilities() llm.Capabilities { return llm.CapabilitiesOf(m.model) }

// Generate implements [llm.Model].
func (m *metered) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if err := m.ledger.afford(); err != nil {
		return nil, err
	}
	res, err := m.model.Generate(ctx, req)
	switch {
	case err == nil && res != nil:
		own := estimated(req, *res, m.profile)
		if own.Estimate != (llm.Usage{}) {
			m.ledger.unmeasured.Store(true)
		}
		own.Charge = m.ledger.write(req, &own, m.profile)
		res = &own
	case chargeable(err):
		m.ledger.lost()
	}
	return res, err
}

// estimated returns res with an estimate of what it used, where a vendor gave it
// and sent no figures.
func estimated(req llm.Request, res llm.Response, p config.Profile) llm.Response {
	if p.Vendor() && !res.Usage.Measured {
		res.Estimate = llm.Used(req, res)
	}
	return res
}

// chargeable reports whether the vendor may have charged a request that failed:
// it did not refuse it.
func chargeable(err error) bool {
	var api *llm.APIError
	return err != nil && (!errors.As(err, &api) || api.Status < http.StatusBadRequest)
}

// priceOf finds the price of a model: by the name that it was asked by, with its
// provider before it ("groq/llama-4") or without, or else by the name that the
// vendor gives it. An exact name goes before patterns, and of these the longest.
func priceOf(prices []config.Price, p config.Profile, asked, reported string) (llm.Price, bool) {
	if asked == "" {
		asked = p.Model
	}
	for _, names := range [][]string{{p.Provider + "/" + asked, asked}, {reported}} {
		best := -1
		for _, name := range names {
			for i, price := range prices {
				switch {
				case name == "" || !llm.MatchModel(price.Pattern, name):
				case price.Pattern == name:
					return rates(price), true
				case best < 0 || len(price.Pattern) > len(prices[best].Pattern):
					best = i
				}
			}
		}
		if best >= 0 {
			return rates(prices[best]), true
		}
	}
	return llm.Price{}, false
}

// rates fills in what a price does not say.
func rates(p config.Price) llm.Price {
	or := func(price *int64, otherwise int64) int64 {
		if price == nil {
			return otherwise
		}
		return *price
	}
	return llm.Price{
		Input: p.Input, Output: p.Output,
		CacheRead: or(p.CacheRead, p.Input), CacheWrite: or(p.CacheWrite, p.Input), Reasoning: or(p.Reasoning, p.Output),
	}
}
