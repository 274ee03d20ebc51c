package agent

import (
	"fmt"

	"crewhost/runner/llm"
)

// imageChars is what an image counts for in a conversation's characters.
const imageChars = 6_000

// history is a conversation: the task, then turns. When it grows beyond its
// bounds its oldest turns are left out, down to half of the bounds, so that the
// beginning of the conversation, which providers cache, does not change with
// every turn. The task and the last turn always stay.
type history struct {
	maxMessages, maxChars int

	task    llm.Message
	turns   []llm.Message
	chars   int // of turns
	dropped int // messages left out so far
}

func (h *history) add(messages ...llm.Message) {
	for _, m := range messages {
		h.turns = append(h.turns, m)
		h.chars += size(m)
	}
}

// trim leaves out the oldest turns of a conversation beyond its bounds and
// reports how many messages that were. What is kept begins with an answer of the
// model: a tool's result, in whichever form, never stays without the call.
func (h *history) trim() int {
	taskChars := size(h.task)
	if len(h.turns)+1 <= h.maxMessages && h.chars+taskChars <= h.maxChars {
		return 0
	}
	last := len(h.turns)
	for last > 0 {
		last--
		if h.turns[last].Role == llm.RoleAssistant {
			break
		}
	}
	cut, chars := 0, h.chars
	for cut < last {
		fits := len(h.turns)-cut+1 <= h.maxMessages/2 && chars+taskChars <= h.maxChars/2
		if fits && h.turns[cut].Role == llm.RoleAssistant {
			break
		}
		chars -= size(h.turns[cut])
		cut++
	}
	h.turns = append([]llm.Message(nil), h.turns[cut:]...)
	h.chars = chars
	h.dropped += cut
	return cut
}

// messages is the conversation as the model gets it.
func (h *history) messages() []llm.Message {
	out := make([]llm.Message, 0, len(h.turns)+2)
	out = append(out, h.task)
	if h.dropped > 0 {
		out = append(out, llm.User(fmt.Sprintf(
			"[%d earlier messages of this conversation are left out here, because it grew too long. What you need of them, ask your tools again.]", h.dropped)))
	}
	return append(out, h.turns...)
}

// size counts a message in characters, roughly: bytes of text.
func size(m llm.Message) int {
	n := len(m.Reasoning) + len(m.Opaque)
	for _, p := range m.Parts {
		n += len(p.Text)
		if len(p.Data) > 0 {
			n += imageChars
		}
	}
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}
