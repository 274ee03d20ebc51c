package runner

import (
	"context"

	"crewhost/mcp"
	"crewhost/runner/journal"
	"crewhost/tools/builtin/people"
	"crewhost/tools/permission"
)

// What a person said in a run is a step: nobody is asked twice.

// askedApproval is what is asked about a call, as it is kept.
type askedApproval struct {
	Tool      string `json:"tool"`
	Server    string `json:"server,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// stepOfAnswer has the answer to a call that the policy asks about be a step, whether a
// person was asked, or had been before, or nobody could be: the run may be resumed where
// somebody else is.
func stepOfAnswer(ctx context.Context, q permission.Question, get func(context.Context) (permission.Answer, error)) (permission.Answer, error) {
	r := q.Request
	return take(ctx, step{
		kind: journal.Approval, name: r.Tool,
		request: askedApproval{Tool: r.Tool, Server: r.Server, Arguments: r.Arguments, Reason: q.Decision.Brief()},
	}, get)
}

// askerSteps has each answer to an agent be a step.
type askerSteps struct{ people.Asker }

// Ask implements [people.Asker].
func (s askerSteps) Ask(ctx context.Context, q people.Question) (people.Answer, error) {
	return take(ctx, step{kind: journal.Question, name: string(q.Kind), request: q},
		func(ctx context.Context) (people.Answer, error) { return s.Asker.Ask(ctx, q) })
}

// respondentSteps has each decision about a server's question be a step. The values
// of a form are the person's, and may be secret: they are not kept, and where they are
// wanted again, the person is.
type respondentSteps struct{ mcp.Respondent }

// Elicit implements [mcp.Respondent].
func (s respondentSteps) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	if stepsOf(ctx) == nil {
		return s.Respondent.Elicit(ctx, q)
	}
	var live *mcp.Answer
	action, err := take(ctx, step{
		kind: journal.Question, name: q.Server,
		request: struct {
			Tool    string      `json:"tool,omitempty"`
			Message string      `json:"message"`
			Fields  []mcp.Field `json:"fields,omitempty"`
			URL     string      `json:"url,omitempty"`
		}{q.Tool, q.Message, q.Fields, q.URL},
	}, func(ctx context.Context) (mcp.Action, error) {
		answer, err := s.Respondent.Elicit(ctx, q)
		live = &answer
		return answer.Action, err
	})
	switch {
	case live != nil:
		return *live, err
	case err == nil && action == mcp.Accept && len(q.Fields) > 0:
		return s.Respondent.Elicit(ctx, q)
	}
	return mcp.Answer{Action: action}, err
}
