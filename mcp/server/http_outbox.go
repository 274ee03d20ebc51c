package server

import (
	"container/list"
	"sync"
)

// An outbox is the answers that clients have yet to take. Together they hold no more
// bytes than was allowed for: where one more comes, those that are on their way
// longest are given up, since who reads is soon done. Small ones are not counted.
type outbox struct {
	mu      sync.Mutex
	left    int
	waiting list.List // of *outgoing, the longest first
}

type outgoing struct {
	size   int
	giveUp func()
}

// put has giveUp called, from any goroutine, if these many bytes are to make way
// before taken is called.
func (o *outbox) put(size int, giveUp func()) (taken func()) {
	if size <= freeBytes {
		return func() {}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.left < size && o.waiting.Len() > 0 {
		o.removeLocked(o.waiting.Front()).giveUp()
	}
	o.left -= size
	at := o.waiting.PushBack(&outgoing{size: size, giveUp: giveUp})
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.removeLocked(at)
	}
}

// removeLocked takes one out, if it is still there.
func (o *outbox) removeLocked(at *list.Element) *outgoing {
	one := at.Value.(*outgoing)
	if o.waiting.Remove(at); one.size > 0 {
		o.left += one.size
		one.size = 0
	}
	return one
}
