package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/config"
	"crewhost/tools"
)

// Asked is a request to a server, as it goes out: also one that makes or keeps a
// connection, which no caller asked for.
type Asked struct {
	Server    string
	Method    string
	Transport config.Transport
	Protocol  string // the version that is spoken; empty before that is agreed on
}

// Answered is how a request ended.
type Answered struct {
	ID   string // of the request, as it was on the wire; empty where it did not get that far
	Code int    // of the error that the server answered with, or 0
	Err  error  // why there is no result, or nil; the server's own error, too
}

// told has the host be told of requests, as [Options.OnRequest] says. It stands next to
// the wire: what is sent again is told again.
func (p *probing) told(next sdk.MethodHandler) sdk.MethodHandler {
	s := p.session
	if s.opts.OnRequest == nil {
		return next
	}
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if strings.HasPrefix(method, "notifications/") || method == methodListen {
			return next(ctx, method, req)
		}
		ex := exchangeOf(ctx)
		if ex == nil {
			ctx, ex = withExchange(ctx)
		}
		asked := Asked{Server: s.server.Name, Method: method, Transport: s.server.Transport}
		if conn := p.conn.Load(); conn != nil {
			asked.Protocol = conn.version()
		}
		ended := s.opts.OnRequest(ctx, asked)
		res, err := next(ctx, method, req)
		ended(s.answered(ctx, ex, err))
		return res, err
	}
}

// answered is how a request ended whose exchange is known.
func (s *session) answered(ctx context.Context, ex *exchange, err error) Answered {
	_, refusal, f := ex.get()
	a := Answered{ID: ex.asked(), Err: err}
	switch {
	case err == nil:
	case refusal != nil:
		a.Code = int(refusal.Code)
	case ctx.Err() != nil:
		a.Err = ctx.Err()
	case f != nil:
		a.Err = s.wrap(f.code, f.detail, nil)
	case tools.CodeOf(err) == "":
		a.Err = s.wrap(tools.CodeTransportFailed, err.Error(), err)
	}
	return a
}
