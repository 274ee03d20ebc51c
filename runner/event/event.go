// Package event is what a run says while it goes, and what it can be told: kinds
// of events, each a flat record with who and when, the [Sink] that takes them,
// and the [Command] that a watching program sends back.
//
// Whoever does the work emits events, in order, from the goroutine that does it;
// a [Stream] numbers them, masks the secrets in them, adds what follows from them
// and hands them to its sinks one at a time.
//
//	s := event.NewStream("run-1", time.Now, func(e event.Event) { fmt.Println(e.Kind) })
//	s.Emit(event.Event{Kind: event.TaskStarted, Task: "write", Agent: "writer"})
//
// As JSON (see [Event.MarshalJSON]) an event has the members that its kind has
// and no others; schema.json beside this file, which is [Schema], describes each.
// The form is Orkeon's, version 2, and more: a program that reads the one reads
// the other, as long as it passes over kinds and members that it does not know.
package event

import (
	"encoding/json"
	"time"
)

// Version is the version of the events' form. What is added to it changes no
// version; a member that goes, or means something else, does.
const Version = 2

// Kind is the kind of an event.
type Kind string

// The kinds. A program's run begins with [RunStarted] and ends with
// [RunFinished], whatever happens between them.
const (
	RunStarted  Kind = "run.started"
	RunOutput   Kind = "run.output" // the result, of a run that succeeded
	RunFinished Kind = "run.finished"
	Failure     Kind = "error" // why the run fails; RunFinished comes next

	MCPServer  Kind = "mcp.server"  // a server was connected, or failed, or changed its state later
	MCPStartup Kind = "mcp.startup" // every server is connected or has failed

	TaskStarted   Kind = "task.started"
	TaskFailed    Kind = "task.failed"    // a TaskCompleted without success follows
	TaskSkipped   Kind = "task.skipped"   // a TaskCompleted without success follows
	TaskCompleted Kind = "task.completed" // the end of every task that began or was skipped, once
	TaskRetried   Kind = "task.retried"   // an attempt failed or was turned down; a TaskStarted with the next follows
	TaskAssigned  Kind = "task.assigned"  // an agent that hands tasks out has chosen who does one
	TaskReviewed  Kind = "task.reviewed"  // and has judged what came of it
	VoteCast      Kind = "vote.cast"      // an agent votes on what the others made of a task
	AnswerKept    Kind = "answer.kept"    // of several answers to a task that of one agent is kept; the end of the attempt follows

	ModelCalled   Kind = "model.called"
	ModelDelta    Kind = "llm.delta"
	ModelReturned Kind = "model.returned"
	CostUpdated   Kind = "cost.updated" // follows each ModelReturned with an answer, and whatever else is paid for

	ToolCalled         Kind = "tool.called"
	ToolProgress       Kind = "tool.progress"
	ToolReturned       Kind = "tool.returned"
	DelegationStarted  Kind = "delegation.started" // after the ToolCalled of the tool that delegates
	DelegationFinished Kind = "delegation.finished"
	AgentSpawned       Kind = "agent.spawned"

	InputNeeded    Kind = "input.needed" // a question; the command input.given answers it
	InputGiven     Kind = "input.given"
	ApprovalNeeded Kind = "approval.needed" // a call that the policy asks about; the command approval.given answers it
	ApprovalGiven  Kind = "approval.given"

	Notice Kind = "notice" // something a person should know: a trimmed history, a cut answer
)

// Event is one thing that happened. Fields that do not belong to its kind are
// not told.
type Event struct {
	V    int
	Seq  int64 // from 1, without gaps
	Time time.Time
	Kind Kind
	Run  string

	Task    string // key in the crew file
	Agent   string // key in the crew file
	Role    string // of the agent
	Attempt int    // of the task, from 1

	// Correlation is the same in all events about one thing: one call of a tool
	// or of a model, one question. It is unique in the stream; see [Stream.ID].
	Correlation string
	Cause       string // the Correlation of what this came of

	Call      string   // the model's id of a tool call
	Tool      string   // its registered name
	Server    string   // the MCP server of the tool
	Arguments []string // names only, sorted, never values

	Provider  string
	Model     string
	Operation string // what a model was asked for: agent, assign, review, vote, plan, …; empty: agent
	Turn      int    // of the model within the task, from 1
	Stop      string // why the model stopped

	InputTokens     int // cached ones included
	OutputTokens    int
	CacheHitTokens  int // of InputTokens
	EstimatedTokens int // of all, those that nobody measured
	Cost            float64
	Currency        string // of Cost; empty: no cost is known
	CostSource      string // "vendor", "prices" or, of a sum, "mixed"

	Text       string // a delta, a notice, a task's or the run's output
	Reason     string // why a task was skipped, an agent spawned, a call allowed or not
	Error      string // one line
	Code       string // of an error: stable, for programs
	Success    *bool
	Skipped    bool // of a TaskCompleted
	Turns      int  // calls to the model
	ToolCalls  int
	File       string // the virtual path of a task's deliverable
	DurationMS int64

	ToRole, ToAgent string // whom a task is delegated to, or who was spawned

	Ballot   *Ballot   // of a VoteCast
	Progress *Progress // of a ToolProgress
	Question *Question // of an InputNeeded or an ApprovalNeeded
	Answer   *Answer   // of an InputGiven or an ApprovalGiven
	State    *State    // of an MCPServer or an MCPStartup
	Totals   *Totals   // of a CostUpdated
	Begin    *Begin    // of a RunStarted
	ExitCode int       // of a RunFinished
}

// Ballot is what an agent votes for.
type Ballot struct {
	Ranking    []string // keys of the agents whose answers would do, best first; empty: it abstains
	Confidence float64  // 0 to 1
}

// Progress is how far a tool's call is.
type Progress struct {
	Done    float64
	Total   float64 // 0: not known
	Message string
}

// The kinds of input that a [Question] may want.
const (
	InputText    = "text"
	InputConfirm = "confirm" // yes or no
	InputChoice  = "choice"  // one of Choices
	InputForm    = "form"    // an object as Schema says
	InputVisit   = "visit"   // that a person has visited the page URL
)

// Question is what an [InputNeeded] or an [ApprovalNeeded] asks.
type Question struct {
	Input   string // kind of input; empty for an approval
	Prompt  string
	Choices []string
	Default string // what no answer means; empty: nothing
	About   string // the description of the task in which it comes up
	Schema  json.RawMessage
	URL     string
	// Arguments are those of the call to approve, as JSON, shortened where they
	// are long.
	Arguments string
	Scopes    []string // that an approval may have
	// Changed says that calls of the tool were allowed always, as it was defined then.
	Changed bool
}

// Answer is what became of a question.
type Answer struct {
	Action string // of an InputGiven: accept, decline or cancel
	Allow  bool   // of an ApprovalGiven
	Scope  string // of an ApprovalGiven: once, run or always
	By     string // command, approvals, flag, settings, default, or nobody
}

// State is where an MCP server stands, or, of an [MCPStartup], all of them.
type State struct {
	State, From string
	Transport   string
	Era         string
	Protocol    string
	Required    bool
	Tools       []string
	Agents      []string // that bring the server along, by their keys

	Servers, Connected, Failed, Offered int // of an MCPStartup; Offered are all their tools
}

// Totals are sums up to now, of the run in the event's own fields and here of
// the agent, if there is one, and the operation whose call it was.
type Totals struct{ Agent, Operation Sum }

// Sum is a part of a [Totals].
type Sum struct {
	InputTokens, OutputTokens int
	Cost                      float64
}

// Begin is what a [RunStarted] says.
type Begin struct {
	Target string // as the command line has it
	Stream bool   // whether deltas are told
	Host   string // the program and its version
}

// Sink takes events. It is called for one event at a time and should return
// soon: the run waits for it.
type Sink func(Event)

// texts are all texts of e that somebody else may have written.
func (e *Event) texts() []*string {
	all := []*string{
		&e.Task, &e.Agent, &e.Role, &e.Call, &e.Tool, &e.Server,
		&e.Provider, &e.Model, &e.Operation, &e.Stop, &e.Currency, &e.CostSource,
		&e.Text, &e.Reason, &e.Error, &e.Code, &e.File, &e.ToRole, &e.ToAgent,
	}
	if p := e.Progress; p != nil {
		all = append(all, &p.Message)
	}
	if q := e.Question; q != nil {
		all = append(all, &q.Prompt, &q.Default, &q.About, &q.URL, &q.Arguments)
		for i := range q.Choices {
			all = append(all, &q.Choices[i])
		}
	}
	if b := e.Ballot; b != nil {
		for i := range b.Ranking {
			all = append(all, &b.Ranking[i])
		}
	}
	if s := e.State; s != nil {
		all = append(all, &s.Era, &s.Protocol)
		for i := range s.Tools {
			all = append(all, &s.Tools[i])
		}
		for i := range s.Agents {
			all = append(all, &s.Agents[i])
		}
	}
	if b := e.Begin; b != nil {
		all = append(all, &b.Target, &b.Host)
	}
	for i := range e.Arguments {
		all = append(all, &e.Arguments[i])
	}
	return all
}
