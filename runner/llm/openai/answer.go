package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"crewhost/runner/llm"
)

// The answer as servers send it, whole or in chunks. What servers bend is kept
// raw.
type (
	answer struct {
		Model   string          `json:"model"`
		Choices []choice        `json:"choices"`
		Usage   json.RawMessage `json:"usage"`
		Error   json.RawMessage `json:"error"`
	}
	choice struct {
		Message      message `json:"message"`
		Delta        message `json:"delta"`
		FinishReason string  `json:"finish_reason"`
	}
	message struct {
		Content          json.RawMessage `json:"content"`           // string, null or parts
		ReasoningContent string          `json:"reasoning_content"` // DeepSeek, vLLM, …
		Reasoning        json.RawMessage `json:"reasoning"`         // OpenRouter, Ollama, newer vLLM
		Thinking         json.RawMessage `json:"thinking"`          // Ollama's own name
		ReasoningDetails json.RawMessage `json:"reasoning_details"` // OpenRouter, to be sent back
		Refusal          string          `json:"refusal"`
		ToolCalls        []callPart      `json:"tool_calls"`
		FunctionCall     *function       `json:"function_call"` // before there were tools
	}
	callPart struct {
		Index    *int     `json:"index"`
		ID       string   `json:"id"`
		Function function `json:"function"`

		ExtraContent json.RawMessage `json:"extra_content"` // Gemini, to be sent back
	}
	function struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"` // string, null or the object itself
	}
	usage struct { // numbers that some servers write as 10.0
		Prompt        *float64 `json:"prompt_tokens"`
		Completion    *float64 `json:"completion_tokens"`
		PromptDetails struct {
			Cached float64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		CompletionDetails struct {
			Reasoning float64 `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
		CacheHit float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	}
)

// readWhole reads an answer that is not streamed, whether or not it was asked to
// be, and delivers its text at once.
func (m *Model) readWhole(body io.Reader, deliver func(llm.Delta)) (*llm.Response, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	var ans answer
	if err := json.Unmarshal(text, &ans); err != nil {
		return nil, malformed("the answer is not the JSON of a chat completion", err)
	}
	if fault := inBand(ans.Error); fault != nil {
		return nil, fault
	}
	if len(ans.Choices) == 0 {
		return nil, malformed("the answer has no choices", nil)
	}
	acc := accumulator{billed: m.billed}
	first := ans.Choices[0]
	acc.take(first.Message, deliver)
	for _, part := range first.Message.ToolCalls {
		acc.calls.whole(part)
	}
	if f := first.Message.FunctionCall; f != nil {
		acc.calls.whole(callPart{Function: *f})
	}
	acc.finish = first.FinishReason
	acc.note(ans)
	return acc.response(deliver)
}

// malformed is an answer that cannot be used. It is not asked for again: the
// server would be paid for the same once more.
func malformed(what string, cause error) error {
	if cause != nil {
		what += ": " + cause.Error()
	}
	return &llm.APIError{Message: what, Err: cause}
}

// inBand returns the refusal that some servers put into a success.
func inBand(raw json.RawMessage) error {
	if isNull(raw) {
		return nil
	}
	return llm.Refusal(append(append([]byte(`{"error":`), raw...), '}'))
}

func isNull(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) == 0 || bytes.Equal(raw, []byte("null"))
}

// textOf joins the text of a content: a string, or parts that are strings or
// have a text. Parts that have thinking in place of a text (Mistral's) are
// reasoning.
func textOf(raw json.RawMessage) (text, reasoning string) {
	if isNull(raw) || json.Unmarshal(raw, &text) == nil {
		return text, ""
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		parts = []json.RawMessage{raw}
	}
	var said, thought strings.Builder
	for _, part := range parts {
		var s string
		var object struct {
			Text     json.RawMessage `json:"text"`
			Thinking json.RawMessage `json:"thinking"`
		}
		if json.Unmarshal(part, &s) == nil {
			said.WriteString(s)
		} else if json.Unmarshal(part, &object) == nil {
			if json.Unmarshal(object.Text, &s) == nil {
				said.WriteString(s)
			} else if !isNull(object.Thinking) {
				within, _ := textOf(object.Thinking)
				thought.WriteString(within)
			}
		}
	}
	return said.String(), thought.String()
}

// arguments returns the text that the model wrote. Servers that send the object
// itself have parsed it already; its digits are kept (K31).
func (f function) arguments() string {
	var s string
	if isNull(f.Arguments) || json.Unmarshal(f.Arguments, &s) == nil {
		return s
	}
	return string(f.Arguments)
}

// tokens reads a usage. One that cannot be read is no reason to lose the answer.
func tokens(raw json.RawMessage) llm.Usage {
	var u usage
	if json.Unmarshal(raw, &u) != nil || u.Prompt == nil && u.Completion == nil {
		return llm.Usage{}
	}
	// Some servers write -1 for what they did not count.
	count := func(n float64) int { return int(min(max(n, 0), 1<<40)) }
	out := llm.Usage{
		CacheRead: count(max(u.PromptDetails.Cached, u.CacheHit)),
		Reasoning: count(u.CompletionDetails.Reasoning),
		Measured:  true,
	}
	if u.Prompt != nil {
		out.Input = count(*u.Prompt)
	}
	if u.Completion != nil {
		out.Output = count(*u.Completion)
	}
	return out
}

// charge reads what the vendor says that it charges, in a usage's cost.
func charge(raw json.RawMessage, currency string) *llm.Charge {
	var u struct {
		Cost *float64 `json:"cost"`
	}
	if currency == "" || json.Unmarshal(raw, &u) != nil || u.Cost == nil || *u.Cost < 0 || *u.Cost > 1_000_000 {
		return nil
	}
	return &llm.Charge{Amount: llm.Amount(math.Round(*u.Cost * 1e12)), Currency: currency, Source: llm.ChargeVendor}
}

// stopReason says a finish_reason in our terms. Whether tools are called is seen
// by the calls and not by the reason, which servers get wrong; but an answer that
// was cut or withheld is never taken for a whole one (K71).
func stopReason(finish string, calls int) llm.StopReason {
	switch finish {
	case "length":
		return llm.StopLength
	case "content_filter":
		return llm.StopFilter
	}
	switch {
	case calls > 0:
		return llm.StopTools
	case finish == "stop":
		return llm.StopEnd
	}
	return llm.StopUnknown
}
