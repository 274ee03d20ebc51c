package main

import (
	"bytes"
	"testing"

	"crewhost/runner/event"
)

// A turn says what it was for, where that is not the task, and what is an estimate.
func TestTurns(t *testing.T) {
	for _, tt := range []struct {
		e    event.Event
		want string
	}{
		{event.Event{Task: "t", InputTokens: 3, OutputTokens: 2}, "  a: model turn 1, 3 tokens in, 2 out\n"},
		{event.Event{Task: "t", Operation: "agent"}, "  a: model turn 1\n"},
		{event.Event{Task: "t", Operation: "review", InputTokens: 3}, "  a: model turn 1 (review, task t), 3 tokens in, 0 out\n"},
		{event.Event{Operation: "plan", InputTokens: 3, OutputTokens: 2, EstimatedTokens: 5}, "  a: model turn 1 (plan), about 3 tokens in, 2 out\n"},
	} {
		var out bytes.Buffer
		tt.e.Kind, tt.e.Agent, tt.e.Turn = event.ModelReturned, "a", 1
		newProgress(&out, false).event(tt.e)
		if out.String() != tt.want {
			t.Errorf("got %q, want %q", &out, tt.want)
		}
	}
}
