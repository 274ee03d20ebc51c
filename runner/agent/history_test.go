package agent

import (
	"strings"
	"testing"

	"crewhost/runner/llm"
)

func TestHistoryIsTrimmedByCharactersAndKeepsItsLastTurn(t *testing.T) {
	turn := func(id, text string) []llm.Message {
		return []llm.Message{
			{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: id, Name: "x"}}},
			{Role: llm.RoleTool, CallID: id, Parts: []llm.Part{{Text: text}}},
		}
	}
	h := history{maxMessages: 100, maxChars: 1000, task: llm.User("task")}
	for _, id := range []string{"1", "2", "3", "4", "5"} {
		h.add(turn(id, strings.Repeat("x", 180))...)
		if n := h.trim(); n != 0 {
			t.Fatalf("%d left out after turn %s", n, id)
		}
	}
	h.add(turn("6", strings.Repeat("x", 180))...)
	if n := h.trim(); n != 8 {
		t.Errorf("%d left out, want 8: down to half the bound", n)
	}
	got := h.messages()
	if len(got) != 6 || got[0].Text() != "task" || !strings.Contains(got[1].Text(), "8 earlier messages") || got[2].Calls[0].ID != "5" {
		t.Errorf("%+v", got)
	}

	// A turn that is larger than all bounds stays: without it nothing goes on.
	h.add(turn("7", strings.Repeat("x", 5000))...)
	h.add(llm.User("nudge"))
	if n := h.trim(); n != 4 {
		t.Errorf("%d left out, want 4", n)
	}
	if n := h.trim(); n != 0 {
		t.Errorf("%d left out of the last turn", n)
	}
	if got = h.messages(); len(got) != 5 || !strings.Contains(got[1].Text(), "12 earlier messages") || got[3].CallID != "7" {
		t.Errorf("%+v", got)
	}
}

// Where the bound falls between a call and its result, both are left out.
func TestHistoryLeavesNoOrphan(t *testing.T) {
	h := history{maxMessages: 100, maxChars: 1000, task: llm.User("task")}
	large := llm.ToolCall{ID: "1", Name: "x", Arguments: strings.Repeat("x", 600)}
	h.add(llm.Message{Role: llm.RoleAssistant, Calls: []llm.ToolCall{large}},
		llm.Message{Role: llm.RoleTool, CallID: "1", Parts: []llm.Part{{Text: strings.Repeat("x", 300)}}},
		llm.Message{Role: llm.RoleAssistant, Calls: []llm.ToolCall{{ID: "2", Name: "x"}}},
		llm.Message{Role: llm.RoleTool, CallID: "2", Parts: []llm.Part{{Text: strings.Repeat("x", 150)}}})
	if n := h.trim(); n != 2 || h.messages()[2].Calls[0].ID != "2" {
		t.Errorf("%d left out: %+v", n, h.messages())
	}
}

func TestHistoryCountsImages(t *testing.T) {
	h := history{maxMessages: 100, maxChars: 2*imageChars - 1, task: llm.User("task")}
	h.add(llm.Message{Role: llm.RoleAssistant}, llm.Message{Role: llm.RoleTool, Parts: []llm.Part{{MIME: "image/png", Data: []byte{1}}, {MIME: "image/png", Data: []byte{1}}}},
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: "x"}}})
	if n := h.trim(); n != 2 {
		t.Errorf("%d left out, want 2", n)
	}
}
