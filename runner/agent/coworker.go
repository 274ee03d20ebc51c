package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/tools"
)

// The tools by which an agent puts work to another of its crew.
const (
	AskCoworker  = "ask_question_to_coworker"
	DelegateWork = "delegate_work_to_coworker"
)

// Delegates reports whether agents put work to one another in a process. In the
// others the process hands it out itself.
func Delegates(p crew.Process) bool {
	return p == crew.Sequential || p == crew.Graph || p == crew.Autonomous || p == ""
}

// coworkers are the agents that the agent of in may put work to, in the crew's
// order: all but itself and those that wait for it already.
func (l Limits) coworkers(in Input) []*crew.Agent {
	if !Delegates(in.Crew.Process) || !in.Agent.AllowDelegation || len(in.chain) >= l.DelegationDepth {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(in.Crew.Agents), func(a *crew.Agent) bool {
		return a == in.Agent || slices.Contains(in.chain, a)
	})
}

// coworker is one of the tools that put work to another agent, for one task. The
// coworker does it in a conversation of its own, with its own tools, model and
// bounds, while the agent's call waits for it.
type coworker struct {
	def    tools.Definition
	others []*crew.Agent
	names  []string // of others
	run    *run     // whose call it is; set before the first
}

// coworkerTools are the tools of an agent that has others to put work to.
func coworkerTools(in Input, others []*crew.Agent) []*coworker {
	if len(others) == 0 {
		return nil
	}
	var list strings.Builder
	names := namesOf(others, in.Crew)
	share := min(300, 6_000/len(others))
	for i, a := range others {
		fmt.Fprintf(&list, "\n- %s: %s", names[i], excerpt(line(a.Goal.V, ""), share))
	}
	who := map[string]any{"type": "string", "enum": names, "description": "Who: one of your coworkers."}
	about := map[string]any{"type": "string", "description": "All that they need to know: they see nothing of your conversation."}
	schema := func(what string, describes string, wait bool) json.RawMessage {
		properties := map[string]any{
			what: map[string]any{"type": "string", "description": describes}, "coworker_role": who, "context": about,
		}
		if wait {
			properties["wait_for_result"] = map[string]any{
				"type": "boolean", "default": true,
				"description": "false: they work while you go on, and you get the result when you answer.",
			}
		}
		text, _ := json.Marshal(map[string]any{ // texts encode
			"type": "object", "properties": properties, "required": []string{what, "coworker_role"},
		})
		return text
	}
	return []*coworker{
		{others: others, names: names, def: tools.Definition{
			Name:        AskCoworker,
			Description: "Ask one of your coworkers a question, and get the answer." + list.String(),
			InputSchema: schema("question", "The question.", false),
		}},
		{others: others, names: names, def: tools.Definition{
			Name:        DelegateWork,
			Description: "Hand a piece of your task to one of your coworkers, and get the result." + list.String(),
			InputSchema: schema("task", "What they are to do, and what you expect to get.", true),
		}},
	}
}

// namesOf is how agents call their coworkers: by their roles, or by their keys
// where others of the crew have the same role.
func namesOf(agents []*crew.Agent, c *crew.Crew) []string {
	roles := make(map[string]int, len(c.Agents))
	for _, a := range c.Agents {
		roles[strings.ToLower(line(a.Role.V, a.Key))]++
	}
	names := make([]string, len(agents))
	for i, a := range agents {
		if names[i] = line(a.Role.V, a.Key); roles[strings.ToLower(names[i])] > 1 {
			names[i] = a.Key
		}
	}
	return names
}

func nameOf(a *crew.Agent, c *crew.Crew) string { return namesOf([]*crew.Agent{a}, c)[0] }

// Definition implements [tools.Tool].
func (w *coworker) Definition() tools.Definition { return w.def }

// request is what the arguments of a call say.
type request struct {
	Question string `json:"question"`
	Task     string `json:"task"`
	Role     string `json:"coworker_role"`
	Context  string `json:"context"`
	Wait     *bool  `json:"wait_for_result"`
}

// Call implements [tools.Tool]: the coworker does the work before it returns,
// unless the call does not want to wait for it.
func (w *coworker) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	var q request
	if err := json.Unmarshal(call.Arguments, &q); err != nil {
		return tools.Failure("The arguments are not what the tool takes: " + line(err.Error(), "")), nil
	}
	text, what := q.Task, "task"
	if w.def.Name == AskCoworker {
		text, what = q.Question, "question"
	}
	if strings.TrimSpace(text) == "" {
		return tools.Failure(fmt.Sprintf("The argument %q is missing.", what)), nil
	}
	to, refusal := w.find(q.Role)
	if refusal != "" {
		return tools.Failure(refusal), nil
	}
	r := w.run
	if b := r.in.Budget; b != nil {
		if err := b.Delegate(len(r.in.chain) + 1); err != nil {
			r.exhaust(overspent(err))
			return tools.Failure("The budget is exhausted."), nil
		}
	}
	h := &handover{to: to, in: r.inputFor(to, w.def.Name, text, q.Context), scope: event.ScopeOf(ctx)}
	if q.Wait != nil && !*q.Wait && w.def.Name == DelegateWork {
		r.postpone(call.ID, h)
		return tools.Text(fmt.Sprintf("%s works on it. You get the result when you answer.", nameOf(to, r.in.Crew))), nil
	}
	h.do(ctx, r)
	if h.err != nil {
		return tools.Failure(h.text(r)), nil
	}
	return tools.Text(h.text(r)), nil
}

// find returns the agent of that role or key, or why there is none.
func (w *coworker) find(role string) (*crew.Agent, string) {
	in := w.run.in
	same := func(a *crew.Agent, name string) bool {
		return strings.EqualFold(line(a.Role.V, a.Key), name) || strings.EqualFold(a.Key, name)
	}
	name := line(role, "")
	var found []*crew.Agent
	for i, a := range w.others {
		if strings.EqualFold(w.names[i], name) {
			return a, ""
		}
		if same(a, name) {
			found = append(found, a)
		}
	}
	valid := "Your coworkers: " + strings.Join(w.names, ", ")
	switch {
	case len(found) == 1:
		return found[0], ""
	case len(found) > 1:
		return nil, fmt.Sprintf("There are %d coworkers %q. %s", len(found), excerpt(name, 60), valid)
	case name == "":
		return nil, "The argument \"coworker_role\" is missing. " + valid
	case same(in.Agent, name):
		return nil, "That is you: an agent puts no work to itself. " + valid
	case slices.ContainsFunc(in.chain, func(a *crew.Agent) bool { return same(a, name) }):
		return nil, fmt.Sprintf("%s waits for your own answer, and can't be asked now. %s", excerpt(name, 60), valid)
	}
	msg := fmt.Sprintf("You have no coworker %q", excerpt(name, 60))
	if near := nearest(name, w.names); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	} else {
		msg += "."
	}
	return nil, msg + " " + valid
}

// inputFor is the coworker's task: what is asked of it, in the same crew with the
// same earlier results. Rules of the task that it is a part of hold for it, too.
func (r *run) inputFor(to *crew.Agent, tool, text, about string) Input {
	from := nameOf(r.in.Agent, r.in.Crew)
	task := &crew.Task{
		Key: r.in.Task.Key, Pos: r.in.Task.Pos,
		Description:  crew.Text{V: fmt.Sprintf("Your coworker, %s, hands you this:\n\n%s", from, strings.TrimSpace(text)), Set: true},
		Dependencies: r.in.Task.Dependencies, Context: r.in.Task.Context, Guardrails: r.in.Task.Guardrails,
	}
	task.ExpectedOutput.V = "The result, whole: your coworker sees nothing of your work but your answer."
	if tool == AskCoworker {
		task.Description.V = fmt.Sprintf("Your coworker, %s, asks you:\n\n%s", from, strings.TrimSpace(text))
		task.ExpectedOutput.V = "Your best answer, as far as you know it or can find it out: your coworker sees nothing else of you."
	}
	in := Input{
		Crew: r.in.Crew, Agent: to, Task: task, Inputs: r.in.Inputs, Prior: r.in.Prior, Attempt: r.in.Attempt, Budget: r.in.Budget,
		operation: OperationDelegation, chain: append(slices.Clone(r.in.chain), r.in.Agent),
	}
	if strings.TrimSpace(about) != "" {
		in.Sections = append(in.Sections, Section{Title: "What your coworker says to it", Text: about})
	}
	return in
}
