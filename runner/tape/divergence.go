package tape

import (
	"encoding/json"
	"fmt"
	"strings"

	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/llm/replay"
)

// DivergenceError is the first thing in which a run is not the one on the tape.
type DivergenceError struct {
	Tape string
	Line int // of the tape, of what was expected or is nearest; 0: there is nothing like it
	Step int // the step there, or the last before it
	Task string
	// Agent is the one in whose work it is; empty: no agent's.
	Agent string
	What  string // one line
	// Changed says that the crew says something else than it did when it was recorded.
	Changed bool
	// Diff is how what the run does (+) differs from the tape (-): lines, and at most a
	// screen or two of them. Error leaves it out.
	Diff string
}

// Error says all but the difference, in one line.
func (e *DivergenceError) Error() string {
	var b strings.Builder
	b.WriteString("the run is not the one on the tape: " + e.What)
	var where []string
	if e.Task != "" {
		where = append(where, "task "+e.Task)
	}
	if e.Agent != "" {
		where = append(where, "agent "+e.Agent)
	}
	if e.Step > 0 {
		where = append(where, fmt.Sprintf("step %d", e.Step))
	}
	if e.Line > 0 {
		where = append(where, fmt.Sprintf("%s:%d", e.Tape, e.Line))
	} else {
		where = append(where, e.Tape)
	}
	fmt.Fprintf(&b, " (%s)", strings.Join(where, ", "))
	if e.Changed {
		b.WriteString("; the crew has been changed since")
	}
	return b.String()
}

// IncompleteError says that a run has come to the end of a tape that is not complete.
type IncompleteError struct {
	Tape  string
	Steps int
}

// Error says where the tape ends.
func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the tape %s is not complete: it ends after step %d, in the middle of its run", e.Tape, e.Steps)
}

// stepName names a step, for people.
func stepName(kind journal.Kind, name string) string {
	if name == "" {
		return string(kind)
	}
	return string(kind) + " " + name
}

// asks is what a step asks, laid out for people.
func asks(s journal.Step) string {
	request, err := canonical(s.Request)
	if err != nil {
		request = s.Request
	}
	text, err := encode(struct {
		Kind    journal.Kind    `json:"kind"`
		Scope   journal.Scope   `json:"scope"`
		Name    string          `json:"name,omitempty"`
		Request json.RawMessage `json:"request,omitempty"`
	}{s.Kind, s.Scope, s.Name, request})
	if err != nil {
		return string(s.Request)
	}
	return string(text)
}

func (r *record) step() journal.Step {
	return journal.Step{Kind: r.Kind, Scope: r.Scope, Name: r.Name, Request: r.Request, Effect: r.Effect}
}

// difference shows how JSON that the run has differs from that of a line of the tape.
func difference(tape string, line int, want, got string) string {
	return replay.Difference(fmt.Sprintf("%s:%d", tape, line), want, "the run", got)
}

// unlike is the divergence of a step that is not on the tape. The nearest record is,
// among those that are left, the first of the same kind in the same work, else of the
// same kind, else of all.
func (p *Replay) unlike(s journal.Step, key string) error {
	e := &DivergenceError{Tape: p.tape.Name, Task: s.Scope.Task, Agent: s.Scope.Agent}
	var nearest *record
	best, used := -1, (*record)(nil)
	for _, r := range p.tape.steps {
		if r.Within > 0 {
			continue
		}
		if p.asked[r.N] {
			if r.key == key {
				used = r
			}
			continue
		}
		if n := nearness(r, s); n > best {
			nearest, best = r, n
		}
	}
	switch {
	case nearest == nil && !p.tape.Complete():
		return &IncompleteError{p.tape.Name, len(p.tape.steps)}
	case nearest == nil:
		e.What = fmt.Sprintf("%s is asked for, and no step is left", stepName(s.Kind, s.Name))
		e.Diff = replay.Difference("the tape", "", "the run", asks(s))
	default:
		e.Line, e.Step = nearest.line, nearest.N
		e.What = fmt.Sprintf("%s asks for what is not on the tape; the nearest is %s", stepName(s.Kind, s.Name), stepName(nearest.Kind, nearest.Name))
		e.Diff = difference(p.tape.Name, nearest.line, asks(nearest.step()), asks(s))
	}
	if used != nil {
		e.What += fmt.Sprintf("; step %d is the same, and was asked for already", used.N)
	}
	return e
}

func nearness(r *record, s journal.Step) int {
	n := 0
	for i, same := range []bool{
		r.Scope.Operation == s.Scope.Operation && r.Scope.Attempt == s.Scope.Attempt, r.Name == s.Name,
		r.Scope.Agent == s.Scope.Agent, r.Scope.Task == s.Scope.Task, r.Kind == s.Kind,
	} {
		if same {
			n |= 1 << i
		}
	}
	return n
}

// untold is the divergence of an event that is not on the tape.
func (p *Replay) untold(e event.Event) error {
	if p.front >= len(p.tape.items) && !p.tape.Complete() {
		return &IncompleteError{p.tape.Name, len(p.tape.steps)}
	}
	d := &DivergenceError{Tape: p.tape.Name, Task: e.Task, Agent: e.Agent, Step: p.before(p.front)}
	d.What = fmt.Sprintf("the event %s is not on the tape", e.Kind)
	got := says(e)
	for i := range p.events {
		r := &p.events[i]
		if r.is != nil || r.from != fromRun || r.told.Kind != e.Kind || r.told.Task != e.Task || r.told.Agent != e.Agent {
			continue
		}
		d.Line = r.line
		d.What += " as the run tells it"
		d.Diff = difference(p.tape.Name, r.line, says(*r.told), got)
		return d
	}
	d.Diff = replay.Difference("the tape", "", "the run", got)
	return d
}

// says is what an event says, laid out for people, without what differs from run to
// run.
func says(e event.Event) string {
	text, _ := bare(e).MarshalJSON()
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return string(text)
	}
	for _, name := range []string{"v", "seq", "ts", "crewId", "durationMs"} {
		delete(members, name)
	}
	text, _ = encode(members) // members of JSON
	return string(text)
}

// missing is the divergence of a run that does not come to what stands next on the
// tape.
func (p *Replay) missing() error {
	switch over := p.front >= len(p.tape.items); {
	case !p.tape.Complete() && (over || p.epilogue(p.front)):
		return &IncompleteError{p.tape.Name, len(p.tape.steps)}
	case over:
		return nil
	}
	at := p.tape.items[p.front]
	d := &DivergenceError{Tape: p.tape.Name, Line: at.line, Step: p.before(p.front)}
	switch {
	case at.told != nil:
		d.Task, d.Agent = at.told.Task, at.told.Agent
		d.What = fmt.Sprintf("it does not come to the event %s", at.told.Kind)
		d.Diff = difference(p.tape.Name, at.line, says(*at.told), "")
	case at.step != nil:
		r := at.step
		d.Task, d.Agent, d.Step = r.Scope.Task, r.Scope.Agent, r.N
		d.What = fmt.Sprintf("it does not come to %s", stepName(r.Kind, r.Name))
		d.Diff = difference(p.tape.Name, at.line, asks(r.step()), "")
	case at.done != nil:
		d.Step = at.done.N
		d.What = fmt.Sprintf("it does not come to the end of %s", stepName(at.done.Kind, at.done.Name))
	default:
		d.What = "it does not begin"
	}
	return d
}

// before is the last step that begins before an item.
func (p *Replay) before(i int) int {
	for i = min(i, len(p.tape.items)-1); i >= 0; i-- {
		if s := p.tape.items[i].step; s != nil {
			return s.N
		}
	}
	return 0
}
