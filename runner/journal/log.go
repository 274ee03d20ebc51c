package journal

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Config says where journals are, and how they are written.
type Config struct {
	Dir string // of all journals; it is made where it is missing, for its owner alone
	// Mask returns a text without the secrets in it; nil: as it is.
	Mask func(string) string
	// Unknown is asked about a step that an earlier life of the run began, of which
	// nobody knows what came of it, and which may not be done twice. Nil as its error
	// has the step done again. Without Unknown none is.
	Unknown func(context.Context, Step) error
	// Write writes a line to the end of a journal; nil: as files are written. Tests
	// stop there.
	Write func(f *os.File, line []byte) error
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// The files of a run. The lock stays where it is: who removes one may take it from
// under another that waits for it.
const (
	extension     = ".jsonl"
	lockExtension = ".lock"
)

// Log is the journal of one run, open for writing: the [Steps] of the run. What it
// knows of earlier lives is not done again.
type Log struct {
	cfg   Config
	path  string
	file  *os.File
	lock  *flock.Flock
	fresh bool // the run is in its first life

	syncing sync.Mutex // held while the file is synced
	synced  int64      // the end of what is on the disk; 0: not even the file's name

	mu       sync.Mutex
	state    *state
	restored int // steps that were not done again
	seq      int64
	sum      sum
	end      int64 // of the file
	err      error // what went wrong; nothing is written after
}

// Create begins the journal of a new run. It fills in the version and, where they are
// empty, the id and the time.
func Create(cfg Config, h Header) (_ *Log, err error) {
	cfg = cfg.withDefaults()
	h.Version = Version
	if h.At.IsZero() {
		h.At = cfg.Now().UTC()
	}
	if h.Run == "" {
		h.Run = NewID(h.At)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of journals: %w", err)
	}
	path := filepath.Join(cfg.Dir, h.Run+extension)
	lock, err := hold(strings.TrimSuffix(path, extension))
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, path: path, lock: lock, fresh: true, state: newState(strings.TrimSuffix(path, extension))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	l.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the journal: %w", err)
	}
	for name, value := range h.Inputs {
		if masked := cfg.Mask(value); masked != value {
			h.Withheld = append(h.Withheld, name)
		}
	}
	return l, l.append(&Record{Header: &h}, false)
}

// NewID makes the id of a run that begins at a time: ids sort by time.
func NewID(at time.Time) string {
	return strings.ReplaceAll(at.UTC().Format("20060102-150405.000"), ".", "") + "-" + strings.ToLower(rand.Text()[:6])
}

// Open opens the journal of a run to resume it. It reads all of it, and refuses one
// that is damaged, or that another process holds. Nothing is written before
// [Log.Resume].
func Open(cfg Config, run string) (_ *Log, err error) {
	cfg = cfg.withDefaults()
	path, err := find(cfg.Dir, run)
	if err != nil {
		return nil, err
	}
	lock, err := hold(strings.TrimSuffix(path, extension))
	if err != nil {
		return nil, err
	}
	removeIndex(strings.TrimSuffix(path, extension))
	l := &Log{cfg: cfg, path: path, lock: lock, state: newState(strings.TrimSuffix(path, extension))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if l.file, err = os.OpenFile(path, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("opening the journal: %w", err)
	}
	r := NewReader(l.file)
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = l.state.add(&record, r.begin)
		}
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", run, err)
		}
	}
	if r.seq == 0 {
		return nil, fmt.Errorf("run %s: its journal is empty: the run was cut short before it began", run)
	}
	l.seq, l.sum, l.end = r.seq, r.sum, r.offset
	return l, nil
}

func (c Config) withDefaults() Config {
	if c.Mask == nil {
		c.Mask = func(s string) string { return s }
	}
	if c.Write == nil {
		c.Write = func(f *os.File, line []byte) error {
			_, err := f.Write(line)
			return err
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// BusyError says that another process has a run in hand.
type BusyError struct{ Run string }

// Error names the run.
func (e *BusyError) Error() string {
	return fmt.Sprintf("run %s is in the hands of another crewhost, which is still at it", e.Run)
}

// hold takes the lock of a journal, which stands beside it.
func hold(path string) (*flock.Flock, error) {
	lock := flock.New(path+lockExtension, flock.SetPermissions(0o600))
	for range lookers {
		ours, err := lock.TryLock()
		switch {
		case err != nil:
			return nil, fmt.Errorf("locking the journal: %w", err)
		case ours:
			return lock, nil
		}
		<-time.After(lookerTime)
	}
	return nil, &BusyError{filepath.Base(path)}
}

// Who lists runs holds a lock for as long as it takes to see that it is free.
const (
	lookers    = 10
	lookerTime = 10 * time.Millisecond
)

// Header returns what the run began with.
func (l *Log) Header() Header { return l.state.header }

// Basis returns what the run depends on, as it was found or accepted last.
func (l *Log) Basis() map[string]string { return l.state.basis }

// Ended returns how the last life of the run ended; nil: it was cut short.
func (l *Log) Ended() *End { return l.state.end }

// Path is that of the file.
func (l *Log) Path() string { return l.path }

// Done returns how many steps have a result, and what became of tasks.
func (l *Log) Done() (steps int64, tasks map[string]TaskEnd) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.steps, maps.Clone(l.state.tasks)
}

// Restored returns how many steps of this life were not done again.
func (l *Log) Restored() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.restored
}

// Ahead reports whether more steps of a kind are known in a scope than were asked for in
// this life. Of work whose steps follow from one another the next one is known then.
func (l *Log) Ahead(kind Kind, scope Scope) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh {
		return false
	}
	in, err := idOf(Step{Kind: kind, Scope: scope}.in(), 0)
	if err != nil {
		return false
	}
	e, err := l.state.table.get(in)
	return err == nil && e.known > e.taken
}

// OnUnknown sets who is asked about steps of which nobody knows what came of them; see
// [Config].
func (l *Log) OnUnknown(ask func(context.Context, Step) error) { l.cfg.Unknown = ask }

// Resume begins the next life of a run.
func (l *Log) Resume(life Life) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	back, err := l.state.rewind()
	if err != nil {
		return err
	}
	if err := l.file.Truncate(l.end); err != nil { // what was torn
		return fmt.Errorf("writing the journal: %w", err)
	}
	if _, err := l.file.Seek(l.end, io.SeekStart); err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	life.Back = back
	l.state.end, l.state.lives = nil, l.state.lives+1
	if life.Basis != nil {
		l.state.basis = life.Basis
	}
	_, err = l.line(&Record{Life: &life})
	return err
}

// Task notes what became of a task.
func (l *Log) Task(t TaskEnd) error { return l.append(&Record{Task: &t}, false) }

// End notes how the run ended. All is on the disk then.
func (l *Log) End(e End) error { return l.append(&Record{End: &e}, true) }

// Close closes the journal, which others may take then. A second time it does nothing.
func (l *Log) Close() error {
	var errs []error
	if l.file != nil {
		errs = append(errs, l.file.Close())
		l.file = nil
	}
	errs = append(errs, l.state.table.close(), l.lock.Close())
	return errors.Join(errs...)
}

// Do implements [Steps].
func (l *Log) Do(ctx context.Context, s Step, live func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	intent := Intent{
		StepID: StepID{Key: s.key()}, In: s.in(),
		Kind: s.Kind, Scope: s.Scope, Name: s.Name, Effect: s.Effect, Request: s.Request,
	}
	known, err := l.take(&intent)
	switch {
	case err != nil:
		return nil, err
	case known.result > 0:
		return l.outcome(known.result - 1)
	case known.begin > 0 && s.Effect == Once:
		if l.cfg.Unknown == nil {
			return nil, &UnknownError{s}
		}
		if err := l.cfg.Unknown(ctx, s); err != nil {
			return nil, err
		}
	}
	// What may be done once is known to have been begun, whatever happens to the machine.
	// Its result waits for the next one that goes to the disk: if the power goes before,
	// it is not known, and asked about.
	if err := l.append(&Record{Intent: &intent}, s.Effect == Once); err != nil {
		return nil, err
	}
	outcome, err := live(ctx)
	if err != nil {
		return nil, err
	}
	kept := Mask(outcome, l.cfg.Mask)
	if err := l.append(&Record{Result: &Result{intent.StepID, kept}}, false); err != nil {
		return nil, err
	}
	return outcome, nil
}

// UnknownError says that a step was begun before, that nobody knows what came of it,
// and that it may not be done twice.
type UnknownError struct{ Step Step }

// Error names the step and its task.
func (e *UnknownError) Error() string {
	of := ""
	if e.Step.Scope.Task != "" {
		of = fmt.Sprintf(" of task %q", e.Step.Scope.Task)
	}
	return fmt.Sprintf("the call of the tool %q%s was begun when the run was cut short, and whether it was done is not known", e.Step.Name, of)
}

// take finds out which step of its key this is, and what is known of it. An error is
// a [*DivergenceError] or of the file.
func (l *Log) take(i *Intent) (known entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return entry{}, l.err
	}
	first, err := idOf(i.Key, 1)
	if err != nil {
		return entry{}, err
	}
	base, err := l.state.table.get(first)
	if err != nil {
		return entry{}, err
	}
	base.taken++
	i.Nth = int(base.taken)
	if err := l.state.table.put(first, base); err != nil {
		return entry{}, err
	}
	if l.fresh {
		return entry{}, nil
	}
	in, err := idOf(i.In, 0)
	if err != nil {
		return entry{}, err
	}
	scope, err := l.state.table.get(in)
	if err != nil {
		return entry{}, err
	}
	scope.taken++
	if err := l.state.table.put(in, scope); err != nil {
		return entry{}, err
	}
	switch {
	case base.taken <= base.known && i.Nth == 1:
		known = base
	case base.taken <= base.known:
		nth, err := idOf(i.Key, i.Nth)
		if err != nil {
			return entry{}, err
		}
		if known, err = l.state.table.get(nth); err != nil {
			return entry{}, err
		}
	case scope.known >= scope.taken && i.ordered():
		l.err = l.diverged(i, scope.taken)
		return entry{}, l.err
	}
	if known.result > 0 {
		l.restored++
	}
	return known, nil
}

// ordered reports whether the steps of this one's scope follow from one another, so
// that one which is not known cannot stand where another one did.
func (i *Intent) ordered() bool {
	switch i.Kind {
	case Model:
		return i.Scope.Operation != "sample" // a server may ask for several at once
	case Tool, Approval:
		return true
	default:
		return false
	}
}

// outcome reads the result that begins at an offset.
func (l *Log) outcome(offset int64) (json.RawMessage, error) {
	record, err := l.at(offset)
	switch {
	case err != nil:
		return nil, err
	case record.Result == nil:
		return nil, errors.New("reading the journal: there is no result where one was")
	}
	return record.Result.Outcome, nil
}

// at reads the record that begins at an offset. It was judged when the journal was
// opened, and no other process writes to it.
func (l *Log) at(offset int64) (record Record, err error) {
	in := bufio.NewReader(io.NewSectionReader(l.file, offset, maxLine))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return record, fmt.Errorf("reading the journal: %w", err)
	}
	var whole struct {
		Record *Record `json:"record"`
	}
	whole.Record = &record
	if err := json.Unmarshal(line, &whole); err != nil {
		return record, fmt.Errorf("reading the journal: %w", err)
	}
	return record, nil
}

// append writes a record, and has it on the disk before it returns where durable is
// set.
func (l *Log) append(r *Record, durable bool) error {
	l.mu.Lock()
	if l.err != nil && !(r.End != nil && errors.As(l.err, new(*DivergenceError))) { // that it ended so is on record
		defer l.mu.Unlock()
		return l.err
	}
	at := l.end
	end, err := l.line(r)
	if err == nil {
		if err = l.state.add(r, at); err != nil {
			l.err = err
		}
	}
	l.mu.Unlock()
	if err != nil || !durable {
		return err
	}
	return l.sync(end)
}

// line writes a record and returns where it ends. The lock is held.
func (l *Log) line(r *Record) (int64, error) {
	r.At = l.cfg.Now().UTC()
	if r.Header != nil {
		own := *r.Header
		own.Inputs = nil
		for name, value := range r.Header.Inputs {
			if own.Inputs == nil {
				own.Inputs = map[string]string{}
			}
			own.Inputs[name] = l.cfg.Mask(value)
		}
		r.Header = &own
	}
	inner, err := json.Marshal(r)
	if err != nil {
		return 0, fmt.Errorf("writing the journal: %w", err)
	}
	if r.Intent == nil && r.Result == nil { // those are masked already
		inner = Mask(inner, l.cfg.Mask)
	}
	own := l.sum.next(l.seq+1, inner)
	line := appendLine(make([]byte, 0, len(inner)+64), l.seq+1, own, inner)
	if err := l.cfg.Write(l.file, line); err != nil {
		l.err = fmt.Errorf("writing the journal: %w", err)
		return 0, l.err
	}
	l.seq, l.sum, l.end = l.seq+1, own, l.end+int64(len(line))
	return l.end, nil
}

// sync has all up to an offset be on the disk. Whoever waits meanwhile is served by
// the next one together.
func (l *Log) sync(upTo int64) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	if l.synced >= upTo {
		return nil
	}
	l.mu.Lock()
	end := l.end
	l.mu.Unlock()
	err := l.file.Sync()
	if err == nil && l.synced == 0 {
		err = syncFolder(l.cfg.Dir)
	}
	if err != nil {
		err = fmt.Errorf("writing the journal: %w", err)
		l.mu.Lock()
		l.err = err
		l.mu.Unlock()
		return err
	}
	l.synced = end
	return nil
}

// syncFolder has the names of the files in a folder be on the disk. Where folders can't
// be synced, the system sees to it, or nobody can.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EINVAL) || errors.Is(err, os.ErrPermission) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
