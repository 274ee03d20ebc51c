package telemetry

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/net/http/httpproxy"
)

// Config is what telemetry is made of. Environ decides whether there is any.
type Config struct {
	Environ []string // NAME=value, with the OTEL_* variables
	Version string   // of the program
	// Redact masks secrets in what is told; nil: it is told as it is.
	Redact func(string) string
	// Warn is told, in a line, of what can't be exported, while the program runs; nil
	// drops it.
	Warn func(string)
	// Console takes what the console exporters write; nil: none are.
	Console io.Writer

	// Spans and Reader, for tests, take the place of the exporters that Environ names.
	Spans  sdktrace.SpanProcessor
	Reader sdkmetric.Reader
}

// Telemetry tells spans and metrics. A nil one is off. It is safe for concurrent use.
type Telemetry struct {
	redact  func(string) string
	content bool
	parent  trace.SpanContext // of who started the program; not valid: nobody said

	tracer  trace.Tracer
	spans   *sdktrace.TracerProvider
	metrics *sdkmetric.MeterProvider
	senders []*sender

	model, client, clientSession, server, serverSession metric.Float64Histogram
	tokens                                              metric.Int64Histogram

	mu   sync.Mutex
	runs []trace.SpanContext // that are under way
}

// Secrets are the values of variables that hold credentials of a collector, which
// nothing that the program writes may show. They are there whether telemetry is on or
// not.
func Secrets(environ []string) []string {
	var warnings, secrets []string
	e := environmentOf(environ, &warnings)
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"} {
		if text := e.get(name); text != "" {
			secrets = append(secrets, text)
			for _, value := range e.headers(text) {
				secrets = append(secrets, value)
				if _, credential, ok := cutScheme(value); ok {
					secrets = append(secrets, credential)
				}
			}
		}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"} {
		secrets = append(secrets, credentialsIn(e.get(name))...)
	}
	return secrets
}

const scope = "crewhost"

// Open makes what the variables ask for, or nil where they ask for nothing. Warnings
// say what of them can't be had, a line each.
func Open(ctx context.Context, cfg Config) (t *Telemetry, warnings []string) {
	s := read(cfg.Environ)
	if !s.on() && cfg.Spans == nil && cfg.Reader == nil {
		return nil, s.warnings
	}
	if s.sampler == nil {
		s.sampler = sdktrace.ParentBased(sdktrace.AlwaysSample())
	}
	t = &Telemetry{redact: cfg.Redact, content: s.content}
	if t.redact == nil {
		t.redact = func(text string) string { return text }
	}
	warn := cfg.Warn
	if warn == nil {
		warn = func(string) {}
	}
	proxy := proxyOf(cfg.Environ)
	masked := func(line string) { warn(t.redact(line)) }
	attrs := append([]attribute.KeyValue{}, s.resource...)
	attrs = append(attrs, attrServiceVersion.String(cfg.Version),
		attribute.String("telemetry.sdk.name", "opentelemetry"), attribute.String("telemetry.sdk.language", "go"))
	res := resource.NewSchemaless(attrs...)

	limits := sdktrace.SpanLimits{
		AttributeValueLengthLimit: maxValue, AttributeCountLimit: 128, EventCountLimit: 128, LinkCountLimit: 128,
		AttributePerEventCountLimit: 128, AttributePerLinkCountLimit: 128,
	}
	tracing := []sdktrace.TracerProviderOption{sdktrace.WithResource(res), sdktrace.WithSampler(s.sampler), sdktrace.WithRawSpanLimits(limits)}
	measuring := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter)}
	if out := t.sender("spans", s.traces, cfg.Console, proxy, masked); out != nil {
		tracing = append(tracing, sdktrace.WithBatcher(spanExporter{out},
			sdktrace.WithBatchTimeout(s.batchDelay), sdktrace.WithExportTimeout(s.batchTimeout),
			sdktrace.WithMaxQueueSize(s.batchQueue), sdktrace.WithMaxExportBatchSize(s.batchSize)))
	}
	if out := t.sender("metrics", s.metrics, cfg.Console, proxy, masked); out != nil {
		measuring = append(measuring, sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{out, s.delta},
			sdkmetric.WithInterval(s.interval), sdkmetric.WithTimeout(30*time.Second))))
	}
	if cfg.Spans != nil {
		tracing = append(tracing, sdktrace.WithSpanProcessor(cfg.Spans))
	}
	if cfg.Reader != nil {
		measuring = append(measuring, sdkmetric.WithReader(cfg.Reader))
	}
	t.spans, t.metrics = sdktrace.NewTracerProvider(tracing...), sdkmetric.NewMeterProvider(measuring...)
	t.tracer = t.spans.Tracer(scope, trace.WithInstrumentationVersion(cfg.Version))
	if err := t.instruments(cfg.Version); err != nil {
		s.warnings = append(s.warnings, fmt.Sprintf("telemetry: %v", err)) // names that are constants are good
	}
	t.parent = upstream(ctx, cfg.Environ)
	return t, s.warnings
}

// maxValue is how long a text in a span may be, in bytes.
const maxValue = 64 << 10

// upstream is the trace that the program was started in, as CI servers and shells hand
// it on: TRACEPARENT and TRACESTATE.
func upstream(ctx context.Context, environ []string) trace.SpanContext {
	var warnings []string
	e := environmentOf(environ, &warnings)
	carrier := propagation.MapCarrier{"traceparent": e.get("TRACEPARENT"), "tracestate": e.get("TRACESTATE")}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, carrier))
}

// proxyOf is the proxy that the variables of the program name (HTTPS_PROXY, NO_PROXY).
func proxyOf(environ []string) func(*http.Request) (*url.URL, error) {
	var warnings []string
	e := environmentOf(environ, &warnings)
	either := func(name string) string { return cmp.Or(e.get(name), e.get(strings.ToLower(name))) }
	find := (&httpproxy.Config{HTTPProxy: either("HTTP_PROXY"), HTTPSProxy: either("HTTPS_PROXY"), NoProxy: either("NO_PROXY")}).ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return find(r.URL) }
}

// sender is what a signal goes out by, or nil where it doesn't.
func (t *Telemetry) sender(what string, s signal, console io.Writer, proxy func(*http.Request) (*url.URL, error), warn func(string)) *sender {
	out := &sender{what: what, signal: s, console: console, warn: warn, over: make(chan struct{})}
	switch s.exporter {
	case exportOTLP:
		transport := &http.Transport{
			Proxy: proxy, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: time.Minute,
			TLSHandshakeTimeout: 10 * time.Second, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		}
		if s.tls != nil {
			transport.TLSClientConfig = s.tls
		}
		out.client = &http.Client{
			Transport: transport,
			// A redirect would carry the collector's key elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	case exportConsole:
		if console == nil {
			return nil
		}
	default:
		return nil
	}
	t.senders = append(t.senders, out)
	return out
}

func (t *Telemetry) instruments(version string) error {
	meter := t.metrics.Meter(scope, metric.WithInstrumentationVersion(version))
	var errs []error
	seconds := func(name, about string, bounds []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about), metric.WithExplicitBucketBoundaries(bounds...))
		errs = append(errs, err)
		return h
	}
	t.model = seconds(metricModel, "How long models took to answer", boundsOfModels())
	t.client = seconds(metricClient, "How long requests to MCP servers took", boundsOfMCP())
	t.clientSession = seconds(metricClientSession, "How long MCP servers were connected", boundsOfMCP())
	t.server = seconds(metricServer, "How long calls by MCP clients took", boundsOfMCP())
	t.serverSession = seconds(metricServerSession, "How long MCP clients were connected", boundsOfMCP())
	tokens, err := meter.Int64Histogram(metricTokens, metric.WithUnit("{token}"), metric.WithDescription("Tokens of an answer"),
		metric.WithExplicitBucketBoundaries(boundsOfTokens()...))
	t.tokens = tokens
	return errors.Join(append(errs, err)...)
}

// closing bounds the last export.
const closing = 5 * time.Second

// Close exports what there is, for five seconds at most, and ends what t does beside
// the program. An error says that something was lost; it is worth a warning. The end
// of ctx does not cut it short: a run that was interrupted is told of, too.
func (t *Telemetry) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var errs [2]error
	var ending sync.WaitGroup
	ending.Go(func() { errs[0] = t.spans.Shutdown(ctx) })
	ending.Go(func() { errs[1] = t.metrics.Shutdown(ctx) })
	late := time.AfterFunc(closing, func() {
		for _, s := range t.senders {
			s.giveUp()
		}
	})
	ending.Wait()
	late.Stop()
	for _, s := range t.senders {
		errs[1] = errors.Join(errs[1], s.finish())
	}
	return errors.Join(errs[0], errs[1])
}
