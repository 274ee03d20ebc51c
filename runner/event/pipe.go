package event

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// PipeConfig is how a [Pipe] deals with its reader.
type PipeConfig struct {
	// Backlog is how many bytes may wait for the reader before the run does; 0
	// is 8 MiB.
	Backlog int
	// Patience is how long the run, or the end of it, waits for a reader who
	// takes nothing; 0 is a minute.
	Patience time.Duration
	// Hurry, once it is closed, leaves a twentieth of Patience.
	Hurry <-chan struct{}
	// Lost, where set, is told once that the reader is gone or has stopped
	// reading. It must not use the Pipe, nor a stream that leads to it.
	Lost func(error)
}

// Pipe writes events as lines of JSON to a program that may read slowly, or stop,
// or be gone. A slow reader holds up nothing until the backlog is full, and then
// the run; one that takes nothing for as long as Patience is lost. Once the
// reader is lost, everything is dropped: a line half out is the last one.
type Pipe struct {
	w   io.Writer
	cfg PipeConfig

	mu     sync.Mutex
	queue  [][]byte
	bytes  int // of queue, and of the line that is being written
	closed bool
	err    error
	more   chan struct{} // has room for one: queue or closed has changed
	moved  chan struct{} // closed when a line is out, and made anew
	done   chan struct{} // closed when nothing more is written
}

// NewPipe returns a pipe to w. Who made it closes it. A Write of w that never
// returns outlives the pipe; w's owner ends it.
func NewPipe(w io.Writer, cfg PipeConfig) *Pipe {
	if cfg.Backlog <= 0 {
		cfg.Backlog = 8 << 20
	}
	if cfg.Patience <= 0 {
		cfg.Patience = time.Minute
	}
	p := &Pipe{
		w: w, cfg: cfg,
		more: make(chan struct{}, 1), moved: make(chan struct{}), done: make(chan struct{}),
	}
	go p.write() // joined by Close
	return p
}

// Send is the [Sink].
func (p *Pipe) Send(e Event) {
	line, err := lineOf(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.fail(fmt.Errorf("writing event %d (%s): %w", e.Seq, e.Kind, err))
	}
	for p.err == nil && p.bytes > 0 && p.bytes+len(line) > p.cfg.Backlog {
		p.wait(p.moved)
	}
	if p.err != nil || p.closed {
		return
	}
	p.queue = append(p.queue, line)
	p.bytes += len(line)
	p.wake()
}

// Close waits until everything is written, or the reader is lost, and returns
// why it is.
func (p *Pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.wake()
	for p.err == nil && p.bytes > 0 {
		p.wait(p.moved)
	}
	if p.err == nil {
		p.mu.Unlock()
		<-p.done
		p.mu.Lock()
	}
	return p.err
}

// Err returns why the reader is lost, or nil.
func (p *Pipe) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// wait waits until a line is out, or loses the reader. The caller holds mu.
func (p *Pipe) wait(moved <-chan struct{}) {
	p.mu.Unlock()
	stalled := p.stalled(moved)
	p.mu.Lock()
	if stalled && moved == p.moved {
		p.fail(fmt.Errorf("nobody reads the events: nothing was taken in the last %v", p.cfg.Patience))
	}
}

func (p *Pipe) stalled(moved <-chan struct{}) bool {
	timer := time.NewTimer(p.cfg.Patience)
	defer timer.Stop()
	hurry := p.cfg.Hurry
	for {
		select {
		case <-moved:
			return false
		case <-timer.C:
			return true
		case <-hurry:
			hurry = nil
			timer.Reset(p.cfg.Patience / 20)
		}
	}
}

// fail loses the reader. The caller holds mu.
func (p *Pipe) fail(err error) {
	if p.err != nil {
		return
	}
	p.err, p.queue, p.bytes = err, nil, 0
	p.move()
	p.wake()
	if p.cfg.Lost != nil {
		p.cfg.Lost(err)
	}
}

func (p *Pipe) move() {
	close(p.moved)
	p.moved = make(chan struct{})
}

func (p *Pipe) wake() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// write writes what is queued until the pipe is closed and empty, or the reader
// is lost.
func (p *Pipe) write() {
	defer close(p.done)
	for range p.more {
		for {
			line, over := p.next()
			if over {
				return
			}
			if line == nil {
				break
			}
			p.wrote(line, put(p.w, line))
		}
	}
}

// next takes a line from the queue; nil where there is none yet.
func (p *Pipe) next() (line []byte, over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil || p.closed && len(p.queue) == 0:
		return nil, true
	case len(p.queue) == 0:
		return nil, false
	}
	line, p.queue = p.queue[0], p.queue[1:]
	return line, false
}

func (p *Pipe) wrote(line []byte, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
	case err != nil:
		p.fail(fmt.Errorf("writing the events: %w", err))
	default:
		p.bytes -= len(line)
		p.move()
	}
}
