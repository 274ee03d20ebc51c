// Package ollama speaks Ollama's own chat API. Ollama offers OpenAI's as well, but
// in that there is no way to say how long a conversation may be: what does not
// fit its default context is cut from the front without a word, the system prompt
// and the tools among it.
//
//	model, err := ollama.New(ollama.Config{Model: "qwen3", ContextTokens: 32_768})
package ollama

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"crewhost/runner/llm"
)

// DefaultBaseURL is where a server listens unless it is told otherwise.
const DefaultBaseURL = "http://127.0.0.1:11434"

// Config says which model to speak to, and how.
type Config struct {
	BaseURL string // up to and without /api/chat; an ending /v1 is dropped; empty: DefaultBaseURL
	APIKey  string // sent as a bearer token; empty: none is sent
	Model   string // of requests that name none

	// ContextTokens is how long a conversation may be, with its answer; 0: what
	// the server or the model says. More takes more memory of the server.
	ContextTokens int

	// Timeout, IdleTimeout and MaxRetries are those of [llm.Exchange].
	Timeout     time.Duration
	IdleTimeout time.Duration
	MaxRetries  *int

	ProviderName string       // begins every error; empty: "ollama"
	HTTPClient   *http.Client // nil: the default client; redirects are never followed
	Logger       *slog.Logger // nil: discard
}

// Model speaks to one server. It is safe for concurrent use.
type Model struct {
	url      string
	key      string
	client   *http.Client
	exchange llm.Exchange
	model    string
	context  int
}

// New returns the model that c describes. Nothing is sent yet.
func New(c Config) (*Model, error) {
	base, err := llm.ParseBaseURL(cmp.Or(c.BaseURL, DefaultBaseURL))
	if err != nil {
		return nil, fmt.Errorf("ollama: %w", err)
	}
	base.RawQuery, base.Fragment = "", ""
	return &Model{
		url: strings.TrimSuffix(strings.TrimRight(base.String(), "/"), "/v1") + "/api/chat",
		key: c.APIKey, client: llm.HTTPClient(c.HTTPClient), model: c.Model, context: c.ContextTokens,
		exchange: llm.Exchange{
			Provider: cmp.Or(c.ProviderName, "ollama"), Secret: c.APIKey,
			Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, MaxRetries: c.MaxRetries, Logger: c.Logger,
		},
	}, nil
}

// SchemaDialect implements [llm.Dialectal]. The server reads the properties of a
// tool's schema and drops the rest.
func (m *Model) SchemaDialect() llm.SchemaDialect {
	return llm.SchemaDialect{RootKeywords: []string{"allOf", "anyOf", "enum", "not", "oneOf"}, NoReferences: true}
}

// Generate sends req and returns the answer. See [llm.Model] and
// [llm.Exchange.Do] for errors and repetitions.
func (m *Model) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	body, err := m.body(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.exchange.Provider, err)
	}
	return m.exchange.Do(ctx, req.OnDelta, func(ctx context.Context, a *llm.Attempt) (*llm.Response, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		if m.key != "" {
			r.Header.Set("Authorization", "Bearer "+m.key)
		}
		res, err := a.Middleware(r, m.client.Do)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		return read(res.Body, a.Deliver)
	})
}

// piece is an answer, or a line of one that is streamed.
type piece struct {
	Model   string `json:"model"`
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       string `json:"id"` // of newer servers
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"` // an object
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool            `json:"done"`
	DoneReason string          `json:"done_reason"`
	Input      *int            `json:"prompt_eval_count"` // absent where all of it was cached
	Output     *int            `json:"eval_count"`
	Error      json.RawMessage `json:"error"`
}

// read puts an answer together from its lines, of which a whole answer is one, and
// delivers its text as it comes.
func read(body io.Reader, deliver func(llm.Delta)) (*llm.Response, error) {
	lines := json.NewDecoder(body)
	res := &llm.Response{Message: llm.Message{Role: llm.RoleAssistant}}
	var text, thinking strings.Builder
	for {
		var raw json.RawMessage
		var p piece
		err := lines.Decode(&raw)
		if err == nil {
			err = json.Unmarshal(raw, &p)
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("the stream ended before the answer did: %w", io.ErrUnexpectedEOF)
		case errors.As(err, &syntax), errors.As(err, &kind):
			return nil, &llm.APIError{Message: "a line of the answer is not the JSON of a chat: " + err.Error()}
		case err != nil:
			return nil, fmt.Errorf("reading the stream: %w", err)
		case len(p.Error) > 0 && string(p.Error) != "null":
			return nil, llm.Refusal(raw)
		}
		text.WriteString(p.Message.Content)
		thinking.WriteString(p.Message.Thinking)
		deliver(llm.Delta{Text: p.Message.Content, Reasoning: p.Message.Thinking})
		for _, c := range p.Message.ToolCalls {
			if c.Function.Name == "" {
				return nil, &llm.APIError{Message: "a tool call has no name"}
			}
			res.Message.Calls = append(res.Message.Calls, llm.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: arguments(c.Function.Arguments)})
		}
		res.Model = cmp.Or(p.Model, res.Model)
		if !p.Done {
			continue
		}
		res.Message.Reasoning = strings.TrimSpace(thinking.String())
		if text.Len() > 0 {
			res.Message.Parts = []llm.Part{{Text: text.String()}}
		}
		identify(res.Message.Calls)
		res.Stop = stopReason(p.DoneReason, len(res.Message.Calls))
		res.Usage = usage(p)
		return res, nil
	}
}

// arguments returns the text of a call's arguments, digit for digit (K31).
func arguments(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// identify gives each call an id that no other has: older servers send none.
func identify(calls []llm.ToolCall) {
	used := map[string]bool{}
	for _, c := range calls {
		used[c.ID] = true
	}
	given, next := map[string]bool{}, 0
	for i, c := range calls {
		id := c.ID
		for id == "" || given[id] {
			next++
			if id = fmt.Sprintf("call_%d", next); used[id] {
				id = ""
			}
		}
		given[id] = true
		calls[i].ID = id
	}
}

// stopReason says why the model stopped. An answer that was cut is never taken for
// a whole one (K71).
func stopReason(reason string, calls int) llm.StopReason {
	switch {
	case reason == "length":
		return llm.StopLength
	case reason == "content_filter":
		return llm.StopFilter
	case calls > 0:
		return llm.StopTools
	case reason == "stop", reason == "": // older servers give none
		return llm.StopEnd
	}
	return llm.StopUnknown
}

func usage(p piece) llm.Usage {
	if p.Input == nil && p.Output == nil {
		return llm.Usage{}
	}
	u := llm.Usage{Measured: true}
	if p.Input != nil {
		u.Input = *p.Input
	}
	if p.Output != nil {
		u.Output = *p.Output
	}
	return u
}
