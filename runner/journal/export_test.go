package journal

import (
	"bufio"
	"encoding/json"
	"io"
)

// Line is the first line of a journal, or the one of that number after none.
func Line(b []byte, seq int64, record string) []byte {
	return appendLine(b, seq, sum{}.next(seq, []byte(record)), []byte(record))
}

// Synthesize writes the journal of a run of so many steps, each with two records, at
// once.
func Synthesize(w io.Writer, h Header, steps int, step func(i int) Step, outcome json.RawMessage) error {
	out := bufio.NewWriterSize(w, 1<<20)
	var seq int64
	var last sum
	var line []byte
	put := func(r Record) error {
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		seq++
		last = last.next(seq, body)
		line = appendLine(line[:0], seq, last, body)
		_, err = out.Write(line)
		return err
	}
	h.Version = Version
	if err := put(Record{Header: &h}); err != nil {
		return err
	}
	for i := range steps {
		s := step(i)
		id := StepID{s.key(), 1}
		if err := put(Record{Intent: &Intent{StepID: id, In: s.in(), Kind: s.Kind, Scope: s.Scope, Name: s.Name, Effect: s.Effect, Request: s.Request}}); err != nil {
			return err
		}
		if err := put(Record{Result: &Result{id, outcome}}); err != nil {
			return err
		}
	}
	return out.Flush()
}
