package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// Incomplete is an argument that somebody is writing: of a prompt, or of a template
// of resources. One of the two is named.
type Incomplete struct {
	Prompt   string
	Template string
	Argument string
	Written  string            // so far; may be empty
	Others   map[string]string // arguments that have their values already
}

// Completion is what a server suggests for an [Incomplete].
type Completion struct {
	Values []string // at most 100, as the server sent them, the likeliest first
	More   bool     // whether there are others
}

const (
	methodComplete = "completion/complete"

	// maxCompletions is how many values an answer may have, by the specification.
	maxCompletions = 100
	// maxCompletionBytes is the longest value that is taken, in bytes.
	maxCompletionBytes = 4 << 10
)

// Completes reports whether a server said, when it was last connected, that it
// completes arguments.
func (all *Sessions) Completes(server string) bool {
	s, err := all.session(server)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil && offers(s.conn.client, methodComplete)
}

// Complete asks a server for values of an argument, within the time of a call. What
// can't be used of the answer is left out. The error is a *tools.Error; a server's
// own refusal has the code [tools.CodeProtocolError].
func (all *Sessions) Complete(ctx context.Context, server string, q Incomplete) (Completion, error) {
	s, err := all.session(server)
	if err != nil {
		return Completion{}, err
	}
	what, ref := fmt.Sprintf("completion of the prompt %q", q.Prompt), &sdk.CompleteReference{Type: "ref/prompt", Name: q.Prompt}
	if q.Template != "" {
		what, ref = fmt.Sprintf("completion of the resource template %q", q.Template), &sdk.CompleteReference{Type: "ref/resource", URI: q.Template}
	}
	if (q.Prompt == "") == (q.Template == "") || !usable(q.Prompt+q.Template) || q.Argument == "" {
		return Completion{}, s.wrap(tools.CodeArgumentsInvalid, "what is to be completed must be an argument of a prompt or of a template, named in one line of at most 4 KiB", nil)
	}
	params := &sdk.CompleteParams{Ref: ref, Argument: sdk.CompleteParamsArgument{Name: q.Argument, Value: q.Written}}
	if len(q.Others) > 0 {
		params.Context = &sdk.CompleteContext{Arguments: q.Others}
	}
	raw, err := s.request(ctx, what, methodComplete, func(ctx context.Context, client *sdk.ClientSession, _ round) error {
		_, err := sdk.CallCustomMethod[*sdk.CompleteParams, *sdk.CompleteResult](ctx, client, methodComplete, params)
		if result, _, _ := exchangeOf(ctx).get(); err == nil && wantsInput(result) {
			return unansweredf("The %s asked for something, which it may not.", what)
		}
		return err
	})
	if err != nil {
		return Completion{}, err
	}
	var result struct {
		Completion struct {
			Values  []json.RawMessage `json:"values"`
			HasMore bool              `json:"hasMore"`
		} `json:"completion"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return Completion{}, s.wrap(tools.CodeProtocolError, "its completion can't be read", nil)
	}
	c := Completion{More: result.Completion.HasMore}
	for _, raw := range result.Completion.Values {
		var value *string
		if json.Unmarshal(raw, &value) != nil || value == nil || len(*value) > maxCompletionBytes {
			continue
		}
		if len(c.Values) == maxCompletions {
			c.More = true
			break
		}
		c.Values = append(c.Values, *value)
	}
	return c, nil
}
