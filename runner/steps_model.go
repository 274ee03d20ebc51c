package runner

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"crewhost/runner/journal"
	"crewhost/runner/llm"
)

// stepped is a model whose turns are steps. It stands between the ledger's meter and
// the model, so that a turn that is not asked for again counts as it did.
type stepped struct {
	llm.Model
	name string // of the profile, as the settings call it
}

// turn is what came of a turn: what is no part of a tape's response goes with it.
type turn struct {
	Response *llm.Response `json:"response,omitempty"`
	Charge   *llm.Charge   `json:"charge,omitempty"`
	Deltas   []llm.Delta   `json:"deltas,omitempty"`
}

// SchemaDialect implements [llm.Dialectal].
func (m stepped) SchemaDialect() llm.SchemaDialect { return llm.DialectOf(m.Model) }

// Capabilities implements [llm.Capable].
func (m stepped) Capabilities() llm.Capabilities { return llm.CapabilitiesOf(m.Model) }

// Generate implements [llm.Model]. A streamed answer that is not asked for again
// comes in the pieces in which it came.
func (m stepped) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if stepsOf(ctx) == nil {
		return m.Model.Generate(ctx, req)
	}
	tell, live := req.OnDelta, false
	came, err := take(ctx, step{kind: journal.Model, name: m.name, request: req}, func(ctx context.Context) (turn, error) {
		live = true
		var t turn
		if tell != nil {
			req.OnDelta = func(d llm.Delta) {
				t.Deltas = append(t.Deltas, d)
				tell(d)
			}
		}
		res, err := m.Model.Generate(ctx, req)
		if t.Response = res; res != nil {
			t.Charge = res.Charge
		}
		return t, err
	})
	if live {
		return came.Response, err
	}
	if tell != nil {
		for _, d := range came.Deltas {
			tell(d)
		}
	}
	if came.Response != nil {
		came.Response.Charge = came.Charge
	}
	return came.Response, err
}

// vectors are what texts were embedded as. In JSON each is the bytes of its numbers.
type vectors struct {
	Vectors [][]byte  `json:"vectors,omitempty"`
	Usage   llm.Usage `json:"usage"`

	live [][]float32
}

// stepOfEmbedding has texts embedded in a step.
func stepOfEmbedding(ctx context.Context, model string, texts []string, embed func(context.Context) ([][]float32, llm.Usage, error)) ([][]float32, llm.Usage, error) {
	if stepsOf(ctx) == nil {
		return embed(ctx)
	}
	came, err := take(ctx, step{kind: journal.Embed, name: model, request: texts}, func(ctx context.Context) (v vectors, err error) {
		v.live, v.Usage, err = embed(ctx)
		for _, one := range v.live {
			v.Vectors = append(v.Vectors, bytesOf(one))
		}
		return v, err
	})
	if err != nil || came.live != nil {
		return came.live, came.Usage, err
	}
	found := make([][]float32, len(came.Vectors))
	for i, b := range came.Vectors {
		if len(b)%4 != 0 {
			return nil, came.Usage, fmt.Errorf("the vector of text %d has %d bytes", i+1, len(b))
		}
		for ; len(b) > 0; b = b[4:] {
			found[i] = append(found[i], math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	}
	return found, came.Usage, nil
}

func bytesOf(vector []float32) []byte {
	b := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}
