package event

// ledger adds up what calls to models took.
type ledger struct {
	run        account
	agents     map[string]Sum
	operations map[string]Sum
}

// account is the sum of a run.
type account struct {
	Sum
	hits, estimated  int
	currency, source string
	mixed            bool // of several currencies: no sum
}

// defaultOperation is what a model is asked for where nobody says.
const defaultOperation = "agent"

// book enters the call of a [ModelReturned], or what a [CostUpdated] says that
// something else took, and returns the [CostUpdated] that tells where the sums stand.
func (l *ledger) book(e Event) Event {
	if l.agents == nil {
		l.agents, l.operations = make(map[string]Sum), make(map[string]Sum)
	}
	if e.Operation == "" {
		e.Operation = defaultOperation
	}
	cost := e.Cost
	if e.Currency == "" {
		cost = 0
	}
	one := Sum{e.InputTokens, e.OutputTokens, cost}
	l.run.Sum = l.run.plus(one)
	l.run.hits += e.CacheHitTokens
	l.run.estimated += e.EstimatedTokens
	l.run.price(e)
	if e.Agent != "" {
		l.agents[e.Agent] = l.agents[e.Agent].plus(one)
	}
	if e.Kind == ModelReturned {
		e.Cause = e.Correlation
	}
	l.operations[e.Operation] = l.operations[e.Operation].plus(one)
	return l.sum(Event{
		Kind: CostUpdated, Task: e.Task, Agent: e.Agent, Role: e.Role, Attempt: e.Attempt, Cause: e.Cause,
		Model: e.Model, Provider: e.Provider, Operation: e.Operation,
		Totals: &Totals{Agent: l.agents[e.Agent], Operation: l.operations[e.Operation]},
	})
}

// sum puts the sums of the run into e.
func (l *ledger) sum(e Event) Event {
	e.InputTokens, e.OutputTokens = l.run.InputTokens, l.run.OutputTokens
	e.CacheHitTokens, e.EstimatedTokens = l.run.hits, l.run.estimated
	if !l.run.mixed {
		e.Cost, e.Currency, e.CostSource = l.run.Cost, l.run.currency, l.run.source
	}
	return e
}

func (s Sum) plus(t Sum) Sum {
	return Sum{s.InputTokens + t.InputTokens, s.OutputTokens + t.OutputTokens, s.Cost + t.Cost}
}

// price notes in what a call was paid, and who says so.
func (a *account) price(e Event) {
	switch {
	case e.Currency == "":
	case a.currency == "":
		a.currency, a.source = e.Currency, e.CostSource
	case a.currency != e.Currency:
		a.mixed = true
	case a.source != e.CostSource:
		a.source = "mixed"
	}
}
