package main

import (
	"testing"

	"crewhost/runner"
	"crewhost/runner/llm"
)

// A cost that is not known is none, and one that is not known whole says so.
func TestSpent(t *testing.T) {
	measured := llm.Usage{Input: 1000, Output: 200, Measured: true}
	known := runner.Cost{Amount: llm.Millionths(101_360), Currency: "EUR", Complete: true, Priced: true}
	part := known
	part.Complete = false
	for _, tt := range []struct {
		usage llm.Usage
		cost  runner.Cost
		want  string
	}{
		{llm.Usage{}, runner.Cost{}, "tokens not measured"},
		{measured, runner.Cost{Currency: "USD"}, "1200 tokens (1000 in, 200 out)"},
		{measured, known, "1200 tokens (1000 in, 200 out), EUR 0.101360"},
		{measured, part, "1200 tokens (1000 in, 200 out), at least EUR 0.101360 (not all of it is known)"},
	} {
		if got := spent(&runner.Output{Usage: tt.usage, Cost: tt.cost}); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
		if c := costOf(tt.cost); (c != nil) != tt.cost.Priced {
			t.Errorf("%+v", c)
		}
	}
}
