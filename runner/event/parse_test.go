package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"crewhost/runner/event"
)

// What is parsed is told again as the same bytes, whatever the kind, be there
// everything or nothing in it.
func TestParseLosesNothing(t *testing.T) {
	for _, kind := range event.Kinds() {
		for _, e := range []event.Event{full("x<é>"), {}} {
			e.V, e.Seq, e.Run, e.Time, e.Kind = event.Version, 3, "r", clock(), kind
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := event.Parse(line)
			if err != nil {
				t.Errorf("%s: %v\n%s", kind, err, line)
				continue
			}
			again, err := json.Marshal(parsed)
			if err != nil || string(again) != string(line) {
				t.Errorf("%s: %v\n got %s\nwant %s", kind, err, again, line)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"no.such"}`:                        `the kind "no.such" is unknown`,
		`{"kind":"notice","texts":"a"}`:             `unknown field "texts"`,
		`{"kind":"notice"} {"kind":"notice"}`:       "more than one",
		`{"kind":"mcp.startup","tools":["a"]}`:      "tools",
		`{"kind":"mcp.server","tools":3}`:           "tools",
		`{"kind":"notice","ts":"yesterday"}`:        "yesterday",
		`{"kind":"notice","text":"no end`:           "unexpected EOF",
		`[]`:                                        "cannot unmarshal",
		`{"kind":"cost.updated","agentTotals":"x"}`: "cannot unmarshal",
	} {
		if _, err := event.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// However hostile a tape is, what can be parsed can be told.
func FuzzParse(f *testing.F) {
	for _, kind := range event.Kinds() {
		e := full("x")
		e.Kind = kind
		line, _ := json.Marshal(e)
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := event.Parse(line)
		if err != nil {
			return
		}
		told, err := json.Marshal(e)
		if err != nil {
			t.Skip() // a year that JSON has no name for
		}
		again, err := event.Parse(told)
		if err != nil {
			t.Fatalf("%v\n%s", err, told)
		}
		if twice, _ := json.Marshal(again); string(twice) != string(told) {
			t.Fatalf("%s\n%s", told, twice)
		}
	})
}
