package server

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type requestIDKey struct{}

// RequestID returns the id of the HTTP request that ctx belongs to, by which the
// lines of several logs are known to be about one request. It is empty on stdio.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID has the context of a call know its HTTP request. A session's calls
// have the context that the session began with, so that the id comes by a header.
func withRequestID(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if extra := req.GetExtra(); extra != nil && extra.Header != nil {
			ctx = context.WithValue(ctx, requestIDKey{}, extra.Header.Get(headerRequestID))
		}
		return next(ctx, method, req)
	}
}

// requestLog adds to a line whose request it is about, and who sent it.
type requestLog struct{ slog.Handler }

func (l requestLog) Handle(ctx context.Context, line slog.Record) error {
	if id := RequestID(ctx); id != "" {
		line.AddAttrs(slog.String("request", id))
	}
	if name := CallerName(ctx); name != "" {
		line.AddAttrs(slog.String("who", name))
	}
	return l.Handler.Handle(ctx, line)
}

func (l requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestLog{l.Handler.WithAttrs(attrs)}
}

func (l requestLog) WithGroup(name string) slog.Handler {
	return requestLog{l.Handler.WithGroup(name)}
}
