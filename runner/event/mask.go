package event

import (
	"encoding/json"
	"slices"
)

// masked returns e with every text in it masked. What e points to is copied
// first: it is the emitter's.
func (e Event) masked(mask func(string) string) Event {
	e.Arguments = slices.Clone(e.Arguments)
	e.Progress, e.Question, e.Answer = copied(e.Progress), copied(e.Question), copied(e.Answer)
	e.State, e.Begin, e.Ballot = copied(e.State), copied(e.Begin), copied(e.Ballot)
	if q := e.Question; q != nil {
		q.Choices = slices.Clone(q.Choices)
		if schema := mask(string(q.Schema)); json.Valid([]byte(schema)) {
			q.Schema = json.RawMessage(schema)
		} else {
			q.Schema = nil
		}
	}
	if e.State != nil {
		e.State.Tools, e.State.Agents = slices.Clone(e.State.Tools), slices.Clone(e.State.Agents)
	}
	if e.Ballot != nil {
		e.Ballot.Ranking = slices.Clone(e.Ballot.Ranking)
	}
	for _, text := range e.texts() {
		if *text != "" {
			*text = mask(*text)
		}
	}
	return e
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
