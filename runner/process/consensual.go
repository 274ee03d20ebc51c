package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"crewhost/crew"
	"crewhost/runner/event"
)

// consensual has every agent but the manager do every task, and vote on the
// answers of the others. What they agree on is kept; where they don't, they do
// the task anew, knowing what was answered and said, until the rounds are used
// up and the fallback decides. Each round is an attempt at the task.
//
// The agents of a task work at once, and so do its voters; the tasks are done one
// after another. Only the answer that is kept is left as the deliverable, so a
// file that an agent was to write with a tool is made of that answer instead.
func consensual(ctx context.Context, r *run) error {
	how := crew.DefaultConsensus()
	if r.plan.Crew.Consensus != nil {
		how = *r.plan.Crew.Consensus
	}
	members := r.workers()
	if len(members) == 0 {
		return errors.New("there is no agent to do the tasks and vote")
	}
	r.inLine()
	for _, s := range r.slots {
		s.task, s.result.Agent = answered(s.task), ""
	}
	return r.each(ctx, 1, func(ctx context.Context, s *slot) error {
		j := &jury{slot: s, how: how, members: members, answers: make(map[string]string)}
		j.labels = newLabels(s.task.Key, keysOf(j.members))
		j.agree(ctx)
		return nil
	})
}

// answered is the task with its answer as the deliverable, where a tool was to
// write it.
func answered(t *crew.Task) *crew.Task {
	if t.Deliverable == nil || t.Deliverable.Source != toolCall {
		return t
	}
	task, d := *t, *t.Deliverable
	d.Source = finalMessage
	task.Deliverable = &d
	return &task
}

// ConsensusError says that the agents did not agree on an answer.
type ConsensusError struct {
	Rounds int    // that were held
	Why    string // what the last one came to, in one line
	Err    error  // why the manager did not decide; nil where it was not to
}

// Error says what came of the last round.
func (e *ConsensusError) Error() string {
	s := fmt.Sprintf("no agreement after %s: %s", plural(e.Rounds, "round"), e.Why)
	if e.Err != nil {
		s += fmt.Sprintf("; and no decision of the manager: %v", e.Err)
	}
	return s
}

// Unwrap returns why the manager did not decide.
func (e *ConsensusError) Unwrap() error { return e.Err }

// jury are the agents of one task.
type jury struct {
	*slot
	how     crew.ConsensusConfig
	members []*crew.Agent
	labels  labels

	answers map[string]string // the last one of each agent that gave any
	last    []ballot          // of the last round, in the order of members
	outcome outcome           // of the last round
}

// ruling is what a round came to.
type ruling struct {
	agent string // whose answer is kept; empty: none
	spent Answer // with the answer that is kept, or the best there is
	err   error  // why none is kept
	again bool   // whether another round may mend that
}

// agree holds rounds until one comes to an end.
func (j *jury) agree(ctx context.Context) {
	for again := true; again; {
		j.begin(ctx, nil)
		v := j.round(ctx, j.result.Attempts)
		j.result.Agent = v.agent
		again, _ = j.finish(ctx, v.spent, v.err, func(error) bool { return v.again }) // the result says why
	}
}

// round has the task done by all, and a vote on it where there is a choice.
func (j *jury) round(ctx context.Context, round int) ruling {
	if j.work.fault != nil {
		return ruling{err: j.work.fault}
	}
	var v ruling
	failed := j.answer(ctx, round, &v.spent)
	answers := j.answerers()
	if len(answers) > 0 {
		v.spent.Text = j.answers[j.prefer(answers)]
	}
	if ctx.Err() != nil {
		v.err = context.Cause(ctx)
		return v
	}
	switch {
	case len(answers) == 0:
		v.err = failed
		return v
	case len(answers) == 1:
		return j.keep(v, answers[0], "it is the only one")
	case j.alike(answers):
		return j.keep(v, j.prefer(answers), "all answers are the same")
	}
	if v.err = j.vote(ctx, answers); v.err != nil {
		return v
	}
	if j.outcome.winner != "" {
		return j.keep(v, j.outcome.winner, j.outcome.why)
	}
	v.spent.Text = j.answers[j.prefer(j.outcome.best())]
	if round < j.how.MaxRounds && !j.deadlocked() {
		v.err, v.again = &ConsensusError{Rounds: round, Why: j.outcome.why}, true
		return v
	}
	return j.fallBack(ctx, v, round, answers)
}

// keep ends a round with an answer.
func (j *jury) keep(v ruling, agent, why string) ruling {
	v.agent, v.spent.Text, v.err = agent, j.answers[agent], nil
	j.emit(event.Event{Kind: event.AnswerKept, Agent: agent, Reason: why})
	return v
}

// deadlocked: two agents, who can only vote for each other, are tied in every
// round, unless one is surer than the other.
func (j *jury) deadlocked() bool {
	return len(j.members) == 2 && j.how.Strategy != crew.WeightedConsensus
}

// answer has all members do the task and keeps their answers. An agent that
// fails this time stands by its answer of an earlier round. The error says why
// each of them failed.
func (j *jury) answer(ctx context.Context, round int, spent *Answer) error {
	done := make([]Answer, len(j.members))
	errs := make([]error, len(j.members))
	var group errgroup.Group
	group.SetLimit(j.run.atOnce())
	for i, a := range j.members {
		group.Go(func() error {
			if ctx.Err() != nil {
				errs[i] = context.Cause(ctx)
				return nil
			}
			done[i], errs[i] = j.slot.answer(ctx, a, j.discussion(a, round))
			return nil
		})
	}
	_ = group.Wait() // each keeps its own error
	var failed failures
	for i, a := range j.members {
		spent.Usage = spent.Usage.Add(done[i].Usage)
		spent.Turns += done[i].Turns
		spent.ToolCalls += done[i].ToolCalls
		switch {
		case errs[i] == nil:
			j.answers[a.Key] = done[i].Text
			continue
		case spent.Text == "":
			spent.Text = done[i].Text // what there is, should nobody come to an answer
		}
		failed = append(failed, failure{a.Key, errs[i]})
		if ctx.Err() == nil {
			j.emit(event.Event{Kind: event.Notice, Agent: a.Key, Text: oneLine(fmt.Sprintf("agent %q has no answer: %v", a.Key, errs[i]))})
		}
	}
	return failed
}

// failures are why every agent failed at a task.
type failures []failure

type failure struct {
	agent string
	err   error
}

// Error names each agent with its error.
func (f failures) Error() string {
	var parts []string
	for _, one := range f {
		parts = append(parts, fmt.Sprintf("%s: %v", one.agent, one.err))
	}
	return "every agent failed: " + strings.Join(parts, "; ")
}

// Unwrap returns the errors.
func (f failures) Unwrap() []error {
	errs := make([]error, len(f))
	for i, one := range f {
		errs[i] = one.err
	}
	return errs
}

// answerers are the members that have an answer.
func (j *jury) answerers() []string {
	var keys []string
	for _, a := range j.members {
		if _, ok := j.answers[a.Key]; ok {
			keys = append(keys, a.Key)
		}
	}
	return keys
}

// alike reports whether all answers say the same, white space aside.
func (j *jury) alike(answers []string) bool {
	return !slices.ContainsFunc(answers, func(a string) bool { return oneLine(j.answers[a]) != oneLine(j.answers[answers[0]]) })
}

// prefer chooses among agents that nothing else sets apart: the one that the task
// names, or the one that comes first in the crew.
func (j *jury) prefer(agents []string) string {
	if slices.Contains(agents, j.task.Agent.V) {
		return j.task.Agent.V
	}
	for _, m := range j.members {
		if slices.Contains(agents, m.Key) {
			return m.Key
		}
	}
	return ""
}

// vote has every member vote on the answers of the others. An agent that can't be
// asked, or read, abstains.
func (j *jury) vote(ctx context.Context, answers []string) error {
	j.last = make([]ballot, len(j.members))
	faults := make([]error, len(j.members))
	var group errgroup.Group
	group.SetLimit(j.run.atOnce())
	for i, m := range j.members {
		group.Go(func() error {
			if ctx.Err() == nil {
				j.last[i], faults[i] = j.ballot(ctx, m, answers)
			}
			return nil
		})
	}
	_ = group.Wait() // each keeps its own fault
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i, b := range j.last {
		if faults[i] != nil {
			j.emit(event.Event{Kind: event.Notice, Agent: b.voter, Text: oneLine(fmt.Sprintf("agent %q abstains: %v", b.voter, faults[i]))})
		}
		j.emit(event.Event{
			Kind: event.VoteCast, Agent: b.voter, Reason: b.why,
			Ballot: &event.Ballot{Ranking: b.ranking, Confidence: float64(b.confidence) / wholeConfidence},
		})
	}
	j.outcome = vote(j.how, len(j.members), answers, j.last)
	return nil
}

// ballot has an agent vote.
func (j *jury) ballot(ctx context.Context, voter *crew.Agent, answers []string) (ballot, error) {
	offered := j.labels.offered(voter.Key, answers)
	q := Question{
		Agent: voter, Operation: "vote", Task: j.task, Schema: ballotSchema(offered),
		Text: j.about() + j.answersBy(offered) + votingRules,
	}
	var b ballot
	_, err := query(ctx, j.run, q, func(doc ballotDoc) (err error) {
		b, err = j.labels.read(voter.Key, offered, doc)
		return err
	})
	if err != nil {
		b = ballot{voter: voter.Key}
	}
	return b, err
}

// fallBack decides where no round has.
func (j *jury) fallBack(ctx context.Context, v ruling, rounds int, answers []string) ruling {
	none := &ConsensusError{Rounds: rounds, Why: j.outcome.why}
	switch j.how.Fallback {
	case crew.FailTask:
		v.err = none
		return v
	case crew.ManagerDecision:
		chosen, why, err := j.decision(ctx, answers)
		if err != nil {
			none.Err = err
			v.err = none
			return v
		}
		j.notice("%v; the manager decides", none)
		return j.keep(v, chosen, oneLine("the manager decides: "+why))
	}
	best := j.outcome.best()
	how := "it came closest"
	if len(best) > 1 {
		how = "it is the first of those that came closest"
	}
	j.notice("%v; the answer that came closest is kept", none)
	return j.keep(v, j.prefer(best), how)
}

// decision asks the manager which answer is to be kept.
func (j *jury) decision(ctx context.Context, answers []string) (agent, why string, err error) {
	manager := j.run.plan.Crew.Agent(j.run.plan.Crew.ManagerAgent.V)
	if manager == nil {
		return "", "", errors.New("the crew has no manager")
	}
	offered := j.labels.offered(manager.Key, answers)
	schema, _ := json.Marshal(map[string]any{ // maps of strings encode
		"type": "object", "additionalProperties": false, "required": []string{"answer", "reason"},
		"properties": map[string]any{
			"answer": map[string]any{"type": "string", "enum": slices.Sorted(slices.Values(offered))},
			"reason": map[string]any{"type": "string"},
		},
	})
	type decisionDoc struct {
		Answer string `json:"answer"`
		Reason string `json:"reason"`
	}
	doc, err := query(ctx, j.run, Question{
		Agent: manager, Operation: "decide", Task: j.task, Schema: schema,
		Text: j.about() + j.answersBy(offered) + j.remarks() + decisionRules,
	}, func(doc decisionDoc) error {
		agent = j.labels.agents[label(doc.Answer)]
		if !slices.Contains(answers, agent) {
			return fmt.Errorf("%.40q is none of the answers to choose from, which are %s", doc.Answer, strings.Join(offered, ", "))
		}
		return nil
	})
	return agent, oneLine(doc.Reason), err
}

func keysOf(agents []*crew.Agent) []string {
	keys := make([]string, len(agents))
	for i, a := range agents {
		keys[i] = a.Key
	}
	return keys
}

// plural counts a thing in words.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
