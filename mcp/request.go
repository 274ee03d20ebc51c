package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// request sends a request that is no call of a tool, within the time of a call,
// and carries it through its rounds. It returns the result as it came over the
// wire; what names the request for an error.
func (s *session) request(ctx context.Context, what, method string, send func(context.Context, *sdk.ClientSession, round) error) (json.RawMessage, error) {
	ctx, limit, stop := withLimit(ctx, s.toolTimeout)
	defer stop()
	ctx, conn, end, err := s.begin(ctx)
	if err != nil {
		return nil, s.coded(ctx, err)
	}
	defer end()
	if !offers(conn.client, method) {
		return nil, s.wrap(tools.CodeMethodNotFound, "the server offers no "+kindOf(method), nil)
	}
	op, closes := s.asking.opens(ctx, what, "", limit)
	defer closes()

	var ex *exchange
	result, err := s.converse(ctx, op, func(ctx context.Context, r round) (json.RawMessage, error) {
		ctx, ex = withExchange(ctx)
		return ex.outcome(send(ctx, conn.client, r))
	})
	var u *unanswered
	switch {
	case err == nil && result != nil:
		return result, nil
	case err == nil:
		return nil, s.wrap(tools.CodeProtocolError, "its answer has no result", nil)
	case ctx.Err() != nil:
		return nil, s.interrupted(ctx)
	case errors.As(err, &u):
		return nil, s.wrap(tools.CodeProtocolError, u.text, nil)
	}
	e := s.explain(ctx, ex, err)
	e.Detail = what + ": " + e.Detail
	return nil, e
}

// kindOf is what a method is about.
func kindOf(method string) string {
	kind, _, _ := strings.Cut(method, "/")
	return kind
}

// listed reads a list of the server that is not that of its tools. What the
// server does not offer is an empty list.
func (s *session) listed(ctx context.Context, method, what, member string, warnings *[]string) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, s.toolTimeout)
	defer cancel()
	ctx, conn, end, err := s.begin(ctx)
	if err != nil {
		return nil, s.coded(ctx, err)
	}
	defer end()
	if !offers(conn.client, method) {
		return nil, nil
	}
	p := pager{
		what: what, member: member, items: s.limits.Tools, pages: s.limits.Pages,
		warn: func(line string) { *warnings = append(*warnings, s.masks.line(line, maxDetail)) },
	}
	var ex *exchange
	list, err := p.read(ctx, func(ctx context.Context, cursor *string) (json.RawMessage, error) {
		ctx, ex = withExchange(ctx)
		result, err := ex.outcome(askPage(ctx, conn.client, method, cursor))
		var refusal *jsonrpc.Error
		if errors.As(err, &refusal) && refusal.Code == jsonrpc.CodeMethodNotFound {
			return json.RawMessage(`{}`), nil // templates are not for every server
		}
		return result, err
	})
	if err == nil {
		return list, nil
	}
	if over, late := ended(ctx); over && late {
		return nil, s.wrap(tools.CodeListTimeout, fmt.Sprintf("no list of %s within %v", what, s.toolTimeout), context.DeadlineExceeded)
	}
	if ctx.Err() != nil {
		return nil, s.interrupted(ctx)
	}
	e := s.explain(ctx, ex, err)
	e.Detail = "listing " + what + ": " + e.Detail
	return nil, e
}

// askPage asks for one page of a list. The SDK's own ways remember pages, as long
// as the server says; here every list is fresh.
func askPage(ctx context.Context, client *sdk.ClientSession, method string, cursor *string) error {
	params := &pageParams{Cursor: cursor}
	var err error
	switch method {
	case methodListResources:
		_, err = sdk.CallCustomMethod[*pageParams, *sdk.ListResourcesResult](ctx, client, method, params)
	case methodListTemplates:
		_, err = sdk.CallCustomMethod[*pageParams, *sdk.ListResourceTemplatesResult](ctx, client, method, params)
	default:
		_, err = sdk.CallCustomMethod[*pageParams, *sdk.ListPromptsResult](ctx, client, method, params)
	}
	return err
}

// pageParams are the parameters of a page. A cursor may be the empty string.
type pageParams struct {
	sdk.ParamsBase
	Cursor *string `json:"cursor,omitempty"`
}

// counted has a request say through how many hosts it came, if it did, and which trace
// it is part of, if any.
func counted(ctx context.Context, req sdk.Request) {
	hosts, trace := tools.Hops(ctx), wire.Trace(ctx)
	params := req.GetParams()
	if hosts == 0 && len(trace) == 0 || params == nil {
		return
	}
	meta := params.GetMeta()
	if meta == nil {
		meta = sdk.Meta{}
	}
	if hosts > 0 {
		meta[tools.HopsKey] = hosts
	}
	for key, value := range trace {
		meta[key] = value
	}
	params.SetMeta(meta)
}
