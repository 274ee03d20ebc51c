package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/mcp/server"
	"crewhost/tools"
	"crewhost/tools/builtin/people"
	"crewhost/tools/permission"
)

// ClientPerson asks the person behind the MCP client that a call came from, as far
// as that client lets itself be asked. It is an [permission.Approver], a
// [people.Asker] and an [mcp.Respondent].
//
// Who answers is whoever the client says: nothing proves that it is a person. To
// have it approve calls is a decision of the operator (R3, I8).
type ClientPerson struct {
	// Headless answers calls that the policy asks about where the client can't be
	// asked: Allow, or Deny.
	Headless permission.Verdict
	// Asker answers questions of agents where the client can't be asked; nil:
	// nobody does.
	Asker people.Asker
}

// maxAsked is how many characters of a call's arguments a person is shown.
const maxAsked = 2_000

const approvalSchema = `{
  "type": "object",
  "properties": {
    "allow": {"type": "boolean", "title": "Allow this call"},
    "reason": {"type": "string", "title": "Reason", "description": "Told to the model with a refusal."}
  },
  "required": ["allow"]
}`

// cancelled is what a form comes back with that was closed without a choice.
const cancelled = "cancel"

// Approve implements [permission.Approver].
func (p ClientPerson) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	r, d := q.Request, q.Decision
	who, from := "This call", ""
	if r.Agent != "" {
		who = fmt.Sprintf("The agent %q", r.Agent)
	}
	if r.Server != "" {
		from = fmt.Sprintf(" of MCP server %q", r.Server)
	}
	message := fmt.Sprintf("%s is about to use the tool %q%s with %s\nAsked because %s.", who, r.Tool, from, tools.Truncate(string(r.Arguments), maxAsked), d.Brief())
	answer, err := elicit(ctx, message, approvalSchema)
	switch {
	case errors.Is(err, server.ErrNoClient):
		return permission.Answer{Allow: p.Headless == permission.Allow, Unasked: true, Reason: "the client can't be asked"}, nil
	case err != nil:
		return permission.Answer{}, err
	}
	if answer.Action == cancelled {
		return permission.Answer{Unasked: true, Reason: "the client's person put the question away"}, nil
	}
	allow, _ := answer.Content["allow"].(bool)
	reason, _ := answer.Content["reason"].(string)
	return permission.Answer{Allow: answer.Action == "accept" && allow, Reason: tools.Truncate(reason, maxAsked)}, nil
}

// Ask implements [people.Asker].
func (p ClientPerson) Ask(ctx context.Context, q people.Question) (people.Answer, error) {
	type field struct {
		Type    string   `json:"type"`
		Title   string   `json:"title,omitempty"`
		Enum    []string `json:"enum,omitempty"`
		Default string   `json:"default,omitempty"`
	}
	f := field{Type: "string", Title: "Answer", Enum: q.Choices, Default: q.Default}
	if q.Kind == people.KindApproval {
		f = field{Type: "boolean", Title: "Approve"}
	}
	schema, err := json.Marshal(map[string]any{
		"type": "object", "properties": map[string]field{"answer": f}, "required": []string{"answer"},
	})
	if err != nil {
		return people.Answer{}, err
	}
	who := "An agent asks: "
	if q.Agent != "" {
		who = fmt.Sprintf("The agent %q asks: ", q.Agent)
	}
	answer, err := elicit(ctx, who+q.Prompt, string(schema))
	switch {
	case errors.Is(err, server.ErrNoClient) && p.Asker != nil:
		return p.Asker.Ask(ctx, q)
	case err != nil:
		return people.Answer{}, err
	}
	said := answer.Content["answer"]
	text, _ := said.(string)
	switch {
	case q.Kind == people.KindApproval && answer.Action == "accept" && said == true:
		return people.Answer{Text: "yes"}, nil
	case q.Kind == people.KindApproval: // a form that was put away has no answer
		return people.Answer{Text: "no", Unasked: answer.Action == cancelled}, nil
	case answer.Action != "accept": // no answer at all would be the default
		return people.Answer{}, errors.New("the person declined to answer")
	}
	return people.Answer{Text: text}, nil
}

// Elicit implements [mcp.Respondent]: a question of a server goes on to the client,
// with the server's name.
func (p ClientPerson) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	if q.URL != "" {
		return mcp.Answer{}, errors.New("the client's person is not sent to pages")
	}
	asker := fmt.Sprintf("MCP server %q", q.Server)
	if q.Tool != "" {
		asker += fmt.Sprintf(", for its tool %q,", q.Tool)
	}
	answer, err := elicit(ctx, asker+" asks: "+q.Message, string(mcp.FormSchema(q.Fields)))
	if err != nil {
		return mcp.Answer{}, err
	}
	made := mcp.Answer{Action: mcp.Action(answer.Action), Values: map[string]secret.Text{}}
	for _, f := range q.Fields {
		value, given := answer.Content[f.Name]
		if !given || made.Action != mcp.Accept {
			continue
		}
		text := written(value)
		made.Values[f.Name] = secret.NewText(text, text)
	}
	return made, nil
}

// written is a value of a form as [mcp.Field] takes it.
func written(value any) string {
	if text, ok := value.(string); ok {
		return text
	}
	data, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(data)
}

// elicit asks the client of a call. [server.ErrNoClient]: there is none, or it
// can't be asked.
func elicit(ctx context.Context, message, schema string) (server.Elicited, error) {
	caller, ok := server.CallerFrom(ctx)
	if !ok {
		return server.Elicited{}, server.ErrNoClient
	}
	return caller.Elicit(ctx, message, json.RawMessage(schema))
}
