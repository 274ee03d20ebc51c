package provider_test

import (
	"net/url"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/provider"
)

// The table is in order: names once each, URLs that are URLs, and a model and,
// where there is said to be one, an embedder for every row.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for _, row := range provider.All() {
		for _, name := range append([]string{row.Name}, row.Aliases...) {
			if names[name] {
				t.Errorf("%s is there twice", name)
			}
			names[name] = true
			if found, ok := provider.Find(name); !ok || found.Name != row.Name {
				t.Errorf("%s is not found", name)
			}
		}
		c := provider.Config{Model: "m"}
		if base, err := url.Parse(row.BaseURL); err != nil || row.BaseURL != "" && base.Host == "" {
			t.Errorf("%s: base URL %q", row.Name, row.BaseURL)
		}
		if row.BaseURL == "" {
			if _, err := row.Model(c); err == nil {
				t.Errorf("%s: no URL is needed", row.Name)
			}
			c.BaseURL = "http://127.0.0.1:1"
		}
		m, err := row.Model(c)
		if err != nil {
			t.Errorf("%s: %v", row.Name, err)
			continue
		}
		if got := llm.CapabilitiesOf(m); got != row.Capabilities {
			t.Errorf("%s: %+v, want %+v", row.Name, got, row.Capabilities)
		}
		if len(llm.DialectOf(m).RootKeywords) == 0 {
			t.Errorf("%s: its dialect is hidden", row.Name)
		}
		if _, err := row.Embedder(c); (err == nil) != row.Embeddings {
			t.Errorf("%s: embedder: %v", row.Name, err)
		}
	}
	if _, ok := provider.Find("nobody"); ok {
		t.Error("a provider that is none")
	}
}

// What the settings know better.
func TestOverrides(t *testing.T) {
	row, _ := provider.Find("openai-compatible")
	yes, no := true, false
	for _, tt := range []struct {
		o    provider.Overrides
		want func(*llm.Capabilities)
	}{
		{provider.Overrides{}, func(*llm.Capabilities) {}},
		{provider.Overrides{ToolCalls: "text", ParallelCalls: &no}, func(c *llm.Capabilities) { c.TextCalls, c.OneCall = true, true }},
		{provider.Overrides{ToolCalls: "native", ParallelCalls: &yes}, func(*llm.Capabilities) {}},
		{provider.Overrides{Thinking: "none"}, func(c *llm.Capabilities) { c.Thinking = llm.ThinkNone }},
		{provider.Overrides{Thinking: "effort"}, func(c *llm.Capabilities) { c.Thinking = llm.ThinkEffort }},
		{provider.Overrides{ResponseFormat: "json_schema"}, func(*llm.Capabilities) {}},
		{provider.Overrides{ResponseFormat: "json_object", Cache: "marked"}, func(c *llm.Capabilities) { c.Formats, c.Cache = llm.FormatObject, llm.CacheMarked }},
		{provider.Overrides{ResponseFormat: "none", Cache: "automatic"}, func(c *llm.Capabilities) { c.Formats = llm.FormatNone }},
	} {
		want := row.Capabilities
		tt.want(&want)
		if got := row.With(tt.o).Capabilities; got != want {
			t.Errorf("%+v: %+v", tt.o, got)
		}
	}
	// The terms of thinking decide about the field too.
	for terms, field := range map[string]string{
		"budget":   `"enable_thinking":true,"thinking_budget":2048`,
		"switch":   `"thinking":{"type":"enabled"}`,
		"template": `"chat_template_kwargs":{"enable_thinking":true}`,
	} {
		mock := llmtest.NewMock(t, llmtest.Status(200, hello))
		m, err := row.With(provider.Overrides{Thinking: terms}).Model(provider.Config{BaseURL: "http://model.test", Model: "m", HTTPClient: llmtest.Serve(t, mock)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), llm.Request{Messages: []llm.Message{llm.User("hi")}, Thinking: &llm.Thinking{Enabled: true, Effort: "low"}}); err != nil {
			t.Fatal(err)
		}
		same(t, terms, `{"model":"m","messages":[{"role":"user","content":"hi"}],`+field+`}`, mock.Bodies()[0])
	}
}
