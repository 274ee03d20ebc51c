package wire

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace"
)

func TestTraceGoesThrough(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, tt := range []struct {
		name string
		meta map[string]any
		want map[string]string
	}{
		{"nothing", nil, nil},
		{"all", map[string]any{"traceparent": parent, "tracestate": "a=1", "baggage": "k=v"}, map[string]string{"traceparent": parent, "tracestate": "a=1", "baggage": "k=v"}},
		{"a parent alone", map[string]any{"traceparent": parent}, map[string]string{"traceparent": parent}},
		{"no parent", map[string]any{"tracestate": "a=1", "baggage": "k=v"}, nil},
		{"no text", map[string]any{"traceparent": 7}, nil},
		{"nonsense", map[string]any{"traceparent": "00-xyz"}, nil},
		{"zeros", map[string]any{"traceparent": "00-00000000000000000000000000000000-b7ad6b7169203331-01"}, nil},
		{"a state that is none", map[string]any{"traceparent": parent, "tracestate": "\x00"}, map[string]string{"traceparent": parent}},
		{"baggage that is too much", map[string]any{"traceparent": parent, "baggage": "k=" + strings.Repeat("v", 9<<10)}, map[string]string{"traceparent": parent}},
	} {
		if diff := cmp.Diff(tt.want, Trace(WithTrace(t.Context(), tt.meta))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	// What can't be read does not take away what is there.
	ctx := WithTrace(t.Context(), map[string]any{"traceparent": parent})
	if after := WithTrace(ctx, map[string]any{"traceparent": "x"}); !trace.SpanContextFromContext(after).Equal(trace.SpanContextFromContext(ctx)) {
		t.Error("nonsense ended a trace")
	}
}

func FuzzWithTrace(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1,b=2", "k=v;p=1,x=%20")
	f.Fuzz(func(t *testing.T, parent, state, baggage string) {
		out := Trace(WithTrace(t.Context(), map[string]any{"traceparent": parent, "tracestate": state, "baggage": baggage}))
		for _, v := range out {
			if strings.ContainsAny(v, "\r\n\x00") {
				t.Errorf("%q", v)
			}
		}
	})
}
