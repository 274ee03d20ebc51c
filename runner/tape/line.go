package tape

import (
	"encoding/json"
	"time"

	"crewhost/runner/journal"
)

const (
	tapeName    = "crewhost"
	tapeVersion = 2
	maxLine     = 64 << 20 // bytes
	maxTape     = 1 << 30  // bytes
)

// header is the first line of a tape.
type header struct {
	Tape    string `json:"tape"`
	Version int    `json:"version"`
}

// line is any other line: one of the members is there.
type line struct {
	Start  *Start          `json:"start,omitempty"`
	Event  json.RawMessage `json:"event,omitempty"`
	Host   json.RawMessage `json:"host,omitempty"`
	Run    *Run            `json:"run,omitempty"`
	Step   *Step           `json:"step,omitempty"`
	Done   *Done           `json:"done,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	End    *End            `json:"end,omitempty"`
}

// Start is what a program was started with.
type Start struct {
	At     time.Time `json:"at"`
	Run    string    `json:"run"`              // id in the events
	Host   string    `json:"host"`             // the program and its version
	Target string    `json:"target"`           // the crew, as the command line has it
	Crew   string    `json:"crew,omitempty"`   // and in full
	Stream bool      `json:"stream,omitempty"` // answers were told piece by piece
	Events bool      `json:"events,omitempty"` // a program watched
}

// Run is what a run was about, for people and for who compares tapes.
type Run struct {
	At      time.Time         `json:"at"`
	Crew    string            `json:"crew"`             // its file
	Digest  string            `json:"digest,omitempty"` // of all that it says, wherever its files are
	Name    string            `json:"name,omitempty"`
	Process string            `json:"process,omitempty"`
	Inputs  map[string]string `json:"inputs,omitempty"`
}

// Step is a step that is about to be done.
type Step struct {
	N       int             `json:"n"` // from 1
	At      time.Time       `json:"at"`
	Kind    journal.Kind    `json:"kind"`
	Scope   journal.Scope   `json:"scope"`
	Name    string          `json:"name,omitempty"`
	Effect  journal.Effect  `json:"effect,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
	// Within is the step that this one is a part of; 0: it is one of the run's own.
	Within int `json:"within,omitempty"`
}

// Done is what came of a step.
type Done struct {
	N       int             `json:"n"`
	At      time.Time       `json:"at"`
	Outcome json.RawMessage `json:"outcome,omitempty"`
	// Open is why nothing is known of what came of the step: the run was ended.
	Open string `json:"open,omitempty"`
}

// End is how the program ended.
type End struct {
	At    time.Time `json:"at"`
	Exit  int       `json:"exit"`
	Error string    `json:"error,omitempty"`
}
