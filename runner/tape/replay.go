package tape

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"crewhost/runner/event"
	"crewhost/runner/journal"
)

// Options say how a tape is replayed.
type Options struct {
	// Mask hides secrets in what the run asks, as they were on the tape.
	Mask func(string) string
	// Tell is called where events have come to be due; see [event.Stream.Catch].
	Tell func()
	// Stop is called once with the first divergence, to end the run.
	Stop func(error)
	// Interrupt is called where the recorded run was interrupted; nil: nobody is told.
	Interrupt func()
	// Carry says which steps are done, too, beside being looked up: what came of them
	// must be what stands on the tape. Nil: none.
	Carry func(journal.Step) bool
	// From is the step from which on the run is live: steps before it come from the
	// tape, and events are told as they come. 0: none is live.
	From int
	// Patience is how long nothing may happen in a run that waits for what stands next
	// on the tape, as far as the program is let do anything; 0 is ten seconds.
	Patience time.Duration
}

// Replay holds a run against a tape, once. It is the [journal.Steps] of the run and
// the [event.Script] of its stream, and safe for concurrent use.
type Replay struct {
	tape *Tape
	opts Options

	mu      sync.Mutex
	begun   bool                 // the run has
	changed bool                 // the crew is not the one on the tape
	off     error                // why nothing is held against the tape any more
	live    bool                 // from Options.From on
	front   int                  // all items before it have happened
	acts    int                  // what the run has asked and told
	asked   []bool               // steps, by number
	byAsk   map[string][]*record // steps that the run asks for, by what they ask
	release map[int]chan struct{}
	waiting int // steps that wait for the end of the run, as they did
	events  []heard
	byKey   map[string][]int // events of the run, by what they say
	told    int              // events that were told
	later   []event.Event    // that nothing is held against
	ids     map[string]string
	back    map[string]string
	moved   chan struct{} // closed when front moves, and made anew
	unruly  bool          // the recorded run was interrupted, and that has been told
}

// heard is an event of the tape.
type heard struct {
	told *event.Event
	line int
	item int // its place
	from origin
	is   *event.Event // as the run emits it; nil: it has not yet
}

// origin is who emits an event.
type origin int

const (
	fromRun    origin = iota
	fromWorld         // it is told as it was
	fromStream        // it follows from the one before
	fromAside         // what something took that no agent asked for: a step is given back before it is told
)

// Replay begins a replay of the tape.
func (t *Tape) Replay(opts Options) *Replay {
	if opts.Tell == nil {
		opts.Tell = func() {}
	}
	if opts.Stop == nil {
		opts.Stop = func(error) {}
	}
	if opts.Patience <= 0 {
		opts.Patience = 10 * time.Second
	}
	opts.Mask = scrubbed(opts.Mask)
	p := &Replay{
		tape: t, opts: opts, asked: make([]bool, len(t.steps)+1), byAsk: map[string][]*record{}, release: map[int]chan struct{}{},
		byKey: map[string][]int{}, ids: map[string]string{}, back: map[string]string{}, moved: make(chan struct{}),
	}
	for _, r := range t.steps {
		if r.Within == 0 {
			p.byAsk[r.key] = append(p.byAsk[r.key], r)
		}
	}
	running := false
	for i, at := range t.items {
		running = running || at.run
		if at.told == nil {
			continue
		}
		h := heard{told: at.told, line: at.line, item: i}
		switch {
		case !running || ofTheWorld(*at.told):
			h.from = fromWorld
		case len(p.events) > 0 && follows(*p.events[len(p.events)-1].told, *at.told):
			h.from = fromStream
		case at.told.Kind == event.CostUpdated:
			h.from = fromAside
		}
		if h.from == fromRun || h.from == fromAside {
			key := p.saying(*at.told)
			p.byKey[key] = append(p.byKey[key], len(p.events))
		}
		p.events = append(p.events, h)
	}
	return p
}

// ofTheWorld reports whether an event says what the world did, and not the run.
func ofTheWorld(e event.Event) bool {
	switch e.Kind {
	case event.RunStarted, event.ModelDelta, event.ToolProgress, event.MCPServer, event.MCPStartup,
		event.InputNeeded, event.InputGiven, event.ApprovalNeeded, event.ApprovalGiven:
		return true
	case event.Notice:
		return e.Code != "" // of a command, or of what is known before the run
	}
	return false
}

// follows reports whether a stream tells e of its own accord after the event before.
func follows(before, e event.Event) bool {
	switch before.Kind {
	case event.TaskFailed, event.TaskSkipped:
		return e.Kind == event.TaskCompleted
	case event.ModelReturned:
		return e.Kind == event.CostUpdated && e.Cause == before.Correlation && before.Success != nil && *before.Success
	}
	return false
}

// bare is an event without what differs from run to run.
func bare(e event.Event) event.Event {
	e.V, e.Seq, e.Time, e.Run, e.DurationMS, e.Correlation, e.Cause = 0, 0, time.Time{}, "", 0, "", ""
	return e
}

// saying is what an event says, without the sums that a stream puts into it.
func (p *Replay) saying(e event.Event) string {
	e = bare(e)
	if e.Kind == event.CostUpdated || e.Kind == event.RunFinished {
		e = event.Event{Kind: e.Kind, Task: e.Task, Operation: e.Operation, Model: e.Model, Provider: e.Provider, ExitCode: e.ExitCode}
	}
	text, _ := e.MarshalJSON()
	return string(journal.Mask(text, p.opts.Mask))
}

// Crew says which crew is run, by the digest of what it says; [Run.Digest] is that of the
// tape. That it is another one is no divergence, but may be why there is one.
func (p *Replay) Crew(digest string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.tape.Run.Digest
	p.changed = was != "" && was != digest
}

// Begin says that the run begins: what was told before it is told now.
func (p *Replay) Begin() {
	p.mu.Lock()
	p.begun = true
	p.move()
	p.mu.Unlock()
	p.opts.Tell()
}

// Err returns the first divergence, or nil.
func (p *Replay) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.off, errAside) {
		return nil
	}
	return p.off
}

// Live reports whether the run has gone past [Options.From].
func (p *Replay) Live() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live
}

// Finish says that the run is over, and returns the first divergence: a tape must be
// used up to there.
func (p *Replay) Finish() error {
	p.opts.Tell()
	p.mu.Lock()
	if p.off == nil && p.opts.From == 0 {
		for _, h := range p.events {
			if h.from == fromAside && h.is == nil {
				p.front = min(p.front, h.item)
			}
		}
		if p.front < len(p.tape.items) && !p.epilogue(p.front) || !p.tape.Complete() {
			p.diverge(p.missing())
		}
	}
	p.mu.Unlock()
	return p.Err()
}

// epilogue reports whether nothing is left from an item on but what a program says
// after its run.
func (p *Replay) epilogue(i int) bool {
	for _, at := range p.tape.items[i:] {
		if at.told == nil {
			return false
		}
		switch at.told.Kind {
		case event.RunOutput, event.Failure, event.RunFinished, event.Notice, event.MCPServer:
		default:
			return false
		}
	}
	return true
}

// Leave says that there is no run: what happens from now on is told as it comes.
func (p *Replay) Leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.begun && p.off == nil {
		p.off = errAside
	}
}

var errAside = errors.New("there is no run")

// Diverge has a divergence be the first one, if there was none.
func (p *Replay) Diverge(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.diverge(err)
	return p.off
}

// diverge ends the replay. The caller holds mu.
func (p *Replay) diverge(err error) {
	if p.off != nil || err == nil {
		return
	}
	if d := (*DivergenceError)(nil); errors.As(err, &d) {
		d.Changed = p.changed
	}
	p.off = err
	p.opts.Stop(err)
	p.wake()
}

func (p *Replay) wake() {
	close(p.moved)
	p.moved = make(chan struct{})
}

// Do implements [journal.Steps].
func (p *Replay) Do(ctx context.Context, s journal.Step, do func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	r, err := p.find(s)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return do(ctx)
	}
	p.opts.Tell()
	if err := p.await(ctx, r); err != nil {
		return nil, err
	}
	switch {
	case p.opts.From > 0 && (r.Done == nil || r.Done.Open != ""):
		p.mu.Lock()
		p.goLive()
		p.mu.Unlock()
		return do(ctx)
	case r.Done == nil:
		return nil, p.Diverge(&IncompleteError{p.tape.Name, len(p.tape.steps)})
	case r.Done.Open != "":
		return nil, p.open(ctx, r)
	case p.opts.Carry != nil && p.opts.Carry(s):
		return r.Done.Outcome, p.carry(ctx, r, do)
	}
	return r.Done.Outcome, nil
}

// find looks a step up. It is nil where the step is to be done.
func (p *Replay) find(s journal.Step) (*record, error) {
	key, err := keyOf(masked(s, p.opts.Mask))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts++
	switch {
	case p.off != nil:
		return nil, p.off
	case p.live:
		return nil, nil
	case err != nil:
		p.diverge(err)
		return nil, p.off
	}
	if left := p.byAsk[key]; len(left) > 0 {
		r := left[0]
		if p.opts.From > 0 && r.N >= p.opts.From {
			p.goLive()
			return nil, nil
		}
		p.byAsk[key] = left[1:]
		p.asked[r.N] = true
		p.release[r.N] = make(chan struct{})
		p.move()
		return r, nil
	}
	if p.opts.From > 0 && p.past() {
		p.goLive()
		return nil, nil
	}
	p.diverge(p.unlike(masked(s, p.opts.Mask), key))
	return nil, p.off
}

// past reports whether no step before [Options.From] is left. The caller holds mu.
func (p *Replay) past() bool {
	for _, r := range p.tape.steps {
		if r.N < p.opts.From && r.Within == 0 && !p.asked[r.N] {
			return false
		}
	}
	return true
}

// goLive has all further steps be done. Those that wait for what stands before them
// on the tape have waited long enough. The caller holds mu.
func (p *Replay) goLive() {
	p.live = true
	for n, ch := range p.release {
		close(ch)
		delete(p.release, n)
	}
	p.wake()
}

// await waits until all that stands before the end of a step has happened.
func (p *Replay) await(ctx context.Context, r *record) error {
	p.mu.Lock()
	released, waits := p.release[r.N]
	p.mu.Unlock()
	if !waits {
		return nil
	}
	lull := p.lull()
	defer lull.Stop()
	for {
		p.mu.Lock()
		moved, off := p.moved, p.off
		p.mu.Unlock()
		if off != nil {
			return off
		}
		select {
		case <-released:
			return nil
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-lull.C:
			p.mu.Lock()
			if lull.over() && p.waiting == 0 {
				if err := p.missing(); err != nil {
					p.diverge(err)
				}
			}
			p.mu.Unlock()
		}
	}
}

// lull is how long a run has done nothing. It is counted in short ticks, of which those
// are lost in which the program was not let run: one that was stopped, or that has a
// busy machine to itself but now and then, is not taken for one that stands still.
type lull struct {
	*time.Ticker
	p     *Replay
	acts  int
	ticks int // since the run has done something
}

const lullTicks = 100 // of a lull that is too long

func (p *Replay) lull() *lull {
	return &lull{Ticker: time.NewTicker(max(p.opts.Patience/lullTicks, 1)), p: p, acts: -1}
}

// over counts a tick, and reports whether the lull is too long. The caller holds mu of
// the replay.
func (l *lull) over() bool {
	if l.acts != l.p.acts {
		l.acts, l.ticks = l.p.acts, 0
	}
	l.ticks++
	return l.ticks > lullTicks
}

// open waits, as the recorded run did, for the end that came before the step's.
func (p *Replay) open(ctx context.Context, r *record) error {
	p.mu.Lock()
	p.waiting++
	interrupt := p.tape.End != nil && p.tape.End.Exit == interrupted && !p.unruly
	p.unruly = p.unruly || interrupt
	p.mu.Unlock()
	if interrupt && p.opts.Interrupt != nil {
		p.opts.Interrupt()
	}
	lull := p.lull()
	defer lull.Stop()
	for {
		select {
		case <-ctx.Done():
			return &cutError{r.Done.Open, context.Cause(ctx)}
		case <-lull.C:
			p.mu.Lock()
			over := lull.over()
			p.mu.Unlock()
			if !over {
				continue
			}
			return p.Diverge(&DivergenceError{
				Tape: p.tape.Name, Line: r.line, Step: r.N, Task: r.Scope.Task, Agent: r.Scope.Agent,
				What: fmt.Sprintf("it is not stopped, as that one was in %s: %s", stepName(r.Kind, r.Name), r.Done.Open),
			})
		}
	}
}

const interrupted = 130 // the exit code

// cutError is the end of a step that the end of the run has cut off, as it was said.
type cutError struct {
	text  string
	cause error
}

func (e *cutError) Error() string { return e.text }
func (e *cutError) Unwrap() error { return e.cause }

// carry does a step, too, and holds what comes of it against the tape.
func (p *Replay) carry(ctx context.Context, r *record, do func(context.Context) (json.RawMessage, error)) error {
	outcome, err := do(ctx)
	if err != nil {
		return err
	}
	want, err := canonical(r.Done.Outcome)
	if err != nil {
		return err
	}
	got, err := canonical(journal.Mask(outcome, p.opts.Mask))
	if err != nil || bytes.Equal(want, got) {
		return err
	}
	return p.Diverge(&DivergenceError{
		Tape: p.tape.Name, Line: r.line, Step: r.N, Task: r.Scope.Task, Agent: r.Scope.Agent,
		What: fmt.Sprintf("%s was carried out, and something else came of it", stepName(r.Kind, r.Name)),
		Diff: difference(p.tape.Name, r.line, string(want), string(got)),
	})
}

// move lets the front go as far as things have happened. The caller holds mu.
func (p *Replay) move() {
	if !p.begun || p.off != nil {
		return
	}
	from, next := p.front, p.nextEvent(p.front)
	for ; p.front < len(p.tape.items); p.front++ {
		at := p.tape.items[p.front]
		if at.told != nil {
			h := &p.events[next]
			if p.opts.From == 0 && h.from == fromRun && h.is == nil {
				break
			}
			next++
			continue
		}
		if r := at.step; r != nil && r.Within == 0 && !p.asked[r.N] {
			break
		}
		if r := at.done; r != nil && r.Within == 0 {
			if ch, ok := p.release[r.N]; ok {
				close(ch)
				delete(p.release, r.N)
			}
		}
	}
	if p.front == len(p.tape.items) { // steps that the tape has no end of
		for n, ch := range p.release {
			close(ch)
			delete(p.release, n)
		}
	}
	if p.front > from {
		p.wake()
	}
}

// nextEvent is the first event that stands at an item or after it.
func (p *Replay) nextEvent(at int) int {
	low, high := 0, len(p.events)
	for low < high {
		if mid := (low + high) / 2; p.events[mid].item < at {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// Hear implements [event.Script].
func (p *Replay) Hear(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts++
	switch {
	case p.off != nil:
		p.later = append(p.later, e)
		return
	case !p.begun, ofTheWorld(e):
		return
	}
	key := p.saying(e)
	for _, i := range p.byKey[key] {
		if h := &p.events[i]; h.is == nil && p.fits(e, *h.told) {
			own := e
			h.is = &own
			p.pair(e.Correlation, h.told.Correlation)
			p.pair(e.Cause, h.told.Cause)
			p.move()
			return
		}
	}
	p.diverge(p.untold(e))
	p.later = append(p.later, e)
}

// fits reports whether an event of the run can be one of the tape: its numbers stand
// for the same as before.
func (p *Replay) fits(e, told event.Event) bool {
	same := func(own, recorded string) bool {
		known, ok := p.ids[own]
		if !ok {
			_, taken := p.back[recorded]
			return !taken && (own == "") == (recorded == "")
		}
		return known == recorded
	}
	return same(e.Correlation, told.Correlation) && same(e.Cause, told.Cause)
}

func (p *Replay) pair(own, recorded string) {
	if own != "" {
		p.ids[own], p.back[recorded] = recorded, own
	}
}

// Due implements [event.Script]. After a divergence what the run tells is told as it
// comes, so that all that began in it ends.
func (p *Replay) Due() []event.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	var due []event.Event
	for ; p.told < len(p.events); p.told++ {
		h := &p.events[p.told]
		switch own := h.from == fromRun || h.from == fromAside; {
		case p.off == nil && (h.item >= p.front || own && h.is == nil):
			return due
		case own && h.is != nil:
			due = append(due, *h.is)
		case h.from == fromWorld && (p.off == nil || errors.Is(p.off, errAside) && h.item < p.startup()):
			due = append(due, *h.told)
		}
	}
	due, p.later = append(due, p.later...), nil
	return due
}

// startup is the item with which the run begins.
func (p *Replay) startup() int {
	for i, at := range p.tape.items {
		if at.run {
			return i
		}
	}
	return len(p.tape.items)
}

// known is a number of the run as it was told, and one that never was in a form that
// the tape has not.
func (p *Replay) known(id string) string {
	if told, ok := p.ids[id]; ok || id == "" {
		return told
	}
	return "live-" + id
}

// Stamp implements [event.Script].
func (p *Replay) Stamp(e event.Event) event.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off != nil {
		e.Run, e.Correlation, e.Cause = p.tape.Start.Run, p.known(e.Correlation), p.known(e.Cause)
		return e
	}
	if e.Seq < 1 || e.Seq > int64(len(p.events)) {
		p.diverge(p.untold(e))
		return e
	}
	h := p.events[e.Seq-1]
	e.Time, e.Run, e.DurationMS, e.Correlation, e.Cause = h.told.Time, h.told.Run, h.told.DurationMS, h.told.Correlation, h.told.Cause
	got, _ := e.MarshalJSON()
	want, _ := h.told.MarshalJSON()
	if got = journal.Mask(got, p.opts.Mask); !bytes.Equal(got, want) {
		p.diverge(&DivergenceError{
			Tape: p.tape.Name, Line: h.line, Step: p.before(h.item), Task: e.Task, Agent: e.Agent,
			What: fmt.Sprintf("the event %s is another", e.Kind), Diff: difference(p.tape.Name, h.line, string(want), string(got)),
		})
	}
	return e
}

// Tape returns the tape.
func (p *Replay) Tape() *Tape { return p.tape }

// From returns the step from which on the run is live; 0: none is.
func (p *Replay) From() int { return p.opts.From }

// Result holds what the run came to against what it came to on the tape.
func (p *Replay) Result(want, got json.RawMessage) error {
	got = journal.Mask(got, p.opts.Mask)
	if bytes.Equal(want, got) {
		return nil
	}
	return p.Diverge(&DivergenceError{
		Tape: p.tape.Name, What: "it comes to something else", Diff: difference(p.tape.Name, p.tape.resultLine, string(want), string(got)), Line: p.tape.resultLine,
	})
}
