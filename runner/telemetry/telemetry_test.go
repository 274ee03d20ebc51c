package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"

	"crewhost/runner/llm"
	"crewhost/runner/telemetry"
	"crewhost/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// model answers with one answer or fails.
type model struct {
	res *llm.Response
	err error
}

func (m model) Generate(context.Context, llm.Request) (*llm.Response, error) { return m.res, m.err }

// run tells of a small run: an agent asks, calls two tools, and the model fails.
func run(t *testing.T, to *telemetry.Telemetry) {
	t.Helper()
	ctx, crew := to.Crew(t.Context(), "Tide crew", "run-1")
	ctx, agent := to.Agent(ctx, "writer", "write")
	answer := &llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "c1", Name: "echo", Arguments: `{"key":"s3cret-canary"}`}}},
		Stop:    llm.StopTools, Model: "gpt-5-0807", Usage: llm.Usage{Input: 10, Output: 5, Measured: true},
	}
	if _, err := to.Model(model{res: answer}, "openai", "gpt-5").Generate(ctx, llm.Request{System: "Be terse.", Messages: []llm.Message{llm.User("s3cret-canary?")}}); err != nil {
		t.Fatal(err)
	}
	_, end := to.Tool(ctx, telemetry.Call{Tool: "echo", ID: "c1", Server: "docs", Protocol: "2026-07-28", Arguments: json.RawMessage(`{"key":"s3cret-canary"}`)})
	end(tools.Failure("no such key s3cret-canary"), nil)
	_, end = to.Tool(ctx, telemetry.Call{Tool: "file_read", ID: "c2"})
	end(tools.Result{}, &tools.Error{Code: tools.CodeCallTimeout, Detail: "s3cret-canary"})
	failure := &llm.APIError{Provider: "openai", Status: 429, Message: "slow down"}
	if _, err := to.Model(model{err: failure}, "openai", "gpt-5").Generate(ctx, llm.Request{}); !errors.Is(err, failure) {
		t.Fatal(err)
	}
	agent(failure)
	crew(failure)
}

// told is a span in a line: its parent, its kind and what it says.
func told(spans tracetest.SpanStubs) []string {
	names := map[string]string{}
	for _, s := range spans {
		names[s.SpanContext.SpanID().String()] = s.Name
	}
	var lines []string
	for _, s := range spans {
		var attrs []string
		for _, a := range s.Attributes {
			attrs = append(attrs, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
		}
		slices.Sort(attrs)
		lines = append(lines, fmt.Sprintf("%s < %s %s %s %s", s.Name, names[s.Parent.SpanID().String()], s.SpanKind, s.Status.Code, strings.Join(attrs, " ")))
	}
	return lines
}

func TestSpansOfARun(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	to, warnings := telemetry.Open(t.Context(), telemetry.Config{Spans: sdktrace.NewSimpleSpanProcessor(spans), Redact: masked})
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	run(t, to)
	want := []string{
		`chat gpt-5 < invoke_agent writer client Unset gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=gpt-5 gen_ai.response.finish_reasons=["tool_calls"] gen_ai.response.model=gpt-5-0807 gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=5`,
		`execute_tool echo < invoke_agent writer internal Error crewhost.mcp.server=docs error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.call.id=c1 gen_ai.tool.name=echo mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.transport=pipe`,
		`execute_tool file_read < invoke_agent writer internal Error error.type=tool_call_timeout gen_ai.operation.name=execute_tool gen_ai.tool.call.id=c2 gen_ai.tool.name=file_read`,
		`chat gpt-5 < invoke_agent writer client Error error.type=429 gen_ai.operation.name=chat gen_ai.provider.name=openai gen_ai.request.model=gpt-5`,
		`invoke_agent writer < invoke_workflow Tide crew internal Error crewhost.task=write error.type=429 gen_ai.agent.name=writer gen_ai.operation.name=invoke_agent`,
		`invoke_workflow Tide crew <  internal Error error.type=429 gen_ai.agent.name=Tide crew gen_ai.conversation.id=run-1 gen_ai.operation.name=invoke_workflow`,
	}
	if diff := cmp.Diff(want, told(spans.GetSpans())); diff != "" {
		t.Error(diff)
	}
	if err := to.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func masked(s string) string { return strings.ReplaceAll(s, "s3cret-canary", "•••") }

// Content is told where that was asked for, masked.
func TestContentIsOptIn(t *testing.T) {
	content := []attribute.Key{"gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"}
	for capture, want := range map[string]bool{"": false, "false": false, "true": true, "SPAN_ONLY": true, "no_content": false} {
		spans := tracetest.NewInMemoryExporter()
		to, _ := telemetry.Open(t.Context(), telemetry.Config{
			Spans: sdktrace.NewSimpleSpanProcessor(spans), Redact: masked,
			Environ: []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_BSP_SCHEDULE_DELAY=3600000", "OTEL_TRACES_SAMPLER=always_on", "OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=" + capture},
		})
		run(t, to)
		found := map[attribute.Key]bool{}
		for _, s := range spans.GetSpans() {
			for _, a := range s.Attributes {
				if slices.Contains(content, a.Key) {
					found[a.Key] = true
				}
				if strings.Contains(a.Value.String(), "s3cret-canary") {
					t.Errorf("%s shows a secret: %s", a.Key, a.Value.String())
				}
			}
			if strings.Contains(s.Status.Description, "s3cret-canary") {
				t.Errorf("a status shows a secret: %s", s.Status.Description)
			}
		}
		if len(found) != len(content) && want || len(found) > 0 && !want {
			t.Errorf("%q tells %v", capture, found)
		}
		_ = to.Close(t.Context()) // nobody listens at port 1
	}
}

// collector is an OTLP collector that takes nothing but what the protocol says.
type collector struct {
	t  *testing.T
	mu sync.Mutex

	spans   []string
	metrics map[string]int // points by name
	headers http.Header
	faults  []string
}

func (c *collector) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = r.Header
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			c.fault("gzip: %v", err)
			return
		}
		body = z
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		c.fault("%s %s", r.Method, r.Header.Get("Content-Type"))
	}
	type value struct {
		String *string  `json:"stringValue"`
		Int    *string  `json:"intValue"`
		Double *float64 `json:"doubleValue"`
		Bool   *bool    `json:"boolValue"`
		Array  *struct {
			Values []json.RawMessage `json:"values"`
		} `json:"arrayValue"`
	}
	type attr struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	type resource struct {
		Attributes []attr `json:"attributes"`
	}
	type scope struct {
		Name, Version string
	}
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	digits, id := regexp.MustCompile(`^[0-9]{1,20}$`), regexp.MustCompile(`^[0-9a-f]+$`)
	switch r.URL.Path {
	case "/v1/traces":
		var doc struct {
			Resources []struct {
				Resource resource `json:"resource"`
				Scopes   []struct {
					Scope scope `json:"scope"`
					Spans []struct {
						TraceID    string `json:"traceId"`
						SpanID     string `json:"spanId"`
						TraceState string `json:"traceState"`
						Parent     string `json:"parentSpanId"`
						Flags      uint32 `json:"flags"`
						Name       string `json:"name"`
						Kind       int    `json:"kind"`
						Start      string `json:"startTimeUnixNano"`
						End        string `json:"endTimeUnixNano"`
						Attributes []attr `json:"attributes"`
						Status     struct {
							Code    int    `json:"code"`
							Message string `json:"message"`
						} `json:"status"`
					} `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if err := dec.Decode(&doc); err != nil {
			c.fault("traces: %v", err)
			return
		}
		for _, rs := range doc.Resources {
			for _, ss := range rs.Scopes {
				for _, s := range ss.Spans {
					if len(s.TraceID) != 32 || len(s.SpanID) != 16 || len(s.Parent) != 0 && len(s.Parent) != 16 || !id.MatchString(s.TraceID+s.SpanID+s.Parent) ||
						!digits.MatchString(s.Start) || !digits.MatchString(s.End) || s.Kind < 1 || s.Kind > 5 || s.Status.Code > 2 || s.Name == "" {
						c.fault("span %+v", s)
					}
					c.spans = append(c.spans, s.Name)
				}
			}
			for _, a := range rs.Resource.Attributes {
				if a.Value.String == nil {
					c.fault("resource %+v", a)
				}
			}
		}
		_, _ = io.WriteString(w, `{}`)
	case "/v1/metrics":
		var doc struct {
			Resources []struct {
				Resource resource `json:"resource"`
				Scopes   []struct {
					Scope   scope `json:"scope"`
					Metrics []struct {
						Name, Description, Unit string
						Histogram               struct {
							Points []struct {
								Attributes []attr    `json:"attributes"`
								Start      string    `json:"startTimeUnixNano"`
								Time       string    `json:"timeUnixNano"`
								Count      string    `json:"count"`
								Sum        float64   `json:"sum"`
								Buckets    []string  `json:"bucketCounts"`
								Bounds     []float64 `json:"explicitBounds"`
								Min, Max   *float64
							} `json:"dataPoints"`
							Temporality int `json:"aggregationTemporality"`
						} `json:"histogram"`
					} `json:"metrics"`
				} `json:"scopeMetrics"`
			} `json:"resourceMetrics"`
		}
		if err := dec.Decode(&doc); err != nil {
			c.fault("metrics: %v", err)
			return
		}
		for _, rm := range doc.Resources {
			for _, sm := range rm.Scopes {
				for _, m := range sm.Metrics {
					for _, p := range m.Histogram.Points {
						if !digits.MatchString(p.Count) || len(p.Buckets) != len(p.Bounds)+1 || m.Histogram.Temporality != 2 || m.Unit == "" {
							c.fault("metric %+v", m)
						}
						c.metrics[m.Name]++
					}
				}
			}
		}
		_, _ = io.WriteString(w, `{"partialSuccess":{}}`)
	default:
		c.fault("path %s", r.URL.Path)
	}
}

func TestExportsToACollector(t *testing.T) {
	for _, compression := range []string{"", "gzip"} {
		c := &collector{t: t, metrics: map[string]int{}}
		server := httptest.NewServer(c)
		environ := []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_EXPORTER_OTLP_HEADERS=Authorization=Bearer%20collector-canary,X-Team=a", "OTEL_EXPORTER_OTLP_COMPRESSION=" + compression,
			"OTEL_SERVICE_NAME=tides", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=ci",
		}
		to, warnings := telemetry.Open(t.Context(), telemetry.Config{Environ: environ, Version: "1.2.3", Warn: func(line string) { t.Error(line) }})
		if len(warnings) > 0 {
			t.Error(warnings)
		}
		run(t, to)
		_, served := to.Served(t.Context(), "echo", "2026-07-28")
		served(tools.Text("said"), nil)
		to.Connected(t.Context(), telemetry.Call{Server: "docs"}, 1, nil)
		if err := to.Close(t.Context()); err != nil {
			t.Error(err)
		}
		server.Close()
		if len(c.faults) > 0 {
			t.Error(c.faults)
		}
		if len(c.spans) != 7 {
			t.Errorf("spans %q", c.spans)
		}
		want := map[string]int{"gen_ai.client.operation.duration": 2, "gen_ai.client.token.usage": 2, "mcp.client.operation.duration": 1, "mcp.client.session.duration": 1, "mcp.server.operation.duration": 1}
		if diff := cmp.Diff(want, c.metrics); diff != "" {
			t.Error(diff)
		}
		if c.headers.Get("Authorization") != "Bearer collector-canary" || c.headers.Get("X-Team") != "a" {
			t.Errorf("headers %v", c.headers)
		}
		secrets := telemetry.Secrets(environ)
		if !slices.Contains(secrets, "collector-canary") {
			t.Errorf("secrets %q", secrets)
		}
	}
}

// What can't be exported is a warning, once, without a word of the headers or the URL.
func TestACollectorThatRefuses(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"refuses":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"redirects": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"a part": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"partialSuccess":{"rejectedSpans":"6","errorMessage":"too many"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				requests++
				mu.Unlock()
				handler(w, r)
			}))
			defer server.Close()
			var lines []string
			to, _ := telemetry.Open(t.Context(), telemetry.Config{
				Environ: []string{
					"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=" + server.URL + "/v1/traces?key=s3cret-canary", "OTEL_EXPORTER_OTLP_HEADERS=key=s3cret-canary",
				},
				Redact: masked, Warn: func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) },
			})
			run(t, to)
			err := to.Close(t.Context())
			if err == nil {
				t.Error("nothing is said at the end")
			}
			mu.Lock()
			defer mu.Unlock()
			if requests != 1 || len(lines) != 1 || strings.Contains(strings.Join(lines, "")+fmt.Sprint(err), "s3cret-canary") {
				t.Errorf("%d requests, %q, %v", requests, lines, err)
			}
		})
	}
}

// A program that CI starts in a trace of its own is a part of it.
func TestUpstream(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	to, _ := telemetry.Open(t.Context(), telemetry.Config{
		Spans: sdktrace.NewSimpleSpanProcessor(spans), Environ: []string{"TRACEPARENT=00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	})
	run(t, to)
	for _, s := range spans.GetSpans() {
		if s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
			t.Errorf("%s is of the trace %s", s.Name, s.SpanContext.TraceID())
		}
	}
	_ = to.Close(t.Context())
}

func TestLogsNameTheirTrace(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	to, _ := telemetry.Open(t.Context(), telemetry.Config{Spans: sdktrace.NewSimpleSpanProcessor(spans)})
	var b bytes.Buffer
	log := slog.New(to.Logs(slog.NewJSONHandler(&b, nil)))
	log.Info("before")
	ctx, end := to.Crew(t.Context(), "c", "")
	log.InfoContext(ctx, "within")
	log.Info("beside")
	_, second := to.Crew(t.Context(), "d", "")
	log.Info("of which")
	second(nil)
	end(nil)
	trace := spans.GetSpans()[1].SpanContext.TraceID().String()
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	for i, want := range []string{"", trace, trace, ""} {
		if got := strings.Contains(lines[i], "trace_id"); got != (want != "") || !strings.Contains(lines[i], want) {
			t.Errorf("%s", lines[i])
		}
	}
	_ = to.Close(t.Context())
}

// Off, telemetry wraps nothing and costs nothing.
func TestOff(t *testing.T) {
	for _, environ := range [][]string{nil, {"OTEL_SERVICE_NAME=x"}, {"OTEL_TRACES_EXPORTER=none"}, {"OTEL_SDK_DISABLED=TRUE", "OTEL_TRACES_EXPORTER=otlp"}, {"OTEL_EXPORTER_OTLP_ENDPOINT="}} {
		to, warnings := telemetry.Open(t.Context(), telemetry.Config{Environ: environ})
		if to != nil || len(warnings) > 0 {
			t.Fatalf("%q: %v %q", environ, to, warnings)
		}
	}
	var to *telemetry.Telemetry
	m, h := llm.Model(model{}), slog.DiscardHandler
	if to.Model(m, "openai", "m") != m || to.Logs(h) != h {
		t.Error("something is wrapped")
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		_, crew := to.Crew(ctx, "c", "")
		_, agent := to.Agent(ctx, "a", "t")
		_, tool := to.Tool(ctx, telemetry.Call{Tool: "x"})
		tool(tools.Result{}, nil)
		agent(nil)
		crew(nil)
		to.Connected(ctx, telemetry.Call{}, 0, nil)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	if err := to.Close(ctx); err != nil {
		t.Error(err)
	}
}
