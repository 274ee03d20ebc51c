package wire

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Requests carry the trace that they are part of in their _meta, by the names of W3C
// (SEP-414). Whether this program tells spans of its own doesn't matter: a trace that
// came in goes out again with what is asked of others on its behalf.

const (
	keyParent  = "traceparent"
	keyState   = "tracestate"
	keyBaggage = "baggage"

	maxBaggage = 8 << 10 // bytes, as W3C has it
)

// Trace returns the members of _meta that carry the trace of ctx, or nil where it is
// in none.
func Trace(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	propagation.Baggage{}.Inject(ctx, carrier)
	if len(carrier[keyBaggage]) > maxBaggage {
		delete(carrier, keyBaggage)
	}
	return carrier
}

// WithTrace returns a context in the trace that a request's _meta carries. What can't
// be read of it is as if it were not there.
func WithTrace(ctx context.Context, meta map[string]any) context.Context {
	parent, ok := meta[keyParent].(string)
	if !ok {
		return ctx
	}
	carrier := propagation.MapCarrier{keyParent: parent}
	if state, ok := meta[keyState].(string); ok {
		carrier[keyState] = state
	}
	in := propagation.TraceContext{}.Extract(ctx, carrier)
	if !trace.SpanContextFromContext(in).IsRemote() {
		return ctx
	}
	if baggage, ok := meta[keyBaggage].(string); ok && len(baggage) <= maxBaggage {
		in = propagation.Baggage{}.Extract(in, propagation.MapCarrier{keyBaggage: baggage})
	}
	return in
}
