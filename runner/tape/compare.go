package tape

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"crewhost/runner/journal"
	"crewhost/runner/llm/replay"
)

// Difference is something in which two tapes differ.
type Difference struct {
	// About says what differs: host, crew, result and exit, which there is one of, or
	// request and outcome of a step, or a step that one tape alone has (added, missing).
	About string
	Scope journal.Scope // of a step
	Kind  journal.Kind  // of a step
	Name  string        // of a step
	// A and B are the steps' numbers, and the lines of what differs; 0: there is none.
	A, B         int
	LineA, LineB int
	Diff         string // of A (-) and B (+), for people
}

// What a difference is about.
const (
	AboutHost    = "host"
	AboutCrew    = "crew"
	AboutRequest = "request"
	AboutOutcome = "outcome"
	AboutMissing = "missing" // in B
	AboutAdded   = "added"   // in B
	AboutResult  = "result"
	AboutExit    = "exit"
)

// Compare returns in what two tapes differ: what there was, what was asked, and what
// came of it, step by step in the work of each agent, whatever was done beside. Times
// do not count, when a file was changed neither, nor do ids; nor do events, which follow
// from the rest.
func Compare(a, b *Tape) []Difference {
	c := &comparison{a: a, b: b}
	c.whole(AboutHost, 0, 0, a.Host, b.Host)
	digests := a.Run != nil && b.Run != nil && a.Run.Digest != "" && b.Run.Digest != ""
	c.whole(AboutCrew, 0, 0, runOf(a, digests), runOf(b, digests))
	for _, scope := range scopesOf(a, b) {
		c.scope(scope, stepsOf(a, scope), stepsOf(b, scope))
	}
	c.whole(AboutResult, a.resultLine, b.resultLine, a.Result, b.Result)
	c.whole(AboutExit, 0, 0, endOf(a), endOf(b))
	return c.found
}

type comparison struct {
	a, b  *Tape
	found []Difference
}

// runOf is what is compared of a run: the digest of its crew, where both tapes have one.
func runOf(t *Tape, digest bool) json.RawMessage {
	if t.Run == nil {
		return nil
	}
	run := *t.Run
	if !digest {
		run.Digest = ""
	}
	text, _ := encode(struct {
		Name    string            `json:"name,omitempty"`
		Process string            `json:"process,omitempty"`
		Digest  string            `json:"digest,omitempty"`
		Inputs  map[string]string `json:"inputs,omitempty"`
	}{run.Name, run.Process, run.Digest, run.Inputs})
	return text
}

func endOf(t *Tape) json.RawMessage {
	if t.End == nil {
		return json.RawMessage(`"the tape is not complete"`)
	}
	text, _ := encode(struct {
		Exit  int    `json:"exit"`
		Error string `json:"error,omitempty"`
	}{t.End.Exit, t.End.Error})
	return text
}

// whole compares what there is one of.
func (c *comparison) whole(about string, lineA, lineB int, a, b json.RawMessage) {
	one, other := timeless(a, took), timeless(b, took)
	if bytes.Equal(one, other) {
		return
	}
	c.found = append(c.found, Difference{
		About: about, LineA: lineA, LineB: lineB, Diff: replay.Difference(at(c.a, lineA), string(one), at(c.b, lineB), string(other)),
	})
}

func at(t *Tape, line int) string {
	if line == 0 {
		return t.Name
	}
	return fmt.Sprintf("%s:%d", t.Name, line)
}

// took and changed are the members that hold times: how long things took, and in what
// came of looking at a file also when it was changed (a process.Stamp). A tool's own
// member of that name is its answer, and counts.
func took(name string) bool    { return name == "tookNs" || name == "tookMs" }
func changed(name string) bool { return name == "Modified" || took(name) }

// timeless is canonical JSON without the members that hold times.
func timeless(raw json.RawMessage, isTime func(name string) bool) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return raw
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			maps.DeleteFunc(v, func(name string, _ any) bool { return isTime(name) })
			for _, inner := range v {
				strip(inner)
			}
		case []any:
			for _, inner := range v {
				strip(inner)
			}
		}
	}
	strip(v)
	text, err := encode(v)
	if err != nil {
		return raw
	}
	return text
}

// scopesOf are the scopes of the steps of both, in the order in which they come up.
func scopesOf(tapes ...*Tape) []journal.Scope {
	var all []journal.Scope
	seen := map[journal.Scope]bool{}
	for _, t := range tapes {
		for _, r := range t.steps {
			if !seen[r.Scope] {
				seen[r.Scope] = true
				all = append(all, r.Scope)
			}
		}
	}
	return all
}

func stepsOf(t *Tape, scope journal.Scope) []*record {
	return slices.DeleteFunc(slices.Clone(t.steps), func(r *record) bool { return r.Scope != scope || r.Kind == journal.Clock })
}

// scope compares the steps of one scope: those that ask the same are put beside each
// other first, as far as they come in the same order, and then what is left between
// them, where it is of one kind and name.
func (c *comparison) scope(scope journal.Scope, a, b []*record) {
	pairs := append(common(a, b), [2]int{len(a), len(b)})
	i, j := 0, 0
	for _, p := range pairs {
		for i < p[0] || j < p[1] {
			switch {
			case i < p[0] && j < p[1] && a[i].Kind == b[j].Kind && a[i].Name == b[j].Name:
				c.add(AboutRequest, scope, a[i], b[j], replay.Difference(at(c.a, a[i].line), asks(a[i].step()), at(c.b, b[j].line), asks(b[j].step())))
				i, j = i+1, j+1
			case i < p[0]:
				c.add(AboutMissing, scope, a[i], nil, replay.Difference(at(c.a, a[i].line), asks(a[i].step()), c.b.Name, ""))
				i++
			default:
				c.add(AboutAdded, scope, nil, b[j], replay.Difference(c.a.Name, "", at(c.b, b[j].line), asks(b[j].step())))
				j++
			}
		}
		if i == len(a) {
			return
		}
		isTime := took
		if a[i].Kind == journal.File {
			isTime = changed
		}
		one, other := timeless(cameOf(a[i]), isTime), timeless(cameOf(b[j]), isTime)
		if !bytes.Equal(one, other) {
			c.add(AboutOutcome, scope, a[i], b[j], replay.Difference(at(c.a, a[i].line), string(one), at(c.b, b[j].line), string(other)))
		}
		i, j = i+1, j+1
	}
}

func cameOf(r *record) json.RawMessage {
	switch {
	case r.Done == nil:
		return json.RawMessage(`"nothing is known of it"`)
	case r.Done.Open != "":
		return quoted(r.Done.Open)
	}
	return r.Done.Outcome
}

func quoted(s string) json.RawMessage {
	text, _ := encode(s) // texts encode
	return text
}

func (c *comparison) add(about string, scope journal.Scope, a, b *record, diff string) {
	d := Difference{About: about, Scope: scope, Diff: diff}
	if b != nil {
		d.Kind, d.Name, d.B, d.LineB = b.Kind, b.Name, b.N, b.line
	}
	if a != nil {
		d.Kind, d.Name, d.A, d.LineA = a.Kind, a.Name, a.N, a.line
	}
	c.found = append(c.found, d)
}

// mostPairs bounds the work of finding out which steps are common.
const mostPairs = 4_000_000

// common returns the places of a longest common sequence of steps that ask the same.
// Of very long ones it is that at the beginning alone.
func common(a, b []*record) [][2]int {
	var pairs [][2]int
	i := 0
	for i < len(a) && i < len(b) && a[i].key == b[i].key {
		pairs = append(pairs, [2]int{i, i})
		i++
	}
	rows, columns := len(a)-i, len(b)-i
	if rows == 0 || columns == 0 || rows*columns > mostPairs {
		return pairs
	}
	longest := make([][]int, rows+1)
	for x := range longest {
		longest[x] = make([]int, columns+1)
	}
	for x := rows - 1; x >= 0; x-- {
		for y := columns - 1; y >= 0; y-- {
			if a[i+x].key == b[i+y].key {
				longest[x][y] = longest[x+1][y+1] + 1
			} else {
				longest[x][y] = max(longest[x+1][y], longest[x][y+1])
			}
		}
	}
	for x, y := 0, 0; x < rows && y < columns; {
		switch {
		case a[i+x].key == b[i+y].key:
			pairs = append(pairs, [2]int{i + x, i + y})
			x, y = x+1, y+1
		case longest[x+1][y] >= longest[x][y+1]:
			x++
		default:
			y++
		}
	}
	return pairs
}
