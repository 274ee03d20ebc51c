package mcp

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"crewhost/config"
	"crewhost/mcp/wire"
	"crewhost/tools"
)

func TestNesting(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `"[{"`: 0, `"\\"`: 0, `"\"["`: 0, `[]`: 1, `{"a":[1,{"b":[]}],"c":"]"}`: 4, `["\\",[[]]]`: 3,
	} {
		if got := wire.Nesting([]byte(text)); got != want {
			t.Errorf("%s: got %d, want %d", text, got, want)
		}
	}
	deep := json.RawMessage(strings.Repeat("[", 501) + strings.Repeat("]", 501))
	for name, res := range map[string]tools.Result{
		"structured": {Structured: deep},
		"unknown":    {Content: []tools.Content{{Kind: tools.KindUnknown, Raw: deep}}},
	} {
		if _, f := fit(res, limitsOf(config.Limits{})); f == nil || f.code != tools.CodeResultTooLarge {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// W10 and K35: texts are cut and say so, all else is refused where it is too large.
func TestFit(t *testing.T) {
	texts := func(texts ...string) tools.Result {
		var r tools.Result
		for _, s := range texts {
			r.Content = append(r.Content, tools.Content{Kind: tools.KindText, Text: s})
		}
		return r
	}
	image := func(n int) tools.Result {
		return tools.Result{Content: []tools.Content{{Kind: tools.KindImage, Data: make([]byte, n)}}}
	}
	long := strings.Repeat("é", 1000)
	for name, tt := range map[string]struct {
		in           tools.Result
		chars, bytes int
		blocks       int
		cut          bool
		refused      bool
	}{
		"whole":                  {in: texts(long), chars: 1000, bytes: 2000, blocks: 1},
		"too many characters":    {in: texts(long), chars: 999, bytes: 2000, blocks: 1, cut: true},
		"too many bytes":         {in: texts(long), chars: 1000, bytes: 1999, blocks: 1, cut: true},
		"the last is cut":        {in: texts(long, long, long), chars: 1500, bytes: 10_000, blocks: 4, cut: true},
		"no room at all":         {in: texts(long), chars: 1, bytes: 1, blocks: 2, cut: true},
		"an image":               {in: image(500), chars: 1, bytes: 500, blocks: 1},
		"a large image":          {in: image(501), chars: 1000, bytes: 500, refused: true},
		"large structured":       {in: tools.Result{Structured: json.RawMessage(`"` + long + `"`)}, chars: 1, bytes: 2001, refused: true},
		"a text beside an image": {in: tools.Result{Content: append(image(1500).Content, texts(long).Content...)}, chars: 1000, bytes: 2000, blocks: 2, cut: true},
		"a large unknown block":  {in: tools.Result{Content: []tools.Content{{Kind: tools.KindUnknown, Raw: json.RawMessage(long)}}}, chars: 1, bytes: 1, refused: true},
		"nothing":                {chars: 1, bytes: 1},
	} {
		got, f := fit(tt.in, config.Limits{TextChars: tt.chars, ResultBytes: tt.bytes})
		if (f != nil) != tt.refused {
			t.Errorf("%s: %v", name, f)
			continue
		}
		if f != nil {
			if f.code != tools.CodeResultTooLarge {
				t.Errorf("%s: %s", name, f.code)
			}
			continue
		}
		size, said := 0, false
		for _, c := range got.Content {
			size += len(c.Text) + len(c.Data)
			said = said || strings.Contains(c.Text, "characters")
			if !utf8.ValidString(c.Text) {
				t.Errorf("%s: cut within a character", name)
			}
		}
		if len(got.Content) != tt.blocks || said != tt.cut || size > tt.bytes+100 {
			t.Errorf("%s: %d blocks, %d bytes, said %v", name, len(got.Content), size, said)
		}
	}
}
