package runner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/provider"
)

// two is a crew of two tasks, the second of them on another profile.
const two = `
name: Two
goal: Do two things
agents: { one: { role: One, goal: Answer }, deep: { role: Deep, goal: Answer, llm: { profile: deep } } }
tasks:
  first: { description: d, expectedOutput: e, agent: one }
  second: { description: d, expectedOutput: e, agent: deep }
  third: { description: d, expectedOutput: e, agent: one }
`

func priced(llmKeys string) map[string]string {
	return map[string]string{"crew.yaml": two, "crewhost.yaml": `llm:
  provider: openai
  model: gpt-5
  profiles: { deep: { provider: groq, model: llama } }
` + llmKeys}
}

func used(input, output, cached int, model string) llmtest.Turn {
	res := answer("ok")
	res.Usage, res.Model = llm.Usage{Input: input, Output: output, CacheRead: cached, Measured: true}, model
	return llmtest.Reply(*res)
}

// A run knows what it cost by the prices of the settings, each model by its name,
// and says so where it does not know all of it.
func TestCostOfARun(t *testing.T) {
	for _, tt := range []struct {
		name, prices string
		turns        []llmtest.Turn
		want         runner.Cost
	}{
		{"by name, by provider and name, cached input for less", "  prices: { gpt-5: { input: 1.25, output: 10, cache_read: 0.125 }, groq/llama: { input: 0.1, output: 0.2 }, \"*\": { input: 99, output: 99 } }\n",
			[]llmtest.Turn{used(1000, 100, 800, "gpt-5-2026"), used(1_000_000, 0, 0, ""), used(0, 1, 0, "")},
			// 200×1.25 + 800×0.125 + 100×10, 100,000, and 10 millionths
			runner.Cost{Amount: llm.Millionths(101_360), Currency: "USD", Complete: true, Priced: true}},
		{"the longest pattern, and the vendor's own name last", "  prices: { \"gpt-*\": { input: 2, output: 0 }, \"*\": { input: 1, output: 0 }, \"groq/*\": { input: 7, output: 0 } }\n  currency: EUR\n",
			[]llmtest.Turn{used(1, 0, 0, ""), used(1, 0, 0, ""), used(1, 0, 0, "")},
			runner.Cost{Amount: llm.Millionths(11), Currency: "EUR", Complete: true, Priced: true}},
		{"one model has no price", "  prices: { gpt-5: { input: 1, output: 1 } }\n",
			[]llmtest.Turn{used(1, 0, 0, ""), used(1, 0, 0, ""), used(1, 0, 0, "")},
			runner.Cost{Amount: llm.Millionths(2), Currency: "USD", Priced: true}},
		{"one answer has no figures", "  prices: { \"*\": { input: 1, output: 1 } }\n",
			[]llmtest.Turn{used(1, 0, 0, ""), llmtest.Reply(*answer("ok")), used(1, 0, 0, "")},
			runner.Cost{Amount: llm.Millionths(2), Currency: "USD", Priced: true}},
		{"no prices at all", "",
			[]llmtest.Turn{used(1, 0, 0, ""), used(1, 0, 0, ""), used(1, 0, 0, "")},
			runner.Cost{Currency: "USD"}},
	} {
		r := open(t, priced(tt.prices), with(llmtest.New(t, tt.turns...)))
		out, err := r.host.Run(t.Context(), r.crew(nil), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if out.Cost != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, out.Cost, tt.want)
		}
		for _, e := range r.events {
			if e.Kind == event.ModelReturned && tt.want.Complete && (e.CostSource != llm.ChargePrices || e.Currency != tt.want.Currency || e.Provider == "") {
				t.Errorf("%s: %+v", tt.name, e)
			}
		}
	}
}

// What a vendor sent no figures of is told by an estimate, as one.
func TestAnswersWithoutFiguresAreEstimated(t *testing.T) {
	r := open(t, priced(""), with(llmtest.New(t, used(100, 10, 0, ""), llmtest.Reply(*answer("twelve bytes")), used(1, 0, 0, ""))))
	out, err := r.host.Run(t.Context(), r.crew(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []event.Event
	for _, e := range r.events {
		if e.Kind == event.CostUpdated {
			told = append(told, e)
		}
	}
	if told[0].EstimatedTokens != 0 || told[0].InputTokens != 100 {
		t.Errorf("%+v", told[0])
	}
	// The estimate is part of the sum, to the end; the output counts what was measured.
	for _, e := range told[1:] {
		if e.OutputTokens != 13 || e.InputTokens <= 101 || e.EstimatedTokens <= 3 || e.EstimatedTokens > e.InputTokens {
			t.Errorf("%+v", e)
		}
	}
	if out.Usage != (llm.Usage{Input: 101, Output: 10}) {
		t.Errorf("%+v", out.Usage)
	}
}

// What a vendor says that it charges goes before prices; a refusal is not charged,
// and what broke off may have been.
func TestChargesAndFailures(t *testing.T) {
	charged := answer("ok")
	charged.Usage, charged.Charge = llm.Usage{Input: 5, Measured: true}, &llm.Charge{Amount: llm.Millionths(7), Currency: "USD", Source: llm.ChargeVendor}
	for _, tt := range []struct {
		fault error
		want  bool
	}{
		{&llm.APIError{Status: 401, Message: "no"}, true},
		{&llm.APIError{Message: "the stream was silent"}, false},
	} {
		r := open(t, priced("  prices: { \"*\": { input: 1, output: 1 } }\n"), with(llmtest.New(t, llmtest.Reply(*charged), llmtest.Fail(tt.fault), used(1, 1, 0, ""))))
		out, err := r.host.Run(t.Context(), r.crew(nil), nil)
		var failed *runner.RunError
		if !errors.As(err, &failed) || out == nil {
			t.Fatalf("got %v", err)
		}
		if want := (runner.Cost{Amount: llm.Millionths(9), Currency: "USD", Complete: tt.want, Priced: true}); out.Cost != want {
			t.Errorf("%v: %+v, want %+v", tt.fault, out.Cost, want)
		}
	}
}

// A run whose budget is spent stops before the next request, with the reason; the
// figures are those of what was asked till then.
func TestBudgetStopsARun(t *testing.T) {
	for _, tt := range []struct{ budget, reason string }{
		{"  budget: { tokens: 150 }\n", "200 tokens of 150 (llm.budget.tokens)"},
		{"  prices: { \"*\": { input: 1, output: 1 } }\n  budget: { cost: 0.0002 }\n", "USD 0.000200 of 0.000200 (llm.budget.cost)"},
	} {
		r := open(t, priced(tt.budget), with(llmtest.New(t, used(90, 10, 0, ""), used(90, 10, 0, ""))))
		out, err := r.host.Run(t.Context(), r.crew(nil), nil)
		var failed *runner.RunError
		var spent *runner.BudgetError
		if !errors.As(err, &failed) || !errors.As(err, &spent) || spent.Reason != tt.reason {
			t.Errorf("got %v, want the reason %s", err, tt.reason)
			continue
		}
		if out.Usage.Input != 180 || len(out.Tasks) != 3 {
			t.Errorf("%+v", out)
		}
	}
	// A vendor without figures is kept within a budget by estimates.
	silent := llmtest.Reply(*answer(strings.Repeat("word ", 2000)))
	r := open(t, priced("  budget: { tokens: 2000 }\n"), with(llmtest.New(t, silent)))
	var spent *runner.BudgetError
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); !errors.As(err, &spent) {
		t.Errorf("no figures: %v", err)
	}
	// What was under way when the budget was reached is not taken back.
	r = open(t, priced("  budget: { tokens: 300 }\n"), with(llmtest.New(t, used(90, 10, 0, ""), used(90, 10, 0, ""), used(90, 10, 0, ""))))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Error(err)
	}
}

// Every provider that the settings know is in the table, and the other way round;
// a key that is missing is advised by the variable that usually holds it.
func TestEveryProviderOfTheSettings(t *testing.T) {
	known := map[string]bool{}
	for _, name := range config.Providers() {
		known[name] = true
		p := config.Profile{Provider: name, Model: "m"}
		if !p.Vendor() {
			continue
		}
		row, ok := provider.Find(name)
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		if row.BaseURL == "" {
			p.BaseURL = secret.Literal("http://127.0.0.1:1")
		}
		_, err := runner.NewModel(t.Context(), p, noCredentials{}, nil)
		needs := row.KeyVariable != ""
		if (err != nil) != needs || needs && !strings.Contains(err.Error(), fmt.Sprintf("the provider %s wants one (llm.api_key: ${%s})", row.Name, row.KeyVariable)) {
			t.Errorf("%s: %v", name, err)
		}
		p.APIKey = secret.Ref{Source: secret.FromLiteral, Value: secret.New("key")}
		if _, err := runner.NewModel(t.Context(), p, keyring{}, nil); err != nil {
			t.Errorf("%s, with a key: %v", name, err)
		}
		e := config.Embeddings{Profile: p, Dimensions: 3}
		if _, err := runner.NewEmbedder(t.Context(), e, keyring{}, nil); (err == nil) != row.Embeddings {
			t.Errorf("%s: embeddings: %v", name, err)
		}
	}
	for _, row := range provider.All() {
		for _, name := range append([]string{row.Name}, row.Aliases...) {
			if !known[name] {
				t.Errorf("the settings do not know %s", name)
			}
		}
	}
	for _, name := range []string{config.ProviderEcho, ""} {
		if _, err := runner.NewEmbedder(t.Context(), config.Embeddings{Profile: config.Profile{Provider: name}}, noCredentials{}, nil); err == nil {
			t.Errorf("%q embeds", name)
		}
	}
}
