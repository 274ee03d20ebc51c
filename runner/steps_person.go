package runner

import (
	"context"

	"crewhost/mcp"
	"crewhost/runner/journal"
	"crewhost/tools/builtin"
	"crewhost/tools/permission"
)

// What a person said in a run is a step: nobody is asked twice.

// approvalSteps has each answer of an approver be a step.
func approvalSteps(a permission.Approver) permission.Approver {
	switch a := a.(type) {
	case nil:
		return nil
	case permission.Constant:
		return constantSteps{approvedSteps{a}, a}
	}
	return approvedSteps{a}
}

type approvedSteps struct{ permission.Approver }

// asked is what an approver is asked, as it is kept.
type askedApproval struct {
	Tool      string `json:"tool"`
	Server    string `json:"server,omitempty"`
	Arguments any    `json:"arguments,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// Approve implements [permission.Approver].
func (s approvedSteps) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	r := q.Request
	return take(ctx, step{
		kind: journal.Approval, name: r.Tool,
		request: askedApproval{Tool: r.Tool, Server: r.Server, Arguments: r.Arguments, Reason: q.Decision.Reason},
	}, func(ctx context.Context) (permission.Answer, error) { return s.Approver.Approve(ctx, q) })
}

// Stands implements [permission.Witness], for an approver that does.
func (s approvedSteps) Stands(ctx context.Context, q permission.Question, a permission.Answer) {
	if witness, ok := s.Approver.(permission.Witness); ok {
		witness.Stands(ctx, q, a)
	}
}

// constantSteps are of an approver that asks nobody. What it says in a run is kept as
// well: the run may be resumed with another.
type constantSteps struct {
	approvedSteps
	constant permission.Constant
}

// Always implements [permission.Constant].
func (s constantSteps) Always() permission.Answer { return s.constant.Always() }

// askerSteps has each answer to an agent be a step.
type askerSteps struct{ builtin.Asker }

// Ask implements [builtin.Asker].
func (s askerSteps) Ask(ctx context.Context, q builtin.Question) (builtin.Answer, error) {
	return take(ctx, step{kind: journal.Question, name: string(q.Kind), request: q},
		func(ctx context.Context) (builtin.Answer, error) { return s.Asker.Ask(ctx, q) })
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
