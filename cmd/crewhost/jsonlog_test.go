package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/runner/llm/replay"
)

// Each line of stderr is a record, however it was written, and a record stays as it is.
func TestJSONLines(t *testing.T) {
	var out bytes.Buffer
	w := newJSONLines(&out)
	for _, piece := range []string{"one\ntw", "o\n", "WARNING: three\nERROR: four", "\n", `{"level":"DEBUG","msg":"five"}` + "\n{six}\n\n"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatal(n, err)
		}
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var r struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		got = append(got, r.Level+" "+r.Msg)
	}
	if diff := cmp.Diff([]string{"INFO one", "INFO two", "WARN three", "ERROR four", "DEBUG five", "INFO {six}"}, got); diff != "" {
		t.Error(diff)
	}
}

// How a request differs from a tape is one record, however many lines it has.
func TestDifferenceIsOneRecord(t *testing.T) {
	err := fmt.Errorf("asking: %w", &replay.DivergenceError{Tape: "tape.jsonl", Diff: "  turn is 1\nthe request:\n{\n}"})
	var text, records bytes.Buffer
	finish(&text, err, false)
	finish(newJSONLines(&records), err, false)
	if n := strings.Count(text.String(), "\n"); n != 5 {
		t.Errorf("%d lines of text:\n%s", n, &text)
	}
	if got := records.String(); strings.Count(got, "\n") != 2 || !strings.Contains(got, `"msg":"  turn is 1\nthe request:\n{\n}"`) {
		t.Errorf("got %s", got)
	}
}
