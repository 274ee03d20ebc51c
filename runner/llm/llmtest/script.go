// Package llmtest is for the tests of what talks to a model: a scripted model,
// and one suite of behaviour that every adapter of a vendor's API must pass.
//
//	model := llmtest.New(t,
//		llmtest.Calls(llm.ToolCall{ID: "1", Name: "add", Arguments: `{"a":1,"b":2}`}),
//		llmtest.Text("It is 3.").Expect(func(req llm.Request) error { … }),
//	)
package llmtest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"crewhost/runner/llm"
)

// Turn is one answer of a [Script]. [Text], [Calls], [Reply] and [Fail] make
// turns; the zero value answers with an empty text.
type Turn struct {
	// If reports whether the turn answers a request; nil means that it
	// answers any. With it, tasks that run at once can share one script.
	If func(llm.Request) bool
	// Check judges the request that the turn answers; an error fails the
	// test, and the turn still answers. Nil means that every request is right.
	Check func(llm.Request) error
	// Answer makes the answer. It may block until ctx ends.
	Answer func(ctx context.Context, req llm.Request) (*llm.Response, error)
}

// Reply returns a turn that answers with res.
func Reply(res llm.Response) Turn {
	return Turn{Answer: func(context.Context, llm.Request) (*llm.Response, error) {
		return &res, nil
	}}
}

// Text returns a turn that answers with text and stops.
func Text(text string) Turn {
	return Reply(llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}},
		Stop:    llm.StopEnd,
		Usage:   llm.Usage{Input: 10, Output: 5, Measured: true},
		Model:   "script",
	})
}

// Calls returns a turn that calls tools.
func Calls(calls ...llm.ToolCall) Turn {
	return Reply(llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Calls: calls},
		Stop:    llm.StopTools,
		Usage:   llm.Usage{Input: 10, Output: 5, Measured: true},
		Model:   "script",
	})
}

// Fail returns a turn that answers with an error.
func Fail(err error) Turn {
	return Turn{Answer: func(context.Context, llm.Request) (*llm.Response, error) {
		return nil, err
	}}
}

// When returns the turn for those requests only of which is reports true.
func (t Turn) When(is func(llm.Request) bool) Turn {
	t.If = is
	return t
}

// Expect returns the turn with a check of its request.
func (t Turn) Expect(check func(llm.Request) error) Turn {
	t.Check = check
	return t
}

// Script is a model that answers from a list of turns. It is safe for
// concurrent use.
type Script struct {
	t testing.TB

	mu       sync.Mutex
	turns    []Turn
	used     []bool
	requests []llm.Request
}

// New returns a model whose first answer is the first turn, and so on: each
// request takes the first unused turn that answers it. A request without a turn
// fails the test and gets an error; turns that are left fail the test when it
// ends.
func New(t testing.TB, turns ...Turn) *Script {
	s := &Script{t: t, turns: turns, used: make([]bool, len(turns))}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, used := range s.used {
			if !used {
				t.Errorf("script: turn %d of %d was never asked for", i+1, len(s.turns))
			}
		}
	})
	return s
}

// Requests returns every request so far, in order of arrival, without OnDelta.
func (s *Script) Requests() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Generate answers with the next turn. Where req.OnDelta is set, the reasoning
// and then the text of the answer are delivered as one delta each.
func (s *Script) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	turn, n, err := s.take(req)
	if err != nil {
		s.t.Error(err)
		return nil, err
	}
	if turn.Check != nil {
		if err := turn.Check(req); err != nil {
			s.t.Errorf("script: turn %d: %v", n, err)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if turn.Answer == nil {
		turn = Text("")
	}
	res, err := turn.Answer(ctx, req)
	if err != nil {
		return nil, err
	}
	own := *res
	if req.OnDelta != nil {
		if own.Message.Reasoning != "" {
			req.OnDelta(llm.Delta{Reasoning: own.Message.Reasoning})
		}
		if text := own.Message.Text(); text != "" {
			req.OnDelta(llm.Delta{Text: text})
		}
	}
	return &own, nil
}

// take claims the first unused turn that answers req.
func (s *Script) take(req llm.Request) (Turn, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := req
	kept.OnDelta = nil
	kept.Messages = slices.Clone(req.Messages)
	s.requests = append(s.requests, kept)
	for i, turn := range s.turns {
		if !s.used[i] && (turn.If == nil || turn.If(req)) {
			s.used[i] = true
			return turn, i + 1, nil
		}
	}
	last := "no message"
	if n := len(req.Messages); n > 0 {
		last = fmt.Sprintf("last of %d messages (%s): %q", n, req.Messages[n-1].Role, req.Messages[n-1].Text())
	}
	return Turn{}, 0, fmt.Errorf("script: request %d has no turn left of %d; %s", len(s.requests), len(s.turns), last)
}
