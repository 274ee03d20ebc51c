package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/llmtest"
	"crewhost/tools"
)

// speaking is a model with the dialect of another.
type speaking struct {
	llm.Model
	llm.Dialectal
}

// A model gets schemas in the dialect of its API, and the tool gets arguments of
// its own schema, digit for digit (W7, K31).
func TestToolsInTheDialectOfTheModel(t *testing.T) {
	vendor, err := anthropic.New(anthropic.Config{Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	script := llmtest.New(t,
		llmtest.Calls(
			toolCall("1", "either", `{"input":{"id":725653563933458433,"none":null}}`),
			toolCall("2", "top", `{"_top":1e400}`),
		).Expect(func(req llm.Request) error {
			for _, tool := range req.Tools {
				var root map[string]json.RawMessage
				if err := json.Unmarshal(tool.Schema, &root); err != nil {
					return err
				}
				if root["anyOf"] != nil || strings.Contains(string(tool.Schema), "$top") {
					return fmt.Errorf("offered %s", tool.Schema)
				}
			}
			return nil
		}),
		llmtest.Text("done"),
	)
	held := func(name, schema string) tool {
		return tool{tools.Definition{Name: name, InputSchema: json.RawMessage(schema)}, func(_ context.Context, c tools.Call) (tools.Result, error) {
			return tools.Text(string(c.Arguments)), nil
		}}
	}
	b := newBench(t, speaking{script, vendor},
		held("either", `{"type":"object","properties":{"none":{"type":"string"}},"anyOf":[{"required":["id"]},{"required":["name"]}]}`),
		held("top", `{"type":"object","properties":{"$top":{"type":"number"}}}`))
	if _, err := b.run(t.Context(), t, input("either", "top")); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(results(script.Requests()[1]), "\n")
	if want := `1 false {"id":725653563933458433}` + "\n" + `2 false {"$top":1e400}`; got != want {
		t.Errorf("got %s", got)
	}
}
