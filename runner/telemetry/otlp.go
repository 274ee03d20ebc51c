package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// OTLP in JSON: ids are hex, 64-bit numbers are strings, enumerations are numbers.

type otlpResource struct {
	Attributes []otlpAttr `json:"attributes"`
}

type otlpScope struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

type otlpAttr struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

// otlpValue has one of its fields.
type otlpValue struct {
	String *string    `json:"stringValue,omitempty"`
	Int    *string    `json:"intValue,omitempty"`
	Double *float64   `json:"doubleValue,omitempty"`
	Bool   *bool      `json:"boolValue,omitempty"`
	Array  *otlpArray `json:"arrayValue,omitempty"`
}

type otlpArray struct {
	Values []otlpValue `json:"values"`
}

type otlpSpan struct {
	TraceID    string     `json:"traceId"`
	SpanID     string     `json:"spanId"`
	TraceState string     `json:"traceState,omitempty"`
	Parent     string     `json:"parentSpanId,omitempty"`
	Flags      uint32     `json:"flags,omitempty"`
	Name       string     `json:"name"`
	Kind       int        `json:"kind"`
	Start      string     `json:"startTimeUnixNano"`
	End        string     `json:"endTimeUnixNano"`
	Attributes []otlpAttr `json:"attributes,omitempty"`
	Dropped    int        `json:"droppedAttributesCount,omitempty"`
	Status     otlpStatus `json:"status"`
}

type otlpStatus struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

type otlpScopeSpans struct {
	Scope otlpScope  `json:"scope"`
	Spans []otlpSpan `json:"spans"`
}

type otlpResourceSpans struct {
	Resource otlpResource     `json:"resource"`
	Scopes   []otlpScopeSpans `json:"scopeSpans"`
}

type otlpTraces struct {
	Resources []otlpResourceSpans `json:"resourceSpans"`
}

type otlpMetrics struct {
	Resources []otlpResourceMetrics `json:"resourceMetrics"`
}

type otlpResourceMetrics struct {
	Resource otlpResource       `json:"resource"`
	Scopes   []otlpScopeMetrics `json:"scopeMetrics"`
}

type otlpScopeMetrics struct {
	Scope   otlpScope    `json:"scope"`
	Metrics []otlpMetric `json:"metrics"`
}

type otlpMetric struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Unit        string         `json:"unit,omitempty"`
	Histogram   *otlpHistogram `json:"histogram,omitempty"`
}

type otlpHistogram struct {
	Points      []otlpPoint `json:"dataPoints"`
	Temporality int         `json:"aggregationTemporality"` // 1 delta, 2 cumulative
}

type otlpPoint struct {
	Attributes []otlpAttr `json:"attributes,omitempty"`
	Start      string     `json:"startTimeUnixNano"`
	Time       string     `json:"timeUnixNano"`
	Count      string     `json:"count"`
	Sum        float64    `json:"sum"`
	Buckets    []string   `json:"bucketCounts"`
	Bounds     []float64  `json:"explicitBounds"`
	Min        *float64   `json:"min,omitempty"`
	Max        *float64   `json:"max,omitempty"`
}

func valueOf(v attribute.Value) otlpValue {
	list := func(n int, at func(int) otlpValue) otlpValue {
		array := otlpArray{Values: make([]otlpValue, n)}
		for i := range array.Values {
			array.Values[i] = at(i)
		}
		return otlpValue{Array: &array}
	}
	text := func(s string) otlpValue { s = strings.ToValidUTF8(s, "�"); return otlpValue{String: &s} }
	whole := func(n int64) otlpValue { s := strconv.FormatInt(n, 10); return otlpValue{Int: &s} }
	switch v.Type() {
	case attribute.BOOL:
		b := v.AsBool()
		return otlpValue{Bool: &b}
	case attribute.INT64:
		return whole(v.AsInt64())
	case attribute.FLOAT64:
		f := v.AsFloat64()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return text(fmt.Sprint(f))
		}
		return otlpValue{Double: &f}
	case attribute.STRINGSLICE:
		all := v.AsStringSlice()
		return list(len(all), func(i int) otlpValue { return text(all[i]) })
	case attribute.INT64SLICE:
		all := v.AsInt64Slice()
		return list(len(all), func(i int) otlpValue { return whole(all[i]) })
	default:
		return text(v.String())
	}
}

func attrsOf(attrs []attribute.KeyValue) []otlpAttr {
	all := make([]otlpAttr, 0, len(attrs))
	for _, a := range attrs {
		all = append(all, otlpAttr{string(a.Key), valueOf(a.Value)})
	}
	return all
}

func resourceOf(r *resource.Resource) otlpResource {
	if r == nil {
		return otlpResource{Attributes: []otlpAttr{}}
	}
	return otlpResource{attrsOf(r.Attributes())}
}

func scopeOf(s instrumentation.Scope) otlpScope { return otlpScope{s.Name, s.Version} }

func nanos(t time.Time) string {
	if t.IsZero() {
		return "0"
	}
	return strconv.FormatInt(t.UnixNano(), 10)
}

// tracesOf are spans of one program, in the order in which they ended.
func tracesOf(spans []sdktrace.ReadOnlySpan) otlpTraces {
	var doc otlpTraces
	for _, s := range spans {
		c := s.SpanContext()
		traceID, spanID, parent := c.TraceID(), c.SpanID(), s.Parent()
		out := otlpSpan{
			TraceID: hex.EncodeToString(traceID[:]), SpanID: hex.EncodeToString(spanID[:]), TraceState: c.TraceState().String(),
			Flags: uint32(c.TraceFlags()) | 0x100, // whether the parent is another program's is known
			Name:  s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()),
			Attributes: attrsOf(s.Attributes()), Dropped: s.DroppedAttributes(),
		}
		if parent.HasSpanID() {
			id := parent.SpanID()
			out.Parent = hex.EncodeToString(id[:])
			if parent.IsRemote() {
				out.Flags |= 0x200
			}
		}
		switch status := s.Status(); status.Code {
		case codes.Ok:
			out.Status.Code = 1
		case codes.Error:
			out.Status = otlpStatus{2, status.Description}
		}
		if len(doc.Resources) == 0 {
			doc.Resources = []otlpResourceSpans{{Resource: resourceOf(s.Resource()), Scopes: []otlpScopeSpans{{Scope: scopeOf(s.InstrumentationScope())}}}}
		}
		scope := &doc.Resources[0].Scopes[0]
		scope.Spans = append(scope.Spans, out)
	}
	return doc
}

// metricsOf are the histograms of one program; it has no other metrics.
func metricsOf(rm *metricdata.ResourceMetrics) otlpMetrics {
	out := otlpResourceMetrics{Resource: resourceOf(rm.Resource)}
	for _, sm := range rm.ScopeMetrics {
		scope := otlpScopeMetrics{Scope: scopeOf(sm.Scope)}
		for _, m := range sm.Metrics {
			metric := otlpMetric{Name: m.Name, Description: m.Description, Unit: m.Unit}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				metric.Histogram = histogramOf(data)
			case metricdata.Histogram[int64]:
				metric.Histogram = histogramOf(data)
			default:
				continue
			}
			scope.Metrics = append(scope.Metrics, metric)
		}
		if len(scope.Metrics) > 0 {
			out.Scopes = append(out.Scopes, scope)
		}
	}
	return otlpMetrics{[]otlpResourceMetrics{out}}
}

func histogramOf[N int64 | float64](h metricdata.Histogram[N]) *otlpHistogram {
	out := &otlpHistogram{Temporality: 2}
	if h.Temporality == metricdata.DeltaTemporality {
		out.Temporality = 1
	}
	for _, p := range h.DataPoints {
		point := otlpPoint{
			Attributes: attrsOf(p.Attributes.ToSlice()), Start: nanos(p.StartTime), Time: nanos(p.Time),
			Count: strconv.FormatUint(p.Count, 10), Sum: float64(p.Sum), Bounds: p.Bounds,
		}
		for _, n := range p.BucketCounts {
			point.Buckets = append(point.Buckets, strconv.FormatUint(n, 10))
		}
		if least, ok := p.Min.Value(); ok {
			f := float64(least)
			point.Min = &f
		}
		if most, ok := p.Max.Value(); ok {
			f := float64(most)
			point.Max = &f
		}
		out.Points = append(out.Points, point)
	}
	return out
}

// sender sends documents to a collector, or writes them to a console. What can't be
// sent is told to warn, once until something gets through again: nothing of it is an
// error, which the SDK would write to stderr by itself.
type sender struct {
	what    string // spans or metrics
	signal  signal
	client  *http.Client // nil: to the console
	console io.Writer
	warn    func(string)

	over chan struct{} // closed when nobody waits any more
	once sync.Once

	mu   sync.Mutex
	down bool // it was told
	last error
}

// giveUp ends what is being sent.
func (s *sender) giveUp() { s.once.Do(func() { close(s.over) }) }

// ended reports whether nobody waits any more: who closes says then what was lost.
func (s *sender) ended() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// finish closes the connections, and says whether the last of all was lost.
func (s *sender) finish() error {
	s.giveUp()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return nil
	}
	return fmt.Errorf("the last %s were not exported: %w", s.what, s.last)
}

func (s *sender) send(ctx context.Context, doc any) {
	err := s.deliver(ctx, doc)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = err
	switch {
	case err == nil:
		s.down = false
	case !s.down && !s.ended():
		s.down = true
		s.warn(fmt.Sprintf("telemetry: %s were not exported: %v", s.what, err))
	}
}

func (s *sender) deliver(ctx context.Context, doc any) error {
	body, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encoding them: %w", err)
	}
	if s.client == nil {
		_, err := s.console.Write(append(body, '\n'))
		return err
	}
	if s.signal.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.signal.timeout)
		defer cancel()
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-s.over:
			stop()
		case <-sent:
		}
	})
	defer waiting.Wait()
	defer close(sent)
	if s.signal.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		body = b.Bytes()
	}
	for n := 0; ; n++ {
		again, wait, err := s.post(ctx, body)
		if err == nil || !again || n == maxRetries {
			return err
		}
		if wait <= 0 {
			wait = backoff(n)
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) <= wait {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

const (
	maxRetries = 5
	maxAnswer  = 64 << 10 // bytes of a collector's answer that are read
	firstWait  = time.Second
)

// backoff is the wait before a repetition: a second, doubled each time, up to half
// of it left to chance.
func backoff(n int) time.Duration {
	wait := firstWait << n
	return wait/2 + rand.N(wait/2)
}

// post sends a document once. Again says that the same may get through later, and
// wait how long the collector asks to wait, if it does.
func (s *sender) post(ctx context.Context, body []byte) (again bool, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.signal.endpoint, bytes.NewReader(body))
	if err != nil {
		return false, 0, errors.New("the endpoint is no URL")
	}
	req.Header.Set("User-Agent", "OTel-OTLP-Exporter-crewhost")
	for key, value := range s.signal.headers {
		req.Header.Set(key, value)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.signal.gzip {
		req.Header.Set("Content-Encoding", "gzip")
	}
	res, err := s.client.Do(req)
	if err != nil {
		return ctx.Err() == nil, 0, bare(err)
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // what can't be read says nothing
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return false, 0, rejected(answer)
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusBadGateway,
		res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		return true, retryAfter(res.Header.Get("Retry-After")), fmt.Errorf("the collector answers HTTP %d", res.StatusCode)
	default:
		return false, 0, fmt.Errorf("the collector answers HTTP %d", res.StatusCode)
	}
}

// bare is the error of a request without its URL, which may hold a credential.
func bare(err error) error {
	var inner interface{ Unwrap() error }
	if errors.As(err, &inner) {
		if cause := inner.Unwrap(); cause != nil {
			return cause
		}
	}
	return errors.New("the collector can't be reached")
}

// rejected says that the collector took a part only.
func rejected(answer []byte) error {
	var said struct {
		Partial struct {
			Spans   json.RawMessage `json:"rejectedSpans"`
			Points  json.RawMessage `json:"rejectedDataPoints"`
			Message string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(answer, &said) != nil {
		return nil
	}
	n := strings.Trim(string(said.Partial.Spans)+string(said.Partial.Points), `"`)
	if n == "" || n == "0" {
		return nil
	}
	message := []rune(strings.Join(strings.Fields(said.Partial.Message), " "))
	return fmt.Errorf("the collector rejected %s of them: %s", n, string(message[:min(len(message), 200)]))
}

// retryAfter reads seconds or a date.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds >= 0 && seconds < 1<<20 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// spanExporter implements [sdktrace.SpanExporter].
type spanExporter struct{ *sender }

func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if len(spans) > 0 {
		e.send(ctx, tracesOf(spans))
	}
	return nil
}

func (e spanExporter) Shutdown(context.Context) error { return nil }

// metricExporter implements [sdkmetric.Exporter].
type metricExporter struct {
	*sender
	delta bool
}

func (e metricExporter) Temporality(sdkmetric.InstrumentKind) metricdata.Temporality {
	if e.delta {
		return metricdata.DeltaTemporality
	}
	return metricdata.CumulativeTemporality
}

func (e metricExporter) Aggregation(k sdkmetric.InstrumentKind) sdkmetric.Aggregation {
	return sdkmetric.DefaultAggregationSelector(k)
}

func (e metricExporter) Export(ctx context.Context, rm *metricdata.ResourceMetrics) error {
	if doc := metricsOf(rm); len(doc.Resources[0].Scopes) > 0 {
		e.send(ctx, doc)
	}
	return nil
}

func (e metricExporter) ForceFlush(context.Context) error { return nil }
func (e metricExporter) Shutdown(context.Context) error   { return nil }
