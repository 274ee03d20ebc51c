package server

import "sync/atomic"

// places are those of requests and open streams, for all clients together (I9).
type places struct {
	limit int64
	taken atomic.Int64
}

// enter takes a place, or says at once that there is none.
func (p *places) enter() bool {
	if p.taken.Add(1) > p.limit {
		p.taken.Add(-1)
		return false
	}
	return true
}

func (p *places) leave() { p.taken.Add(-1) }

// full reports whether there is no place at the moment.
func (p *places) full() bool { return p.taken.Load() >= p.limit }
