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
}

func newProgress(w io.Writer, colour bool) *progress {
	return &progress{w: w, colour: colour, calls: map[string]string{}}
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

// skipped reports each tool that could not be registered (O12).
func (p *progress) skipped(reports []mcp.ServerReport) {
	for _, r := range reports {
		for _, skip := range r.Skipped {
			p.line(yellow, skip.String())
		}
	}
}

// event reports a step of the run.
func (p *progress) event(e event.Event) {
	switch e.Kind {
	case event.TaskStarted:
		p.line(green, fmt.Sprintf("task %s: agent %s", e.Task, e.Agent))
	case event.TaskCompleted:
		if !*e.Success {
			return // said already: failed, or skipped
		}
		p.line(green, fmt.Sprintf("task %s: done, %s", e.Task, took(time.Duration(e.DurationMS)*time.Millisecond)))
	case event.TaskFailed:
		p.line(red, fmt.Sprintf("task %s: failed: %s", e.Task, e.Error))
	case event.TaskSkipped:
		p.line(yellow, fmt.Sprintf("task %s: skipped: %s", e.Task, e.Reason))
	case event.ModelReturned:
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
		p.warn(strings.TrimSpace(e.Task + ": " + e.Text))
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
