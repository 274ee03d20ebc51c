package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"crewhost/runner/event"
	"crewhost/runner/llm"
)

// run is one task in the loop.
type run struct {
	*Loop
	in       Input
	model    llm.Model
	settings Settings
	set      *toolset
	system   string
	history  history
	maxIter  int
	bounded  bool // by a deadline of its own that comes before any from outside

	operation string                       // what the model is asked for, in a word
	form      func(string) (string, error) // finds what has the form in an answer; nil takes any

	beside      sync.WaitGroup // work that coworkers do while the agent goes on
	outstanding []*handover    // that work, in the order in which it was handed on
	handed      sync.Mutex
	postponed   map[string]*handover // work that is to begin after the turn's calls, by call
	handedUsage llm.Usage            // of coworkers, not yet counted
	exhausted   error                // what a budget refused a coworker

	out        Output
	unmeasured atomic.Bool     // some of what was used nobody measured
	ids        map[string]bool // of calls, within the conversation
	pieces     string          // of an answer that was cut, joined
	toolFree   bool            // whether the next turn must not call tools

	cause string // the correlation of the call that this work was handed on by
	path  string // the calls that it was handed on by
	about string // the correlation of the present turn's events

	quoted    bool   // whether a call in a code fence was handed back
	pending   Reason // what the next turn is to mend
	cuts      int    // cut turns with calls, in a row
	continued int    // times that the present answer was continued
	empties   int    // empty answers in a row
	malformed int    // turns of malformed calls alone, in a row
	alike     int    // turns that failed alike, in a row
	failure   string // how the last turn failed
	revisions int
	heard     atomic.Bool // a person has answered the agent
}

// Run does a task and returns the agent's answer. Where it does not come to
// that, the error is a [*TaskError] and the output what there was till it.
//
// Run returns when ctx ends, with [ReasonCancelled] and ctx's cause, or when the
// agent's MaxExecutionTime or the task's Timeout has passed, with
// [ReasonTimeout]. Nothing that it started runs on after it.
func (l *Loop) Run(ctx context.Context, in Input) (Output, error) {
	if in.Crew == nil || in.Agent == nil || in.Task == nil {
		return Output{}, errors.New("running a task: the input has no crew, agent or task")
	}
	r, err := l.prepare(in)
	if err != nil {
		return Output{}, err
	}
	return r.do(ctx)
}

// do is the conversation from its beginning to its end.
func (r *run) do(ctx context.Context) (Output, error) {
	start := time.Now()
	outer, _ := ctx.Deadline()
	for _, limit := range []struct {
		of    string
		after time.Duration
	}{{"agent's maxExecutionTime", r.in.Agent.MaxExecutionTime}, {"timeout", r.in.Task.Timeout}} {
		if limit.after > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit.after, &DeadlineError{limit.of, limit.after})
			defer cancel()
		}
	}
	nearest, _ := ctx.Deadline()
	r.bounded = !nearest.Equal(outer)
	outside := event.ScopeOf(ctx)
	r.cause, r.path = outside.Correlation, outside.Path
	ctx, stop := context.WithCancel(ctx)
	answer, err := r.turns(ctx)
	if err == nil {
		r.out.Text = answer
	}
	stop()
	r.beside.Wait()
	r.handed.Lock()
	r.countHanded()
	r.handed.Unlock()
	if r.unmeasured.Load() {
		r.out.Usage.Measured = false
	}
	r.out.Took = time.Since(start)
	return r.out, err
}

// prepare makes the conversation's beginning.
func (l *Loop) prepare(in Input) (*run, error) {
	model, settings, err := l.resolve(in)
	if err != nil {
		return nil, &TaskError{Reason: ReasonModel, Detail: "choosing the model", Err: err}
	}
	var own []*coworker
	if l.toolbox != nil {
		own = coworkerTools(in, l.limits.coworkers(in))
	}
	set, err := newToolset(in.Agent, in.Task, l.definitions(), l.fits.to(llm.DialectOf(model)), own...)
	if err != nil {
		return nil, err
	}
	if in.Format == nil {
		in.form = settings.Format
	}
	form, err := l.formOf(in.form)
	if err != nil {
		return nil, err
	}
	prompt, notices := l.limits.user(in, set)
	r := l.begin(in, cmp.Or(in.operation, OperationTask), set, system(in, set, settings.TextCalls), prompt)
	r.model, r.settings, r.form = model, settings, form
	for _, w := range own {
		w.run = r
	}
	for _, n := range notices {
		r.notice("%s", n)
	}
	for _, w := range set.warnings {
		r.notice("%s", w)
	}
	if n := len(set.held); n > manyTools {
		r.notice("agent %q offers %d tools to the model; many providers refuse a request with more than %d", in.Agent.Key, n, manyTools)
	}
	return r, nil
}

// formOf returns what finds the part of answers that has a form, or nil.
func (l *Loop) formOf(form *llm.ResponseFormat) (func(string) (string, error), error) {
	if form == nil || l.forms == nil {
		return nil, nil
	}
	judge, err := l.forms(*form)
	if err != nil {
		return nil, &TaskError{Reason: ReasonRejected, Detail: "the form that answers are to have", Err: err}
	}
	return judge, nil
}

// begin is a conversation of which nothing was said yet but the prompt.
func (l *Loop) begin(in Input, operation string, set *toolset, system, prompt string) *run {
	in.Attempt = max(in.Attempt, 1)
	r := &run{
		Loop: l, in: in, set: set, system: system, operation: operation,
		history: history{
			maxMessages: l.limits.HistoryMessages, maxChars: l.limits.HistoryChars,
			task: llm.User(prompt),
		},
		maxIter: in.Agent.MaxIter,
		ids:     make(map[string]bool),
	}
	if r.maxIter <= 0 {
		r.maxIter = defaultMaxIter
	}
	return r
}

// turns asks the model until it has answered.
func (r *run) turns(ctx context.Context) (string, error) {
	for r.out.Turns < r.maxIter {
		res, err := r.ask(ctx)
		if err != nil {
			return "", err
		}
		answer, done, err := r.take(ctx, res)
		if err != nil {
			return "", err
		}
		if done {
			return answer, nil
		}
	}
	switch r.pending {
	case ReasonEmptyAnswer:
		return "", r.emptyAnswer()
	case ReasonCut:
		return "", fail(ReasonCut, "the answer was cut at the token limit and maxIter (%d) leaves no turn to go on; raise maxTokens", r.maxIter)
	}
	if r.maxIter == 1 {
		return "", fail(ReasonMaxIterations, "no answer after the one call to the model that maxIter allows")
	}
	return "", fail(ReasonMaxIterations, "no answer after %d calls to the model (maxIter)", r.maxIter)
}

// ask has the model say the next thing. Where the vendor finds the conversation
// too long for the model, it is shortened and sent once more.
func (r *run) ask(ctx context.Context) (*llm.Response, error) {
	if n := r.history.trim(); n > 0 {
		r.notice("the conversation grew too long: its %d oldest messages are left out", n)
	}
	toolFree := r.toolFree
	r.toolFree = false
	res, err := r.request(ctx, toolFree)
	if !isTooLong(err) {
		return res, err
	}
	left, cut := r.history.shrink()
	switch {
	case left == 0 && cut == 0:
		return nil, &TaskError{Reason: ReasonTooLong, Detail: "the task does not fit into the model's context, and nothing in it can be left out", Err: err}
	case r.out.Turns >= r.maxIter:
		return nil, &TaskError{Reason: ReasonTooLong, Detail: fmt.Sprintf("maxIter (%d) leaves no turn to ask again with less", r.maxIter), Err: err}
	case left > 0:
		r.notice("the conversation is too long for the model: its %d oldest messages are left out", left)
	default:
		r.notice("the conversation is too long for the model: %d results of tools are shortened", cut)
	}
	res, err = r.request(ctx, toolFree)
	if isTooLong(err) {
		return nil, &TaskError{Reason: ReasonTooLong, Detail: "the conversation does not fit into the model's context, also when shortened", Err: err}
	}
	return res, err
}

func isTooLong(err error) bool {
	var refusal *llm.APIError
	return errors.As(err, &refusal) && refusal.TooLong()
}

// request is one call to the model.
func (r *run) request(ctx context.Context, toolFree bool) (*llm.Response, error) {
	if err := r.wait(ctx); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ended(ctx)
	}
	r.out.Turns++
	req := llm.Request{
		Model:       r.settings.Model,
		System:      r.system,
		Messages:    r.history.messages(),
		Tools:       r.offered(),
		Temperature: r.settings.Temperature,
		TopP:        r.settings.TopP,
		MaxTokens:   r.settings.MaxTokens,
		Thinking:    r.settings.Thinking,
		Format:      r.settings.Format,
		Cache:       r.settings.Cache,
	}
	if toolFree && len(req.Tools) > 0 {
		req.ToolChoice = llm.ToolNone
	}
	if r.settings.TextCalls && len(r.set.held) > 0 {
		req.Format = nil // a form of the text would leave no room for calls in it
	}
	r.about = r.events.ID()
	if r.stream {
		req.OnDelta = func(d llm.Delta) {
			if d.Text != "" {
				r.emit(event.Event{Kind: event.ModelDelta, Correlation: r.about, Turn: r.out.Turns, Text: d.Text})
			}
		}
	}
	r.emit(event.Event{Kind: event.ModelCalled, Correlation: r.about, Turn: r.out.Turns, Provider: r.settings.Provider, Model: r.settings.Model, Operation: r.operation})
	start := time.Now()
	res, err := r.model.Generate(event.NewContext(ctx, r.asking()), req)
	if err == nil && res == nil {
		err = errors.New("the model returned nothing")
	}
	returned := event.Event{
		Kind: event.ModelReturned, Correlation: r.about, Turn: r.out.Turns, Provider: r.settings.Provider, Model: r.settings.Model, Operation: r.operation,
		DurationMS: time.Since(start).Milliseconds(), Success: new(err == nil),
	}
	if err != nil {
		failure := &TaskError{Reason: ReasonModel, Detail: "asking the model", Err: err}
		if late := lateBy(err); late != nil {
			failure = late
		} else if ctx.Err() != nil {
			failure = ended(ctx)
		}
		returned.Error = line(failure.Error(), "")
		r.emit(returned)
		return nil, failure
	}
	if res.Model != "" {
		r.out.Model = res.Model
		returned.Model = res.Model
	}
	returned.Stop = string(res.Stop)
	used := res.Usage
	if !used.Measured {
		used = used.Add(res.Estimate)
		returned.EstimatedTokens = res.Estimate.Input + res.Estimate.Output
	}
	returned.InputTokens, returned.OutputTokens, returned.CacheHitTokens = used.Input, used.Output, used.CacheRead
	if c := res.Charge; c != nil {
		returned.Cost, returned.Currency, returned.CostSource = c.Amount.Float(), c.Currency, c.Source
	}
	r.emit(returned)
	if err := r.spent(req, *res); err != nil {
		return nil, err
	}
	return res, nil
}

// asking is where a model is asked.
func (r *run) asking() event.Scope {
	return event.Scope{
		Task: r.in.Task.Key, Agent: r.in.Agent.Key, Role: r.in.Agent.Role.V, Attempt: r.in.Attempt,
		Correlation: r.about, Operation: r.operation, Path: r.path,
	}
}

// take judges an answer of the model: done with it, or one more turn.
func (r *run) take(ctx context.Context, res *llm.Response) (answer string, done bool, err error) {
	msg := res.Message
	msg.Role = llm.RoleAssistant
	text := msg.Text()
	blank := strings.TrimSpace(text) == ""
	written, said, torn := r.writtenIn(msg)
	if strings.TrimSpace(said) != "" {
		// The last text is what a task that fails leaves.
		r.out.Text = r.pieces + said
	}
	switch {
	case res.Stop == llm.StopFilter:
		return "", false, fail(ReasonFiltered, "the provider withheld the answer, or the model refused (%s)", res.Stop)
	case res.Stop == llm.StopLength && len(msg.Calls)+len(written) > 0, torn:
		return "", false, r.handBackCut(msg, said, written)
	case len(msg.Calls) > 0:
		r.pieces, r.continued, r.cuts, r.empties, r.pending = "", 0, 0, 0, ""
		return "", false, r.callTools(ctx, msg)
	case len(written) > 0 && r.pending != ReasonEmptyAnswer:
		r.pieces, r.continued, r.cuts, r.pending = "", 0, 0, ""
		return "", false, r.callWritten(ctx, msg, written)
	case res.Stop == llm.StopLength && !blank, blank && r.pieces != "":
		return "", false, r.goOn(msg, blank)
	case blank || r.pending == ReasonEmptyAnswer && (len(written) > 0 || mimicsCall(text)):
		return "", false, r.askAgain()
	case len(r.set.held) > 0 && !r.quoted && quotesCall(text):
		return "", false, r.handBackQuoted(msg)
	}
	r.empties, r.pending = 0, ""
	return r.finish(ctx, msg, r.pieces+text)
}

// finish ends the task, unless the answer is refused and may be revised.
func (r *run) finish(ctx context.Context, msg llm.Message, answer string) (string, bool, error) {
	if len(r.outstanding) > 0 {
		if r.out.Turns < r.maxIter {
			return "", false, r.join(ctx, msg)
		}
		r.notice("maxIter (%d) leaves no turn for the agent to read what its coworkers did beside", r.maxIter)
	}
	answer, err := r.accept(ctx, answer)
	switch {
	case err == nil:
		return answer, true, nil
	case ctx.Err() != nil:
		return "", false, ended(ctx)
	case r.revisions >= r.limits.Revisions:
		return "", false, &TaskError{Reason: ReasonRejected, Detail: "the answer is not what the task asks for", Err: err}
	}
	r.revisions++
	r.pieces, r.continued = "", 0
	r.notice("the answer is handed back: %s", line(err.Error(), ""))
	r.history.add(msg, llm.User(fmt.Sprintf("This can't be taken as the answer: %s. Mend that, then answer again, whole.", strings.TrimRight(err.Error(), ". \n"))))
	return "", false, nil
}

// accept judges an answer, and returns what of it counts. A task with humanInput
// is not done before a person has been asked: that the prompt says so is no proof
// that it happened.
func (r *run) accept(ctx context.Context, answer string) (string, error) {
	if r.in.Task.HumanInput && !r.heard.Load() {
		return "", fmt.Errorf("the task wants a person's word first (humanInput), and no person has answered %s", r.set.wireName(humanInput))
	}
	if r.form != nil {
		formed, err := r.form(answer)
		if err != nil {
			return "", err
		}
		answer = formed
	}
	if r.in.Accept == nil {
		return answer, nil
	}
	return answer, r.in.Accept(ctx, answer)
}

func (r *run) emit(e event.Event) {
	e.Task, e.Agent, e.Role, e.Attempt = r.in.Task.Key, r.in.Agent.Key, r.in.Agent.Role.V, r.in.Attempt
	if e.Cause == "" {
		e.Cause = r.cause
	}
	r.events.Emit(e)
}

// notice says something that a person should know.
func (r *run) notice(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.log.Debug(text, "task", r.in.Task.Key, "agent", r.in.Agent.Key)
	r.emit(event.Event{Kind: event.Notice, Text: text})
}
