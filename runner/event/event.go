// Package event is what a run says while it goes: kinds of events, each a flat
// record with who and when, and the [Sink] that takes them.
//
// The loop that does the work emits events in order from the goroutine that
// does it; a [Stream] numbers them and hands them to its sinks one at a time.
//
//	s := event.NewStream("run-1", time.Now, func(e event.Event) { fmt.Println(e.Kind) })
//	s.Emit(event.Event{Kind: event.TaskStarted, Task: "write", Agent: "writer"})
package event

import (
	"sync"
	"time"
)

// Version is the version of the events' form.
const Version = 1

// Kind is the kind of an event.
type Kind string

// The kinds.
const (
	RunStarted    Kind = "run.started"
	RunFinished   Kind = "run.finished"
	TaskStarted   Kind = "task.started"
	TaskCompleted Kind = "task.completed"
	TaskFailed    Kind = "task.failed"
	TaskSkipped   Kind = "task.skipped"
	ModelCalled   Kind = "model.called"
	ModelReturned Kind = "model.returned"
	ModelDelta    Kind = "model.delta"
	ToolCalled    Kind = "tool.called"
	ToolReturned  Kind = "tool.returned"
	Notice        Kind = "notice" // something a person should know: a trimmed history, a cut answer
)

// Event is one thing that happened. Fields that do not belong to its kind are
// zero and left out of JSON.
type Event struct {
	V    int       `json:"v"`
	Seq  int64     `json:"seq"` // from 1, without gaps
	Time time.Time `json:"ts"`
	Kind Kind      `json:"kind"`

	Run     string `json:"run,omitempty"`
	Task    string `json:"task,omitempty"`    // key in the crew file
	Agent   string `json:"agent,omitempty"`   // key in the crew file
	Attempt int    `json:"attempt,omitempty"` // from 1

	Call      string   `json:"call,omitempty"` // id of a tool call
	Tool      string   `json:"tool,omitempty"`
	Server    string   `json:"server,omitempty"`    // the MCP server of the tool
	Arguments []string `json:"arguments,omitempty"` // names only, sorted, never values

	Model        string `json:"model,omitempty"`
	Operation    string `json:"operation,omitempty"` // what a model is asked for: task, delegation, plan, assign, review, vote, route…
	Turn         int    `json:"turn,omitempty"`      // of the model within the task, from 1
	Stop         string `json:"stop,omitempty"`
	InputTokens  int    `json:"inputTokens,omitempty"`
	OutputTokens int    `json:"outputTokens,omitempty"`

	Text       string `json:"text,omitempty"` // of a delta or a notice
	Success    *bool  `json:"success,omitempty"`
	Error      string `json:"error,omitempty"` // one line, redacted
	DurationMS int64  `json:"durationMs,omitempty"`
}

// Sink takes events. It is called for one event at a time and should return
// soon: the run waits for it.
type Sink func(Event)

// Stream numbers events and hands each to every sink, in order. A nil Stream
// drops them. It is safe for concurrent use.
type Stream struct {
	mu    sync.Mutex
	now   func() time.Time
	run   string
	seq   int64
	sinks []Sink
}

// NewStream returns a stream that stamps events by now.
func NewStream(run string, now func() time.Time, sinks ...Sink) *Stream {
	return &Stream{run: run, now: now, sinks: sinks}
}

// Emit numbers, stamps and delivers e.
func (s *Stream) Emit(e Event) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	e.V, e.Seq, e.Run = Version, s.seq, s.run
	e.Time = s.now().UTC()
	for _, sink := range s.sinks {
		sink(e)
	}
}
