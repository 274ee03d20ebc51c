package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"crewhost/runner/event"
	"crewhost/runner/journal"
)

// Recorder writes the tape of one run. It is safe for concurrent use. The first
// failure to write is the last thing that it does: a tape with a gap is of no use, so
// the run's next step fails with it.
type Recorder struct {
	path string
	mask func(string) string
	now  func() time.Time

	mu    sync.Mutex
	file  *os.File
	size  int64
	steps int
	begun bool // there is a run on it
	err   error
}

// Create makes a tape in a file that must not be there yet: it can be read and written
// by its owner alone. What mask hides is hidden on the tape. The caller closes it.
func Create(path string, mask func(string) string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("recording: %s is there already; name another file, or remove it", path)
	case err != nil:
		return nil, fmt.Errorf("recording: %w", err)
	}
	r := &Recorder{path: path, mask: scrubbed(mask), now: time.Now, file: file}
	r.write(header{tapeName, tapeVersion})
	if r.err != nil {
		return nil, errors.Join(r.err, r.Close())
	}
	return r, nil
}

// Start writes down what the program was started with.
func (r *Recorder) Start(s Start) {
	s.At = r.now().UTC()
	s.Target, s.Crew = r.mask(s.Target), r.mask(s.Crew)
	r.write(line{Start: &s})
}

// Host writes down what there is besides the crew.
func (r *Recorder) Host(host json.RawMessage) { r.write(line{Host: journal.Mask(host, r.mask)}) }

// Run writes down that the run begins.
func (r *Recorder) Run(run Run) {
	run.At = r.now().UTC()
	run.Crew, run.Name = r.mask(run.Crew), r.mask(run.Name)
	inputs := make(map[string]string, len(run.Inputs))
	for key, value := range run.Inputs {
		inputs[key] = r.mask(value)
	}
	run.Inputs = inputs
	r.mu.Lock()
	r.begun = true
	r.mu.Unlock()
	r.write(line{Run: &run})
}

// Result writes down what the run came to.
func (r *Recorder) Result(result json.RawMessage) {
	r.write(line{Result: journal.Mask(result, r.mask)})
}

// End writes down that all is over.
func (r *Recorder) End(e End) {
	e.At, e.Error = r.now().UTC(), r.mask(e.Error)
	r.write(line{End: &e})
}

// Event writes down an event. It is a [event.Sink].
func (r *Recorder) Event(e event.Event) {
	told, err := e.MarshalJSON()
	if err != nil {
		r.fail(fmt.Errorf("an event can't be recorded: %w", err))
		return
	}
	r.write(line{Event: journal.Mask(told, r.mask)})
}

// Err returns why the tape is not what it should be, or nil.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Close ends the tape. One on which no run has begun is removed.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return r.err
	}
	if r.err == nil {
		r.err = r.file.Sync()
	}
	if err := r.file.Close(); r.err == nil {
		r.err = err
	}
	r.file = nil
	if !r.begun {
		if err := os.Remove(r.path); r.err == nil {
			r.err = err
		}
	}
	return r.err
}

// Steps returns steps that are carried out by inner and written down.
func (r *Recorder) Steps(inner journal.Steps) journal.Steps { return recorded{r, inner} }

type recorded struct {
	*Recorder
	inner journal.Steps
}

type withinKey struct{}

// Do implements [journal.Steps].
func (r recorded) Do(ctx context.Context, s journal.Step, live func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	n, err := r.ask(ctx, s)
	if err != nil {
		return nil, err
	}
	outcome, err := r.inner.Do(context.WithValue(ctx, withinKey{}, n), s, live)
	done := Done{N: n, At: r.now().UTC(), Outcome: journal.Mask(outcome, r.mask)}
	if err != nil {
		done.Outcome, done.Open = nil, r.mask(err.Error())
	}
	r.write(line{Done: &done})
	if err == nil {
		err = r.Err()
	}
	return outcome, err
}

func (r *Recorder) ask(ctx context.Context, s journal.Step) (int, error) {
	within, _ := ctx.Value(withinKey{}).(int)
	s = masked(s, r.mask)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps++
	r.put(line{Step: &Step{
		N: r.steps, At: r.now().UTC(), Kind: s.Kind, Scope: s.Scope, Name: s.Name, Effect: s.Effect, Request: s.Request, Within: within,
	}})
	return r.steps, r.err
}

// masked is a step without secrets.
func masked(s journal.Step, mask func(string) string) journal.Step {
	s.Name, s.Request = mask(s.Name), journal.Mask(s.Request, mask)
	s.Scope.Task, s.Scope.Agent, s.Scope.Call = mask(s.Scope.Task), mask(s.Scope.Agent), mask(s.Scope.Call)
	return s
}

func (r *Recorder) write(v any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(v)
}

func (r *Recorder) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = err
	}
}

// put writes v as a line of its own, in one write. The caller holds mu.
func (r *Recorder) put(v any) {
	if r.err != nil {
		return
	}
	if r.file == nil {
		r.err = errors.New("recording: the tape is closed")
		return
	}
	text, err := encode(v)
	if err == nil {
		text = append(text, '\n')
		r.size += int64(len(text))
		switch {
		case len(text) > maxLine:
			err = fmt.Errorf("one step or event takes more than %d MiB", maxLine>>20)
		case r.size > maxTape:
			err = fmt.Errorf("the tape would be longer than %d MiB", maxTape>>20)
		default:
			_, err = r.file.Write(text)
		}
	}
	if err != nil {
		r.err = fmt.Errorf("recording to %s: %w", r.path, err)
	}
}

// encode is v as JSON in which nothing is escaped that need not be.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
