package journal

import (
	"context"
	"encoding/json"
)

// Kind is the kind of a step.
type Kind string

// The kinds of steps.
const (
	Model    Kind = "model"    // a turn of a model
	Embed    Kind = "embed"    // texts that were embedded
	Tool     Kind = "tool"     // a call of a tool that may be made
	Approval Kind = "approval" // a person's answer to a call that the policy asks about
	Question Kind = "question" // a person's answer to an agent, or to a server
	File     Kind = "file"     // a deliverable
	Memory   Kind = "memory"   // what a crew remembers, and what it is reminded of
	Clock    Kind = "clock"    // a reading of the clock, or of chance
)

// Effect says what a step does to the world, and so whether it may be done twice.
type Effect string

// The effects.
const (
	NoEffect   Effect = ""           // it changes nothing: it may be done again
	Repeatable Effect = "repeatable" // done twice it changes what once does
	Once       Effect = "once"       // twice is one time too many
)

// Scope says in whose work a step is done. Steps of one scope come one after
// another, or differ in what they ask.
type Scope struct {
	Task      string `json:"task,omitempty"`  // key in the crew file
	Agent     string `json:"agent,omitempty"` // key in the crew file
	Attempt   int    `json:"attempt,omitempty"`
	Operation string `json:"operation,omitempty"` // what a model is asked for: agent (a task), delegation, plan, review, vote, sample
	Call      string `json:"call,omitempty"`      // the calls that it is done in, from the outermost, by their ids: outer/inner
}

// Step is something whose outcome a run cannot come to by itself: what the world
// answers. A run that gets the same outcomes does the same.
type Step struct {
	Kind  Kind
	Scope Scope
	Name  string // of the tool, of the profile of a model, of what is read
	// Request is what is asked, as JSON without what differs from time to time.
	// Two steps are the same if kind, scope, name and request are, and they are the
	// first, the second, … of that kind.
	Request json.RawMessage
	Effect  Effect
}

// Steps carries out the steps of a run: it does them, or knows what came of them.
// Implementations are safe for concurrent use.
type Steps interface {
	// Do returns the outcome of a step, as JSON: what live returns, which is called
	// once at most, or what came of it before. An outcome says failures, too, as far
	// as the run reads them. An error of live, by contrast, is no outcome: the step
	// stays open, and what came of it is not known. Other errors are those of the
	// implementation, and the run ends with them.
	Do(ctx context.Context, s Step, live func(context.Context) (json.RawMessage, error)) (json.RawMessage, error)
}

// Live is [Steps] that does each step and keeps nothing.
type Live struct{}

// Do implements [Steps].
func (Live) Do(ctx context.Context, _ Step, live func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	return live(ctx)
}
