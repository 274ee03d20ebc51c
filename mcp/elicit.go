package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// elicit answers a question by what the settings declare, or else by a person.
func (s *session) elicit(ctx context.Context, ops []*operation, params json.RawMessage) (*sdk.ElicitResult, error) {
	what, tool := s.subject(ops)
	q, err := s.question(tool, params)
	if err != nil {
		return nil, unansweredf("%s asked for input before it goes on, and was not understood: %s.", what, s.masks.line(err.Error(), maxDetail))
	}
	answer, declared := q.declared()
	switch {
	case declared:
		line := q.disclosure(answer)
		s.warn(line) // once
		s.log.Info(line)
	case s.opts.Respondent == nil:
		return nil, unansweredf("%s asked for input before it goes on: %s. Nobody can be asked here, and the settings declare no answers that fit.", what, q.asked())
	default:
		if answer, err = s.opts.Respondent.Elicit(ctx, q); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, unansweredf("%s asked for input before it goes on: %s. No answer could be had: %s.", what, q.asked(), s.masks.line(err.Error(), maxDetail))
		}
	}
	switch answer.Action {
	case Accept:
		content, err := q.content(answer)
		if err != nil {
			return nil, unansweredf("%s asked for input before it goes on: %s. The answer does not fit: %s.", what, q.asked(), s.masks.line(err.Error(), maxDetail))
		}
		if q.URL != "" {
			content = nil
		}
		return &sdk.ElicitResult{Action: string(Accept), Content: content}, nil
	case Cancel:
		return &sdk.ElicitResult{Action: string(Cancel)}, nil
	default:
		return &sdk.ElicitResult{Action: string(Decline)}, nil
	}
}

// disclosure is the line of the report for an answer that the settings gave.
func (q Question) disclosure(a Answer) string {
	var names []string
	for _, f := range q.Fields {
		if v, ok := a.Values[f.Name]; ok {
			names = append(names, fmt.Sprintf("%s=%s", f.Name, v))
		}
	}
	asker := "a question"
	if q.Tool != "" {
		asker = fmt.Sprintf("a question of the tool %q", q.Tool)
	}
	return asker + " was answered as the settings declare: " + strings.Join(names, ", ")
}

// codeVisit is the refusal of a server that wants a page to be visited first.
const codeVisit = -32042

// visits reports whether a request was refused until pages have been visited,
// and returns the questions for that.
func visits(err error) (pages []json.RawMessage, ok bool) {
	var refusal *jsonrpc.Error
	if !errors.As(err, &refusal) || refusal.Code != codeVisit {
		return nil, false
	}
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refusal.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxRequests {
		return nil, false
	}
	return data.Elicitations, true
}

// visit has a person visit pages. Who does not accept ends the operation: there
// is no way to tell the server.
func (s *session) visit(ctx context.Context, op *operation, pages []json.RawMessage) error {
	for _, params := range pages {
		res, err := s.elicit(ctx, []*operation{op}, params)
		if err != nil {
			return err
		}
		if res.Action != string(Accept) {
			return unansweredf("The %s wants a page to be visited before it goes on, and the person who was asked declined.", op.what)
		}
	}
	return nil
}
