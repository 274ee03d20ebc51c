package journal

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
)

// state is what a journal has come to. It is built of the records, one after another,
// and holds as much as there are tasks and open steps; what grows with the run is in
// the table.
type state struct {
	table  *table
	header Header
	basis  map[string]string
	end    *End // of the last life; nil: it did not come to an end
	lives  int
	steps  int64 // with a result
	tasks  map[string]TaskEnd
	open   map[StepID]begun // without a result
	last   map[string]*tail // by task
}

// begun is a step that was begun.
type begun struct {
	at     int64 // offset of its record, plus one
	in     string
	kind   Kind
	effect Effect
	scope  Scope
	name   string
}

// tail is how the steps of a task end.
type tail struct {
	attempt int              // the latest
	model   *StepID          // its last step, where that is a turn of a model
	in      string           // of model
	faults  map[string]fault // turns that failed and that their scope did not get past, by in
}

type fault struct {
	id      StepID
	attempt int
}

func newState(path string) *state {
	return &state{
		table: newTable(path), tasks: map[string]TaskEnd{}, open: map[StepID]begun{}, last: map[string]*tail{},
	}
}

// add takes in a record that begins at an offset.
func (s *state) add(r *Record, offset int64) error {
	switch {
	case r.Header != nil:
		s.header, s.basis, s.lives = *r.Header, r.Header.Basis, 1
	case r.Life != nil:
		s.end = nil
		s.lives++
		if r.Life.Basis != nil {
			s.basis = r.Life.Basis
		}
		for _, b := range r.Life.Back {
			if err := s.forget(b.StepID, b.In); err != nil {
				return err
			}
		}
		return s.reopen()
	case r.Intent != nil:
		return s.begin(r.Intent, offset+1)
	case r.Result != nil:
		return s.result(r.Result, offset+1)
	case r.Task != nil:
		s.tasks[r.Task.Task] = *r.Task
	case r.End != nil:
		s.end = r.End
	}
	return nil
}

func (s *state) begin(i *Intent, at int64) error {
	first, err := idOf(i.Key, 1)
	if err != nil {
		return err
	}
	base, err := s.table.get(first)
	if err != nil {
		return err
	}
	anew := int64(i.Nth) > base.known
	base.known = max(base.known, int64(i.Nth))
	if i.Nth == 1 {
		base.begin, base.result = at, 0
	}
	if err := s.table.put(first, base); err != nil {
		return err
	}
	if i.Nth > 1 {
		nth, err := idOf(i.Key, i.Nth)
		if err != nil {
			return err
		}
		if err := s.table.put(nth, entry{begin: at}); err != nil {
			return err
		}
	}
	if _, open := s.open[i.StepID]; anew && !open {
		if err := s.count(i.In, 1); err != nil {
			return err
		}
	}
	s.open[i.StepID] = begun{at, i.In, i.Kind, i.Effect, i.Scope, i.Name}
	s.follow(i)
	return nil
}

// count adds to how many steps of a scope are known.
func (s *state) count(in string, by int64) error {
	id, err := idOf(in, 0)
	if err != nil {
		return err
	}
	e, err := s.table.get(id)
	if err != nil {
		return err
	}
	e.known += by
	e.begin = 1 // an entry that is there is not zero
	return s.table.put(id, e)
}

// follow keeps how the steps of a task end.
func (s *state) follow(i *Intent) {
	t := s.last[i.Scope.Task]
	if t == nil {
		t = &tail{faults: map[string]fault{}}
		s.last[i.Scope.Task] = t
	}
	t.attempt = max(t.attempt, i.Scope.Attempt)
	t.model, t.in = nil, ""
	if i.Kind == Model {
		t.model, t.in = &StepID{i.Key, i.Nth}, i.In
	}
	delete(t.faults, i.In)
}

func (s *state) result(r *Result, at int64) error {
	id, err := idOf(r.Key, r.Nth)
	if err != nil {
		return err
	}
	e, err := s.table.get(id)
	if err != nil {
		return err
	}
	if e.begin == 0 {
		return errors.New("a result of a step that was not begun")
	}
	e.result = at
	if err := s.table.put(id, e); err != nil {
		return err
	}
	if was, ok := s.open[r.StepID]; ok && was.kind == Model && failed(r.Outcome) {
		s.last[was.scope.Task].faults[was.in] = fault{r.StepID, was.scope.Attempt}
	}
	delete(s.open, r.StepID)
	s.steps++
	return nil
}

// failed reports whether an outcome says a failure.
func failed(outcome json.RawMessage) bool {
	var o struct {
		Fault json.RawMessage `json:"fault"`
	}
	return json.Unmarshal(outcome, &o) == nil && len(o.Fault) > 0
}

// forget has a step not be known any more.
func (s *state) forget(id StepID, in string) error {
	first, err := idOf(id.Key, 1)
	if err != nil {
		return err
	}
	base, err := s.table.get(first)
	if err != nil {
		return err
	}
	if base.known != int64(id.Nth) {
		return nil // a later one of its key was done: it is no end of anything
	}
	base.known--
	if id.Nth == 1 {
		base.result = 0
	}
	if err := s.table.put(first, base); err != nil {
		return err
	}
	delete(s.open, id)
	if in == "" {
		return nil
	}
	return s.count(in, -1)
}

// rewind leaves out what is to be done anew in the next life: what tasks that failed
// failed by, which it returns, and steps without a result that may be done twice.
func (s *state) rewind() ([]Back, error) {
	var back []Back
	for task, t := range s.last {
		if task == "" && (s.end == nil || s.end.Code == 0) || task != "" && s.tasks[task].State != TaskFailed {
			continue
		}
		n := len(back)
		for in, f := range t.faults {
			if f.attempt == t.attempt {
				back = append(back, Back{f.id, in})
			}
		}
		if n == len(back) && task != "" && t.model != nil {
			if _, open := s.open[*t.model]; !open {
				back = append(back, Back{*t.model, t.in})
			}
		}
	}
	slices.SortFunc(back, func(a, b Back) int { return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Nth, b.Nth)) })
	for _, b := range back {
		if err := s.forget(b.StepID, b.In); err != nil {
			return nil, err
		}
	}
	return back, s.reopen()
}

// reopen forgets steps without a result that may be done twice. The others stay: what
// came of them is not known.
func (s *state) reopen() error {
	for id, b := range s.open {
		if b.effect == Once {
			continue
		}
		if err := s.forget(id, b.in); err != nil {
			return err
		}
		delete(s.open, id)
	}
	return nil
}

// idOf is where the table has the nth step of a key; 0 is for a scope.
func idOf(key string, nth int) (id, error) {
	var to id
	n, err := hex.Decode(to[:], []byte(key))
	if err != nil || n != len(to) {
		return id{}, errors.New("a key that is none")
	}
	if nth != 1 {
		whole := sha256.Sum256(binary.LittleEndian.AppendUint64(to[:], uint64(nth))) //nolint:gosec // a number as good as another
		copy(to[:], whole[:])
	}
	return to, nil
}
