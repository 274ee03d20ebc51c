package event

import (
	"fmt"
	"io"
	"sync"
)

// JSONL returns a sink that writes every event to w as one line of JSON, each
// line in one Write, and a function that reports the first error of w. It waits
// for w as long as w takes: see [Pipe] for a reader who may stop reading.
//
// After an error nothing more is written: a line half out is the last one. The
// run does not stop for it; who owns w asks for the error when the run is over.
//
//	sink, failed := event.JSONL(file)
//	stream := event.NewStream("run-1", time.Now, sink)
//	…
//	if err := failed(); err != nil { … }
func JSONL(w io.Writer) (sink Sink, failed func() error) {
	l := &lines{w: w}
	return l.write, l.failed
}

type lines struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

func (l *lines) write(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	line, err := lineOf(e)
	if err == nil {
		err = put(l.w, line)
	}
	if err != nil {
		l.err = fmt.Errorf("writing event %d (%s): %w", e.Seq, e.Kind, err)
	}
}

func (l *lines) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// lineOf is e as a line.
func lineOf(e Event) ([]byte, error) {
	var w writer
	err := w.event(&e)
	w.buf.WriteByte('\n')
	return w.buf.Bytes(), err
}

// put writes a line whole.
func put(w io.Writer, line []byte) error {
	n, err := w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	return err
}
