package telemetry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// settings are what the variables say.
type settings struct {
	traces, metrics signal
	resource        []attribute.KeyValue
	sampler         sdktrace.Sampler
	content         bool // that of messages and calls is told

	batchDelay   time.Duration
	batchTimeout time.Duration
	batchQueue   int
	batchSize    int
	interval     time.Duration
	delta        bool
	warnings     []string
}

// signal is how one of the two is exported.
type signal struct {
	exporter string // otlp, console, or none
	endpoint string
	headers  map[string]string // secrets, as far as they are known
	timeout  time.Duration
	gzip     bool
	tls      *tls.Config // nil: the system's
}

// The exporters.
const (
	exportNone    = "none"
	exportOTLP    = "otlp"
	exportConsole = "console"
)

const defaultEndpoint = "http://localhost:4318"

// environment looks variables up. Empty ones are as if they were not set.
type environment struct {
	values   map[string]string
	warnings *[]string
}

func (e environment) get(name string) string { return e.values[name] }

func (e environment) warn(format string, args ...any) {
	*e.warnings = append(*e.warnings, fmt.Sprintf(format, args...))
}

func environmentOf(environ []string, warnings *[]string) environment {
	e := environment{map[string]string{}, warnings}
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if _, twice := e.values[name]; ok && !twice && strings.TrimSpace(value) != "" {
			e.values[name] = strings.TrimSpace(value)
		}
	}
	return e
}

// number reads a whole number that is not negative, such as milliseconds.
func (e environment) number(name string, otherwise int) int {
	text := e.get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<30 {
		e.warn("%s is no number that can be used: %d is", name, otherwise)
		return otherwise
	}
	return n
}

func (e environment) millis(name string, otherwise time.Duration) time.Duration {
	return time.Duration(e.number(name, int(otherwise.Milliseconds()))) * time.Millisecond
}

// read reads the variables. Nothing is on where they don't ask for it.
func read(environ []string) settings {
	var s settings
	e := environmentOf(environ, &s.warnings)
	if strings.EqualFold(e.get("OTEL_SDK_DISABLED"), "true") {
		return settings{}
	}
	s.traces, s.metrics = e.signal("TRACES", "v1/traces"), e.signal("METRICS", "v1/metrics")
	if !s.on() {
		return s
	}
	if logs := e.get("OTEL_LOGS_EXPORTER"); logs != "" && logs != exportNone {
		e.warn("OTEL_LOGS_EXPORTER is %s: logs are not exported; --log-format json writes them with their trace_id", logs)
	}
	for p := range strings.SplitSeq(e.get("OTEL_PROPAGATORS"), ",") {
		if p = strings.TrimSpace(p); p != "" && p != "tracecontext" && p != "baggage" {
			e.warn("OTEL_PROPAGATORS names %s: tracecontext and baggage are spoken", p)
		}
	}
	s.resource = e.resource()
	s.sampler = e.sampler()
	switch capture := e.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"); strings.ToLower(capture) {
	case "true", "span_only", "span_and_event":
		s.content = true
	case "", "false", "no_content":
	case "event_only":
		e.warn("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is event_only: content is told in spans, or not at all")
	default:
		e.warn("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT is neither true nor false: no content is told")
	}
	s.batchDelay = e.millis("OTEL_BSP_SCHEDULE_DELAY", 5*time.Second)
	s.batchTimeout = e.millis("OTEL_BSP_EXPORT_TIMEOUT", 30*time.Second)
	s.batchQueue = max(e.number("OTEL_BSP_MAX_QUEUE_SIZE", 2048), 1)
	s.batchSize = min(max(e.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), 1), s.batchQueue)
	s.interval = max(e.millis("OTEL_METRIC_EXPORT_INTERVAL", time.Minute), time.Millisecond)
	switch preference := strings.ToLower(e.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")); preference {
	case "delta", "lowmemory": // the same of histograms
		s.delta = true
	case "", "cumulative":
	default:
		e.warn("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE is none of cumulative, delta and lowmemory: cumulative is")
	}
	return s
}

func (s settings) on() bool { return s.traces.on() || s.metrics.on() }

func (s signal) on() bool { return s.exporter == exportOTLP || s.exporter == exportConsole }

// signal reads what concerns one signal: its own variables go before those of both.
func (e environment) signal(name, path string) signal {
	own := func(suffix string) string {
		if v := e.get("OTEL_EXPORTER_OTLP_" + name + "_" + suffix); v != "" {
			return v
		}
		return e.get("OTEL_EXPORTER_OTLP_" + suffix)
	}
	s := signal{exporter: exportNone}
	at := e.get("OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT")
	base := e.get("OTEL_EXPORTER_OTLP_ENDPOINT")
	switch exporter := strings.ToLower(e.get("OTEL_" + name + "_EXPORTER")); exporter {
	case "":
		if at != "" || base != "" {
			s.exporter = exportOTLP
		}
	case exportOTLP, exportConsole, exportNone:
		s.exporter = exporter
	default:
		e.warn("OTEL_%s_EXPORTER is %s: it takes otlp, console and none, and nothing is exported", name, exporter)
	}
	if s.exporter != exportOTLP {
		return s
	}
	switch protocol := strings.ToLower(own("PROTOCOL")); protocol {
	case "", "http/json":
	case "http/protobuf":
		e.warn("the protocol http/protobuf is not spoken: %s go out as http/json, which collectors take at the same address", strings.ToLower(name))
	default:
		e.warn("the protocol %s is not spoken, only http/json: no %s are exported", protocol, strings.ToLower(name))
		s.exporter = exportNone
		return s
	}
	if at == "" {
		if base == "" {
			base = defaultEndpoint
		}
		if u, err := url.Parse(base); err == nil {
			at = u.JoinPath(path).String()
		}
	}
	u, err := url.Parse(at)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		e.warn("the endpoint of %s is no http or https URL: nothing is exported", strings.ToLower(name))
		s.exporter = exportNone
		return s
	}
	s.endpoint = at
	s.headers = e.headers(own("HEADERS"))
	s.timeout = 10 * time.Second
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_" + name + "_TIMEOUT"} {
		s.timeout = e.millis(variable, s.timeout)
	}
	switch compression := own("COMPRESSION"); compression {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		e.warn("the compression %s is not known, only gzip: %s go out as they are", compression, strings.ToLower(name))
	}
	if s.tls, err = trust(own("CERTIFICATE"), own("CLIENT_CERTIFICATE"), own("CLIENT_KEY")); err != nil {
		e.warn("no %s are exported: %v", strings.ToLower(name), err)
		s.exporter = exportNone
	}
	return s
}

// headers reads key=value pairs, as in W3C's baggage. What is wrong is not shown: it
// may be a key of the collector's.
func (e environment) headers(text string) map[string]string {
	headers := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key = strings.TrimSpace(key)
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || err != nil || !isToken(key) || strings.ContainsAny(plain, "\r\n\x00") {
			e.warn("OTEL_EXPORTER_OTLP_HEADERS holds a pair that can't be read, which is left out")
			continue
		}
		headers[key] = plain
	}
	return headers
}

// isToken reports whether a name can be that of a header.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
	})
}

// resource is what the spans and metrics are of.
func (e environment) resource() []attribute.KeyValue {
	values := map[string]string{}
	for pair := range strings.SplitSeq(e.get("OTEL_RESOURCE_ATTRIBUTES"), ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			e.warn("OTEL_RESOURCE_ATTRIBUTES holds a pair that can't be read, which is left out")
			continue
		}
		values[key] = plain
	}
	if name := e.get("OTEL_SERVICE_NAME"); name != "" {
		values[string(attrService)] = name
	}
	if values[string(attrService)] == "" {
		values[string(attrService)] = "crewhost"
	}
	var attrs []attribute.KeyValue
	for key, value := range values {
		attrs = append(attrs, attribute.String(key, value))
	}
	slices.SortFunc(attrs, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return attrs
}

// sampler is which runs are traced; the default is all that nobody upstream left out.
func (e environment) sampler() sdktrace.Sampler {
	ratio := func() sdktrace.Sampler {
		text := e.get("OTEL_TRACES_SAMPLER_ARG")
		if text == "" {
			return sdktrace.TraceIDRatioBased(1)
		}
		r, err := strconv.ParseFloat(text, 64)
		if err != nil || !(r >= 0 && r <= 1) {
			e.warn("OTEL_TRACES_SAMPLER_ARG is no number from 0 to 1: 1 is")
			r = 1
		}
		return sdktrace.TraceIDRatioBased(r)
	}
	all := sdktrace.ParentBased(sdktrace.AlwaysSample())
	switch name := strings.ToLower(e.get("OTEL_TRACES_SAMPLER")); name {
	case "", "parentbased_always_on":
		return all
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return ratio()
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(ratio())
	default:
		e.warn("OTEL_TRACES_SAMPLER is %s, which is not known: parentbased_always_on is", name)
		return all
	}
}

// trust is whom a collector is known by, and what this program shows it.
func trust(ca, cert, key string) (*tls.Config, error) {
	if ca == "" && cert == "" && key == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("reading the collector's certificate: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("the file of the collector's certificate holds none")
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, errors.New("the client's certificate and its key can't be read")
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
