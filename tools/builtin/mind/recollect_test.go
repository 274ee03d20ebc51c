package mind_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools"
	"crewhost/tools/builtin/mind"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// mind is a memory and documents that say what they were asked.
type brain struct {
	found []mind.Passage
	err   error
	asked []string
}

func (m *brain) Store(_ context.Context, call tools.Call, key, text string) error {
	m.asked = append(m.asked, fmt.Sprintf("%s: %s=%s", call.Agent, key, text))
	return m.err
}

type remembering struct{ *brain }

func (m remembering) Search(_ context.Context, query string, top int, least float64) ([]mind.Passage, error) {
	m.asked = append(m.asked, fmt.Sprintf("%s %d %v", query, top, least))
	return m.found, m.err
}

type shelved struct{ *brain }

func (m shelved) Collections() []string { return []string{"guides", "logs"} }

func (m shelved) Search(_ context.Context, question, collection string, top int) ([]mind.Passage, error) {
	m.asked = append(m.asked, fmt.Sprintf("%s %q %d", question, collection, top))
	return m.found, m.err
}

func TestRecollection(t *testing.T) {
	m := &brain{}
	b := nativetest.New(t, func(*mount.FS) []native.Tool {
		return mind.Tools(mind.Config{
			Memory:    func(context.Context) mind.Memory { return remembering{m} },
			Documents: func(context.Context) mind.Documents { return shelved{m} },
		})
	})
	one := []mind.Passage{{Place: "a.md:3", Text: " High tide. ", Score: 0.5}}
	two := append(one, mind.Passage{Place: "b.md:1", Text: strings.Repeat("x", 10_000), Score: 0.25})
	for _, tt := range []struct {
		tool, args string
		found      []mind.Passage
		err        error
		asked      string
		want       string // a failure begins with "!"
	}{
		{"memory_store", `{"text":"red","key":" buoy "}`, nil, nil, "pilot: buoy=red", "Kept."},
		{"memory_store", `{"text":"red"}`, nil, errors.New("full"), "pilot: =red", "!The note was not kept: full."},
		{"memory_store", `{"text":"  "}`, nil, nil, "", `!Bad arguments for memory_store: the argument "text" is blank.`},
		{"memory_store", nativetest.Args("text", strings.Repeat("é", 32_001), "key", strings.Repeat("k", 201)), nil, nil, "", `!Bad arguments for memory_store: the argument "text" is longer than 32000 characters; the argument "key" is longer than 200`},
		{"semantic_search", `{"query":"tide"}`, one, nil, "tide 5 0", "[1] a.md:3, score 0.50\nHigh tide."},
		{"semantic_search", `{"query":"tide","top_k":"2","threshold":0.4}`, nil, nil, "tide 2 0.4", "[nothing in the memory is like that]"},
		{"semantic_search", `{"query":"tide","threshold":2,"top_k":99}`, nil, nil, "", `!Bad arguments for semantic_search: the argument "top_k" is 99, and must be from 1 to 20; the argument "threshold" must be a number from 0 to 1, and is 2.`},
		{"rag_search", `{"question":"tide?"}`, one, nil, `tide? "" 5`, "[1] a.md:3, score 0.50\nHigh tide."},
		{"rag_search", `{"question":"tide?","collection":"logs","top_k":1}`, nil, errors.New("gone"), `tide? "logs" 1`, "!Nothing was found in the documents: gone."},
		{"rag_search", `{"question":"tide?","collection":"log"}`, nil, nil, "", `!Bad arguments for rag_search: there is no collection "log"; there are guides, logs.`},
	} {
		m.found, m.err, m.asked = tt.found, tt.err, nil
		tool, _ := b.Reg.Lookup(tt.tool)
		res, err := tool.Call(t.Context(), tools.Call{Name: tt.tool, Agent: "pilot", Arguments: json.RawMessage(tt.args)})
		if err != nil {
			t.Fatal(err)
		}
		got := res.Content[0].Text
		if want, failure := strings.CutPrefix(tt.want, "!"); res.IsError != failure || !strings.HasPrefix(got, want) {
			t.Errorf("%s %.80s: %t, %.300s", tt.tool, tt.args, res.IsError, got)
		}
		if diff := cmp.Diff(tt.asked, strings.Join(m.asked, ";")); diff != "" {
			t.Errorf("%s %.80s: %s", tt.tool, tt.args, diff)
		}
	}
	// What is found shares the room that there is.
	m.found, m.err = two, nil
	got, failed := b.Call("semantic_search", `{"query":"tide"}`)
	if failed || len(got) > 4_000 || !strings.Contains(got, "\n\n[2] b.md:1, score 0.25\nxxx") {
		t.Errorf("%d: %.200s", len(got), got)
	}
	// A call that is given up is no answer.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tool, _ := b.Reg.Lookup("rag_search")
	var e *tools.Error
	if _, err := tool.Call(ctx, tools.Call{Name: "rag_search", Arguments: json.RawMessage(`{"question":"x"}`)}); !errors.As(err, &e) || e.Code != tools.CodeCancelled {
		t.Error(err)
	}
}

// Without a crew that has them, the tools say so.
func TestNoRecollection(t *testing.T) {
	b := nativetest.New(t, func(*mount.FS) []native.Tool { return mind.Tools(mind.Config{}) })
	b.CheckSchemas()
	b.WantFailure("memory_store", `{"text":"x"}`, "There is no memory here")
	b.WantFailure("semantic_search", `{"query":"x"}`, "There is no memory here")
	b.WantFailure("rag_search", `{"question":"x"}`, "There are no documents here")
}
