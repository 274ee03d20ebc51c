package llm

import "testing"

func TestUsed(t *testing.T) {
	req := Request{
		System: "four", Messages: []Message{User("eight by"), {Calls: []ToolCall{{Name: "go", Arguments: "{}"}}}},
		Tools: []Tool{{Name: "ab", Description: "cd", Schema: []byte("{}")}},
	}
	res := Response{Message: Message{Parts: []Part{{Text: "five!"}}, Reasoning: "and"}}
	if got := Used(req, res); got != (Usage{Input: 6, Output: 2}) {
		t.Errorf("%+v", got)
	}
	res.Usage = Usage{Input: 1, Output: 1, Measured: true}
	if got := Used(req, res); got != res.Usage {
		t.Errorf("what was measured is measured: %+v", got)
	}
	if got := Used(Request{}, Response{}); got != (Usage{}) {
		t.Errorf("%+v", got)
	}
}
