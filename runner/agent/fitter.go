package agent

import (
	"encoding/json"
	"fmt"
	"sync"

	"crewhost/runner/llm"
)

// manySchemas is how many schemas a fitter remembers.
const manySchemas = 4_096

// fitter adapts schemas and remembers what came of it: the same tools are held in
// task after task. The zero fitter is ready. It is safe for concurrent use.
type fitter struct {
	mu   sync.Mutex
	done map[fitKey]fitting
}

type fitKey struct{ schema, dialect string }

// fitting is a tool's schema in the ways in which it is needed. Nothing in it is
// changed.
type fitting struct {
	fit   adapted
	shape any // the server's own schema, decoded; nil where it has none
	shown any // the one that the model sees, decoded
}

// to returns what makes schemas fit for a dialect.
func (f *fitter) to(dialect llm.SchemaDialect) func(json.RawMessage) fitting {
	name := fmt.Sprint(dialect)
	return func(schema json.RawMessage) fitting {
		key := fitKey{string(schema), name}
		f.mu.Lock()
		defer f.mu.Unlock()
		made, ok := f.done[key]
		if ok {
			return made
		}
		made.fit = adapt(schema, dialect)
		made.shape, made.shown = decoded(schema), decoded(made.fit.schema)
		if f.done == nil {
			f.done = make(map[fitKey]fitting)
		}
		if len(f.done) < manySchemas {
			f.done[key] = made
		}
		return made
	}
}

// decoded is a JSON value, nil where the text is none.
func decoded(text json.RawMessage) any {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return nil
	}
	return v
}
