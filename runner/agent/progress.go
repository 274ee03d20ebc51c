package agent

import (
	"sync"

	"crewhost/runner/event"
	"crewhost/tools"
)

// progress tells how far a call is, and nothing any more once it has ended: a
// tool may report a moment too late.
type progress struct {
	mu    sync.Mutex
	event event.Event
	tell  func(event.Event) // nil: the call has ended
}

// follow begins to tell of a call.
func (r *run) follow(c *call) *progress {
	return &progress{event: r.toolEvent(event.ToolProgress, c), tell: r.emit}
}

// report is for [tools.Call].
func (p *progress) report(is tools.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tell == nil {
		return
	}
	e := p.event
	e.Progress = &event.Progress{Done: is.Done, Total: is.Total, Message: line(is.Message, "")}
	p.tell(e)
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tell = nil
}
