package event

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Stream numbers events and hands each to every sink, in order. Two kinds of
// events it adds itself, so that readers can count on them whoever emits: the
// [TaskCompleted] of a task that failed or was skipped, and the [CostUpdated] of a
// call to a model. A CostUpdated that is emitted says what something took that is no
// call of an agent's to its model; the sums are put into it. After [RunFinished] it drops what comes.
//
// A nil Stream drops everything. It is safe for concurrent use; a sink must not
// use it.
type Stream struct {
	ids atomic.Int64

	mu     sync.Mutex
	mask   Masker            // may be nil
	pieces map[string]string // by correlation: of a streamed answer, what is held back
	now    func() time.Time
	run    string
	seq    int64
	over   bool
	sinks  []Sink
	ledger ledger
	script Script // nil: what is emitted is told
}

// NewStream returns a stream that stamps events by now.
func NewStream(run string, now func() time.Time, sinks ...Sink) *Stream {
	return &Stream{run: run, now: now, sinks: sinks}
}

// Masker hides secrets.
type Masker interface {
	// Redact returns a text without the secrets in it.
	Redact(text string) string
	// Held returns how many bytes at the end of a text that goes on may be the
	// beginning of a secret.
	Held(text string) int
}

// Mask has mask hide the secrets in every text of every event from now on. Of a
// streamed answer it holds back what may become one.
func (s *Stream) Mask(mask Masker) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mask = mask
}

// Script is a recording of a stream that a run is to tell anew. It is used by one
// stream, for one call at a time.
type Script interface {
	// Hear is told of each event that is emitted, masked.
	Hear(Event)
	// Due returns the events whose turn it is: of those that were heard, and, with
	// their number set, those that only the recording knows.
	Due() []Event
	// Stamp returns an event, masked and numbered, as it was recorded.
	Stamp(Event) Event
}

// Follow has the stream tell what is emitted in the order of a recording, and with
// its clock. Nothing may have been emitted before.
func (s *Stream) Follow(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Catch tells what has come to be due without an event being emitted.
func (s *Stream) Catch() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catch()
}

// catch tells what is due. The caller holds mu.
func (s *Stream) catch() {
	if s.script == nil {
		return
	}
	for _, e := range s.script.Due() {
		if e.Seq == 0 {
			s.tell(e)
			continue
		}
		s.seq = e.Seq
		for _, sink := range s.sinks {
			sink(e)
		}
	}
}

// Run returns the id of the stream's run, or "".
func (s *Stream) Run() string {
	if s == nil {
		return ""
	}
	return s.run
}

// ID returns what is unique in the stream, for [Event.Correlation].
func (s *Stream) ID() string {
	if s == nil {
		return ""
	}
	return strconv.FormatInt(s.ids.Add(1), 10)
}

// Emit numbers, stamps and delivers e, and then what follows from it.
func (s *Stream) Emit(e Event) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.script != nil {
		if s.mask != nil {
			e = e.masked(s.mask.Redact)
		}
		s.script.Hear(e)
		s.catch()
		return
	}
	s.tell(e)
}

// tell delivers e, and then what follows from it. The caller holds mu.
func (s *Stream) tell(e Event) {
	switch e.Kind {
	case CostUpdated:
		e = s.ledger.book(e)
	case RunFinished:
		e = s.ledger.sum(e)
		s.over = true
	}
	if s.mask != nil {
		switch e.Kind {
		case ModelDelta:
			if e.Text = s.ready(e); e.Text == "" {
				return
			}
		case ModelReturned:
			s.rest(e)
		}
	}
	s.deliver(e)
	switch {
	case e.Kind == TaskFailed || e.Kind == TaskSkipped:
		s.deliver(ended(e))
	case e.Kind == ModelReturned && e.Success != nil && *e.Success:
		s.deliver(s.ledger.book(e))
	}
}

// deliver stamps e and hands it out. The caller holds mu.
func (s *Stream) deliver(e Event) {
	s.seq++
	e.V, e.Seq, e.Run = Version, s.seq, s.run
	e.Time = s.now().UTC()
	if s.mask != nil {
		e = e.masked(s.mask.Redact)
	}
	if s.script != nil {
		e = s.script.Stamp(e)
	}
	for _, sink := range s.sinks {
		sink(e)
	}
}

// ready is what can be told of an answer now that a piece of it has come.
func (s *Stream) ready(e Event) string {
	text := s.pieces[e.Correlation] + e.Text
	ready := len(text) - s.mask.Held(text)
	if s.pieces == nil {
		s.pieces = make(map[string]string)
	}
	s.pieces[e.Correlation] = text[ready:]
	return text[:ready]
}

// rest delivers what was held back of an answer that has come.
func (s *Stream) rest(e Event) {
	text := s.pieces[e.Correlation]
	delete(s.pieces, e.Correlation)
	if text != "" {
		s.deliver(Event{
			Kind: ModelDelta, Task: e.Task, Agent: e.Agent, Role: e.Role, Attempt: e.Attempt,
			Correlation: e.Correlation, Cause: e.Cause, Turn: e.Turn, Text: text,
		})
	}
}

// ended is the end of a task that failed or was skipped, for who counts tasks by
// their ends.
func ended(e Event) Event {
	e.Skipped = e.Kind == TaskSkipped
	e.Kind, e.Success, e.Text = TaskCompleted, new(false), ""
	return e
}
