package provider_test

import (
	"encoding/json"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/provider"
)

// What a tool is on the wire is what each adapter writes, in the order of the tools.
func TestSentIsTheAdaptersOwn(t *testing.T) {
	offered := []llm.Tool{
		{Name: "echo", Description: "Says <it> again.", Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)},
		{Name: "bare"},
	}
	for _, row := range provider.All() {
		t.Run(row.Name, func(t *testing.T) {
			c := provider.Config{Model: "m"}
			if row.BaseURL == "" {
				c.BaseURL = "https://vendor.example/v1"
			}
			sent, err := row.Sent(t.Context(), c, offered)
			if err != nil {
				t.Fatal(err)
			}
			if len(sent) != 2 {
				t.Fatalf("%d tools", len(sent))
			}
			for i, raw := range sent {
				var tool struct {
					Name     string `json:"name"`
					Function struct {
						Name string `json:"name"`
					} `json:"function"`
				}
				if err := json.Unmarshal(raw, &tool); err != nil || tool.Name+tool.Function.Name != offered[i].Name {
					t.Errorf("%v: %s", err, raw)
				}
			}
		})
	}
	row, _ := provider.Find("openai")
	sent, err := row.Sent(t.Context(), provider.Config{}, offered[:1])
	if err != nil {
		t.Fatal(err)
	}
	var tool map[string]any
	if err := json.Unmarshal(sent[0], &tool); err != nil || tool["type"] != "function" {
		t.Errorf("%v: %s", err, sent[0])
	}
	if sent, err := row.Sent(t.Context(), provider.Config{}, nil); err != nil || sent != nil {
		t.Errorf("no tools: %s, %v", sent, err)
	}
}
