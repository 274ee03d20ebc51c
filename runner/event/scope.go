package event

import "context"

// Scope is what an event came of: the work on a task, or a call of a tool in it.
// It travels with the context of that work, so that what happens further down – a
// question to a person, a task that is handed on – can name its cause.
type Scope struct {
	Task, Agent, Role string
	Attempt           int
	Call, Tool        string
	Server            string
	Correlation       string
	// Operation is what a model is asked for, in a word. Path are the calls that the
	// work is done in, from the outermost: work that an agent hands on is done in a
	// call of its own. Neither is a part of events.
	Operation, Path string
}

// Within returns e as something that happens within the scope. What e says
// itself stands.
func (s Scope) Within(e Event) Event {
	if e.Task == "" && e.Agent == "" {
		e.Task, e.Agent, e.Role, e.Attempt = s.Task, s.Agent, s.Role, s.Attempt
	}
	if e.Cause == "" && e.Correlation != s.Correlation {
		e.Cause = s.Correlation
	}
	if e.Call == "" && (e.Tool == "" || e.Tool == s.Tool) {
		e.Tool, e.Call = s.Tool, s.Call
		if e.Server == "" {
			e.Server = s.Server
		}
	}
	return e
}

type scopeKey struct{}

// NewContext returns a context for work within the scope.
func NewContext(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of ctx, or the zero Scope.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}
