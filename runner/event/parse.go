package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Parse reads an event that [Event.MarshalJSON] wrote. What it returns is told again
// as the same bytes. A member that no kind has is an error.
func Parse(data []byte) (Event, error) {
	var w written
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&w); err != nil {
		return Event{}, fmt.Errorf("reading an event: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Event{}, errors.New("reading an event: there is more than one")
	}
	if _, known := members[w.Kind]; !known {
		return Event{}, fmt.Errorf("reading an event: the kind %q is unknown", w.Kind)
	}
	return w.event()
}

// written is an event as it is in JSON: all members of all kinds.
type written struct {
	V    int       `json:"v"`
	Seq  int64     `json:"seq"`
	Time time.Time `json:"ts"`
	Kind Kind      `json:"kind"`
	Run  string    `json:"crewId"`

	Task        string `json:"taskId"`
	Agent       string `json:"agentId"`
	AgentRole   string `json:"agentRole"`
	Attempt     int    `json:"attempt"`
	Correlation string `json:"correlationId"`
	Cause       string `json:"causationId"`

	Target string `json:"target"`
	Stream bool   `json:"stream"`
	Host   string `json:"host"`

	Text        string  `json:"text"`
	Code        string  `json:"code"`
	Message     string  `json:"message"`
	Recoverable bool    `json:"recoverable"`
	Error       string  `json:"error"`
	Reason      string  `json:"reason"`
	Success     *bool   `json:"success"`
	ExitCode    int     `json:"exitCode"`
	DurationMS  int64   `json:"durationMs"`
	Tokens      int     `json:"tokens"`
	Input       int     `json:"promptTokens"`
	Output      int     `json:"completionTokens"`
	Hits        int     `json:"cacheHitTokens"`
	Misses      int     `json:"cacheMissTokens"`
	Estimated   int     `json:"estimatedTokens"`
	Cost        float64 `json:"cost"`
	Currency    string  `json:"currency"`
	CostSource  string  `json:"costSource"`

	Server    string          `json:"server"`
	State     string          `json:"state"`
	From      string          `json:"from"`
	Required  bool            `json:"required"`
	Transport string          `json:"transport"`
	Era       string          `json:"era"`
	Agents    []string        `json:"agents"`
	Protocol  string          `json:"protocol"`
	Tools     json.RawMessage `json:"tools"` // names, or how many
	Servers   int             `json:"servers"`
	Connected int             `json:"connected"`
	Failed    int             `json:"failed"`

	Skipped   bool   `json:"skipped"`
	ToolCalls int    `json:"toolCalls"`
	Turns     int    `json:"turns"`
	File      string `json:"deliverable"`

	ToAgent    string   `json:"toAgentId"`
	ToRole     string   `json:"toRole"`
	Role       string   `json:"role"`       // of an AgentSpawned
	NewAgent   string   `json:"newAgentId"` // of an AgentSpawned
	Approved   bool     `json:"approved"`
	Feedback   string   `json:"feedback"`
	Ranking    []string `json:"ranking"`
	Confidence float64  `json:"confidence"`

	Operation       string          `json:"operation"`
	Turn            int             `json:"turn"`
	Model           string          `json:"model"`
	Provider        string          `json:"provider"`
	Stop            string          `json:"stop"`
	AgentTotals     Sum             `json:"agentTotals"`
	OperationTotals *Sum            `json:"operationTotals"`
	Tool            string          `json:"toolName"`
	Call            string          `json:"callId"`
	Arguments       string          `json:"arguments"`
	Summary         string          `json:"argsSummary"`
	Done            float64         `json:"done"`
	Total           float64         `json:"total"`
	InputKind       string          `json:"inputKind"`
	Prompt          string          `json:"prompt"`
	Choices         []string        `json:"choices"`
	Default         string          `json:"defaultValue"`
	About           string          `json:"taskDescription"`
	Schema          json.RawMessage `json:"schema"`
	URL             string          `json:"url"`
	Action          string          `json:"action"`
	By              string          `json:"by"`
	Scopes          []string        `json:"scopes"`
	Changed         bool            `json:"changed"`
	Allow           bool            `json:"allow"`
	Scope           string          `json:"scope"`
}

func (w *written) event() (Event, error) {
	e := Event{
		V: w.V, Seq: w.Seq, Time: w.Time, Kind: w.Kind, Run: w.Run,
		Task: w.Task, Agent: w.Agent, Role: w.AgentRole, Attempt: w.Attempt, Correlation: w.Correlation, Cause: w.Cause,
		Call: w.Call, Tool: w.Tool, Server: w.Server,
		Provider: w.Provider, Model: w.Model, Operation: w.Operation, Turn: w.Turn, Stop: w.Stop,
		InputTokens: w.Input, OutputTokens: w.Output, CacheHitTokens: w.Hits, EstimatedTokens: w.Estimated,
		Cost: w.Cost, Currency: w.Currency, CostSource: w.CostSource,
		Text: w.Text, Reason: w.Reason, Error: w.Error, Code: w.Code, Success: w.Success, Skipped: w.Skipped,
		Turns: w.Turns, ToolCalls: w.ToolCalls, File: w.File, DurationMS: w.DurationMS,
		ToRole: w.ToRole, ToAgent: w.ToAgent, ExitCode: w.ExitCode,
	}
	if w.Summary != "" {
		e.Arguments = []string{w.Summary}
	}
	switch w.Kind {
	case RunStarted:
		e.Begin = &Begin{w.Target, w.Stream, w.Host}
	case Failure:
		e.Error = w.Message
	case MCPServer, MCPStartup:
		return e, w.servers(&e)
	case TaskReviewed:
		e.Success, e.Text = &w.Approved, w.Feedback
	case VoteCast:
		e.Ballot = &Ballot{w.Ranking, w.Confidence}
	case CostUpdated:
		if w.OperationTotals != nil {
			e.Totals = &Totals{w.AgentTotals, *w.OperationTotals}
		}
	case ToolProgress:
		e.Progress = &Progress{w.Done, w.Total, w.Message}
	case AgentSpawned:
		e.ToRole, e.ToAgent = w.Role, w.NewAgent
	case InputNeeded, ApprovalNeeded:
		e.Question = &Question{
			Input: w.InputKind, Prompt: w.Prompt, Choices: w.Choices, Default: w.Default, About: w.About,
			Schema: w.Schema, URL: w.URL, Arguments: w.Arguments, Scopes: w.Scopes, Changed: w.Changed,
		}
	case InputGiven, ApprovalGiven:
		e.Answer = &Answer{w.Action, w.Allow, w.Scope, w.By}
	}
	return e, nil
}

// servers reads what is told of servers.
func (w *written) servers(e *Event) error {
	e.State = &State{
		State: w.State, From: w.From, Transport: w.Transport, Agents: w.Agents, Era: w.Era, Protocol: w.Protocol, Required: w.Required,
		Servers: w.Servers, Connected: w.Connected, Failed: w.Failed,
	}
	if len(w.Tools) == 0 {
		return nil
	}
	var into any = &e.State.Tools
	if w.Kind == MCPStartup {
		into = &e.State.Offered
	}
	if err := json.Unmarshal(w.Tools, into); err != nil {
		return fmt.Errorf("reading an event: tools: %w", err)
	}
	return nil
}

// UnmarshalJSON reads a sum.
func (s *Sum) UnmarshalJSON(data []byte) error {
	var w struct {
		Tokens     int     `json:"tokens"`
		Prompt     int     `json:"promptTokens"`
		Completion int     `json:"completionTokens"`
		Cost       float64 `json:"cost"`
	}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*s = Sum{w.Prompt, w.Completion, w.Cost}
	return nil
}
