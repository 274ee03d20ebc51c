package runner_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
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
			if got := tree(out, "network.transport", "jsonrpc.request.id"); !regexp.MustCompile(`^execute_tool echo \(internal\) tcp \d+\n$`).MatchString(got) {
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

// Work that an agent hands to a coworker is a span of that one, within the call.
func TestSpansOfCoworkers(t *testing.T) {
	spans, tell := told(t)
	r := open(t, map[string]string{
		"crewhost.yaml": "llm: { provider: openai, model: gpt-5 }\n",
		"crew.yaml": `
name: Harbour
goal: Answer ships
agents: { clerk: { goal: Answer }, pilot: { goal: Find the way } }
tasks: { reply: { description: Answer the ship., expectedOutput: An hour, agent: clerk } }
`,
	}, tell, with(modelFunc(func(req llm.Request) *llm.Response {
		if strings.HasPrefix(req.System, "You are clerk.") && len(req.Messages) == 1 {
			return calls(llm.ToolCall{ID: "c1", Name: "ask_question_to_coworker", Arguments: `{"question":"When?","coworker_role":"pilot"}`})
		}
		return answer("At two.")
	})))
	if _, err := r.host.Run(t.Context(), r.crew(nil), nil); err != nil {
		t.Fatal(err)
	}
	want := `invoke_workflow Harbour (internal)
  invoke_agent clerk (internal) reply
    chat gpt-5 (client)
    execute_tool ask_question_to_coworker (internal)
      invoke_agent pilot (internal) reply
        chat gpt-5 (client)
    chat gpt-5 (client)
`
	if diff := cmp.Diff(want, tree(spans.GetSpans(), "crewhost.task")); diff != "" {
		t.Error(diff)
	}
}

// measuredOfMCP are the points of the MCP metrics, a line each: the metric, and the
// attributes named.
func measuredOfMCP(t *testing.T, reader *sdkmetric.ManualReader, keys ...attribute.Key) []string {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			points, ok := m.Data.(metricdata.Histogram[float64])
			if !ok || !strings.HasPrefix(m.Name, "mcp.") {
				continue
			}
			for _, p := range points.DataPoints {
				line := m.Name
				for _, key := range keys {
					if v, ok := p.Attributes.Value(key); ok {
						line += " " + v.String()
					}
				}
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// What servers were asked and how long they were connected is measured, as they are
// really spoken to, also of those that are closed with the host; and so are the sessions
// of clients.
func TestMetricsOfMCP(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			innerReader, outerReader := sdkmetric.NewManualReader(), sdkmetric.NewManualReader()
			var all []*telemetry.Telemetry
			tell := func(reader sdkmetric.Reader) func(*runner.Config) {
				to, _ := telemetry.Open(t.Context(), telemetry.Config{Reader: reader})
				all = append(all, to)
				return func(c *runner.Config) { c.Telemetry = to }
			}
			t.Run("call", func(t *testing.T) { // its end closes all
				inner := open(t, map[string]string{"crewhost.yaml": `
mcp:
  servers: { standard: { command: "${SERVER}", args: [mcptest-server, standard, -tools, echo] } }
  served: { demo: { tools: ["mcp__standard__*"] } }
permissions: { default: allow }
`}, tell(innerReader))
				outer := behind(t, inner.listen(t), era, tell(outerReader))
				if _, failed := said(t, outer, "echo", `{"id":1}`); failed {
					t.Fatal("the call failed")
				}
			})
			version, hello := "2025-11-25", "initialize"
			if era == "modern" {
				version, hello = "2026-07-28", "server/discover"
			}
			keys := []attribute.Key{"mcp.method.name", "network.transport", "mcp.protocol.version", "error.type"}
			got := measuredOfMCP(t, outerReader, keys...)
			for _, want := range []string{
				"mcp.client.operation.duration " + hello + " tcp",
				"mcp.client.operation.duration tools/list tcp " + version,
				"mcp.client.operation.duration tools/call tcp " + version,
				"mcp.client.session.duration tcp " + version,
			} {
				if !slices.Contains(got, want) {
					t.Errorf("no %q in %q", want, got)
				}
			}
			got = measuredOfMCP(t, innerReader, keys...)
			if want := "mcp.server.session.duration tcp"; slices.Contains(got, want) != (era == "legacy") {
				t.Errorf("%q in %q", want, got)
			}
			if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "mcp.client.session.duration pipe 202") }) {
				t.Errorf("no session through pipes in %q", got)
			}
			for _, to := range all {
				if err := to.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
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
