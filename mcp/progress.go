package mcp

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// Progress is what a server tells of a call that it works on.
type Progress struct {
	Server string // the server's name in the settings
	Tool   string // the tool's registered name
	Call   string // as in [tools.Call]: the model's id, and who calls
	Agent  string
	Task   string

	Done    float64 // of Total, in whatever unit the server counts
	Total   float64 // 0 where the server doesn't know
	Message string  // untrusted, on one line
}

// progressPause is the least time between two reports on one call. What comes
// between them is dropped: a server may tell more than anybody can take.
const progressPause = 100 * time.Millisecond

// following are the calls whose progress somebody wants to know. The zero value
// follows none.
type following struct {
	mu    sync.Mutex
	last  int64
	calls map[int64]*followed // by token
}

type followed struct {
	call Progress             // without progress
	tell func(tools.Progress) // of the call; may be nil
	told time.Time
	done float64 // the last that was told
}

type tokenKey struct{}

// follow has the progress of one call told until end is called. It asks for
// none where nobody listens.
func (s *session) follow(ctx context.Context, tool string, call tools.Call) (_ context.Context, end func()) {
	if s.opts.OnProgress == nil && call.Progress == nil && !s.log.Enabled(ctx, slog.LevelDebug) {
		return ctx, func() {}
	}
	f := &s.following
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last++
	token := f.last
	if f.calls == nil {
		f.calls = make(map[int64]*followed)
	}
	f.calls[token] = &followed{tell: call.Progress, call: Progress{Server: s.server.Name, Tool: tool, Call: call.ID, Agent: call.Agent, Task: call.Task}}
	return context.WithValue(ctx, tokenKey{}, token), func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.calls, token)
	}
}

// labelled has a call ask for its progress, if it is followed.
func labelled(ctx context.Context, params *sdk.CallToolParams) *sdk.CallToolParams {
	if token, ok := ctx.Value(tokenKey{}).(int64); ok {
		params.SetProgressToken(token)
	}
	return params
}

// progressed passes on what a server tells. It lengthens no limit: a server that
// only ever makes progress is over its time all the same.
func (s *session) progressed(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	token, ok := req.Params.ProgressToken.(float64)
	if !ok {
		return
	}
	p, tell, ok := s.following.due(int64(token), req.Params.Progress, time.Now())
	if !ok {
		return
	}
	p.Done, p.Total, p.Message = req.Params.Progress, req.Params.Total, s.masks.line(req.Params.Message, maxDetail)
	s.log.Debug("progress of a call", "tool", p.Tool, "done", p.Done, "total", p.Total, "message", p.Message)
	if s.opts.OnProgress != nil {
		s.opts.OnProgress(p)
	}
	if tell != nil {
		tell(tools.Progress{Done: p.Done, Total: p.Total, Message: p.Message})
	}
}

// due returns whose progress a token means and who else wants to know, unless that
// was told of just now, or is no progress.
func (f *following) due(token int64, done float64, now time.Time) (p Progress, tell func(tools.Progress), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[token]
	if c == nil || now.Sub(c.told) < progressPause || !c.told.IsZero() && done <= c.done {
		return Progress{}, nil, false
	}
	c.told, c.done = now, done
	return c.call, c.tell, true
}
