package openai_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"crewhost/runner/llm"
	"crewhost/runner/llm/llmtest"
	"crewhost/runner/llm/openai"
)

func embedder(t *testing.T, c openai.Config, steps ...llmtest.Step) (llm.Embedder, *llmtest.Mock) {
	t.Helper()
	none := 0
	mock := llmtest.NewMock(t, steps...)
	c.BaseURL, c.MaxRetries, c.HTTPClient = "http://model.test/v1", &none, llmtest.Serve(t, mock)
	e, err := openai.NewEmbedder(c)
	if err != nil {
		t.Fatal(err)
	}
	return e, mock
}

// embed answers with a vector of each text's length, last text first, as no
// order is promised but that of the index.
func embed(w http.ResponseWriter, _ *http.Request, body string) {
	var req struct{ Input []string }
	_ = json.Unmarshal([]byte(body), &req)
	var data []string
	for i := len(req.Input) - 1; i >= 0; i-- {
		data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,0.5]}`, i, len(req.Input[i])))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"data":[`+strings.Join(data, ",")+`],"usage":{"prompt_tokens":3,"total_tokens":3}}`)
}

// However many texts there are, each request keeps the vendor's limits, and the
// vectors come in the order of the texts.
func TestEmbed(t *testing.T) {
	texts := make([]string, 7)
	for i := range texts {
		texts[i] = strings.Repeat("x", i+1)
	}
	e, mock := embedder(t, openai.Config{Model: "own", Batch: 3, APIKey: "key"}, embed, embed, embed)
	vectors, usage, err := e.Embed(t.Context(), "", texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range vectors {
		if !slices.Equal(v, []float32{float32(i + 1), 0.5}) {
			t.Errorf("text %d: %v", i, v)
		}
	}
	if want := (llm.Usage{Input: 9, Measured: true}); usage != want || len(vectors) != 7 {
		t.Errorf("%d vectors, %+v", len(vectors), usage)
	}
	same(t, "body", `{"model":"own","input":["x","xx","xxx"]}`, mock.Bodies()[0])
	if mock.URLs()[0] != "/v1/embeddings" || mock.Header(0).Get("Authorization") != "Bearer key" {
		t.Errorf("asked %s with %v", mock.URLs()[0], mock.Header(0))
	}

	e, mock = embedder(t, openai.Config{Model: "own"}, embed, embed, embed)
	long := strings.Repeat("y", 200_000)
	if _, _, err := e.Embed(t.Context(), "other", []string{long, long, strings.Repeat("z", 300_000)}); err != nil {
		t.Fatal(err)
	}
	if n := len(mock.Bodies()); n != 3 || !strings.Contains(mock.Bodies()[0], `"model":"other"`) {
		t.Errorf("%d requests for three long texts", n)
	}
	if vectors, usage, err := e.Embed(t.Context(), "", nil); err != nil || len(vectors) != 0 || usage != (llm.Usage{}) {
		t.Errorf("of no texts: %v, %v, %v", vectors, usage, err)
	}
}

func TestEmbedForms(t *testing.T) {
	e, mock := embedder(t, openai.Config{Model: "m", Dimensions: 2}, llmtest.Status(200, `{"data":[{"embedding":"AACAPwAAAMA="}]}`)) // 1, -2
	vectors, usage, err := e.Embed(t.Context(), "", []string{"a"})
	if err != nil || !slices.Equal(vectors[0], []float32{1, -2}) || usage.Measured {
		t.Errorf("%v, %+v, %v", vectors, usage, err)
	}
	same(t, "body", `{"model":"m","input":["a"],"dimensions":2}`, mock.Bodies()[0])
}

func TestEmbedFaults(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{`{"data":[]}`, "2 texts were sent, and 0 vectors came"},
		{`{"data":[{"embedding":[1]},{"embedding":[1,2]}]}`, "the vectors are of 1 and of 2 numbers"},
		{`{"data":[{"embedding":[1]},{"embedding":[]}]}`, "vector 2 of 2 is none"},
		{`{"data":[{"embedding":[1]},{"embedding":["a"]}]}`, "vector 2 of 2 is none"},
		{`{"data":[{"embedding":[1]},{"embedding":"AACA"}]}`, "vector 2 of 2 is none"},
		{`{"data":[{"embedding":"AADAfw=="},{"embedding":[1]}]}`, "vector 1 of 2 is none"}, // not a number
		{`{"data":[{"index":1,"embedding":[1]},{"index":1,"embedding":[1]}]}`, "have no order"},
		{`{"data":[{"index":-1,"embedding":[1]},{"index":7,"embedding":[1]}]}`, "have no order"},
		{`{"error":{"message":"no such model","code":"model_not_found"}}`, "no such model"},
		{`no JSON`, "not the JSON"},
	} {
		e, _ := embedder(t, openai.Config{Model: "m"}, llmtest.Status(200, tt.answer))
		_, _, err := e.Embed(t.Context(), "", []string{"a", "b"})
		var api *llm.APIError
		if !errors.As(err, &api) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.answer, err)
		}
	}
	e, _ := embedder(t, openai.Config{Dimensions: 3}, embed)
	if _, _, err := e.Embed(t.Context(), "m", []string{"a"}); err == nil || !strings.Contains(err.Error(), "2 numbers, and 3 were asked for") {
		t.Errorf("other dimensions: %v", err)
	}
	e, _ = embedder(t, openai.Config{}, llmtest.Status(401, `{"error":{"message":"bad key"}}`))
	if _, _, err := e.Embed(t.Context(), "m", []string{"a"}); err == nil || !strings.Contains(err.Error(), "HTTP 401: bad key") {
		t.Errorf("a refusal: %v", err)
	}
	if _, _, err := e.Embed(t.Context(), "", []string{"a"}); err == nil || !strings.Contains(err.Error(), "no model") {
		t.Errorf("no model: %v", err)
	}
	if _, _, err := e.Embed(t.Context(), "m", []string{"a", " "}); err == nil || !strings.Contains(err.Error(), "text 2 of 2 is blank") {
		t.Errorf("a blank text: %v", err)
	}
}

// FuzzEmbed: whatever a server sends, vectors are one for each text and of one
// length, or there is an error.
func FuzzEmbed(f *testing.F) {
	f.Add([]byte(`{"data":[{"index":1,"embedding":[1,2]},{"index":0,"embedding":"AACAPwAAAMA="}],"usage":{"prompt_tokens":1}}`))
	f.Add([]byte(`{"data":[{"embedding":null},{"embedding":[null]}]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		none := 0
		e, err := openai.NewEmbedder(openai.Config{
			BaseURL: "http://model.test", Model: "m", MaxRetries: &none,
			HTTPClient: llmtest.Serve(t, llmtest.NewMock(t, llmtest.Status(200, string(answer)))),
		})
		if err != nil {
			t.Fatal(err)
		}
		vectors, _, err := e.Embed(t.Context(), "", []string{"a", "b"})
		if err == nil && (len(vectors) != 2 || len(vectors[0]) == 0 || len(vectors[0]) != len(vectors[1])) {
			t.Errorf("%v", vectors)
		}
	})
}
