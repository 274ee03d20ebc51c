package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// A Sampler asks a model on behalf of a server.
type Sampler interface {
	// Sample returns the model's answer. It must allow concurrent calls and
	// return when ctx ends.
	Sample(ctx context.Context, r SampleRequest) (Sample, error)
}

// SampleRequest is a conversation that a server wants to be continued. It is
// untrusted, and within the bounds that the settings give the server.
type SampleRequest struct {
	Server      string // the server's name in the settings
	System      string // may be empty
	Messages    []SampleMessage
	MaxTokens   int // always above zero
	Temperature *float64
}

// SampleMessage is one message: texts, images and sounds.
type SampleMessage struct {
	Role    string // "user" or "assistant"
	Content []tools.Content
}

// Sample is a model's answer.
type Sample struct {
	Model string // as the vendor reports it
	Text  string
	Cut   bool // whether it ended at the limit of tokens
}

// maxSampled is the size of the largest request for a sample, in bytes.
const maxSampled = 1 << 20

// samples reports whether the server may ask the model.
func (s *session) samples() bool { return s.server.Sampling != nil && s.opts.Sampler != nil }

// sample has the host's model continue a server's conversation, within the
// bounds of the settings. Each time is logged, and the report says that it was so.
func (s *session) sample(ctx context.Context, ops []*operation, params json.RawMessage) (*sdk.CreateMessageWithToolsResult, error) {
	what, _ := s.subject(ops)
	if !s.samples() {
		return nil, unansweredf("%s asked for an answer of the host's model, which the settings of the server do not allow (sampling).", what)
	}
	bounds := s.server.Sampling
	r, stops, err := sampleRequest(params)
	if err != nil {
		return nil, unansweredf("%s asked for an answer of the host's model, and can't get one: %s.", what, s.masks.line(err.Error(), maxDetail))
	}
	s.asking.mu.Lock()
	s.asking.samples++
	n := s.asking.samples
	s.asking.mu.Unlock()
	if n > bounds.MaxCalls {
		return nil, unansweredf("%s asked for an answer of the host's model, and has had the %d that the settings allow.", what, bounds.MaxCalls)
	}
	r.Server = s.server.Name
	if r.MaxTokens <= 0 || r.MaxTokens > bounds.MaxTokens {
		r.MaxTokens = bounds.MaxTokens
	}
	s.warn("was given answers of the host's model, as its settings allow")
	s.log.Info("MCP server asks the model", "request", n, "of", bounds.MaxCalls, "max_tokens", r.MaxTokens, "messages", len(r.Messages))
	answer, err := s.opts.Sampler.Sample(ctx, r)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, unansweredf("%s asked for an answer of the host's model, which gave none: %s.", what, s.masks.line(err.Error(), maxDetail))
	}
	result := &sdk.CreateMessageWithToolsResult{Role: "assistant", Model: answer.Model, StopReason: "endTurn"}
	if answer.Cut {
		result.StopReason = "maxTokens"
	}
	text, stopped := stopAt(answer.Text, stops)
	if stopped {
		result.StopReason = "stopSequence"
	}
	result.Content = []sdk.Content{&sdk.TextContent{Text: text}}
	return result, nil
}

// stopAt cuts a text where the first of some words begins.
func stopAt(text string, stops []string) (string, bool) {
	end := len(text)
	for _, stop := range stops {
		if i := strings.Index(text, stop); stop != "" && i >= 0 {
			end = min(end, i)
		}
	}
	return text[:end], end < len(text)
}

// sampleRequest reads the parameters of sampling/createMessage.
func sampleRequest(params json.RawMessage) (r SampleRequest, stops []string, err error) {
	var p struct {
		SystemPrompt  string            `json:"systemPrompt"`
		MaxTokens     json.Number       `json:"maxTokens"`
		Temperature   *float64          `json:"temperature"`
		StopSequences []string          `json:"stopSequences"`
		Tools         []json.RawMessage `json:"tools"`
		Messages      []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	switch err := json.Unmarshal(params, &p); {
	case len(params) > maxSampled:
		return r, nil, fmt.Errorf("its request is larger than %d MiB", maxSampled>>20)
	case err != nil:
		return r, nil, errors.New("its request can't be read")
	case len(p.Tools) > 0:
		return r, nil, errors.New("its request brings tools, which is not offered")
	case len(p.Messages) == 0:
		return r, nil, errors.New("its request has no messages")
	}
	n, _ := p.MaxTokens.Float64() // what is no number here is none
	r = SampleRequest{System: p.SystemPrompt, Temperature: p.Temperature, MaxTokens: int(min(max(n, 0), 1<<30))}
	for _, m := range p.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return r, nil, fmt.Errorf("a message of its request has the role %q", oneLine(m.Role, 64))
		}
		blocks := []json.RawMessage{m.Content}
		if strings.HasPrefix(strings.TrimSpace(string(m.Content)), "[") {
			if err := json.Unmarshal(m.Content, &blocks); err != nil {
				return r, nil, errors.New("a message of its request can't be read")
			}
		}
		message := SampleMessage{Role: m.Role}
		for _, raw := range blocks {
			c := parseBlock(raw)
			switch c.Kind {
			case tools.KindText, tools.KindImage, tools.KindAudio:
				message.Content = append(message.Content, c)
			default:
				return r, nil, errors.New("a message of its request holds what no model is given")
			}
		}
		if len(message.Content) == 0 {
			return r, nil, errors.New("a message of its request is empty")
		}
		r.Messages = append(r.Messages, message)
	}
	return r, p.StopSequences, nil
}
