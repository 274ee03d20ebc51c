package runner

import (
	"context"

	"crewhost/config/secret"
	"crewhost/runner/llm"
)

// A discreet model says nothing of what it is asked with: an endpoint that repeats
// the key it was sent, in whatever it says, is heard without it. The key is masked
// before anything has the answer, so that what is live and what is on record are the
// same. Other secrets it can't know: what agents read of tools has been masked.
type discreet struct {
	llm.Model
	own *secret.Redactor
}

// discreetly is m, which is asked with some secrets.
func discreetly(m llm.Model, secrets ...secret.Value) llm.Model {
	own := new(secret.Redactor)
	own.Add(secrets...)
	return discreet{m, own}
}

// SchemaDialect implements [llm.Dialectal].
func (d discreet) SchemaDialect() llm.SchemaDialect { return llm.DialectOf(d.Model) }

// Capabilities implements [llm.Capable].
func (d discreet) Capabilities() llm.Capabilities { return llm.CapabilitiesOf(d.Model) }

// Generate implements [llm.Model].
func (d discreet) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	rest := func() {}
	if tell := req.OnDelta; tell != nil {
		var text, reasoning held
		req.OnDelta = func(piece llm.Delta) {
			piece.Text, piece.Reasoning = text.next(d.own, piece.Text), reasoning.next(d.own, piece.Reasoning)
			if piece != (llm.Delta{}) {
				tell(piece)
			}
		}
		rest = func() {
			if last := (llm.Delta{Text: d.own.RedactKnown(string(text)), Reasoning: d.own.RedactKnown(string(reasoning))}); last != (llm.Delta{}) {
				tell(last)
			}
		}
	}
	res, err := d.Model.Generate(ctx, req)
	rest()
	if res != nil {
		d.mask(res)
	}
	return res, err
}

func (d discreet) mask(res *llm.Response) {
	mask := d.own.RedactKnown
	m := &res.Message
	for i := range m.Parts {
		m.Parts[i].Text = mask(m.Parts[i].Text)
	}
	for i := range m.Calls {
		m.Calls[i].Name, m.Calls[i].Arguments = mask(m.Calls[i].Name), mask(m.Calls[i].Arguments)
	}
	m.Reasoning, res.Model = mask(m.Reasoning), mask(res.Model)
}

// held is the end of what was streamed that may be the beginning of a secret.
type held string

// next is what can be told now that a piece has come.
func (h *held) next(own *secret.Redactor, piece string) string {
	if piece == "" {
		return ""
	}
	text := string(*h) + piece
	ready := len(text) - own.HeldKnown(text)
	*h = held(text[ready:])
	return own.RedactKnown(text[:ready])
}
