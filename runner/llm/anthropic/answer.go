package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	anthropic "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/anthropics/anthropic-sdk-go/v2/shared"

	"crewhost/runner/llm"
)

// readStream reads an answer in pieces and delivers its text and thinking as
// they come. The SDK puts the message together, but makes {} of an input that is
// no JSON, and a call that was cut would look whole (K71); so the text of the
// inputs is kept beside it.
func readStream(events *ssestream.Stream[anthropic.MessageStreamEventUnion], deliver func(llm.Delta)) (*llm.Response, error) {
	defer func() { _ = events.Close() }() // what was read counts, not how it is let go
	var msg anthropic.Message
	inputs := map[int64]*strings.Builder{}
	stopped := false
	for !stopped && events.Next() {
		event := events.Current()
		if err := msg.Accumulate(event); err != nil {
			return nil, malformed("the stream cannot be followed: " + err.Error())
		}
		switch event.Type {
		case "content_block_start": // its text is usually empty
			deliver(llm.Delta{Text: event.ContentBlock.Text, Reasoning: event.ContentBlock.Thinking})
		case "content_block_delta":
			deliver(llm.Delta{Text: event.Delta.Text, Reasoning: event.Delta.Thinking})
			if event.Delta.PartialJSON != "" {
				if inputs[event.Index] == nil {
					inputs[event.Index] = &strings.Builder{}
				}
				inputs[event.Index].WriteString(event.Delta.PartialJSON)
			}
		case "message_stop":
			stopped = true
		}
	}
	if err := events.Err(); err != nil {
		return nil, streamFault(err)
	}
	if !stopped && msg.StopReason == "" {
		return nil, fmt.Errorf("the stream ended before the answer did: %w", io.ErrUnexpectedEOF)
	}
	return response(&msg, inputs), nil
}

// streamFault reads the error of a stream. The SDK's own kind holds the request
// with the key in it and goes no further.
func streamFault(err error) error {
	var fault *anthropic.Error
	if !errors.As(err, &fault) {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return malformed("a piece of the stream is not JSON: " + err.Error())
		}
		return fmt.Errorf("reading the stream: %w", err)
	}
	own := llm.Refusal([]byte(fault.RawJSON()))
	switch fault.Type() {
	case shared.ErrorTypeOverloadedError, shared.ErrorTypeRateLimitError, shared.ErrorTypeAPIError, shared.ErrorTypeTimeoutError:
		own.Temporary = true
	}
	return own
}

// opaque is what a message keeps of a turn that text and calls do not say whole.
type opaque struct {
	Anthropic []json.RawMessage `json:"anthropic"` // the turn's blocks as they came
}

// response says msg in neutral terms; inputs are the arguments by block where
// they were streamed.
func response(msg *anthropic.Message, inputs map[int64]*strings.Builder) *llm.Response {
	res := &llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant},
		Usage:   tokens(msg),
		Model:   msg.Model,
	}
	var blocks []json.RawMessage
	keep := false
	for i, b := range msg.Content {
		switch b.Type {
		case "text":
			if b.Text == "" { // the API does not take empty ones back
				continue
			}
			res.Message.Parts = append(res.Message.Parts, llm.Part{Text: b.Text})
		case "tool_use":
			arguments := string(b.Input)
			if text := inputs[int64(i)]; text != nil {
				arguments = text.String()
			}
			res.Message.Calls = append(res.Message.Calls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: arguments})
		case "thinking":
			res.Message.Reasoning += b.Thinking
			keep = true
		default: // redacted thinking, and what a later API may add
			keep = true
		}
		blocks = append(blocks, json.RawMessage(b.RawJSON()))
	}
	if keep {
		if raw, err := json.Marshal(opaque{blocks}); err == nil {
			res.Message.Opaque = raw
		}
	}
	res.Stop = stopReason(msg.StopReason, len(res.Message.Calls))
	return res
}

// tokens says the usage in neutral terms: the API counts cached input apart.
func tokens(msg *anthropic.Message) llm.Usage {
	u := msg.Usage
	if !msg.JSON.Usage.Valid() {
		return llm.Usage{}
	}
	return llm.Usage{
		Input:      int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
		Output:     int(u.OutputTokens),
		CacheRead:  int(u.CacheReadInputTokens),
		CacheWrite: int(u.CacheCreationInputTokens),
		Reasoning:  int(u.OutputTokensDetails.ThinkingTokens),
		Measured:   true,
	}
}

// stopReason says why the model stopped. An answer that was cut or withheld is
// never taken for a whole one, with calls or without (K71).
func stopReason(reason anthropic.StopReason, calls int) llm.StopReason {
	switch reason {
	case anthropic.StopReasonMaxTokens, anthropic.StopReasonModelContextWindowExceeded:
		return llm.StopLength
	case anthropic.StopReasonRefusal:
		return llm.StopFilter
	}
	switch {
	case calls > 0:
		return llm.StopTools
	case reason == anthropic.StopReasonEndTurn, reason == anthropic.StopReasonStopSequence:
		return llm.StopEnd
	}
	return llm.StopUnknown // pause_turn too: it is for tools of the vendor, which are not asked for
}
