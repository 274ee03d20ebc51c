package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel/trace"
)

// Logs is h with the trace of each record: trace_id and span_id of its context, or the
// trace of the run that is under way where there is but one. Where t is off it is h
// itself.
func (t *Telemetry) Logs(h slog.Handler) slog.Handler {
	if t == nil {
		return h
	}
	return traceHandler{h, t}
}

type traceHandler struct {
	slog.Handler
	of *Telemetry
}

// Handle implements [slog.Handler].
func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if c := trace.SpanContextFromContext(ctx); c.IsValid() {
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()), slog.String("span_id", c.SpanID().String()))
	} else if c := h.of.only(); c.IsValid() {
		r.AddAttrs(slog.String("trace_id", c.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (h traceHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(attrs), h.of}
}

// WithGroup implements [slog.Handler].
func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name), h.of}
}

// only is the run that is under way, where it is the only one.
func (t *Telemetry) only() trace.SpanContext {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.runs) != 1 {
		return trace.SpanContext{}
	}
	return t.runs[0]
}
