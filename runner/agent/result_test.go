package agent

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm"
	"crewhost/tools"
)

func TestResultMessage(t *testing.T) {
	text := func(s string) tools.Content { return tools.Content{Kind: tools.KindText, Text: s} }
	png := tools.Content{Kind: tools.KindImage, MIME: "image/png", Data: []byte{1, 2}}
	for _, tt := range []struct {
		name string
		res  tools.Result
		want []llm.Part
	}{
		{"texts", tools.Result{Content: []tools.Content{text("a"), text("b")}}, []llm.Part{{Text: "a\nb"}}},
		{"nothing", tools.Result{}, []llm.Part{{Text: "(the tool succeeded and returned nothing)"}}},
		{"structured alone K31", tools.Result{Structured: json.RawMessage(`{"id":725653563933458433,"e":1e400,"f":0.1000000000000000055}`)},
			[]llm.Part{{Text: `{"id":725653563933458433,"e":1e400,"f":0.1000000000000000055}`}}},
		{"structured beside text", tools.Result{Content: []tools.Content{text("a")}, Structured: json.RawMessage(`{"a":1}`)}, []llm.Part{{Text: "a"}}},
		{"image between texts", tools.Result{Content: []tools.Content{text("before"), png, text("after")}},
			[]llm.Part{{Text: "before\n[image 1 of this result: image/png]\nafter"}, {MIME: "image/png", Data: []byte{1, 2}}}},
		{"image alone", tools.Result{Content: []tools.Content{png}},
			[]llm.Part{{Text: "[image 1 of this result: image/png]"}, {MIME: "image/png", Data: []byte{1, 2}}}},
		{"large image", tools.Result{Content: []tools.Content{{Kind: tools.KindImage, MIME: "image/png", Data: make([]byte, 11)}}},
			[]llm.Part{{Text: "[image, image/png, 11 bytes: larger than the 10 bytes that can be shown]"}}},
		{"audio", tools.Result{Content: []tools.Content{{Kind: tools.KindAudio, MIME: "audio/wav", Data: []byte{1}}}},
			[]llm.Part{{Text: "[audio, audio/wav, 1 bytes: not shown]"}}},
		{"resources and links", tools.Result{Content: []tools.Content{
			{Kind: tools.KindResource, URI: "file:///a", Text: "body"},
			{Kind: tools.KindResource, URI: "file:///b", MIME: "application/zip", Data: []byte{1, 2, 3}},
			{Kind: tools.KindLink, URI: "https://x/y", Name: "why"},
			{Kind: tools.KindUnknown, Raw: json.RawMessage(`{ "type": "hologram" }`)},
		}}, []llm.Part{{Text: "[resource file:///a]\nbody\n[resource file:///b, application/zip, 3 bytes: not shown]\n[link to https://x/y] why\n" +
			`[content of an unknown kind] {"type":"hologram"}`}}},
		{"error with an image alone K33", tools.Result{IsError: true, Content: []tools.Content{png}},
			[]llm.Part{{Text: "Error: the tool failed and did not say why\n[image 1 of this result: image/png]"}, {MIME: "image/png", Data: []byte{1, 2}}}},
		{"an error that says so", tools.Failure("ERROR: no"), []llm.Part{{Text: "ERROR: no"}}},
		{"invalid UTF-8", tools.Text("a\xffb"), []llm.Part{{Text: "a\uFFFDb"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Limits{ResultDataBytes: 10}.message("7", tt.res, 4000)
			want := llm.Message{Role: llm.RoleTool, CallID: "7", IsError: tt.res.IsError, Parts: tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResultsAreCutK35(t *testing.T) {
	limits := Limits{ResultCharsOf: map[string]int{"mine": 100}}.withDefaults()
	huge := tools.Text("HEAD" + strings.Repeat("é", 5<<20/2) + "TAIL")
	for _, tt := range []struct {
		tool string
		want int
	}{{"search", 4000}, {AskCoworker, 32000}, {"mine", 100}} {
		got := limits.message("1", huge, limits.resultChars(tt.tool)).Text()
		if n := utf8.RuneCountInString(got); n > tt.want || !utf8.ValidString(got) {
			t.Errorf("%s: %d characters, want at most %d", tt.tool, n, tt.want)
		}
		if tt.want > 100 && (!strings.HasPrefix(got, "HEAD") || !strings.HasSuffix(got, "TAIL") || !strings.Contains(got, "left out")) {
			t.Errorf("%s: %q", tt.tool, got)
		}
	}
}
