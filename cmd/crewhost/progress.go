package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"crewhost/mcp"
	"crewhost/runner"
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
	calls   map[string]string // argument names of the tool calls under way, by id
	deltas  bool              // whether what models say is shown piece by piece
	saying  map[string]string // the lines that have begun, by the answer's id
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
		p.line(red, fmt.Sprintf("MCP server %s could not be connected: %s", titled(r), reason(r.Err)))
		return
	}
	p.line(green, fmt.Sprintf("MCP server %s connected: %s, %s, protocol %s, %s",
		titled(r), r.Transport, count(len(r.Tools), "tool"), r.Protocol, took(r.Took)))
	for _, w := range r.Warnings {
		p.warn(fmt.Sprintf("MCP server %q: %s", r.Name, w))
	}
}

// titled is a server for a line about it: its name, and who brings it along.
func titled(r mcp.ServerReport) string {
	if len(r.Agents) == 0 {
		return fmt.Sprintf("%q", r.Name)
	}
	return fmt.Sprintf("%q of %s", r.Name, whose(r.Agents))
}

// whose names agents in a few words.
func whose(agents []string) string {
	switch n := len(agents); n {
	case 1:
		return "agent " + agents[0]
	case 2:
		return "agents " + agents[0] + " and " + agents[1]
	default:
		return fmt.Sprintf("agents %s and %d more", agents[0], n-1)
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
