package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/ssestream"

	"crewhost/runner/llm"
)

// readStream reads an answer in chunks and delivers its text as it comes.
func (m *Model) readStream(res *http.Response, deliver func(llm.Delta)) (*llm.Response, error) {
	// The decoder drops an event without the empty line behind it, which is
	// how a server without [DONE] may end.
	res.Body = &endedBody{Reader: io.MultiReader(res.Body, strings.NewReader("\n\n")), Closer: res.Body}
	events := ssestream.NewDecoder(res)
	acc := accumulator{billed: m.billed}
	done := false
	for !done && events.Next() {
		data := bytes.TrimSpace(events.Event().Data)
		if done = bytes.Equal(data, []byte("[DONE]")); done || len(data) == 0 {
			continue
		}
		var chunk answer
		if err := json.Unmarshal(data, &chunk); err != nil {
			return nil, malformed("a piece of the stream is not JSON", err)
		}
		if fault := inBand(chunk.Error); fault != nil {
			return nil, fault
		}
		if err := acc.add(chunk, deliver); err != nil {
			return nil, err
		}
	}
	if err := events.Err(); err != nil {
		return nil, fmt.Errorf("reading the stream: %w", err)
	}
	if !done && acc.finish == "" {
		return nil, fmt.Errorf("the stream ended before the answer did: %w", io.ErrUnexpectedEOF)
	}
	if !acc.chosen {
		return nil, malformed("the answer has no choices", nil)
	}
	return acc.response(deliver)
}

type endedBody struct {
	io.Reader
	io.Closer
}

// accumulator puts an answer together. The zero value is ready for use.
type accumulator struct {
	text, reasoning strings.Builder
	refused         bool
	think           thinkSplitter
	calls           callList
	details         detailList
	finish, model   string
	usage           llm.Usage
	chosen          bool   // whether there was a choice at all
	billed          string // currency of the charge that a usage states
	charge          *llm.Charge
}

// add takes one chunk.
func (a *accumulator) add(chunk answer, deliver func(llm.Delta)) error {
	a.note(chunk)
	if len(chunk.Choices) == 0 { // the chunk of the usage
		return nil
	}
	a.chosen = true
	first := chunk.Choices[0]
	delta := first.Delta
	a.take(delta, deliver)
	for _, part := range delta.ToolCalls {
		if err := a.calls.part(part); err != nil {
			return err
		}
	}
	if f := delta.FunctionCall; f != nil {
		if err := a.calls.part(callPart{Function: *f}); err != nil {
			return err
		}
	}
	if first.FinishReason != "" {
		a.finish = first.FinishReason
	}
	return nil
}

// note takes what belongs to the whole answer.
func (a *accumulator) note(ans answer) {
	if ans.Model != "" {
		a.model = ans.Model
	}
	if u := tokens(ans.Usage); u.Measured {
		a.usage = u
	}
	if c := charge(ans.Usage, a.billed); c != nil {
		a.charge = c
	}
}

// take takes the text and reasoning of m.
func (a *accumulator) take(m message, deliver func(llm.Delta)) {
	reasoning := m.ReasoningContent
	for _, other := range []json.RawMessage{m.Reasoning, m.Thinking} {
		if reasoning == "" { // servers that send both send the same
			reasoning, _ = textOf(other)
		}
	}
	a.details.add(m.ReasoningDetails)
	content, within := textOf(m.Content)
	a.say("", reasoning+within, deliver)
	text, thought := a.think.split(content)
	if m.Refusal != "" {
		a.refused = true
		text += m.Refusal
	}
	a.say(text, thought, deliver)
}

func (a *accumulator) say(text, reasoning string, deliver func(llm.Delta)) {
	a.text.WriteString(text)
	a.reasoning.WriteString(reasoning)
	deliver(llm.Delta{Text: text, Reasoning: reasoning})
}

// response returns the answer when its end was seen.
func (a *accumulator) response(deliver func(llm.Delta)) (*llm.Response, error) {
	text, thought := a.think.end()
	a.say(text, thought, deliver)
	calls, extra, err := a.calls.all()
	if err != nil {
		return nil, err
	}
	res := &llm.Response{
		Message: llm.Message{Role: llm.RoleAssistant, Calls: calls, Reasoning: strings.TrimSpace(a.reasoning.String())},
		Stop:    stopReason(a.finish, len(calls)),
		Usage:   a.usage,
		Model:   a.model,
		Charge:  a.charge,
	}
	res.Message.Opaque = kept{ExtraContent: extra, ReasoningDetails: a.details.details()}.opaque()
	if text := a.text.String(); text != "" {
		res.Message.Parts = []llm.Part{{Text: text}}
	}
	if a.refused {
		res.Stop = llm.StopFilter
	}
	return res, nil
}
