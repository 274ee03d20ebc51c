package runner_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/runner"
	"crewhost/runner/llm"
)

// What a profile says of its model reaches the wire: the rate holds for all who
// ask, a silent stream ends, a context is as long as it says.
func TestAProfileReachesTheWire(t *testing.T) {
	var mu sync.Mutex
	now, most, bodies := 0, 0, []string{}
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, 4096)
		n, _ := r.Body.Read(body)
		mu.Lock()
		now++
		most = max(most, now)
		bodies = append(bodies, string(body[:n]))
		first := len(bodies) == 1
		mu.Unlock()
		if first {
			<-release
		}
		mu.Lock()
		now--
		mu.Unlock()
		_, _ = w.Write([]byte(`{"message":{"content":"a"},"done":true}`))
	}))
	defer server.Close()
	m, err := runner.NewModel(t.Context(), config.Profile{
		Provider: config.ProviderOllama, Model: "m", BaseURL: secret.Literal(server.URL), ContextTokens: 5000, Rate: config.Rate{Concurrent: 1},
	}, noCredentials{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}}); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	all.Wait()
	if most != 1 || len(bodies) != 4 || !strings.Contains(bodies[0], `"num_ctx":5000`) {
		t.Errorf("%d at once, %s", most, bodies)
	}

	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer silent.Close()
	none := 0
	m, err = runner.NewModel(t.Context(), config.Profile{
		Provider: config.ProviderCompatible, Model: "m", BaseURL: secret.Literal(silent.URL), StreamIdle: 20 * time.Millisecond, MaxRetries: &none,
	}, noCredentials{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var api *llm.APIError
	if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("q")}, OnDelta: func(llm.Delta) {}}); !errors.As(err, &api) || !strings.Contains(err.Error(), "silent for 20ms") {
		t.Errorf("got %v", err)
	}
}

// A key is looked for when the embedder is made, and not before.
func TestHostEmbedder(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "llm: { provider: echo, embeddings: { provider: mistral, model: mistral-embed, api_key: \"${NOT_SET_ANYWHERE:-}\" } }\n"}, with(llm.Echo{}))
	if e, err := r.host.Embedder(t.Context()); err == nil || e != nil || !strings.Contains(err.Error(), "llm.embeddings") {
		t.Errorf("%v, %v", e, err)
	}
	r = open(t, map[string]string{"crewhost.yaml": "llm: { provider: echo, embeddings: { provider: ollama, model: nomic-embed-text } }\n"}, with(llm.Echo{}))
	if e, err := r.host.Embedder(t.Context()); err != nil || e == nil {
		t.Errorf("%v, %v", e, err)
	}
	r = open(t, map[string]string{"crewhost.yaml": "llm: { provider: echo }\n"}, with(llm.Echo{}))
	if e, err := r.host.Embedder(t.Context()); err != nil || e != nil {
		t.Errorf("%v, %v", e, err)
	}
}
