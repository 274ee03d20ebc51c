package agent

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"crewhost/runner/llm"
	"crewhost/tools"
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
	return h.leaveOut(h.maxMessages/2-1, h.maxChars/2-taskChars)
}

// leaveOut leaves out the oldest turns till what is kept has at most so many
// messages and characters, or is the last turn. It returns how many messages went.
func (h *history) leaveOut(messages, most int) int {
	last := h.lastTurn()
	cut, chars := 0, h.chars
	for cut < last {
		fits := len(h.turns)-cut <= messages && chars <= most
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

// lastTurn is where the last turn begins.
func (h *history) lastTurn() int {
	for i, m := range slices.Backward(h.turns) {
		if m.Role == llm.RoleAssistant {
			return i
		}
	}
	return 0
}

// shortest is what shrink leaves of a result, in characters.
const shortest = 500

// shrink makes a conversation shorter that the model has no room for: it leaves
// out the older half, or, where there is but one turn, halves the texts of its
// results. It returns how many messages went, or how many were cut.
func (h *history) shrink() (left, cut int) {
	if n := h.leaveOut(len(h.turns)/2, h.chars/2); n > 0 {
		return n, 0
	}
	if len(h.turns) == 0 {
		return 0, 0
	}
	for i := h.lastTurn() + 1; i < len(h.turns); i++ {
		m := &h.turns[i]
		shortened := false
		parts := make([]llm.Part, 0, len(m.Parts))
		for _, p := range m.Parts {
			switch n := utf8.RuneCountInString(p.Text); {
			case p.MIME != "":
				shortened = true
				p = llm.Part{Text: "[an image, left out]"}
			case n > shortest:
				shortened = true
				p.Text = tools.Truncate(p.Text, max(n/2, shortest))
			}
			parts = append(parts, p)
		}
		if shortened {
			before := size(*m)
			m.Parts = parts
			h.chars += size(*m) - before
			cut++
		}
	}
	return 0, cut
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
