package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// member is a member of an event's JSON.
type member struct {
	name   string
	always bool // told also where it is zero
	value  func(*Event) any
}

// MarshalJSON writes the envelope (v, seq, ts, kind, crewId and who it is about)
// and then the members of the event's kind, always in the same order. A member
// without a value is left out, never null, but for the counts and truths that a
// kind always has.
func (e Event) MarshalJSON() ([]byte, error) {
	var w writer
	err := w.event(&e)
	return w.buf.Bytes(), err
}

// writer writes events.
type writer struct {
	buf bytes.Buffer
	enc *json.Encoder // to buf, for what is not plain; made when it is needed
	err error
}

func (w *writer) event(e *Event) error {
	w.buf.Grow(512)
	w.buf.WriteString(`{"v":`)
	w.int(int64(e.V))
	w.put("seq", e.Seq)
	w.put("ts", e.Time.UTC().Format(time.RFC3339Nano))
	w.put("kind", string(e.Kind))
	w.put("crewId", e.Run)
	if !unscoped[e.Kind] {
		w.members(e, scope)
	}
	w.members(e, members[e.Kind])
	w.buf.WriteByte('}')
	return w.err
}

func (w *writer) members(e *Event, list []member) {
	for _, m := range list {
		if v := m.value(e); m.always || !zero(v) {
			w.put(m.name, v)
		}
	}
}

func (w *writer) put(name string, value any) {
	w.buf.WriteString(`,"`)
	w.buf.WriteString(name)
	w.buf.WriteString(`":`)
	switch v := value.(type) {
	case int:
		w.int(int64(v))
	case int64:
		w.int(v)
	case bool:
		w.buf.WriteString(strconv.FormatBool(v))
	case string:
		if plain(v) {
			w.buf.WriteByte('"')
			w.buf.WriteString(v)
			w.buf.WriteByte('"')
			return
		}
		w.any(v)
	default:
		w.any(v)
	}
}

func (w *writer) int(n int64) { w.buf.Write(strconv.AppendInt(w.buf.AvailableBuffer(), n, 10)) }

func (w *writer) any(value any) {
	if w.enc == nil {
		w.enc = json.NewEncoder(&w.buf)
		w.enc.SetEscapeHTML(false)
	}
	if err := w.enc.Encode(value); err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	w.buf.Truncate(w.buf.Len() - 1) // its line feed
}

// plain reports whether a text is the same in JSON.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func zero(v any) bool {
	switch v := v.(type) {
	case string:
		return v == ""
	case int:
		return v == 0
	case int64:
		return v == 0
	case float64:
		return v == 0
	case bool:
		return !v
	case []string:
		return len(v) == 0
	case json.RawMessage:
		return len(v) == 0
	default:
		return v == nil
	}
}

// MarshalJSON writes a sum.
func (s Sum) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Tokens     int     `json:"tokens"`
		Prompt     int     `json:"promptTokens"`
		Completion int     `json:"completionTokens"`
		Cost       float64 `json:"cost,omitempty"`
	}{s.InputTokens + s.OutputTokens, s.InputTokens, s.OutputTokens, s.Cost})
}

// unscoped are the kinds that are about no task and come of nothing.
var unscoped = map[Kind]bool{
	RunStarted: true, RunOutput: true, RunFinished: true, Failure: true, MCPServer: true, MCPStartup: true,
}

// scope are the members that any other kind may have.
var scope = []member{
	{"taskId", false, func(e *Event) any { return e.Task }},
	{"agentId", false, func(e *Event) any { return e.Agent }},
	{"agentRole", false, func(e *Event) any { return e.Role }},
	{"attempt", false, func(e *Event) any { return e.Attempt }},
	{"correlationId", false, func(e *Event) any { return e.Correlation }},
	{"causationId", false, func(e *Event) any { return e.Cause }},
}

// Members that several kinds have.
var (
	callID   = member{"callId", false, func(e *Event) any { return e.Call }}
	toolName = member{"toolName", false, func(e *Event) any { return e.Tool }}
	server   = member{"server", false, func(e *Event) any { return e.Server }}
	turn     = member{"turn", false, func(e *Event) any { return e.Turn }}
	model    = member{"model", false, func(e *Event) any { return e.Model }}
	provider = member{"provider", false, func(e *Event) any { return e.Provider }}

	operation = member{"operation", true, func(e *Event) any {
		if e.Operation == "" {
			return defaultOperation
		}
		return e.Operation
	}}

	text    = member{"text", false, func(e *Event) any { return e.Text }}
	reason  = member{"reason", false, func(e *Event) any { return e.Reason }}
	failure = member{"error", false, func(e *Event) any { return e.Error }}
	code    = member{"code", false, func(e *Event) any { return e.Code }}

	success  = member{"success", true, func(e *Event) any { return e.Success != nil && *e.Success }}
	duration = member{"durationMs", true, func(e *Event) any { return e.DurationMS }}

	tokens = []member{
		{"tokens", true, func(e *Event) any { return e.InputTokens + e.OutputTokens }},
		{"promptTokens", true, func(e *Event) any { return e.InputTokens }},
		{"completionTokens", true, func(e *Event) any { return e.OutputTokens }},
		{"cacheHitTokens", false, func(e *Event) any { return e.CacheHitTokens }},
		{"cacheMissTokens", false, func(e *Event) any {
			if e.CacheHitTokens == 0 {
				return 0
			}
			return e.InputTokens - e.CacheHitTokens
		}},
		{"estimatedTokens", false, func(e *Event) any { return e.EstimatedTokens }},
		{"cost", false, func(e *Event) any {
			if e.Currency == "" {
				return 0.0
			}
			return e.Cost
		}},
		{"currency", false, func(e *Event) any { return e.Currency }},
		{"costSource", false, func(e *Event) any { return e.CostSource }},
	}
)

// members are the members of each kind, in their order.
var members = map[Kind][]member{
	RunStarted: {
		{"target", true, func(e *Event) any { return e.begin().Target }},
		{"stream", true, func(e *Event) any { return e.begin().Stream }},
		{"host", false, func(e *Event) any { return e.begin().Host }},
	},
	RunOutput: {{"text", true, func(e *Event) any { return e.Text }}},
	Failure: {
		{"code", true, func(e *Event) any { return e.Code }},
		{"message", true, func(e *Event) any { return e.Error }},
		{"recoverable", true, func(*Event) any { return false }},
	},
	RunFinished: join(
		[]member{success, {"exitCode", true, func(e *Event) any { return e.ExitCode }}, duration},
		tokens,
	),

	MCPServer: {
		{"server", true, func(e *Event) any { return e.Server }},
		{"state", true, func(e *Event) any { return e.state().State }},
		{"from", false, func(e *Event) any { return e.state().From }},
		{"required", false, func(e *Event) any { return e.state().Required }},
		{"agents", false, func(e *Event) any { return e.state().Agents }},
		{"transport", false, func(e *Event) any { return e.state().Transport }},
		{"era", false, func(e *Event) any { return e.state().Era }},
		{"protocol", false, func(e *Event) any { return e.state().Protocol }},
		{"tools", false, func(e *Event) any { return e.state().Tools }},
		failure, code,
		{"durationMs", false, func(e *Event) any { return e.DurationMS }},
	},
	MCPStartup: {
		{"servers", true, func(e *Event) any { return e.state().Servers }},
		{"connected", true, func(e *Event) any { return e.state().Connected }},
		{"failed", true, func(e *Event) any { return e.state().Failed }},
		{"tools", true, func(e *Event) any { return e.state().Offered }},
		duration,
	},

	TaskStarted: {},
	TaskCompleted: join(
		[]member{success, {"skipped", true, func(e *Event) any { return e.Skipped }}, duration},
		tokens,
		[]member{
			{"toolCalls", true, func(e *Event) any { return e.ToolCalls }},
			{"turns", false, func(e *Event) any { return e.Turns }},
			{"deliverable", false, func(e *Event) any { return e.File }},
			text,
		},
	),
	TaskFailed:  {{"error", true, func(e *Event) any { return e.Error }}, code, duration},
	TaskSkipped: {{"reason", true, func(e *Event) any { return e.Reason }}},
	TaskRetried: {{"error", true, func(e *Event) any { return e.Error }}, code, duration},
	TaskAssigned: {
		{"toAgentId", true, func(e *Event) any { return e.ToAgent }},
		{"toRole", true, func(e *Event) any { return e.ToRole }},
		reason,
	},
	TaskReviewed: {
		{"approved", true, func(e *Event) any { return e.Success != nil && *e.Success }},
		{"feedback", false, func(e *Event) any { return e.Text }},
	},
	VoteCast: {
		{"ranking", true, func(e *Event) any {
			if e.Ballot == nil || e.Ballot.Ranking == nil {
				return []string{}
			}
			return e.Ballot.Ranking
		}},
		{"confidence", true, func(e *Event) any {
			if e.Ballot == nil {
				return 0.0
			}
			return e.Ballot.Confidence
		}},
		reason,
	},
	AnswerKept: {{"reason", true, func(e *Event) any { return e.Reason }}},

	ModelCalled: {operation, turn, model, provider},
	ModelDelta:  {{"text", true, func(e *Event) any { return e.Text }}, turn},
	ModelReturned: join(
		[]member{operation, turn, model, provider, success, {"stop", false, func(e *Event) any { return e.Stop }}, duration},
		tokens, []member{failure},
	),
	CostUpdated: join(
		[]member{operation, model, provider}, tokens,
		[]member{
			{"agentTotals", false, func(e *Event) any {
				if e.Totals == nil || e.Agent == "" {
					return nil
				}
				return e.Totals.Agent
			}},
			{"operationTotals", false, func(e *Event) any {
				if e.Totals == nil {
					return nil
				}
				return e.Totals.Operation
			}},
		},
	),

	ToolCalled: {
		{"toolName", true, func(e *Event) any { return e.Tool }}, server, callID, turn,
		{"argsSummary", true, func(e *Event) any { return e.summary() }},
	},
	ToolProgress: {
		{"toolName", true, func(e *Event) any { return e.Tool }}, server, callID, turn,
		{"done", true, func(e *Event) any { return e.progress().Done }},
		{"total", false, func(e *Event) any { return e.progress().Total }},
		{"message", false, func(e *Event) any { return e.progress().Message }},
	},
	ToolReturned: {
		{"toolName", true, func(e *Event) any { return e.Tool }}, server, callID, turn,
		success, duration, failure,
	},
	DelegationStarted: {
		{"toRole", true, func(e *Event) any { return e.ToRole }},
		{"toAgentId", false, func(e *Event) any { return e.ToAgent }},
		toolName, callID,
	},
	DelegationFinished: join([]member{
		{"toRole", true, func(e *Event) any { return e.ToRole }},
		{"toAgentId", false, func(e *Event) any { return e.ToAgent }},
		toolName, callID, success, duration,
	}, tokens, []member{failure}),
	AgentSpawned: {
		{"role", true, func(e *Event) any { return e.ToRole }},
		{"newAgentId", false, func(e *Event) any { return e.ToAgent }},
		{"reason", true, func(e *Event) any { return e.Reason }},
	},

	InputNeeded: {
		{"inputKind", true, func(e *Event) any { return e.question().Input }},
		{"prompt", true, func(e *Event) any { return e.question().Prompt }},
		{"choices", false, func(e *Event) any { return e.question().Choices }},
		{"defaultValue", false, func(e *Event) any { return e.question().Default }},
		{"taskDescription", false, func(e *Event) any { return e.question().About }},
		{"schema", false, func(e *Event) any { return e.question().Schema }},
		{"url", false, func(e *Event) any { return e.question().URL }},
		toolName, server, callID,
	},
	InputGiven: {
		{"action", true, func(e *Event) any { return e.answer().Action }},
		{"by", true, func(e *Event) any { return e.answer().By }},
	},
	ApprovalNeeded: {
		{"toolName", true, func(e *Event) any { return e.Tool }}, server, callID,
		{"arguments", true, func(e *Event) any { return e.question().Arguments }},
		reason,
		{"scopes", false, func(e *Event) any { return e.question().Scopes }},
		{"changed", false, func(e *Event) any { return e.question().Changed }},
	},
	ApprovalGiven: {
		{"toolName", true, func(e *Event) any { return e.Tool }}, server, callID,
		{"allow", true, func(e *Event) any { return e.answer().Allow }},
		{"scope", false, func(e *Event) any { return e.answer().Scope }},
		reason,
		{"by", true, func(e *Event) any { return e.answer().By }},
	},

	Notice: {{"text", true, func(e *Event) any { return e.Text }}, code},
}

func join(parts ...[]member) []member {
	var all []member
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

// shownArguments is how many names of arguments a summary has.
const shownArguments = 6

func (e *Event) summary() string {
	names := e.Arguments
	if len(names) > shownArguments {
		names = append(names[:shownArguments:shownArguments], "…")
	}
	return strings.Join(names, ", ")
}

func orZero[T any](p *T) T {
	if p == nil {
		p = new(T)
	}
	return *p
}

func (e *Event) begin() Begin       { return orZero(e.Begin) }
func (e *Event) state() State       { return orZero(e.State) }
func (e *Event) progress() Progress { return orZero(e.Progress) }
func (e *Event) question() Question { return orZero(e.Question) }
func (e *Event) answer() Answer     { return orZero(e.Answer) }

// Kinds returns every kind, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(members)) }
