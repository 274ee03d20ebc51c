package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/tools"
	"crewhost/tools/builtin/people"
	"crewhost/tools/permission"
)

// remote is whoever is asked through the program that watches a run: each question
// is an event, and a command answers it. Once stdin has ended nobody is there any
// more, and questions end as those without a terminal do: nothing is approved that
// --approve or the settings don't approve, and no answer is made up.
type remote struct {
	events *event.Stream
	gone   chan struct{} // closed when stdin has ended

	mu       sync.Mutex
	mode     string // of --approve
	headless bool   // what the settings say where nobody can be asked: allow
	about    func(task string) string
	open     []*query // in the order in which they were put
}

// query is a question that is open.
type query struct {
	kind   string // of the command that answers it
	id     string
	check  func(event.Command) error // says why a command is no answer
	answer chan event.Command        // has room for one
}

func newRemote(events *event.Stream) *remote {
	return &remote{events: events, gone: make(chan struct{})}
}

// begin says how things stand once the settings are known.
func (r *remote) begin(mode string, headless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mode, r.headless = mode, headless
}

// describe says where the descriptions of tasks are.
func (r *remote) describe(about func(task string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.about = about
}

// listen takes commands until in ends.
func (r *remote) listen(in io.Reader, cancel func()) {
	defer close(r.gone)
	err := event.Commands(in, func(c event.Command) {
		if c.Kind == event.CommandCancel {
			cancel()
			return
		}
		r.take(c)
	}, r.refuse)
	if err != nil {
		r.refuse(fmt.Errorf("stdin can't be read any further: %w", err))
	}
}

// refuse tells the watching program that what it said changes nothing.
func (r *remote) refuse(err error) {
	e := event.Event{Kind: event.Notice, Text: oneLine(err.Error()), Code: event.CodeBadCommand}
	var c *event.CommandError
	if errors.As(err, &c) {
		e.Code = c.Code
	}
	r.events.Emit(e)
}

// take has a command answer its question: without an id, the oldest one.
func (r *remote) take(c event.Command) {
	if err := r.settle(c); err != nil {
		r.refuse(err)
	}
}

func (r *remote) settle(c event.Command) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.open, func(q *query) bool {
		return q.kind == c.Kind && (c.Correlation == "" || q.id == c.Correlation)
	})
	switch {
	case i < 0 && c.Correlation == "":
		return fmt.Errorf("%s answers no question: none is open", c.Kind)
	case i < 0:
		return fmt.Errorf("%s answers no question: %q is none that is open", c.Kind, tools.Truncate(c.Correlation, 64))
	}
	q := r.open[i]
	if err := q.check(c); err != nil {
		return fmt.Errorf("%s is no answer to question %s: %w", c.Kind, q.id, err)
	}
	r.open = slices.Delete(r.open, i, i+1)
	q.answer <- c
	return nil
}

// ask puts a question and waits for its answer; false means that nobody is there.
// The event that comes back is the one to tell its end by.
func (r *remote) ask(ctx context.Context, e event.Event, kind string, check func(event.Command) error) (event.Event, event.Command, bool, error) {
	q := &query{kind: kind, id: r.events.ID(), check: check, answer: make(chan event.Command, 1)}
	r.mu.Lock()
	r.open = append(r.open, q)
	if about := r.about; about != nil && e.Question != nil {
		e.Question.About = about(event.ScopeOf(ctx).Task)
	}
	r.mu.Unlock()
	e.Correlation = q.id
	e = event.ScopeOf(ctx).Within(e)
	r.events.Emit(e)
	e.Question = nil
	defer r.close(q)
	select {
	case c := <-q.answer:
		return e, c, true, nil
	case <-ctx.Done():
		return e, event.Command{}, false, context.Cause(ctx)
	case <-r.gone:
	}
	select {
	case c := <-q.answer: // the last thing that was said
		return e, c, true, nil
	default:
		return e, event.Command{}, false, nil
	}
}

// close takes a question away that was not answered.
func (r *remote) close(q *query) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open = slices.DeleteFunc(r.open, func(other *query) bool { return other == q })
}

// The words for who decided.
const (
	byCommand   = "command"
	byApprovals = "approvals" // what was allowed always in an earlier run
	byFlag      = "flag"      // --approve
	bySettings  = "settings"  // permissions.headless
	byDefault   = "default"   // the question's own
	byNobody    = "nobody"
)

// Approve asks about one call.
func (r *remote) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	r.mu.Lock()
	headless := r.headless
	r.mu.Unlock()
	e := approvalNeeded(q)
	e.Question = &event.Question{Arguments: tools.Truncate(string(q.Request.Arguments), maxShown), Changed: q.Changed}
	for _, s := range q.Scopes {
		e.Question.Scopes = append(e.Question.Scopes, string(s))
	}
	e, c, answered, err := r.ask(ctx, e, event.CommandApproval, func(c event.Command) error {
		if !slices.Contains(q.Scopes, permission.Scope(c.Scope)) {
			return fmt.Errorf("the scope %s was not offered: nothing is kept beyond this run (permissions.approvals)", c.Scope)
		}
		return nil
	})
	switch {
	case err != nil:
		return permission.Answer{}, err
	case !answered && headless:
		return r.approved(e, permission.Answer{Allow: true}, bySettings), nil
	case !answered:
		return r.approved(e, permission.Answer{Unasked: true, Reason: errNobodyWatches.Error()}, bySettings), nil
	}
	return r.approved(e, permission.Answer{Allow: c.Allow, Scope: permission.Scope(c.Scope), Reason: oneLine(c.Reason)}, byCommand), nil
}

// flagged is a remote where --approve has answered everything.
type flagged struct {
	*remote
	answer permission.Answer
}

// Approve tells of the answer.
func (f flagged) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	return f.approved(f.unasked(ctx, approvalNeeded(q)), f.answer, byFlag), nil
}

// Always implements [permission.Constant].
func (f flagged) Always() permission.Answer { return f.answer }

// approver is who is asked about calls.
func (r *remote) approver(mode string) permission.Approver {
	switch mode {
	case "allow":
		return flagged{r, permission.Answer{Allow: true}}
	case "deny":
		return flagged{r, deniedByFlag()}
	}
	return r
}

var _ runner.Spoken = (*remote)(nil)

// Speaker implements [runner.Spoken]: a program answers, whether or not it asks a person.
func (*remote) Speaker() string { return "program" }

// Stands implements [permission.Witness]: what an earlier answer lets through is told
// as if it were given again.
func (r *remote) Stands(ctx context.Context, q permission.Question, a permission.Answer) {
	by := byCommand
	if a.Scope == permission.Always {
		by = byApprovals
	}
	r.approved(r.unasked(ctx, approvalNeeded(q)), a, by)
}

func approvalNeeded(q permission.Question) event.Event {
	return event.Event{Kind: event.ApprovalNeeded, Tool: q.Request.Tool, Server: q.Request.Server, Reason: q.Decision.Reason}
}

// unasked is the event of a question that is not put.
func (r *remote) unasked(ctx context.Context, e event.Event) event.Event {
	e.Correlation = r.events.ID()
	return event.ScopeOf(ctx).Within(e)
}

// approved tells of an answer, and whose it is.
func (r *remote) approved(e event.Event, a permission.Answer, by string) permission.Answer {
	e.Kind, e.Reason, e.Question = event.ApprovalGiven, a.Reason, nil
	e.Answer = &event.Answer{Allow: a.Allow, Scope: string(a.Scope), By: by}
	r.events.Emit(e)
	return a
}

// Ask puts a question of an agent.
func (r *remote) Ask(ctx context.Context, q people.Question) (people.Answer, error) {
	input := map[people.Kind]string{
		people.KindText: event.InputText, people.KindApproval: event.InputConfirm, people.KindChoice: event.InputChoice,
	}[q.Kind]
	needed := event.Event{Kind: event.InputNeeded, Question: &event.Question{
		Input: input, Prompt: q.Prompt, Choices: slices.Clone(q.Choices), Default: q.Default,
	}}
	given, c, answered, err := r.ask(ctx, needed, event.CommandInput, func(c event.Command) error {
		_, err := answerOf(q, c)
		return err
	})
	if err != nil {
		return people.Answer{}, err
	}
	if answered {
		r.given(given, c.Action, byCommand)
		said, err := answerOf(q, c)
		return people.Answer{Text: said}, err
	}
	r.mu.Lock()
	mode := r.mode
	r.mu.Unlock()
	switch {
	case q.Kind == people.KindApproval && mode == "allow":
		r.given(given, "accept", byFlag)
		return people.Answer{Text: "yes"}, nil
	case q.Kind == people.KindApproval:
		r.given(given, "decline", byNobody)
		return people.Answer{Text: "no", Unasked: true}, nil
	case q.Default != "":
		r.given(given, "accept", byDefault)
		return people.Answer{Text: q.Default, Unasked: mode != "allow"}, nil
	default:
		r.given(given, "cancel", byNobody)
		return people.Answer{}, errNobodyWatches
	}
}

var errNobodyWatches = errors.New("nobody can be asked: stdin is closed")

// given tells that a question is over.
func (r *remote) given(e event.Event, action, by string) {
	e.Kind, e.Answer = event.InputGiven, &event.Answer{Action: action, By: by}
	r.events.Emit(e)
}

// answerOf is the answer to a question that a command gives: the text of its value,
// or what a truth or a number looks like. The error says why it is none.
func answerOf(q people.Question, c event.Command) (string, error) {
	if c.Action != "accept" {
		if q.Kind == people.KindApproval {
			return "no", nil
		}
		return "", fmt.Errorf("the question of an agent can't be declined; answer it in words")
	}
	text, err := textOf(c.Value)
	if err != nil {
		return "", err
	}
	if q.Kind != people.KindChoice || text == "" {
		return text, nil
	}
	n, err := strconv.Atoi(text)
	numbered := err == nil && n >= 1 && n <= len(q.Choices)
	if !numbered && !slices.ContainsFunc(q.Choices, func(c string) bool { return strings.EqualFold(c, text) }) {
		return "", fmt.Errorf("the value is none of the choices")
	}
	return text, nil
}

// textOf is a plain value as a person would write it.
func textOf(raw json.RawMessage) (string, error) {
	var value any
	if len(raw) == 0 {
		return "", nil
	}
	if err := json.Unmarshal(raw, &value); err != nil {
		return "", err
	}
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case bool:
		if v {
			return "yes", nil
		}
		return "no", nil
	case float64:
		return string(raw), nil
	}
	return "", fmt.Errorf("the value is no text, number or truth")
}

// Elicit puts a question of a server.
func (r *remote) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	needed := event.Event{Kind: event.InputNeeded, Server: q.Server, Tool: q.Tool, Question: &event.Question{
		Input: event.InputForm, Prompt: q.Message, Schema: mcp.FormSchema(q.Fields), URL: q.URL,
	}}
	if q.URL != "" {
		needed.Question.Input, needed.Question.Schema = event.InputVisit, nil
	}
	given, c, answered, err := r.ask(ctx, needed, event.CommandInput, func(c event.Command) error {
		_, err := filled(q, c)
		return err
	})
	switch {
	case err != nil:
		return mcp.Answer{}, err
	case !answered:
		r.given(given, "cancel", byNobody)
		return mcp.Answer{}, errNobodyWatches
	}
	r.given(given, c.Action, byCommand)
	return filled(q, c)
}

// filled is the form as a command fills it in. What it leaves out is as the
// settings declare it, where they do.
func filled(q mcp.Question, c event.Command) (mcp.Answer, error) {
	a := mcp.Answer{Action: mcp.Action(c.Action)}
	if a.Action != mcp.Accept || q.URL != "" {
		return a, nil
	}
	var values map[string]json.RawMessage
	if len(c.Value) > 0 && json.Unmarshal(c.Value, &values) != nil {
		return a, fmt.Errorf("the value is no object with the fields of the form")
	}
	a.Values = make(map[string]secret.Text, len(q.Fields))
	for _, f := range q.Fields {
		raw, ok := values[f.Name]
		delete(values, f.Name)
		switch {
		case ok && string(raw) != "null":
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			if _, err := f.Parse(text); err != nil {
				return a, fmt.Errorf("the field %q: %w", f.Name, err)
			}
			a.Values[f.Name] = secret.Literal(text)
		case !f.Declared.IsZero():
			a.Values[f.Name] = f.Declared
		case f.Required:
			return a, fmt.Errorf("the field %q is required", f.Name)
		}
	}
	if unknown := slices.Sorted(maps.Keys(values)); len(unknown) > 0 {
		return a, fmt.Errorf("the form has no field %q", tools.Truncate(unknown[0], 64))
	}
	return a, nil
}
