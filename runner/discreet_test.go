package runner

import (
	"context"
	"strings"
	"testing"

	"crewhost/config/secret"
	"crewhost/runner/llm"
)

// repeater says its key wherever it can, a letter at a time where it streams.
type repeater struct{ key string }

func (r repeater) Generate(_ context.Context, req llm.Request) (*llm.Response, error) {
	said := "I have <" + r.key + "> and " + r.key[:5]
	for i := range said {
		if req.OnDelta != nil {
			req.OnDelta(llm.Delta{Text: said[i : i+1]})
			req.OnDelta(llm.Delta{Reasoning: said[i : i+1]})
		}
	}
	return &llm.Response{Model: r.key, Message: llm.Message{
		Parts: []llm.Part{{Text: said}}, Reasoning: said,
		Calls: []llm.ToolCall{{ID: "c", Name: "t", Arguments: `{"a":"` + r.key + `"}`}},
	}}, nil
}

// K55: a model's endpoint that repeats its key is heard without it, in pieces or whole.
func TestDiscreet(t *testing.T) {
	m := discreetly(repeater{"key-canary-1234"}, secret.New("key-canary-1234"))
	var text, reasoning strings.Builder
	res, err := m.Generate(t.Context(), llm.Request{OnDelta: func(d llm.Delta) {
		text.WriteString(d.Text)
		reasoning.WriteString(d.Reasoning)
	}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "I have <•••> and key-c"
	for _, got := range []string{text.String(), reasoning.String(), res.Message.Text(), res.Message.Reasoning} {
		if got != want {
			t.Errorf("%q", got)
		}
	}
	if res.Model != secret.Mask || res.Message.Calls[0].Arguments != `{"a":"•••"}` {
		t.Errorf("%+v", res)
	}
}
