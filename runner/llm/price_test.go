package llm_test

import (
	"math"
	"testing"

	"crewhost/runner/llm"
)

func TestCost(t *testing.T) {
	// 3 and 15 for a million; reads of the cache a tenth, writes a quarter more.
	price := llm.Price{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000, Reasoning: 15_000_000}
	for _, tt := range []struct {
		name  string
		price llm.Price
		usage llm.Usage
		want  string
	}{
		{"a million of each", price, llm.Usage{Input: 1_000_000, Output: 1_000_000}, "18.000000"},
		{"one token", price, llm.Usage{Input: 1}, "0.000003"},
		{"cached input is counted once", price, llm.Usage{Input: 1000, CacheRead: 800, CacheWrite: 100}, "0.000915"},
		{"reasoning is output", price, llm.Usage{Output: 1000, Reasoning: 900}, "0.015000"},
		{"reasoning of its own price", llm.Price{Output: 10, Reasoning: 1_000_000}, llm.Usage{Output: 1000, Reasoning: 900}, "0.000900"},
		{"a half is rounded up", llm.Price{Input: 500_000}, llm.Usage{Input: 1}, "0.000001"},
		{"less is rounded down", llm.Price{Input: 499_999}, llm.Usage{Input: 1}, "0.000000"},
		{"nothing", price, llm.Usage{}, "0.000000"},
		{"more read than sent", price, llm.Usage{Input: 5, CacheRead: 10}, "0.000003"},
		{"below zero", price, llm.Usage{Input: -5}, "0.000000"},
		{"more than there is", llm.Price{Input: math.MaxInt64}, llm.Usage{Input: math.MaxInt}, "9223372.036855"},
	} {
		if got := tt.price.Cost(tt.usage).String(); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// The cost of a sum is the sum of the costs, however small the pieces: nothing is
// rounded on the way.
func TestCostsAddUpExactly(t *testing.T) {
	price := llm.Price{Input: 1, Output: 333_333}
	var sum llm.Amount
	var usage llm.Usage
	for range 100_000 {
		u := llm.Usage{Input: 7, Output: 3, Measured: true}
		sum = sum.Add(price.Cost(u))
		usage = usage.Add(u)
	}
	if whole := price.Cost(usage); sum != whole || sum.String() != "0.100001" {
		t.Errorf("%d in pieces, %d at once, %s", sum, whole, sum)
	}
	if full := llm.Amount(math.MaxInt64); full.Add(1) != full {
		t.Error("a sum overflows")
	}
	if llm.Millionths(2_500_000).String() != "2.500000" {
		t.Errorf("got %s", llm.Millionths(2_500_000))
	}
}

func TestMatchModel(t *testing.T) {
	for _, tt := range []struct {
		pattern, model string
		want           bool
	}{
		{"gpt-5", "gpt-5", true}, {"gpt-5", "gpt-5-mini", false}, {"gpt-5*", "gpt-5", true}, {"gpt-5*", "gpt-5-mini", true},
		{"*", "", true}, {"*-mini", "gpt-5-mini", true}, {"a*a", "a", false}, {"a*a", "aa", true}, {"a*b*c", "a-b-c", true},
		{"a*b*c", "a-c-b", false}, {"**", "x", true}, {"*/claude-*", "anthropic/claude-x", true}, {"", "x", false}, {"a*b*b", "ab", false},
	} {
		if got := llm.MatchModel(tt.pattern, tt.model); got != tt.want {
			t.Errorf("%q, %q: %v", tt.pattern, tt.model, got)
		}
	}
}
