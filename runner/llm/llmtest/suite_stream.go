package llmtest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"crewhost/runner/llm"
)

// stream asks for a streamed answer and returns what was delivered.
func stream(ctx context.Context, m llm.Model, req llm.Request) (string, error) {
	var text strings.Builder
	req.OnDelta = func(d llm.Delta) { text.WriteString(d.Text) }
	_, err := m.Generate(ctx, req)
	return text.String(), err
}

func testSlowStream(t *testing.T, v Vendor) {
	m, _ := start(t, v, Settings{IdleTimeout: 20 * time.Second}, Slow(15*time.Second, v.Events(v.textAnswer("one two three"))...))
	if text, err := stream(t.Context(), m, question()); err != nil || text != "one two three" {
		t.Errorf("a stream that is never silent for long: %q, %v", text, err)
	}
	m, mock := start(t, v, Settings{Timeout: 50 * time.Second, MaxRetries: retries(3)}, Slow(15*time.Second, v.Events(v.textAnswer("one two three"))...))
	_, err := stream(t.Context(), m, question())
	var api *llm.APIError
	if !errors.As(err, &api) || !strings.Contains(err.Error(), "within 50s") || len(mock.Bodies()) != 1 {
		t.Errorf("a stream that takes too long: %v after %d requests", err, len(mock.Bodies()))
	}
}

func testStalledStream(t *testing.T, v Vendor) {
	events := v.Events(v.textAnswer("one two"))
	settings := Settings{IdleTimeout: 20 * time.Second, MaxRetries: retries(3)}

	m, _ := start(t, v, settings, Stall(events[:len(events)-1]...))
	begin := time.Now()
	text, err := stream(t.Context(), m, question())
	var api *llm.APIError
	if !errors.As(err, &api) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "silent for 20s") {
		t.Errorf("got %v, want an APIError that names the silence", err)
	}
	if took := time.Since(begin); took < 20*time.Second || took > 21*time.Second {
		t.Errorf("took %v, want the 20 s of silence and one request", took)
	}
	if text == "" {
		t.Error("nothing was delivered before the stall")
	}

	// Nothing delivered: once more, and not a third time.
	m, mock := start(t, v, settings, Stall(), Stall())
	if _, err = stream(t.Context(), m, question()); !errors.As(err, &api) {
		t.Errorf("got %v", err)
	}
	if n := len(mock.Bodies()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
}

func testCutStream(t *testing.T, v Vendor) {
	events := v.Events(v.textAnswer("one two"))
	for _, tt := range []struct {
		name string
		step Step
	}{
		{"broken connection", Cut(events[:len(events)-1]...)},
		{"proper end too early", Events(events[:len(events)-1]...)},
	} {
		m, _ := start(t, v, Settings{}, tt.step)
		text, err := stream(t.Context(), m, question())
		var api *llm.APIError
		if !errors.As(err, &api) {
			t.Errorf("%s: got %v, want an APIError", tt.name, err)
		}
		if text == "" {
			t.Errorf("%s: nothing was delivered", tt.name)
		}
	}
	m, _ := start(t, v, Settings{}, Cut(events[0]), reply(v, v.textAnswer("whole")))
	if text, err := stream(t.Context(), m, question()); err != nil || text != "whole" {
		t.Errorf("cut before anything was delivered: %q, %v", text, err)
	}
}

func testCancelled(t *testing.T, v Vendor) {
	events := v.Events(v.textAnswer("one two"))
	for _, tt := range []struct {
		name string
		step Step
	}{
		{"before the answer", Silence()},
		{"within the answer", Stall(events[:len(events)-1]...)},
		{"between two attempts", Status(429, v.Fault("rate", "later"), "Retry-After", "120")},
	} {
		m, _ := start(t, v, Settings{}, tt.step)
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(5*time.Second, cancel)
		begin := time.Now()
		_, err := stream(ctx, m, question())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if took := time.Since(begin); took != 5*time.Second {
			t.Errorf("%s: returned after %v, want at once when cancelled after 5s", tt.name, took)
		}
		timer.Stop()
		cancel()
	}
}
