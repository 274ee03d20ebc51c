package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
)

// keyboard gives the lines that a person writes to whoever asks for one. A line
// that nobody waits for is dropped: it is the late answer to a question that is
// over, and must not be taken for that to the next one.
type keyboard struct {
	in io.Reader

	mu      sync.Mutex
	waiting chan string // has room for one line; nil where nobody waits
	begun   bool
	over    error // why no more lines come
}

// line returns the line that the person writes once ask has put the question. The
// wait begins before ask: who answers at once, or by a paste, is heard too. A read from a terminal
// can't be interrupted, so one reader goes on waiting in the background; it ends
// with the program, whose only reader of stdin it is.
func (k *keyboard) line(ctx context.Context, ask func()) (string, error) {
	answer := make(chan string, 1)
	k.mu.Lock()
	if k.over != nil {
		defer k.mu.Unlock()
		return "", k.over
	}
	k.waiting = answer
	if !k.begun {
		k.begun = true
		go k.read()
	}
	k.mu.Unlock()
	ask()
	select {
	case text, ok := <-answer:
		if !ok {
			k.mu.Lock()
			defer k.mu.Unlock()
			return "", k.over
		}
		return strings.TrimSpace(text), nil
	case <-ctx.Done():
		k.mu.Lock()
		defer k.mu.Unlock()
		k.waiting = nil
		return "", context.Cause(ctx)
	}
}

func (k *keyboard) read() {
	lines := bufio.NewScanner(k.in)
	for lines.Scan() {
		k.mu.Lock()
		if k.waiting != nil {
			k.waiting <- lines.Text()
			k.waiting = nil
		}
		k.mu.Unlock()
	}
	err := lines.Err()
	if err == nil {
		err = io.EOF
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = fmt.Errorf("reading the answer: %w", err)
	if k.waiting != nil {
		close(k.waiting)
		k.waiting = nil
	}
}
