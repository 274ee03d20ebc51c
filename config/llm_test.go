package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Every key of llm, decoded.
func TestLLMKeys(t *testing.T) {
	s := load(t, `
llm:
  provider: azure
  model: gpt-5
  base_url: https://mine.openai.azure.com
  api_key: ${KEY}
  deployment: mine
  api_version: 2026-01-01
  stream_idle: 40s
  thinking: {enabled: false, effort: max, budget_tokens: 2000}
  cache: {system: true, tools: true, ttl: 1h}
  available_models: [gpt-5, "o*"]
  rate: {requests_per_minute: 60, tokens_per_minute: 90000, concurrent: 4}
  capabilities: {parallel_calls: false, thinking: budget, response_format: json_object, cache: automatic}
  currency: EUR
  prices:
    gpt-5: {input: 1.25, output: 10, cache_read: 0.125, cache_write: 0, reasoning: 7}
    "*": {input: 0.000001, output: 999999.999999}
  budget: {cost: 2.5, tokens: 1000000}
  embeddings: {model: text-embedding-3-small, dimensions: 512}
`, "KEY=k")
	off := false
	want := LLM{
		Profile: Profile{
			Provider: "azure", Model: "gpt-5", Deployment: "mine", APIVersion: "2026-01-01", StreamIdle: 40 * time.Second,
			APIKey:   secret.Ref{Source: secret.FromEnv, Name: "KEY"},
			Thinking: &Thinking{Enabled: &off, Effort: "max", BudgetTokens: 2000}, Cache: &Cache{System: true, Tools: true, TTL: "1h"},
			AvailableModels: []string{"gpt-5", "o*"}, Rate: Rate{Requests: 60, Tokens: 90_000, Concurrent: 4},
			Capabilities: Capabilities{ParallelCalls: &off, Thinking: "budget", ResponseFormat: "json_object", Cache: "automatic"},
		},
		Currency: "EUR",
		Prices: []Price{
			{Pattern: "gpt-5", Input: 1_250_000, Output: 10_000_000, CacheRead: new(int64(125_000)), CacheWrite: new(int64(0)), Reasoning: new(int64(7_000_000))},
			{Pattern: "*", Input: 1, Output: 999_999_999_999},
		},
		Budget: RunBudget{Cost: new(int64(2_500_000)), Tokens: 1_000_000},
	}
	want.Embeddings = &Embeddings{Profile: want.Profile, Dimensions: 512}
	want.Embeddings.Model, want.Embeddings.Deployment = "text-embedding-3-small", "text-embedding-3-small"
	if diff := cmp.Diff(want, s.LLM, cmpopts.IgnoreTypes(strict.Pos{}, secret.Text{}, secret.Value{})); diff != "" {
		t.Error(diff)
	}
}

// Embeddings come through a profile, or stand alone.
func TestEmbeddings(t *testing.T) {
	s := load(t, "llm:\n  provider: anthropic\n  model: m\n  profiles: {local: {provider: ollama, model: llama3.2}}\n  embeddings: {profile: LOCAL, model: nomic-embed-text}\n")
	if e := s.LLM.Embeddings; e.Provider != "ollama" || e.Model != "nomic-embed-text" {
		t.Errorf("%+v", e)
	}
	s = load(t, "llm:\n  provider: anthropic\n  model: m\n  embeddings: {provider: mistral, model: mistral-embed, api_key: sk-of-embeddings}\n")
	if e := s.LLM.Embeddings; e.Provider != "mistral" || e.Model != "mistral-embed" {
		t.Errorf("%+v", e)
	}
	if !slices.ContainsFunc(s.Secrets(), func(v secret.Value) bool { return v.Reveal() == "sk-of-embeddings" }) {
		t.Error("the key is not among the secrets")
	}
}

func TestLLMFaults(t *testing.T) {
	got := faults(t, `llm:
  provider: azure
  model: m
  thinking: {effort: extreme}
  cache: {ttl: 2h}
  available_models: [""]
  rate: {requests_per_minute: 0}
  capabilities: {thinking: loud, response_format: xml, cache: never}
  currency: euro
  prices:
    a: {input: 1.2345678, output: -1}
    b: {input: 1}
    c: {input: "1", output: 1e3}
  budget: {cost: 1000000, tokens: -1}
  embeddings: {profile: nobody}
  profiles:
    own: {provider: openai-compatible, model: m}
    named: {provider: gemini}
    other: {provider: groq, model: m, deployment: d, api_version: v, context_tokens: 4096}
`)
	want := `crewhost.yaml:2:13: llm: the provider azure needs a base_url (base_url: https://RESOURCE.openai.azure.com) [missing]
crewhost.yaml:4:22: llm.thinking.effort: "extreme" is not known (did you mean`
	if !strings.HasPrefix(got, want[:strings.LastIndex(want, "(")]) {
		t.Errorf("got %s", got)
	}
	for _, line := range []string{
		`crewhost.yaml:5:16: llm.cache.ttl: "2h" is not known`,
		`crewhost.yaml:6:22: llm.available_models.0 is empty`,
		`llm.rate.requests_per_minute must be at least 1, not 0`,
		`llm.capabilities.thinking: "loud" is not known`,
		`llm.capabilities.response_format: "xml" is not known`,
		`llm.capabilities.cache: "never" is not known`,
		`llm.currency: "euro" is no currency code`,
		`llm.prices.a.input must be a sum of money below a million, with at most six digits behind the point, not "1.2345678"`,
		`llm.prices.a.output must be a sum of money`,
		`llm.prices.b has no output price`,
		`llm.prices.c.input must be a number, not a string`,
		`llm.prices.c.output must be a sum of money`,
		`llm.budget.cost must be a sum of money below a million`,
		`llm.budget.tokens must be at least 1, not -1`,
		`llm.embeddings names no model`,
		`llm.embeddings.profile: the settings have no LLM profile "nobody"; known: default, own, named, other`,
		`llm.profiles.own: the provider openai-compatible needs a base_url`,
		`llm.profiles.named: the provider gemini needs a model`,
		`llm.profiles.other.deployment is a key of the provider azure alone`,
		`llm.profiles.other.context_tokens is a key of the provider ollama alone`,
		`llm.profiles.other.api_version is a key of the provider azure alone`,
	} {
		if !strings.Contains(got, line) {
			t.Errorf("missing %s in\n%s", line, got)
		}
	}
	if got := faults(t, "llm:\n  provider: openai\n  model: m\n  embeddings: {profile: default, provider: ollama, model: e}\n"); !strings.Contains(got, "keep one") {
		t.Errorf("a profile and a way: %s", got)
	}
}
