package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
