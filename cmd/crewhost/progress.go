package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/event"
	"crewhost/tools"
)

// progress writes what is going on to stderr: a line a server as each is done,
// and a line a step of the run. Lines never overwrite each other, so a log file
// reads as the terminal did; on a terminal they have colour.
type progress struct {
	mu      sync.Mutex
	w       io.Writer
	colour  bool
	servers []mcp.ServerReport
	calls   map[string]string // argument names of the tool calls under way
	deltas  bool              // whether what models say is shown piece by piece
	saying  map[string]string // the lines that have begun, by the answer's correlation
}

func newProgress(w io.Writer, colour bool) *progress {
	return &progress{w: w, colour: colour, calls: map[string]string{}, saying: map[string]string{}}
}

// The colours of lines, as ANSI codes.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	grey   = "90"
)

func (p *progress) line(colour, text string) { p.step(colour, "", text) }

// step writes a line below another.
func (p *progress) step(colour, indent, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text = indent + oneLine(text)
	if p.colour {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	fmt.Fprintln(p.w, text)
}

func (p *progress) warn(text string) { p.line(yellow, "WARNING: "+text) }

// server reports one server: connected, or the one line that its failure costs
// (O11).
func (p *progress) server(r mcp.ServerReport) {
	p.mu.Lock()
	p.servers = append(p.servers, r)
	p.mu.Unlock()
	if r.Err != nil {
		p.line(red, fmt.Sprintf("MCP server %q could not be connected: %s", r.Name, reason(r.Err)))
		return
	}
	p.line(green, fmt.Sprintf("MCP server %q connected: %s, %s, protocol %s, %s",
		r.Name, r.Transport, count(len(r.Tools), "tool"), r.Protocol, took(r.Took)))
	for _, w := range r.Warnings {
		p.warn(fmt.Sprintf("MCP server %q: %s", r.Name, w))
	}
}

// reason is why a server failed, for a line that names the server already.
func reason(err error) string {
	var e *tools.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s (%s)", e.Detail, e.Code)
	}
	return err.Error()
}

// reports are the servers that are done, in the order of their being done.
func (p *progress) reports() []mcp.ServerReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.servers)
}

// event reports a step of the run.
func (p *progress) event(e event.Event) {
	switch e.Kind {
	case event.TaskStarted:
		who := "agent " + e.Agent
		if e.Agent == "" { // nobody's, or everybody's
			who = "started"
		}
		p.line(green, fmt.Sprintf("task %s: %s", e.Task, who))
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
		tokens := ""
		if e.InputTokens+e.OutputTokens > 0 {
			tokens = fmt.Sprintf(", %d tokens in, %d out", e.InputTokens, e.OutputTokens)
		}
		p.step(grey, "  ", fmt.Sprintf("%s: model turn %d%s", e.Agent, e.Turn, tokens))
	case event.ToolCalled:
		p.mu.Lock()
		p.calls[e.Task+"\x00"+e.Call] = strings.Join(e.Arguments, ", ")
		p.mu.Unlock()
	case event.ToolReturned:
		p.mu.Lock()
		arguments := p.calls[e.Task+"\x00"+e.Call]
		delete(p.calls, e.Task+"\x00"+e.Call)
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

// maxSaying is how much of a line is kept back until it ends.
const maxSaying = 4_000

// delta shows the lines that an answer has come to the end of. Answers that come
// side by side are told apart by their agents' names.
func (p *progress) delta(e event.Event) {
	if !p.deltas {
		return
	}
	p.mu.Lock()
	text := p.saying[e.Correlation] + e.Text
	whole := strings.LastIndexByte(text, '\n') + 1
	if len(text)-whole > maxSaying {
		whole = len(text)
	}
	p.saying[e.Correlation] = text[whole:]
	p.mu.Unlock()
	for line := range strings.Lines(text[:whole]) {
		p.step(grey, "  ", e.Agent+": | "+line)
	}
}

// said shows the last line of an answer.
func (p *progress) said(e event.Event) {
	p.mu.Lock()
	line := p.saying[e.Correlation]
	delete(p.saying, e.Correlation)
	p.mu.Unlock()
	if line != "" {
		p.step(grey, "  ", e.Agent+": | "+line)
	}
}

// finished closes the report of a run.
func (p *progress) finished(result *runner.Output, err error) {
	if result == nil {
		return
	}
	for _, t := range result.Tasks {
		if t.File != "" {
			p.step(green, "  ", fmt.Sprintf("task %s left %s", t.Task, t.File))
		}
	}
	colour, word := green, "run finished"
	if err != nil {
		colour, word = red, "run failed"
	}
	p.line(colour, fmt.Sprintf("%s: %s, %s, %s", word, count(len(result.Tasks), "task"), spent(result), took(result.Took)))
}

// took writes a duration with the figures that a person reads.
func took(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return "under 1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Millisecond).String()
	}
}
