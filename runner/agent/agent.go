// Package agent is the loop in which an agent of a crew does one task: the model
// is asked, the tools that it calls are run, their results go back to the model,
// until it answers.
//
// The loop knows neither policy nor servers. It gets models through a function,
// runs tools through a [Toolbox], which decides what may run, and says what it
// does as events. Every path out of it is bounded, and each that is no answer is
// a [*TaskError] with a [Reason]:
//
//   - at most the agent's maxIter calls to the model, and the deadlines of the
//     task and the agent;
//   - a turn that fails with the same errors three times over stops the task;
//   - an answer cut at the token limit is continued, an empty one asked for
//     again, a malformed call handed back, each a few times only (K71, K75);
//   - an answer without the form that it is to have, or that the caller does not
//     accept, is handed back with what is wrong, as often as Limits says;
//   - a conversation that grows too long, also by the word of the model's vendor,
//     loses its oldest turns, with a notice.
//
// Tools of one answer run concurrently; their results reach the model in the
// order of its calls. Only the tools that the agent and the task name are ever
// shown to the model or run (K27, K69).
//
// A model without calls of its own is told in the prompt how to call in its text;
// such calls are understood from any model. What only quotes one is none: in a
// code fence, or a passage of what the agent was given to read.
//
// An agent with allowDelegation gets two more tools, which ask another agent of
// the crew a question or hand it work. The other one works in a conversation of
// its own within the call. None is asked that waits for the answer itself.
//
// [Loop.Ask] puts a question that is no task: in an agent's role, without tools.
//
//	loop, err := agent.New(agent.Config{
//		Models:      func(string) (llm.Model, agent.Settings, error) { return model, agent.Settings{}, nil },
//		Toolbox:     guard,
//		Definitions: registry.Definitions,
//	})
//	out, err := loop.Run(ctx, agent.Input{Crew: c, Agent: a, Task: t})
package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// Toolbox runs tools. It is where calls are judged: the loop passes on every
// well-formed call of a tool that the agent holds. It must allow concurrent
// calls.
type Toolbox interface {
	// Call runs a tool by its registered name. A failure of the tool, or a
	// refusal, may be a result with IsError or an error; the model reads
	// either. The run goes on unless ctx has ended.
	Call(ctx context.Context, call tools.Call) (tools.Result, error)

	// CallTool does the same for a tool that is not registered: those by which
	// agents put work to one another.
	CallTool(ctx context.Context, tool tools.Tool, call tools.Call) (tools.Result, error)
}

// Config is what a [Loop] works with.
type Config struct {
	// Models returns the model of a profile and the settings that it starts
	// with. The empty profile is the default one. It is asked once a task.
	Models func(profile string) (llm.Model, Settings, error)

	// Toolbox runs the tools, and Definitions describes them, sorted by name.
	// Both may be nil where no agent holds a tool.
	Toolbox     Toolbox
	Definitions func() []tools.Definition

	// Forms returns what finds, in answers that are to have a form which the crew
	// or the settings ask for, the part that has it: the task's answer. It is nil
	// where any answer will do. Not every model keeps to the form that it is asked
	// for. A nil Forms judges none.
	Forms func(llm.ResponseFormat) (func(answer string) (string, error), error)

	// Known returns further parts of the prompt of work that one agent hands to
	// another: what that one remembers of it and can look up. For tasks it is the
	// caller who says in [Input]. A nil Known returns none.
	Known func(ctx context.Context, a *crew.Agent, t *crew.Task) []Section

	// Handing is told of work that one agent hands to another, as it begins: the work is
	// done in the context that it returns, and ended told how it ended. Nil: nobody is.
	Handing func(ctx context.Context, a *crew.Agent, t *crew.Task) (_ context.Context, ended func(error))

	// Answered reports whether the answer to what is asked next, in the scope of the
	// context, is known already: such a turn asks nobody, and waits for no maxRpm. Nil:
	// none is.
	Answered func(context.Context) bool

	Events *event.Stream // nil: dropped
	Logger *slog.Logger  // nil: discard
	Stream bool          // answers are asked for as streams and told as model.delta events
	Limits Limits
}

// Limits bound a task. A zero field means its default.
type Limits struct {
	ConcurrentCalls int // tools of one answer that run at once; 8

	ResultChars     int            // characters of a tool's result that reach the model; 4,000
	ResultCharsOf   map[string]int // the same by tool, where it bounds its results itself; coworkers' answers 32,000
	ResultDataBytes int            // bytes of an image in a result; 5 MiB

	DependencyChars int // characters of the outputs of all dependencies in a prompt; 32,000
	PriorChars      int // characters of all other earlier outputs in a prompt; 8,000
	SectionChars    int // characters of all sections in a prompt; 32,000

	HistoryMessages int // messages of a conversation before its oldest are left out; 100
	HistoryChars    int // characters of a conversation before its oldest are left out; 400,000

	Continuations   int // times that an answer cut at the token limit is continued; 3
	DelegationDepth int // agents that may wait for one another; 5

	Revisions int // times that a refused answer is handed back; 2
}

func (l Limits) withDefaults() Limits {
	return Limits{
		ConcurrentCalls: cmp.Or(l.ConcurrentCalls, 8),
		ResultChars:     cmp.Or(l.ResultChars, 4_000),
		ResultCharsOf:   l.ResultCharsOf,
		ResultDataBytes: cmp.Or(l.ResultDataBytes, 5<<20),
		DependencyChars: cmp.Or(l.DependencyChars, 32_000),
		PriorChars:      cmp.Or(l.PriorChars, 8_000),
		SectionChars:    cmp.Or(l.SectionChars, 32_000),
		HistoryMessages: cmp.Or(l.HistoryMessages, 100),
		HistoryChars:    cmp.Or(l.HistoryChars, 400_000),
		Continuations:   cmp.Or(l.Continuations, 3),
		DelegationDepth: cmp.Or(l.DelegationDepth, 5),
		Revisions:       cmp.Or(l.Revisions, 2),
	}
}

// resultChars is how much of a tool's result reaches the model.
func (l Limits) resultChars(tool string) int {
	if n, ok := l.ResultCharsOf[tool]; ok {
		return n
	}
	switch tool {
	case AskCoworker, DelegateWork:
		return max(l.ResultChars, 32_000)
	}
	return l.ResultChars
}

// Bounds that no setting changes.
const (
	sameErrors     = 3   // turns that fail alike, then the task stops
	malformedTurns = 3   // turns of malformed calls alone, then the task stops
	callsOfTurn    = 128 // calls of one turn that are run
	cutCalls       = 2   // cut turns with calls that are handed back, then the task stops
	emptyAnswers   = 2   // empty answers that are asked for again, then the task stops
	manyTools      = 128 // tools above which providers refuse a request (K27)
	defaultMaxIter = 20
)

// Loop runs tasks of one run. It is safe for concurrent use: each task has its
// own conversation, and only the rate limits are shared.
type Loop struct {
	models      func(string) (llm.Model, Settings, error)
	toolbox     Toolbox
	definitions func() []tools.Definition
	forms       func(llm.ResponseFormat) (func(string) (string, error), error)
	known       func(context.Context, *crew.Agent, *crew.Task) []Section
	answered    func(context.Context) bool
	handing     func(context.Context, *crew.Agent, *crew.Task) (context.Context, func(error))
	events      *event.Stream
	log         *slog.Logger
	stream      bool
	limits      Limits
	fits        fitter

	mu       sync.Mutex
	limiters map[any]*rate.Limiter // by *crew.Crew and *crew.Agent
}

// New returns a loop. It fails only if cfg is incomplete.
func New(cfg Config) (*Loop, error) {
	switch {
	case cfg.Models == nil:
		return nil, errors.New("making an agent loop: no models")
	case (cfg.Toolbox == nil) != (cfg.Definitions == nil):
		return nil, errors.New("making an agent loop: a toolbox and its definitions go together")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Definitions == nil {
		cfg.Definitions = func() []tools.Definition { return nil }
	}
	return &Loop{
		models: cfg.Models, toolbox: cfg.Toolbox, definitions: cfg.Definitions, forms: cfg.Forms, known: cfg.Known, handing: cfg.Handing, answered: cfg.Answered,
		events: cfg.Events, log: cfg.Logger, stream: cfg.Stream,
		limits:   cfg.Limits.withDefaults(),
		limiters: make(map[any]*rate.Limiter),
	}, nil
}

// Input is one task to do. Crew, Agent and Task must be set.
type Input struct {
	Crew  *crew.Crew
	Agent *crew.Agent
	Task  *crew.Task
	// Inputs are the variables of the run; the prompt lists them, sorted.
	Inputs crew.Inputs
	// Prior are the outputs of earlier tasks, in the order of their execution.
	Prior []Prior
	// Sections are further parts of the prompt, in order: a plan, a manager's
	// feedback, memories, excerpts of documents.
	Sections []Section
	// Attempt counts the tries of the task from 1; 0 is 1.
	Attempt int
	// Schema is the JSON Schema that the answer must hold to, for the prompt;
	// empty where there is none.
	Schema json.RawMessage
	// Format, where set, is asked of the model's API in place of what the
	// settings say. It is Accept that holds the answer to it.
	Format *llm.ResponseFormat
	// Accept judges an answer before the task ends. What its error says goes
	// back to the model, Limits.Revisions times at most; then the task fails
	// with [ReasonRejected]. Nil accepts any answer.
	Accept func(ctx context.Context, answer string) error
	// Budget, where set, bounds what the task uses.
	Budget Budget

	form      *llm.ResponseFormat // that the settings ask for, where there is no Format
	operation string              // what the model is asked for; empty: [OperationTask]
	chain     []*crew.Agent       // who handed this on, from the first; they wait for it
}

// Section is a titled part of a prompt beside the task itself.
type Section struct {
	Title string
	Text  string
}

// Prior is the output of an earlier task.
type Prior struct {
	Task  string // key
	Agent string // key
	Text  string
}

// Output is what came of a task. With an error it holds what there was till then.
type Output struct {
	Text      string    // the answer, or the last text of a task that failed
	Usage     llm.Usage // with that of coworkers
	Turns     int       // the agent's own calls to its model
	ToolCalls int       // the agent's own calls that reached the toolbox
	Model     string
	Took      time.Duration
}
