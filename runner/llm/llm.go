// Package llm is the vendor-neutral conversation with a language model: a
// [Request] of messages and tool definitions goes in, a [Response] with text,
// tool calls, a stop reason and usage comes out.
//
// Each vendor's API has an adapter in a package below, which imports this one and
// no other of the project. Everything in a Request can be encoded as JSON, so a
// tape can match a request by its content.
//
//	res, err := model.Generate(ctx, llm.Request{
//		System:   "You are terse.",
//		Messages: []llm.Message{llm.User("Name a prime.")},
//	})
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Model answers requests. Implementations must be safe for concurrent use.
type Model interface {
	// Generate sends one request and returns the whole answer. Where
	// req.OnDelta is set, the answer is streamed and OnDelta is called from
	// the calling goroutine, in order, before Generate returns. It retries
	// what the vendor says may be retried, and returns when ctx ends.
	// A refusal of the vendor is an [*APIError].
	Generate(ctx context.Context, req Request) (*Response, error)
}

// Request is one turn asked of a model.
type Request struct {
	Model       string          `json:"model,omitempty"` // empty: the adapter's own
	System      string          `json:"system,omitempty"`
	Messages    []Message       `json:"messages"`
	Tools       []Tool          `json:"tools,omitempty"`
	ToolChoice  ToolChoice      `json:"tool_choice,omitempty"` // empty: auto
	Temperature *float64        `json:"temperature,omitempty"` // nil: not sent
	TopP        *float64        `json:"top_p,omitempty"`       // nil: not sent
	MaxTokens   int             `json:"max_tokens,omitempty"`  // 0: the adapter's default
	Format      *ResponseFormat `json:"response_format,omitempty"`
	Thinking    *Thinking       `json:"thinking,omitempty"`
	Cache       *Cache          `json:"cache,omitempty"`    // nil: no mark
	OneCall     bool            `json:"one_call,omitempty"` // at most one tool in the answer

	// OnDelta, where set, asks for a streamed answer.
	OnDelta func(Delta) `json:"-"`
}

// ToolChoice says whether the model may or must call tools.
type ToolChoice string

// The choices; the empty string is ToolAuto.
const (
	ToolAuto ToolChoice = "auto"
	ToolNone ToolChoice = "none"
)

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"` // JSON Schema of the arguments
}

// ResponseFormat asks for an answer of a form.
type ResponseFormat struct {
	Type   string          `json:"type"` // "json_object" or "json_schema"
	Name   string          `json:"name,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"`
	Strict bool            `json:"strict,omitempty"`
}

// IsJSON reports whether the answer is to be JSON.
func (f ResponseFormat) IsJSON() bool { return f.Type == "json_object" || f.Type == "json_schema" }

// Thinking asks a reasoning model to think.
type Thinking struct {
	Enabled      bool   `json:"enabled"`
	Effort       string `json:"effort,omitempty"` // low, medium, high, max
	BudgetTokens int    `json:"budget_tokens,omitempty"`
}

// Cache asks the vendor to keep what is the same from request to request, where
// that is asked for and not done unasked.
type Cache struct {
	System bool   `json:"system,omitempty"` // up to the end of the system prompt
	Tools  bool   `json:"tools,omitempty"`  // up to the end of the tools
	TTL    string `json:"ttl,omitempty"`    // 5m or 1h; empty: the vendor's own
}

// Role is who speaks.
type Role string

// The roles of messages. The system prompt is Request.System.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role       `json:"role"`
	Parts []Part     `json:"parts,omitempty"`
	Calls []ToolCall `json:"calls,omitempty"` // of an assistant's message

	// CallID and IsError belong to a tool's message: which call it answers,
	// and whether the tool failed.
	CallID  string `json:"call_id,omitempty"`
	IsError bool   `json:"is_error,omitempty"`

	// Reasoning is what a reasoning model showed of its thinking. It is never
	// an answer (K75).
	Reasoning string `json:"reasoning,omitempty"`
	// Opaque is the adapter's own, handed back to it unchanged in the next
	// request (signed thinking blocks, for example).
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// Part is a piece of a message: text, or an image or other data.
type Part struct {
	Text string `json:"text,omitempty"`
	MIME string `json:"mime,omitempty"` // set: Data is of this type
	Data []byte `json:"data,omitempty"`
}

// User returns a user's message of one text.
func User(text string) Message { return Message{Role: RoleUser, Parts: []Part{{Text: text}}} }

// Text joins the text parts of m.
func (m Message) Text() string {
	if len(m.Parts) == 1 {
		return m.Parts[0].Text
	}
	var s string
	for _, p := range m.Parts {
		s += p.Text
	}
	return s
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments is the text that the model wrote, digit for digit (K31). It
	// should be a JSON object, but a model may have written anything.
	Arguments string `json:"arguments"`
}

// Object returns the arguments as an object, which is what a vendor's API wants
// back in the next request: unchanged if they are one, {} if they are blank or
// null (K29), and otherwise {"malformed_arguments": "…"} with the model's text,
// because servers that parse them would refuse the whole conversation.
func (c ToolCall) Object() json.RawMessage {
	text := strings.TrimSpace(c.Arguments)
	switch {
	case strings.HasPrefix(text, "{") && json.Valid([]byte(text)):
		return json.RawMessage(c.Arguments)
	case text == "", text == "null":
		return json.RawMessage("{}")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]string{"malformed_arguments": c.Arguments}) // strings encode
	return bytes.TrimSpace(b.Bytes())
}

// Delta is a piece of a streamed answer.
type Delta struct {
	Text      string
	Reasoning string
}

// StopReason says why the model stopped.
type StopReason string

// The stop reasons.
const (
	StopEnd     StopReason = "end"
	StopTools   StopReason = "tool_calls"
	StopLength  StopReason = "length"         // cut at the token limit
	StopFilter  StopReason = "content_filter" // withheld by the vendor, or refused
	StopUnknown StopReason = "unknown"
)

// Response is a model's answer.
type Response struct {
	Message Message    `json:"message"`
	Stop    StopReason `json:"stop"`
	Usage   Usage      `json:"usage"`
	Model   string     `json:"model,omitempty"` // as the vendor reports it
	// Estimate is what the answer is reckoned to have used, where a vendor gave it
	// and sent no figures. Like Charge, it is no part of a tape.
	Estimate Usage `json:"-"`
	// Charge is what the answer cost, where the vendor or a price list says so.
	// It is of the moment, and no part of a tape.
	Charge *Charge `json:"-"`
}

// Usage counts tokens. Where the vendor sent no figures, Measured is false and
// the counts are zero.
type Usage struct {
	Input      int  `json:"input"`  // all input tokens, cached ones included
	Output     int  `json:"output"` // all output tokens, reasoning included
	CacheRead  int  `json:"cache_read,omitempty"`
	CacheWrite int  `json:"cache_write,omitempty"`
	Reasoning  int  `json:"reasoning,omitempty"`
	Measured   bool `json:"measured"`
}

// Add returns the sum of u and v; it is measured if both are, or one is empty.
func (u Usage) Add(v Usage) Usage {
	if u == (Usage{}) {
		return v
	}
	if v == (Usage{}) {
		return u
	}
	return Usage{
		Input:      u.Input + v.Input,
		Output:     u.Output + v.Output,
		CacheRead:  u.CacheRead + v.CacheRead,
		CacheWrite: u.CacheWrite + v.CacheWrite,
		Reasoning:  u.Reasoning + v.Reasoning,
		Measured:   u.Measured && v.Measured,
	}
}

// APIError is an answer of the vendor that is no success, after the retries.
type APIError struct {
	Provider   string
	Status     int           // HTTP status, 0 where there was no answer
	Code       string        // the vendor's code, may be empty
	Param      string        // the field of the request that the vendor names, may be empty
	Message    string        // one line, without secrets
	RetryAfter time.Duration // what the vendor asked for last, 0 if nothing
	Temporary  bool          // whether the same request may succeed later
	Err        error         // the cause; may be nil
}

// Error names the provider, the status and what the vendor said.
func (e *APIError) Error() string {
	s := e.Provider + ": "
	if e.Status != 0 {
		s += fmt.Sprintf("HTTP %d: ", e.Status)
	}
	if e.Code != "" {
		s += e.Code + ": "
	}
	s += e.Message
	if e.RetryAfter > 0 {
		s += fmt.Sprintf(" (asks to wait %v)", e.RetryAfter.Round(time.Second))
	}
	return s
}

// Unwrap returns the cause.
func (e *APIError) Unwrap() error { return e.Err }
