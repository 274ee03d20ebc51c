package runner

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"crewhost/runner/journal"
	"crewhost/runner/process"
)

// beginning is what a run takes from the clock and from chance.
type beginning struct {
	Run string    `json:"run"` // id, among the runs that are remembered
	At  time.Time `json:"at"`
}

// begin reads the clock, once for the whole run.
func begin(ctx context.Context) (beginning, error) {
	return take(ctx, step{kind: journal.Clock, name: "begin"}, func(context.Context) (beginning, error) {
		return beginning{rand.Text(), time.Now()}, nil
	})
}

// fileSteps has each file that a run leaves be a step, and each look at one.
type fileSteps struct{ process.Deliverer }

// Deliver implements [process.Deliverer].
func (f fileSteps) Deliver(ctx context.Context, path string, content []byte) error {
	s := stepsOf(ctx)
	if s == nil {
		return f.Deliverer.Deliver(ctx, path, content)
	}
	sum := sha256.Sum256([]byte(s.redact(string(content))))
	_, err := take(ctx, step{
		kind: journal.File, name: path, effect: journal.Repeatable,
		request: struct {
			Bytes  int    `json:"bytes"`
			SHA256 string `json:"sha256"` // of the content, secrets masked
		}{len(content), hex.EncodeToString(sum[:])},
	}, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f.Deliverer.Deliver(ctx, path, content)
	})
	return err
}

// Stamp implements [process.Deliverer].
func (f fileSteps) Stamp(ctx context.Context, path string) (process.Stamp, error) {
	return take(ctx, step{kind: journal.File, name: path, request: "stamp"},
		func(ctx context.Context) (process.Stamp, error) { return f.Deliverer.Stamp(ctx, path) })
}
