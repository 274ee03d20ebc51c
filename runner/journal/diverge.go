package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// DivergenceError says that a resumed run asks for something else than it did before,
// where it is to do the same: the journal is of no use to it, and what it did is not
// done anew without a person's say.
type DivergenceError struct {
	Now Step
	Was *Intent // nil: it is not known which
}

// Error says in one line who asks, and what for.
func (e *DivergenceError) Error() string {
	where := "the run"
	if t := e.Now.Scope.Task; t != "" {
		where = fmt.Sprintf("task %q", t)
	}
	return fmt.Sprintf("the run does not go as it went before: %s asks for something else (%s)", where, strings.TrimSpace(string(e.Now.Kind)+" "+e.Now.Name))
}

// Difference says where what is asked differs from what was, a line for each place;
// empty where that is not known.
func (e *DivergenceError) Difference() string {
	if e.Was == nil {
		return ""
	}
	lines := Differences(e.Was.Request, e.Now.Request)
	if e.Was.Name != e.Now.Name {
		lines = append([]string{fmt.Sprintf("it was %q, and is %q", e.Was.Name, e.Now.Name)}, lines...)
	}
	return "  " + strings.Join(lines, "\n  ")
}

// diverged finds what was asked where i is asked now: the nth step of its scope.
func (l *Log) diverged(i *Intent, nth int64) error {
	e := &DivergenceError{Now: Step{Kind: i.Kind, Scope: i.Scope, Name: i.Name, Request: i.Request, Effect: i.Effect}}
	r := NewReader(io.NewSectionReader(l.file, 0, l.end))
	seen := map[StepID]bool{} // of this scope alone
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return e
		}
		if err != nil {
			return errors.Join(e, err)
		}
		if was := record.Intent; was != nil && was.In == i.In && !seen[was.StepID] {
			seen[was.StepID] = true
			if int64(len(seen)) == nth {
				e.Was = was
				return e
			}
		}
	}
}

// maxDifferences bounds a list of differences, and shown the text of each, in bytes.
const (
	maxDifferences = 8
	shown          = 120
)

// Differences says where two JSON values differ, a line for each place, for a person
// to read. Of long texts it shows the part that differs.
func Differences(was, is json.RawMessage) []string {
	var lines []string
	compare("", parsed(was), parsed(is), &lines)
	if n := len(lines); n > maxDifferences {
		lines = append(lines[:maxDifferences], fmt.Sprintf("and %d more", n-maxDifferences))
	}
	return lines
}

func parsed(raw json.RawMessage) any {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

type absent struct{}

func compare(path string, was, is any, lines *[]string) {
	switch a := was.(type) {
	case map[string]any:
		if b, ok := is.(map[string]any); ok {
			compareObjects(path, a, b, lines)
			return
		}
	case []any:
		if b, ok := is.([]any); ok {
			for i := range max(len(a), len(b)) {
				compare(fmt.Sprintf("%s[%d]", path, i), item(a, i), item(b, i), lines)
			}
			return
		}
	}
	if x, y := text(was), text(is); x != y {
		x, y = around(x, y)
		*lines = append(*lines, fmt.Sprintf("%s: it was %s, and is %s", strings.TrimPrefix(path, "."), x, y))
	}
}

func compareObjects(path string, a, b map[string]any, lines *[]string) {
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, y := any(absent{}), any(absent{})
		if v, ok := a[name]; ok {
			x = v
		}
		if v, ok := b[name]; ok {
			y = v
		}
		compare(path+"."+name, x, y, lines)
	}
}

func item(all []any, i int) any {
	if i < len(all) {
		return all[i]
	}
	return absent{}
}

func text(v any) string {
	if _, none := v.(absent); none {
		return "absent"
	}
	raw, _ := json.Marshal(v) // it was JSON
	return string(raw)
}

// around cuts two texts down to where they begin to differ.
func around(x, y string) (string, string) {
	same := 0
	for same < len(x) && same < len(y) && x[same] == y[same] {
		same++
	}
	from := max(0, same-shown/3)
	cut := func(s string) string {
		to := min(len(s), from+shown)
		for from > 0 && from < len(s) && !utf8.RuneStart(s[from]) {
			from--
		}
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		cut := s[min(from, len(s)):to]
		if from > 0 {
			cut = "…" + cut
		}
		if to < len(s) {
			cut += "…"
		}
		return cut
	}
	return cut(x), cut(y)
}
