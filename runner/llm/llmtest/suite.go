package llmtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crewhost/runner/llm"
)

// Vendor is what [Conformance] must know of an API to speak its server's side.
type Vendor struct {
	// New returns the adapter under test.
	New func(t testing.TB, s Settings) llm.Model
	// Whole is the body of an unstreamed answer.
	Whole func(llm.Response) string
	// Events are the events of a streamed answer. Without the last of them
	// the answer is not complete; the first text or call is not in the first.
	Events func(llm.Response) []string
	// Fault is the body of a refusal.
	Fault func(code, message string) string
	// Uncached says that the API does not tell what of the input was cached.
	Uncached bool
	// Key finds the API key in the header of a request.
	Key func(http.Header) string
	// Env holds the environment variables that the vendor's SDK knows, with
	// values that would show if they were used.
	Env map[string]string
}

// Settings are those that every adapter has.
type Settings struct {
	Client      *http.Client
	APIKey      string
	Timeout     time.Duration
	IdleTimeout time.Duration
	MaxRetries  *int
	Logger      *slog.Logger
}

// Conformance runs every test of the suite as a subtest, against servers in
// memory and in a time of their own: no test waits in earnest.
func Conformance(t *testing.T, v Vendor) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Vendor)
	}{
		{"answer", testAnswer},
		{"tool round trip", testToolRoundTrip},
		{"Retry-After", testRetryAfter},
		{"a wait too long", testWaitTooLong},
		{"faults then an answer", testFaultsThenAnswer},
		{"faults forever", testFaultsForever},
		{"refusals are not repeated", testRefusals},
		{"a wait longer than the context", testWaitBeyondContext},
		{"slow stream", testSlowStream},
		{"stalled stream", testStalledStream},
		{"cut stream", testCutStream},
		{"silent server", testSilentServer},
		{"what a model may write", testModelOutput},
		{"cancelled", testCancelled},
		{"the key stays secret", testSecret},
		{"redirect", testRedirect},
		{"concurrent", testConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test.run(t, v) })
		})
	}
	t.Run("environment", func(t *testing.T) {
		for name, value := range v.Env {
			t.Setenv(name, value)
		}
		synctest.Test(t, func(t *testing.T) { testEnvironment(t, v) })
	})
}

const testKey = "sk-test-8f2c1e"

// start returns an adapter that speaks to a mock with these steps.
func start(t *testing.T, v Vendor, s Settings, steps ...Step) (llm.Model, *Mock) {
	t.Helper()
	mock := NewMock(t, steps...)
	s.Client = Serve(t, mock)
	if s.APIKey == "" {
		s.APIKey = testKey
	}
	return v.New(t, s), mock
}

// reply is the step that answers with res, in the form that was asked for.
func reply(v Vendor, res llm.Response) Step {
	return func(w http.ResponseWriter, r *http.Request, body string) {
		if strings.Contains(body, `"stream":true`) {
			Events(v.Events(res)...)(w, r, body)
			return
		}
		Status(http.StatusOK, v.Whole(res))(w, r, body)
	}
}

func (v Vendor) textAnswer(text string) llm.Response {
	res := llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: text}}},
		Stop:    llm.StopEnd,
		Usage:   llm.Usage{Input: 30, Output: 7, CacheRead: 20, Measured: true},
		Model:   "test-model",
	}
	if v.Uncached {
		res.Usage.CacheRead = 0
	}
	return res
}

func question() llm.Request {
	return llm.Request{System: "Be terse.", Messages: []llm.Message{llm.User("Name a prime.")}}
}

func retries(n int) *int { return &n }

// each runs f unstreamed and streamed; text and reasoning are what was
// delivered.
func each(t *testing.T, f func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), streamed bool)) {
	t.Helper()
	f(t, func(m llm.Model, req llm.Request) (*llm.Response, error) {
		return m.Generate(t.Context(), req)
	}, false)
	f(t, func(m llm.Model, req llm.Request) (*llm.Response, error) {
		var text, reasoning strings.Builder
		req.OnDelta = func(d llm.Delta) {
			text.WriteString(d.Text)
			reasoning.WriteString(d.Reasoning)
		}
		res, err := m.Generate(t.Context(), req)
		if err == nil && text.String() != res.Message.Text() {
			t.Errorf("delivered %q of the text %q", text.String(), res.Message.Text())
		}
		if err == nil && reasoning.String() != res.Message.Reasoning {
			t.Errorf("delivered %q of the reasoning %q", reasoning.String(), res.Message.Reasoning)
		}
		return res, err
	}, true)
}

func testAnswer(t *testing.T, v Vendor) {
	want := v.textAnswer("Seven – or <eleven> & more.")
	each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
		m, mock := start(t, v, Settings{}, reply(v, want))
		got, err := ask(m, question())
		if err != nil {
			t.Error(err)
			return
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Error(diff)
		}
		body := mock.Bodies()[0]
		for _, s := range []string{"Be terse.", "Name a prime."} {
			if !strings.Contains(body, s) {
				t.Errorf("the request lacks %q: %s", s, body)
			}
		}
		for _, s := range []string{"temperature", "top_p", "tools", "tool_choice"} {
			if strings.Contains(body, `"`+s+`"`) {
				t.Errorf("the request has %s, which was not set: %s", s, body)
			}
		}
		if key := v.Key(mock.Header(0)); key != testKey {
			t.Errorf("key %q", key)
		}
	})
}

func testToolRoundTrip(t *testing.T, v Vendor) {
	calls := llm.Response{
		Message: llm.Message{
			Role:  llm.RoleAssistant,
			Parts: []llm.Part{{Text: "Let me look."}},
			Calls: []llm.ToolCall{
				{ID: "call_a", Name: "lookup", Arguments: `{"id":725653563933458433,"x":0.1000000000000000055}`}, // K31
				{ID: "call_b", Name: "mcp__files__read", Arguments: `{"path":"/ö"}`},
			},
		},
		Stop:  llm.StopTools,
		Usage: llm.Usage{Input: 50, Output: 20, Measured: true},
		Model: "test-model",
	}
	each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
		m, mock := start(t, v, Settings{}, reply(v, calls), reply(v, v.textAnswer("Done.")))
		req := question()
		req.Tools = []llm.Tool{
			{Name: "lookup", Description: "Looks up.", Schema: []byte(`{"type":"object","properties":{"id":{"type":"integer","maximum":725653563933458433}}}`)},
			{Name: "mcp__files__read"},
		}
		got, err := ask(m, req)
		if err != nil {
			t.Error(err)
			return
		}
		if diff := cmp.Diff(&calls, got); diff != "" {
			t.Error(diff)
		}
		req.Messages = append(req.Messages, got.Message,
			llm.Message{Role: llm.RoleTool, CallID: "call_a", Parts: []llm.Part{{Text: "found 725653563933458433"}}},
			llm.Message{Role: llm.RoleTool, CallID: "call_b", IsError: true, Parts: []llm.Part{{Text: "no such file"}}},
		)
		if got, err = ask(m, req); err != nil || got.Message.Text() != "Done." {
			t.Errorf("%+v, %v", got, err)
		}
		body := mock.Bodies()[1]
		for _, s := range []string{"Let me look.", "call_a", "call_b", "found 725653563933458433", "no such file",
			`725653563933458433,`, `0.1000000000000000055`, `"maximum":725653563933458433`} {
			if !strings.Contains(body, s) {
				t.Errorf("the second request lacks %s: %s", s, body)
			}
		}
	})
}

func testRetryAfter(t *testing.T, v Vendor) {
	fault := v.Fault("rate_limit_error", "slow down")
	date := func(w http.ResponseWriter, r *http.Request, body string) {
		Status(429, fault, "Retry-After", time.Now().Add(40*time.Second).UTC().Format(http.TimeFormat))(w, r, body)
	}
	for _, tt := range []struct {
		name     string
		step     Step
		min, max time.Duration
	}{
		{"seconds", Status(429, fault, "Retry-After", "7"), 7 * time.Second, 7 * time.Second},
		{"more than our own longest wait", Status(503, fault, "Retry-After", "90"), 90 * time.Second, 90 * time.Second},
		{"date", date, 39 * time.Second, 40 * time.Second},
		{"milliseconds", Status(429, fault, "Retry-After-Ms", "1500", "Retry-After", "9"), 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"unreadable", Status(429, fault, "Retry-After", "soon"), 300 * time.Millisecond, 500 * time.Millisecond},
		{"none", Status(429, fault), 300 * time.Millisecond, 500 * time.Millisecond},
	} {
		each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
			m, mock := start(t, v, Settings{}, tt.step, reply(v, v.textAnswer("ok")))
			if res, err := ask(m, question()); err != nil || res.Message.Text() != "ok" {
				t.Errorf("%s: %+v, %v", tt.name, res, err)
			}
			if waits := mock.Waits(); len(waits) != 1 || waits[0] < tt.min || waits[0] > tt.max {
				t.Errorf("%s: waited %v, want %v to %v", tt.name, waits, tt.min, tt.max)
			}
		})
	}
}

func testFaultsThenAnswer(t *testing.T, v Vendor) {
	page := "<html><body>502 Bad Gateway</body></html>"
	each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
		m, mock := start(t, v, Settings{MaxRetries: retries(5)},
			Status(500, v.Fault("server_error", "oops")), Status(502, page), Status(529, v.Fault("overloaded_error", "busy")),
			Status(408, ""), Cut(), reply(v, v.textAnswer("ok")))
		if res, err := ask(m, question()); err != nil || res.Message.Text() != "ok" {
			t.Errorf("%+v, %v", res, err)
		}
		waits := mock.Waits()
		for i := 1; i < len(waits); i++ {
			if waits[i] <= waits[i-1] {
				t.Errorf("the waits do not grow: %v", waits)
			}
		}
	})
}

func testFaultsForever(t *testing.T, v Vendor) {
	each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
		steps := make([]Step, 9)
		for i := range steps {
			steps[i] = Status(500, v.Fault("server_error", "it is\nbroken"))
		}
		m, mock := start(t, v, Settings{MaxRetries: retries(8)}, steps...)
		_, err := ask(m, question())
		var api *llm.APIError
		if !errors.As(err, &api) || api.Status != 500 || !api.Temporary || api.Message != "it is broken" || api.Code != "server_error" {
			t.Errorf("got %#v", err)
		}
		if n := len(mock.Bodies()); n != 9 {
			t.Errorf("%d requests, want 1 and 8 repetitions", n)
		}
		for _, wait := range mock.Waits() {
			if wait > 30*time.Second {
				t.Errorf("waited %v, more than 30 s unasked", wait)
			}
		}
	})
}

func testRefusals(t *testing.T, v Vendor) {
	for _, tt := range []struct {
		name string
		step Step
		want llm.APIError
	}{
		{"400", Status(400, v.Fault("invalid_request_error", "max_tokens is too large")), llm.APIError{Status: 400, Code: "invalid_request_error", Message: "max_tokens is too large"}},
		{"401", Status(401, v.Fault("authentication_error", "bad key")), llm.APIError{Status: 401, Code: "authentication_error", Message: "bad key"}},
		{"404 of a server without JSON", Status(404, "404 page not found\n"), llm.APIError{Status: 404, Message: "404 page not found"}},
		{"quota", Status(429, v.Fault("insufficient_quota", "pay")), llm.APIError{Status: 429, Code: "insufficient_quota", Message: "pay"}},
		{"told not to", Status(500, v.Fault("e", "no"), "X-Should-Retry", "false"), llm.APIError{Status: 500, Code: "e", Message: "no"}},
	} {
		each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
			m, _ := start(t, v, Settings{}, tt.step)
			_, err := ask(m, question())
			var api *llm.APIError
			if !errors.As(err, &api) {
				t.Errorf("%s: got %v", tt.name, err)
				return
			}
			if api.Provider == "" {
				t.Errorf("%s: the error names no provider", tt.name)
			}
			if diff := cmp.Diff(tt.want, *api, cmpopts.IgnoreFields(llm.APIError{}, "Provider")); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
		})
	}
}

func testWaitBeyondContext(t *testing.T, v Vendor) {
	m, _ := start(t, v, Settings{}, Status(429, v.Fault("rate", "later"), "Retry-After", "600"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	begin := time.Now()
	_, err := m.Generate(ctx, question())
	var api *llm.APIError
	if !errors.As(err, &api) || api.RetryAfter != 10*time.Minute {
		t.Errorf("got %v, want the refusal and what it asked for", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("waited %v for nothing", took)
	}
}

// A vendor that asks for an hour gets no hour: a run should not look hung.
func testWaitTooLong(t *testing.T, v Vendor) {
	m, _ := start(t, v, Settings{}, Status(429, v.Fault("rate", "later"), "Retry-After", "3600"))
	begin := time.Now()
	_, err := m.Generate(t.Context(), question())
	var api *llm.APIError
	if !errors.As(err, &api) || api.RetryAfter != time.Hour || !strings.Contains(err.Error(), "asks to wait 1h0m0s") {
		t.Errorf("got %v, want the refusal and what it asked for", err)
	}
	if took := time.Since(begin); took > time.Second {
		t.Errorf("waited %v", took)
	}
}

func testSilentServer(t *testing.T, v Vendor) {
	each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), _ bool) {
		m, mock := start(t, v, Settings{Timeout: 50 * time.Second, MaxRetries: retries(5)}, Silence(), Silence())
		begin := time.Now()
		_, err := ask(m, question())
		var api *llm.APIError
		if !errors.As(err, &api) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "within 50s") {
			t.Errorf("got %v, want an APIError that names the limit", err)
		}
		if n := len(mock.Bodies()); n != 2 {
			t.Errorf("%d requests, want one and one more", n)
		}
		if took := time.Since(begin); took < 100*time.Second || took > 105*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// testModelOutput holds what a model may do wrong, all of which is for the agent
// to judge and not for the adapter.
func testModelOutput(t *testing.T, v Vendor) {
	call := func(name, arguments string) []llm.ToolCall {
		return []llm.ToolCall{{ID: "c1", Name: name, Arguments: arguments}}
	}
	for _, tt := range []struct {
		name       string
		calls      []llm.ToolCall
		text       string
		stop       llm.StopReason
		streamOnly bool
	}{
		{name: "unknown tool", calls: call("no.such tool", `{}`), stop: llm.StopTools},                    // K69
		{name: "arguments are no object", calls: call("f", `[1,2]`), stop: llm.StopTools},                 // K29
		{name: "arguments are no JSON", calls: call("f", `{"a":`), stop: llm.StopTools, streamOnly: true}, // K71
		{name: "cut in a call", calls: call("f", `{"p":"/a`), stop: llm.StopLength, streamOnly: true},     // K71
		{name: "cut behind a call", calls: call("f", `{"path":"/a","content":""}`), stop: llm.StopLength}, // K71
		{name: "cut text", text: "Half a", stop: llm.StopLength},                                          // K71
		{name: "withheld", text: "I", stop: llm.StopFilter},                                               // K71
		{name: "empty", stop: llm.StopEnd},                                                                // K75
	} {
		each(t, func(t *testing.T, ask func(llm.Model, llm.Request) (*llm.Response, error), streamed bool) {
			if tt.streamOnly && !streamed {
				return
			}
			want := v.textAnswer(tt.text)
			want.Stop, want.Message.Calls = tt.stop, tt.calls
			if tt.text == "" {
				want.Message.Parts = nil
			}
			m, _ := start(t, v, Settings{}, reply(v, want), reply(v, v.textAnswer("next")))
			got, err := ask(m, question())
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
				return
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Errorf("%s: %s", tt.name, diff)
			}
			req := question()
			req.Messages = append(req.Messages, got.Message)
			for _, c := range got.Message.Calls {
				req.Messages = append(req.Messages, llm.Message{Role: llm.RoleTool, CallID: c.ID, IsError: true})
			}
			req.Messages = append(req.Messages, llm.User("Again."))
			if _, err := ask(m, req); err != nil {
				t.Errorf("%s: handed back: %v", tt.name, err)
			}
		})
	}
}

func testSecret(t *testing.T, v Vendor) {
	var log strings.Builder
	echo := v.Fault("bad "+testKey, "Incorrect API key provided: "+testKey)
	for _, step := range []Step{
		Status(401, echo), Status(429, echo), Status(500, testKey), Cut(),
		Status(302, "", "Location", "https://elsewhere.example/"+testKey),
		Status(200, "not JSON "+testKey, "Content-Type", "application/json"),
		Events(Event("error", echo)),
	} {
		settings := Settings{MaxRetries: retries(1), Logger: slog.New(slog.NewTextHandler(&log, nil))}
		m, _ := start(t, v, settings, step, step)
		_, err := m.Generate(t.Context(), question())
		if err == nil {
			t.Error("no error")
		}
		_, streamed := stream(t.Context(), v.New(t, Settings{APIKey: testKey, MaxRetries: retries(0), Client: Serve(t, NewMock(t, step))}), question())
		if streamed == nil {
			t.Error("no error, streamed")
		}
		for _, e := range []error{err, streamed} {
			for ; e != nil; e = errors.Unwrap(e) {
				if s := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(s, testKey) {
					t.Errorf("the key shows: %s", s)
				}
			}
		}
	}
	if strings.Contains(log.String(), testKey) {
		t.Errorf("the key is logged: %s", log.String())
	}
	if !strings.Contains(log.String(), "asking the model again") {
		t.Errorf("repetitions are not logged: %s", log.String())
	}
}

func testRedirect(t *testing.T, v Vendor) {
	m, mock := start(t, v, Settings{}, Status(307, "", "Location", "https://elsewhere.example/v1"))
	_, err := m.Generate(t.Context(), question())
	var api *llm.APIError
	if !errors.As(err, &api) || api.Status != 307 {
		t.Errorf("got %v", err)
	}
	if n := len(mock.Bodies()); n != 1 {
		t.Errorf("%d requests: the redirect was followed with the key", n)
	}
}

func testConcurrent(t *testing.T, v Vendor) {
	const n = 8
	steps := make([]Step, n)
	for i := range steps {
		steps[i] = reply(v, v.textAnswer("ok"))
	}
	m, _ := start(t, v, Settings{}, steps...)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			req := question()
			if i%2 == 0 {
				req.OnDelta = func(llm.Delta) {}
			}
			if res, err := m.Generate(t.Context(), req); err != nil || res.Message.Text() != "ok" {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	all.Wait()
}

func testEnvironment(t *testing.T, v Vendor) {
	m, mock := start(t, v, Settings{}, reply(v, v.textAnswer("ok")))
	if _, err := m.Generate(t.Context(), question()); err != nil {
		t.Error(err)
		return
	}
	if key := v.Key(mock.Header(0)); key != testKey {
		t.Errorf("key %q", key)
	}
	for name, values := range mock.Header(0) {
		for _, value := range v.Env {
			if strings.Contains(strings.Join(values, " "), value) {
				t.Errorf("header %s has %q, from the environment", name, value)
			}
		}
	}
}
