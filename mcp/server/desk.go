package server

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// progressEvery is the shortest time between two notices of progress of one request.
const progressEvery = 100 * time.Millisecond

// A desk is where a request is served: what is said to its client before the answer
// goes from here, on the request's own stream. After close nothing is said.
type desk struct {
	log  func(level, logger string, data any)
	tell func(tools.Progress) // nil: the client did not ask

	wake, stop chan struct{}
	group      sync.WaitGroup

	mu     sync.Mutex
	begun  bool // whether somebody tells
	closed bool
	some   bool // whether anything was reported
	fresh  bool // whether last was not told yet
	last   tools.Progress
}

func newDesk(ctx context.Context, x exchange, token any) *desk {
	d := &desk{
		log: func(level, logger string, data any) {
			_ = x.session.Log(ctx, &mcp.LoggingMessageParams{Level: mcp.LoggingLevel(level), Logger: logger, Data: data})
		},
	}
	if token != nil {
		d.wake, d.stop = make(chan struct{}, 1), make(chan struct{})
		d.tell = func(p tools.Progress) {
			_ = x.session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: p.Done, Total: p.Total, Message: p.Message,
			})
		}
	}
	return d
}

// note sends a line to the client's log.
func (d *desk) note(level, logger string, data any) {
	if !d.over() {
		d.log(level, logger, data)
	}
}

// report takes a tool's progress and returns at once. What doesn't grow is left
// out, and of much in a short time the last is told.
func (d *desk) report(p tools.Progress) {
	if d.tell == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || d.some && p.Done <= d.last.Done {
		return
	}
	d.some, d.fresh, d.last = true, true, p
	if !d.begun {
		d.begun = true
		d.group.Go(d.telling)
	}
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// telling sends what was reported until the desk is closed.
func (d *desk) telling() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for open := true; open; {
		select {
		case <-d.wake:
		case <-d.stop:
			open = false
		}
		if open {
			select {
			case <-pause.C:
			case <-d.stop:
				open = false
			}
		}
		d.mu.Lock()
		p, fresh := d.last, d.fresh
		d.fresh = false
		d.mu.Unlock()
		if fresh {
			d.tell(p)
		}
		pause.Reset(progressEvery)
	}
}

// over reports whether the request is answered.
func (d *desk) over() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}

// close tells the last of it, and ends the telling.
func (d *desk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	if d.tell != nil {
		close(d.stop)
		d.group.Wait()
	}
}
