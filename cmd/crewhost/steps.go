package main

import (
	"fmt"
	"strings"
	"time"

	"crewhost/runner/event"
)

// event shows a step of a run: a line a task, and below it a line for what is done
// in it.
func (p *progress) event(e event.Event) {
	switch e.Kind {
	case event.TaskStarted:
		who := "agent " + e.Agent
		if e.Agent == "" { // nobody's, or everybody's
			who = "started"
		}
		p.line(green, fmt.Sprintf("task %s: %s", e.Task, who))
	case event.TaskAssigned:
		p.line(green, fmt.Sprintf("task %s: goes to agent %s%s", e.Task, e.ToAgent, because(e.Reason)))
	case event.TaskReviewed:
		if !*e.Success {
			p.line(yellow, fmt.Sprintf("task %s: turned down by agent %s%s", e.Task, e.Agent, because(e.Text)))
		}
	case event.TaskRetried:
		p.line(yellow, fmt.Sprintf("task %s: attempt %d is followed by another: %s", e.Task, e.Attempt, e.Error))
	case event.AgentSpawned:
		p.line(green, fmt.Sprintf("task %s: agent %s joins, as %s", e.Task, e.ToAgent, e.ToRole))
	case event.AnswerKept:
		p.line(green, fmt.Sprintf("task %s: the answer of agent %s is kept: %s", e.Task, e.Agent, e.Reason))
	case event.TaskCompleted:
		if !*e.Success {
			return // said already: failed, or skipped
		}
		p.line(green, fmt.Sprintf("task %s: done, %s", e.Task, took(time.Duration(e.DurationMS)*time.Millisecond)))
	case event.TaskFailed:
		p.line(red, fmt.Sprintf("task %s: failed: %s", e.Task, e.Error))
	case event.TaskSkipped:
		p.line(yellow, fmt.Sprintf("task %s: skipped: %s", e.Task, e.Reason))
	case event.ModelDelta:
		p.delta(e)
	case event.ModelReturned:
		p.said(e)
		p.step(grey, "  ", fmt.Sprintf("%s: model turn %d%s%s", e.Agent, e.Turn, purpose(e), tokensOf(e)))
	case event.ToolCalled:
		p.mu.Lock()
		p.calls[id(e)] = strings.Join(e.Arguments, ", ")
		p.mu.Unlock()
	case event.ToolReturned:
		p.returned(e)
	case event.DelegationStarted:
		p.step(green, "  ", fmt.Sprintf("%s: hands work on to %s", e.Agent, e.ToAgent))
	case event.Notice:
		switch {
		case e.Code != "": // it is a sentence of its own
			p.line(yellow, e.Text)
		case e.Task != "":
			p.warn(e.Task + ": " + e.Text)
		default:
			p.warn(e.Text)
		}
	}
}

// id is the correlation of e among the runs that are shown side by side.
func id(e event.Event) string { return e.Run + "/" + e.Correlation }

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// returned shows a call that has ended.
func (p *progress) returned(e event.Event) {
	p.mu.Lock()
	arguments := p.calls[id(e)]
	delete(p.calls, id(e))
	p.mu.Unlock()
	outcome, colour := "done", grey
	if e.Success != nil && !*e.Success {
		outcome, colour = "error: "+e.Error, yellow
	}
	from := ""
	if e.Server != "" {
		from = " of " + e.Server
	}
	p.step(colour, "  ", fmt.Sprintf("%s: %s(%s)%s: %s, %s", e.Agent, e.Tool, arguments, from, outcome, took(time.Duration(e.DurationMS)*time.Millisecond)))
}

// maxSaying is how much of a line is kept back until it ends.
const maxSaying = 4_000

// delta shows the lines that an answer has come to the end of. Answers that come
// side by side are told apart by their agents' names.
func (p *progress) delta(e event.Event) {
	if !p.deltas {
		return
	}
	p.mu.Lock()
	text := p.saying[id(e)] + e.Text
	whole := strings.LastIndexByte(text, '\n') + 1
	if len(text)-whole > maxSaying {
		whole = len(text)
	}
	p.saying[id(e)] = text[whole:]
	p.mu.Unlock()
	for line := range strings.Lines(text[:whole]) {
		p.step(grey, "  ", e.Agent+": | "+line)
	}
}

// said shows the last line of an answer.
func (p *progress) said(e event.Event) {
	p.mu.Lock()
	line := p.saying[id(e)]
	delete(p.saying, id(e))
	p.mu.Unlock()
	if line != "" {
		p.step(grey, "  ", e.Agent+": | "+line)
	}
}

// purpose is what a model was asked for, where that was not to go on with a task.
func purpose(e event.Event) string {
	switch {
	case e.Operation == "" || e.Operation == "agent":
		return ""
	case e.Task == "":
		return fmt.Sprintf(" (%s)", e.Operation)
	}
	return fmt.Sprintf(" (%s, task %s)", e.Operation, e.Task)
}

// tokensOf is what a turn used; "about" where the provider gave no figures.
func tokensOf(e event.Event) string {
	switch {
	case e.InputTokens+e.OutputTokens == 0:
		return ""
	case e.EstimatedTokens > 0:
		return fmt.Sprintf(", about %d tokens in, %d out", e.InputTokens, e.OutputTokens)
	}
	return fmt.Sprintf(", %d tokens in, %d out", e.InputTokens, e.OutputTokens)
}
