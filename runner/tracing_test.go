package runner_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/runner/telemetry"
)

// told has a host tell of itself, and returns the spans.
func told(t *testing.T) (*tracetest.InMemoryExporter, func(*runner.Config)) {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	to, warnings := telemetry.Open(t.Context(), telemetry.Config{Spans: sdktrace.NewSimpleSpanProcessor(spans)})
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	t.Cleanup(func() {
		if err := to.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return spans, func(c *runner.Config) { c.Telemetry = to }
}

// tree writes spans as a tree, a line each, with the attributes named.
func tree(spans tracetest.SpanStubs, keys ...string) string {
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	var b strings.Builder
	var write func(parent string, depth int)
	write = func(parent string, depth int) {
		for _, s := range spans {
			at := ""
			if s.Parent.IsValid() && slices.ContainsFunc(spans, func(o tracetest.SpanStub) bool { return o.SpanContext.SpanID() == s.Parent.SpanID() }) {
				at = s.Parent.SpanID().String()
			}
			if at != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s (%s)", strings.Repeat("  ", depth), s.Name, s.SpanKind)
			for _, key := range keys {
				for _, a := range s.Attributes {
					if string(a.Key) == key {
						fmt.Fprintf(&b, " %s", a.Value.String())
					}
				}
			}
			b.WriteString("\n")
			write(s.SpanContext.SpanID().String(), depth+1)
		}
	}
	write("", 0)
	return b.String()
}

// A run is a tree of spans: the crew, its agents, and the turns and calls of each.
func TestSpansOfARun(t *testing.T) {
	spans, tell := told(t)
	turns := 0
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: openai, model: gpt-5 }\n" + echoServer,
		"crew.yaml":     oneTask,
	}, tell, with(modelFunc(func(llm.Request) *llm.Response {
		if turns++; turns == 1 {
			return calls(llm.ToolCall{ID: "c1", Name: "echo", Arguments: `{"id":1}`})
		}
		return answer("Echoed.")
	})))
	inputs := crew.Inputs{"word": "tide"}
	if _, err := r.host.Run(t.Context(), r.crew(inputs), inputs); err != nil {
		t.Fatal(err)
	}
	want := `invoke_workflow One (internal)
  invoke_agent one (internal) only
    chat gpt-5 (client) openai
    execute_tool echo (internal) c1 tools/call pipe standard
    chat gpt-5 (client) openai
`
	got := tree(spans.GetSpans(), "crewhost.task", "gen_ai.provider.name", "gen_ai.tool.call.id", "mcp.method.name", "network.transport", "crewhost.mcp.server")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A call goes through a chain of hosts in one trace, in each era, also where a host
// between tells of nothing.
func TestOneTraceThroughHosts(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			innerSpans, tellInner := told(t)
			inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, "echo"] } }
  served: { demo: { tools: ["mcp__standard__*"] } }
permissions: { default: allow }
`}, tellInner)
			middle := open(t, map[string]string{"crewhost.yaml": fmt.Sprintf(`
mcp:
  servers: { inner: { url: %q, protocol: %s, required: true } }
  served: { demo: { tools: [echo] } }
permissions: { default: allow }
`, inner.listen(t), era)})
			outerSpans, tellOuter := told(t)
			outer := behind(t, middle.listen(t), era, tellOuter)
			if _, failed := said(t, outer, "echo", `{"id":1}`); failed {
				t.Fatal("the call failed")
			}
			out, in := outerSpans.GetSpans(), innerSpans.GetSpans()
			if got := tree(out, "network.transport"); got != "execute_tool echo (internal) tcp\n" {
				t.Errorf("outer:\n%s", got)
			}
			if got := tree(in, "mcp.protocol.version", "network.transport"); !strings.HasPrefix(got, "tools/call echo (server) 202") || !strings.Contains(got, "\n  execute_tool echo (internal) 202") {
				t.Errorf("inner:\n%s", got)
			}
			if len(out) == 0 || len(in) == 0 {
				t.Fatal("nothing was told")
			}
			var server tracetest.SpanStub
			for _, s := range in {
				if s.SpanContext.TraceID() != out[0].SpanContext.TraceID() {
					t.Errorf("%s is of another trace", s.Name)
				}
				if s.Name == "tools/call echo" {
					server = s
				}
			}
			if server.Parent.SpanID() != out[0].SpanContext.SpanID() || !server.Parent.IsRemote() {
				t.Errorf("the parent of %s is %v", server.Name, server.Parent)
			}
		})
	}
}

// How long calls took and servers were connected is measured, also of those that are
// closed with the host.
func TestMetricsOfARun(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	to, _ := telemetry.Open(t.Context(), telemetry.Config{Reader: reader})
	r := open(t, map[string]string{"crewhost.yaml": echoServer}, func(c *runner.Config) { c.Telemetry = to })
	if _, failed := said(t, r.host, "echo", `{"id":1}`); failed {
		t.Fatal("the call failed")
	}
	if err := r.host.Close(); err != nil {
		t.Fatal(err)
	}
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			names = append(names, m.Name)
		}
	}
	slices.Sort(names)
	if want := []string{"mcp.client.operation.duration", "mcp.client.session.duration"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if err := to.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Off, nothing is told, and nothing stands around models or tools for it.
func BenchmarkRunTold(b *testing.B) {
	for _, on := range []bool{false, true} {
		b.Run(fmt.Sprintf("on=%v", on), func(b *testing.B) {
			var to *telemetry.Telemetry
			if on {
				to, _ = telemetry.Open(b.Context(), telemetry.Config{Spans: sdktrace.NewSimpleSpanProcessor(tracetest.NewNoopExporter())})
				defer func() { _ = to.Close(b.Context()) }()
			}
			m := to.Model(modelFunc(func(llm.Request) *llm.Response { return answer("yes") }), "openai", "m")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Generate(b.Context(), llm.Request{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
