package telemetry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSettings(t *testing.T) {
	for _, tt := range []struct {
		name            string
		environ         []string
		traces, metrics string // exporter and endpoint
		warnings        int
	}{
		{"nothing", nil, "none ", "none ", 0},
		{"one endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example:4318/base/"}, "otlp https://c.example:4318/base/v1/traces", "otlp https://c.example:4318/base/v1/metrics", 0},
		{"its own endpoint is taken as it is", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c.example/x"}, "otlp http://c.example/x", "none ", 0},
		{"the default endpoint", []string{"OTEL_TRACES_EXPORTER=otlp"}, "otlp http://localhost:4318/v1/traces", "none ", 0},
		{"metrics alone", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c.example", "OTEL_TRACES_EXPORTER=none"}, "none ", "otlp http://c.example/v1/metrics", 0},
		{"console", []string{"OTEL_TRACES_EXPORTER=console"}, "console ", "none ", 0},
		{"off", []string{"OTEL_SDK_DISABLED=true", "OTEL_EXPORTER_OTLP_ENDPOINT=http://c.example"}, " ", " ", 0},
		{"jaeger", []string{"OTEL_TRACES_EXPORTER=jaeger"}, "none ", "none ", 1},
		{"grpc", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "none ", "none ", 1},
		{"protobuf", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"}, "otlp http://localhost:4318/v1/traces", "none ", 1},
		{"no URL", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector:4317"}, "none ", "none ", 1},
		{"numbers", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TIMEOUT=soon", "OTEL_BSP_MAX_QUEUE_SIZE=-1", "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=7"}, "otlp http://localhost:4318/v1/traces", "none ", 3},
		{"words", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_TRACES_SAMPLER=sometimes", "OTEL_PROPAGATORS=b3,baggage", "OTEL_LOGS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=maybe"}, "otlp http://localhost:4318/v1/traces", "none ", 5},
		{"headers", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_HEADERS=a=b,s3cret,c=%zz,bad name=x,d=%0a"}, "otlp http://localhost:4318/v1/traces", "none ", 4},
		{"certificates", []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_CERTIFICATE=/nowhere"}, "none ", "none ", 1},
	} {
		s := read(tt.environ)
		if got := s.traces.exporter + " " + s.traces.endpoint; got != tt.traces && !(s.traces.exporter == exportNone && tt.traces == "none ") {
			t.Errorf("%s: traces %q, want %q", tt.name, got, tt.traces)
		}
		if got := s.metrics.exporter + " " + s.metrics.endpoint; got != tt.metrics && !(s.metrics.exporter == exportNone && tt.metrics == "none ") {
			t.Errorf("%s: metrics %q, want %q", tt.name, got, tt.metrics)
		}
		if len(s.warnings) != tt.warnings {
			t.Errorf("%s: warnings %q, want %d", tt.name, s.warnings, tt.warnings)
		}
		if all := strings.Join(s.warnings, ""); strings.Contains(all, "s3cret") {
			t.Errorf("%s: a header shows: %s", tt.name, all)
		}
	}
}

// transport is a network of one function.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, after string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"Retry-After": {after}}, Body: io.NopCloser(strings.NewReader(""))}
}

func senderOver(f transport, timeout time.Duration, warn func(string)) *sender {
	return &sender{
		what: "spans", signal: signal{endpoint: "http://c.example", timeout: timeout}, client: &http.Client{Transport: f}, warn: warn, over: make(chan struct{}),
	}
}

// What may get through later is sent again, as the collector asks, and within the
// timeout.
func TestSenderRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		warn := func(line string) { lines = append(lines, line) }
		began, requests := time.Now(), 0
		s := senderOver(func(*http.Request) (*http.Response, error) {
			requests++
			switch requests {
			case 1:
				return answer(503, "3"), nil
			case 2:
				return nil, errors.New("reset")
			}
			return answer(200, ""), nil
		}, 10*time.Second, warn)
		s.send(t.Context(), otlpTraces{})
		if took := time.Since(began); requests != 3 || took < 4*time.Second || took > 6*time.Second || len(lines) > 0 {
			t.Errorf("%d requests in %v, %q", requests, took, lines)
		}

		requests = 0
		s = senderOver(func(*http.Request) (*http.Response, error) { requests++; return answer(429, "60"), nil }, 10*time.Second, warn)
		s.send(t.Context(), otlpTraces{})
		s.send(t.Context(), otlpTraces{})
		if requests != 2 || len(lines) != 1 || !strings.Contains(lines[0], "429") {
			t.Errorf("%d requests, %q", requests, lines)
		}
		if err := s.finish(); err == nil {
			t.Error("what was lost last is not said")
		}
	})
}

// The end waits for five seconds at most, however silent the collector is.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, _ := Open(t.Context(), Config{Environ: []string{"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_TIMEOUT=60000"}})
		for _, s := range to.senders {
			s.client.Transport = transport(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
		}
		ctx, end := to.Crew(t.Context(), "c", "")
		_ = ctx
		end(nil)
		gone, cancel := context.WithCancel(t.Context())
		cancel() // a run that was interrupted is told of, too
		began := time.Now()
		if err := to.Close(gone); err == nil {
			t.Error("what was lost is not said")
		}
		if took := time.Since(began); took != closing {
			t.Errorf("it took %v", took)
		}
	})
}
