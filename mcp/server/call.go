package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

func (s *Server) listTools(x exchange, cursor string) (*answer, error) {
	shelf := s.offered()
	return page(s, x, listing[item]{
		member: "tools",
		items:  shelf.listed,
		key:    func(i item) string { return i.name },
		render: func(i item) []byte {
			if x.modern {
				return i.modern
			}
			return i.legacy
		},
		after: shelf.after,
	}, cursor)
}

// callTool runs a tool. That there is none of the name is an error of the request;
// what the policy denies and what the tool fails at are results, since the model
// should read them; and so is a failure of the host, which is told by its code
// alone, while the log has all of it.
func (s *Server) callTool(ctx context.Context, x exchange, p *mcp.CallToolParamsRaw) (*answer, error) {
	if p.Name == "" {
		return nil, invalid(`"name" is missing: the name of the tool to call`)
	}
	call := tools.Call{Name: p.Name, Arguments: p.Arguments}
	return s.converse(ctx, x, turn{
		what: "tools/call " + p.Name, state: p.RequestState, responses: p.InputResponses, token: p.GetProgressToken(),
	}, func(ctx context.Context) (*answer, error) {
		ctx, err := onward(ctx, p.Meta)
		if err != nil {
			return s.answer(x, renderResult(x, tools.Failure(fmt.Sprintf("The tool %q was not called: %v.", p.Name, err))))
		}
		ctx, done := s.calling(ctx, x, p.Name)
		call.Progress = progressOf(ctx)
		res, refused, err := s.reach(ctx, x, &call)
		done(res, cmp.Or(refused, err))
		if refused != nil {
			return nil, refused
		}
		var lacks *lack
		switch code := tools.CodeOf(err); {
		case err == nil:
		case errors.As(err, &lacks):
			return nil, lacks.refusal()
		case code == tools.CodeToolNotFound:
			return nil, s.unknownTool(call.Name)
		case code == tools.CodeArgumentsInvalid:
			return nil, invalid("the arguments of the tool %q must be a JSON object", call.Name)
		case ctx.Err() != nil:
			return nil, s.failed(ctx, "calling a tool", err)
		default:
			s.log.ErrorContext(ctx, "a tool could not be called", "tool", call.Name, "error", err)
			text := fmt.Sprintf("The tool %q could not be called.", call.Name)
			if code != "" {
				text = fmt.Sprintf("The tool %q could not be called (%s).", call.Name, code)
			}
			res = tools.Failure(text)
		}
		return s.answer(x, renderResult(x, res))
	})
}

// calling has the beginning of a call be told, and returns what tells its end.
func (s *Server) calling(ctx context.Context, x exchange, tool string) (context.Context, func(tools.Result, error)) {
	if s.cfg.Calling == nil {
		return ctx, func(tools.Result, error) {}
	}
	return s.cfg.Calling(ctx, tool, x.version)
}

// session has the beginning of a session be told, and returns what tells its end.
func (s *Server) session(ctx context.Context, remote bool) (ended func()) {
	if s.cfg.Session == nil {
		return func() {}
	}
	return s.cfg.Session(ctx, remote)
}

// onward is the context for what is asked of others on behalf of a request. It counts
// the hosts that the request came through, and there is none where these are too many.
// It is in the trace of the request.
func onward(ctx context.Context, meta mcp.Meta) (context.Context, error) {
	hosts, _ := meta[tools.HopsKey].(float64)
	if hosts >= tools.MaxHops {
		return nil, errRound
	}
	return tools.WithHops(wire.WithTrace(ctx, meta), int(max(hosts, 0))+1), nil
}

// unknownTool names the tool that is not there, and the one that may be meant.
func (s *Server) unknownTool(name string) error {
	hint := ""
	for _, near := range s.offered().index().Near(name) {
		if near != name { // which may have gone a moment ago
			hint = fmt.Sprintf(" (did you mean %q?)", near)
			break
		}
	}
	return invalid("unknown tool %q%s", cut(name, 200), hint)
}
