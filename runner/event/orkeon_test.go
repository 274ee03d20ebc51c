package event_test

import (
	"encoding/json"
	"testing"

	"crewhost/runner/event"
)

// orkeon are the kinds of Orkeon's stream and their members, without the
// envelope's. There is no hub.message: there is no hub.
var orkeon = map[event.Kind][]string{
	event.RunStarted:        {"target", "stream"},
	event.TaskStarted:       {"agentId", "taskId", "agentRole"},
	event.TaskCompleted:     {"agentId", "taskId", "agentRole", "success", "skipped", "durationMs", "tokens", "toolCalls"},
	event.ToolCalled:        {"correlationId", "toolName", "argsSummary"},
	event.ToolReturned:      {"correlationId", "toolName", "success", "durationMs"},
	event.DelegationStarted: {"correlationId", "toRole"},
	event.AgentSpawned:      {"correlationId", "role", "reason"},
	event.CostUpdated: {
		"agentId", "tokens", "promptTokens", "completionTokens", "cacheHitTokens", "cacheMissTokens", "estimatedTokens",
		"model", "provider", "operation", "cost", "currency", "costSource",
	},
	event.ModelDelta:  {"text"},
	event.InputNeeded: {"agentId", "correlationId", "inputKind", "prompt", "choices", "defaultValue", "taskDescription"},
	event.Failure:     {"code", "message", "recoverable"},
	event.RunFinished: {
		"success", "exitCode", "tokens", "durationMs", "promptTokens", "completionTokens",
		"cacheHitTokens", "cacheMissTokens", "estimatedTokens",
	},
}

// Whoever reads Orkeon's stream finds here what it looks for.
func TestOrkeonsMembersAreThere(t *testing.T) {
	for kind, members := range orkeon {
		e := full("x")
		e.Kind = kind
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var told map[string]any
		if err := json.Unmarshal(data, &told); err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{"v", "seq", "ts", "kind", "crewId"}, members...) {
			if told[name] == nil {
				t.Errorf("%s has no %s: %s", kind, name, data)
			}
		}
	}
}

// What is told most stays cheap: an event, masked and written.
func BenchmarkEmit(b *testing.B) {
	sink, _ := event.JSONL(discard{})
	s := event.NewStream("r", clock, sink)
	s.Mask(masker("secret"))
	e := event.Event{
		Kind: event.ToolReturned, Task: "write", Agent: "writer", Role: "A writer", Attempt: 1, Correlation: "12", Cause: "11",
		Call: "call_1", Tool: "file_write", Turn: 2, Success: new(true), DurationMS: 3,
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Emit(e)
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
