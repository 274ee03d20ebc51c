package replay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"crewhost/runner/llm"
)

// Recorder is a model that asks another and writes what was said on a tape. It is
// safe for concurrent use; records are in the order in which the answers came.
type Recorder struct {
	model llm.Model

	mu    sync.Mutex
	w     io.Writer
	begun bool
	err   error // the first failure to write
}

// NewRecorder returns a model that answers as model does and writes a tape to w.
func NewRecorder(model llm.Model, w io.Writer) *Recorder {
	return &Recorder{model: model, w: w}
}

// SchemaDialect implements [llm.Dialectal].
func (r *Recorder) SchemaDialect() llm.SchemaDialect { return llm.DialectOf(r.model) }

// Generate asks the model and records its answer; an error is not recorded. It
// fails where the tape cannot be written, since a tape with a gap is of no use.
func (r *Recorder) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	res, err := r.model.Generate(ctx, req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.begun {
		r.begun = true
		head := header{Tape: tapeName, Version: tapeVersion}
		if d, ok := r.model.(llm.Dialectal); ok {
			head.Dialect = new(d.SchemaDialect())
		}
		r.write(head)
	}
	r.write(line{Request: &req, Response: res})
	if r.err != nil {
		return nil, fmt.Errorf("writing a tape: %w", r.err)
	}
	return res, nil
}

// write puts v on a line of its own, in one write.
func (r *Recorder) write(v any) {
	if r.err != nil {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if r.err = enc.Encode(v); r.err == nil {
		_, r.err = r.w.Write(b.Bytes())
	}
}
