package runner

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"crewhost/mcp"
	"crewhost/runner/event"
	"crewhost/tools"
)

// teller tells of servers: each as it is done, all together once the startup is
// over, and from then on every change of state.
type teller struct {
	events *event.Stream
	began  time.Time

	mu       sync.Mutex
	state    event.State   // of the startup
	sessions *mcp.Sessions // nil: the startup is not over
}

// report tells of a server that was connected or has failed.
func (t *teller) report(r mcp.ServerReport) {
	t.mu.Lock()
	t.state.Servers++
	if r.State == mcp.StateConnected {
		t.state.Connected++
	} else {
		t.state.Failed++
	}
	t.mu.Unlock()
	t.events.Emit(serverEvent(r, ""))
}

// started tells that the startup is over; sessions are nil where it has failed
// for want of a server, and none offers anything then.
func (t *teller) started(sessions *mcp.Sessions) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sessions = sessions
	state := t.state
	if sessions != nil {
		for _, r := range sessions.Reports() {
			state.Offered += len(r.Tools)
		}
	}
	t.events.Emit(event.Event{Kind: event.MCPStartup, State: &state, DurationMS: time.Since(t.began).Milliseconds()})
}

// change tells of a change of state after the startup.
func (t *teller) change(c mcp.StateChange) {
	t.mu.Lock()
	sessions := t.sessions
	t.mu.Unlock()
	if sessions == nil {
		return // the report has it
	}
	reports := sessions.Reports()
	i := slices.IndexFunc(reports, func(r mcp.ServerReport) bool { return r.Name == c.Server })
	if i < 0 {
		return
	}
	r := reports[i]
	r.State, r.Err, r.Took = c.To, c.Err, 0 // it may have moved on since
	t.events.Emit(serverEvent(r, c.From))
}

func serverEvent(r mcp.ServerReport, from mcp.State) event.Event {
	e := event.Event{
		Kind: event.MCPServer, Server: r.Name, DurationMS: r.Took.Milliseconds(),
		State: &event.State{
			State: string(r.State), From: string(from), Required: r.Required, Agents: r.Agents,
			Transport: string(r.Transport), Era: string(r.Era), Protocol: r.Protocol,
		},
	}
	if r.State == mcp.StateConnected {
		e.State.Tools = slices.Clone(r.Tools)
	}
	if r.Err != nil {
		e.Error, e.Code = strings.Join(strings.Fields(r.Err.Error()), " "), string(tools.CodeOf(r.Err))
		var coded *tools.Error
		if errors.As(r.Err, &coded) {
			e.Error = coded.Detail // the event names the server
		}
	}
	return e
}
