package tape

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/llm/replay"
)

// Tape is a recording that was read. It is not changed by what replays it.
type Tape struct {
	Name   string // of the file
	Start  Start
	Host   json.RawMessage
	Run    *Run            // nil: no run had begun
	Result json.RawMessage // nil: the run was not over
	End    *End            // nil: the tape is not complete

	resultLine int

	items []item // all that happened, in order
	steps []*record
}

// item is a line that replay goes by.
type item struct {
	line int
	told *event.Event // an event
	run  bool         // the run begins
	step *record      // a step begins
	done *record      // a step ends
}

// record is a step with what came of it.
type record struct {
	Step
	Done *Done // nil: the tape ends before
	line int
	key  string
}

// Complete reports whether the tape goes on to the end of its run.
func (t *Tape) Complete() bool { return t.End != nil }

// Steps returns the steps on the tape.
func (t *Tape) Steps() []Recorded {
	all := make([]Recorded, len(t.steps))
	for i, r := range t.steps {
		all[i] = Recorded{r.Step, r.Done, r.line}
	}
	return all
}

// Recorded is a step on a tape, with what came of it where that is there.
type Recorded struct {
	Step
	Done *Done
	Line int
}

// Open reads the tape in a file.
func Open(path string) (*Tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a tape: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a tape. The name stands for it in errors, which begin with name:line. A
// tape that ends early is read as far as it goes, without a last line that is cut.
func Read(r io.Reader, name string) (*Tape, error) { return read(r, name, maxLine, maxTape) }

// read is Read, and takes so many bytes of a line and of the whole.
func read(r io.Reader, name string, longest, most int64) (*Tape, error) {
	b := &reader{tape: &Tape{Name: name}}
	limited := &io.LimitedReader{R: r, N: most + 1}
	in := bufio.NewReaderSize(limited, 64<<10)
	for n := 1; ; n++ {
		text, err := readLine(in, int(longest))
		switch {
		case limited.N == 0:
			return nil, fmt.Errorf("%s: the tape is longer than %d MiB", name, most>>20)
		case errors.Is(err, errTooLong):
			return nil, fmt.Errorf("%s:%d: the line is longer than %d MiB", name, n, longest>>20)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("reading tape %s: %w", name, err)
		}
		whole := err == nil
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		text = bytes.TrimSpace(text)
		switch {
		case len(text) == 0 && whole:
			continue
		case len(text) == 0:
			return b.finish()
		}
		if err := b.take(n, text); err != nil {
			if !whole && b.begun && !json.Valid(text) {
				return b.finish() // what a crash has left
			}
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		if !whole {
			return b.finish()
		}
	}
}

var errTooLong = errors.New("too long")

// readLine returns the next line. What comes with an error is the last one, which does
// not end.
func readLine(in *bufio.Reader, longest int) ([]byte, error) {
	var text []byte
	for {
		part, err := in.ReadSlice('\n')
		text = append(text, part...)
		if len(text) > longest {
			return nil, errTooLong
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}

// reader puts a tape together.
type reader struct {
	tape  *Tape
	begun bool
	seq   int64
}

func (b *reader) take(n int, text []byte) error {
	if !b.begun {
		b.begun = true
		return readHeader(text)
	}
	var l line
	if err := replay.Strictly(text, &l); err != nil {
		return err
	}
	if members(l) != 1 {
		return errors.New("a line has one member: start, event, host, run, step, done, result or end")
	}
	t := b.tape
	switch {
	case t.End != nil:
		return errors.New("there is something after the end")
	case l.Start != nil:
		if t.Start.Run != "" || len(t.items) > 0 {
			return errors.New("start comes first, and once")
		}
		if l.Start.Run == "" {
			return errors.New("start has no run")
		}
		t.Start = *l.Start
		return nil
	case t.Start.Run == "":
		return errors.New("the second line must be start")
	case l.Event != nil:
		return b.event(n, l.Event)
	case l.Host != nil:
		if t.Host != nil || t.Run != nil {
			return errors.New("host comes once, and before the run")
		}
		t.Host = l.Host
	case l.Run != nil:
		if t.Host == nil || t.Run != nil {
			return errors.New("run comes once, and after the host")
		}
		t.Run = l.Run
		t.items = append(t.items, item{line: n, run: true})
	case t.Run == nil && l.End == nil:
		return errors.New("steps and results come after the run has begun")
	case l.Step != nil:
		return b.step(n, *l.Step)
	case l.Done != nil:
		return b.done(n, *l.Done)
	case l.Result != nil:
		if t.Result != nil {
			return errors.New("result comes once")
		}
		t.Result, t.resultLine = l.Result, n
	default:
		t.End = l.End
	}
	return nil
}

func (b *reader) event(n int, raw json.RawMessage) error {
	e, err := event.Parse(raw)
	if err != nil {
		return err
	}
	if b.seq++; e.Seq != b.seq {
		return fmt.Errorf("this is event %d, and it says that it is %d", b.seq, e.Seq)
	}
	b.tape.items = append(b.tape.items, item{line: n, told: &e})
	return nil
}

func (b *reader) step(n int, s Step) error {
	t := b.tape
	switch {
	case s.N != len(t.steps)+1:
		return fmt.Errorf("this is step %d, and it says that it is %d", len(t.steps)+1, s.N)
	case s.Kind == "":
		return errors.New("the step has no kind")
	case s.Within < 0 || s.Within >= s.N:
		return fmt.Errorf("step %d can't be within step %d", s.N, s.Within)
	}
	r := &record{Step: s, line: n}
	var err error
	if r.key, err = keyOf(journal.Step{Kind: s.Kind, Scope: s.Scope, Name: s.Name, Request: s.Request}); err != nil {
		return err
	}
	t.steps = append(t.steps, r)
	t.items = append(t.items, item{line: n, step: r})
	return nil
}

func (b *reader) done(n int, d Done) error {
	t := b.tape
	if d.N < 1 || d.N > len(t.steps) {
		return fmt.Errorf("there is no step %d", d.N)
	}
	r := t.steps[d.N-1]
	switch {
	case r.Done != nil:
		return fmt.Errorf("step %d has ended already", d.N)
	case (len(d.Outcome) == 0) == (d.Open == ""):
		return fmt.Errorf("the end of step %d has either an outcome or open", d.N)
	}
	r.Done = &d
	t.items = append(t.items, item{line: n, done: r})
	return nil
}

func (b *reader) finish() (*Tape, error) {
	switch t := b.tape; {
	case !b.begun:
		return nil, fmt.Errorf("%s:1: the tape is empty", t.Name)
	case t.Run == nil:
		return nil, fmt.Errorf("%s: no run is on the tape: it ends before the run began", t.Name)
	default:
		return t, nil
	}
}

// FormError says that a file is a tape of another form.
type FormError struct{ Version int }

// Error says which, and what reads it.
func (e *FormError) Error() string {
	if e.Version == 1 {
		return "this is a tape of a model alone (version 1), not of a whole run: a profile with llm.provider: replay and llm.tape answers from it; " +
			"--record makes tapes of whole runs"
	}
	return fmt.Sprintf("the tape has version %d, and this program reads version %d", e.Version, tapeVersion)
}

func readHeader(text []byte) error {
	var h struct {
		header
		// Of version 1.
		Dialect json.RawMessage `json:"schema_dialect"`
	}
	if err := replay.Strictly(text, &h); err != nil || h.Tape != tapeName {
		return fmt.Errorf(`not a tape: the first line must be {"tape":%q,"version":%d}`, tapeName, tapeVersion)
	}
	if h.Version != tapeVersion {
		return &FormError{h.Version}
	}
	return nil
}

func members(l line) int {
	n := 0
	for _, there := range []bool{
		l.Start != nil, l.Event != nil, l.Host != nil, l.Run != nil, l.Step != nil, l.Done != nil, l.Result != nil, l.End != nil,
	} {
		if there {
			n++
		}
	}
	return n
}

// keyOf is the same for steps that ask the same: whatever the order of keys and the
// spaces in a request.
func keyOf(s journal.Step) (string, error) {
	request, err := canonical(s.Request)
	if err != nil {
		return "", err
	}
	text, err := encode(struct {
		Kind    journal.Kind
		Scope   journal.Scope
		Name    string
		Request json.RawMessage
	}{s.Kind, s.Scope, s.Name, request})
	return string(text), err
}

// canonical is JSON with its keys in order and its numbers digit for digit.
func canonical(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return json.RawMessage("null"), nil
	}
	text, err := replay.Canonical(raw)
	if err != nil {
		return nil, fmt.Errorf("the request of a step is no JSON: %w", err)
	}
	return text, nil
}
