package runner_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/llm"
)

// What an agent is said to send of tools is what its requests hold of them, to the
// byte, whatever the provider.
func TestWeightsAreThoseOfTheRequests(t *testing.T) {
	for provider, answer := range map[string]string{
		"openai":    `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Done."}}]}`,
		"anthropic": `{"id":"m","type":"message","role":"assistant","model":"m","stop_reason":"end_turn","content":[{"type":"text","text":"Done."}],"usage":{"input_tokens":1,"output_tokens":1}}`,
		"ollama":    `{"model":"m","message":{"role":"assistant","content":"Done."},"done":true,"done_reason":"stop"}`,
	} {
		t.Run(provider, func(t *testing.T) {
			var mu sync.Mutex
			var body []byte
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if body == nil {
					body, _ = io.ReadAll(req.Body)
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer server.Close()
			r := open(t, map[string]string{
				"crewhost.yaml": "llm: { provider: " + provider + ", model: m, base_url: " + server.URL + ", api_key: { env: TEST_KEY } }\n" + echoServer,
				"crew.yaml":     oneTask,
			}, func(c *runner.Config) { c.Environ = append(c.Environ, "TEST_KEY=sk-test-1") })
			inputs := crew.Inputs{"word": "tide"}
			c := r.crew(inputs)
			w := r.host.Weigh(t.Context(), c, inputs)
			if body != nil {
				t.Fatal("weighing asked the provider")
			}
			if _, err := r.host.Run(t.Context(), c, inputs); err != nil {
				t.Fatal(err)
			}
			var sent struct{ Tools []json.RawMessage }
			if err := json.Unmarshal(body, &sent); err != nil || len(sent.Tools) == 0 {
				t.Fatalf("%v in %s", err, body)
			}
			want := 0
			for _, tool := range sent.Tools {
				want += llm.EstimateTokens(len(tool))
			}
			if len(w.Agents) != 1 || w.Agents[0] != (runner.AgentWeight{
				Agent: "one", Task: "only", Profile: "default", Provider: provider, Tools: len(sent.Tools), Tokens: want,
			}) {
				t.Errorf("%+v, and %d tools of %d tokens were sent", w.Agents, len(sent.Tools), want)
			}
			if len(w.Providers) != 1 || w.Providers[0].Provider != provider {
				t.Fatalf("%+v", w.Providers)
			}
			sum, parts := 0, []string{}
			for _, s := range w.Providers[0].Servers {
				sum += s.Tokens
				parts = append(parts, s.Server)
			}
			if sum != w.Providers[0].Tokens || sum < want || strings.Join(parts, ",") != ",standard" || w.Providers[0].Tools != len(r.host.Tools()) {
				t.Errorf("%+v", w.Providers[0])
			}
		})
	}
}

// Each profile that tells of tools in its own way is weighed, also one that knows no
// calls and is told in the prompt, and one that asks no vendor.
func TestWeightsOfProfiles(t *testing.T) {
	r := open(t, map[string]string{
		"crewhost.yaml": `
llm:
  provider: echo
  profiles:
    big:   { provider: openai, model: m, api_key: { env: NOWHERE } }
    twin:  { provider: openai, model: n, api_key: { env: NOWHERE } }
    small: { provider: openai-compatible, base_url: "http://localhost:1", model: m, tool_calls: text }
` + echoServer,
		"crew.yaml": oneTask,
	})
	w := r.host.Weigh(t.Context(), nil, nil)
	var got []string
	for _, p := range w.Providers {
		text := ""
		if p.InText {
			text = " in text"
		}
		got = append(got, p.Provider+":"+strings.Join(p.Profiles, "+")+text)
		if p.Tokens == 0 || p.Tools != len(r.host.Tools()) {
			t.Errorf("%+v", p)
		}
	}
	if want := "echo:default openai:big+twin openai-compatible:small in text"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", strings.Join(got, " "), want)
	}
	if w.Agents != nil {
		t.Errorf("%+v", w.Agents)
	}
}
