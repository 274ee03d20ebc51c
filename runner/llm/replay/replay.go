// Package replay is a model that answers from a tape: a file of requests and the
// answers to them. A run on a tape needs no key, no network and no luck.
//
//	tape, err := replay.Open("testdata/quickstart/tape.jsonl")
//	…
//	res, err := tape.Generate(ctx, req)
//
// # Tapes
//
// A tape is JSONL. The first line says what it is, and every other that is not
// blank is a record:
//
//	{"tape":"crewhost","version":1}
//	{"request":{"messages":[…]},"response":{"message":{"parts":[{"text":"Seven."}]}}}
//	{"match":{"contains":["Oslo"],"turn":0},"response":{"message":{"calls":[{"id":"c1","name":"weather","arguments":"{\"city\":\"Oslo\"}"}]}}}
//
// A record answers one request, once. Which one, it says in one of two ways:
//
//   - request is a whole [llm.Request]. It answers the request that is equal to
//     it in every field, whatever the order of keys and the spaces in schemas.
//     That is what a [Recorder] writes.
//   - match is for tapes written by hand, and for what differs from one machine
//     to another, such as paths and times: it answers a request in which every
//     string of contains occurs, and in which turn messages of the assistant
//     went before. Both may be left out. Searched are the system prompt, the
//     text of every message, and the names and arguments of calls; not the
//     definitions of tools.
//
// In the response, the message's role may be left out, and stop: it is tool_calls
// where there are calls and end otherwise. A note beside request or match is for
// people. An unknown key is an error, and so is a line of more than 16 MiB.
//
// A request takes the first unused record of the tape that answers it. So tasks
// that run at once may ask in any order, and equal requests are answered in the
// order they were recorded in.
package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"crewhost/runner/llm"
)

// Record is a request and the answer to it.
type Record struct {
	Line     int    // of the tape, counted from 1
	Note     string // for people
	Request  *llm.Request
	Match    *Match // set where Request is nil
	Response llm.Response

	canonical string // of Request
}

// Match says which requests a record answers without saying them whole. The zero
// value answers every request.
type Match struct {
	// Contains are strings that must all occur in the request.
	Contains []string `json:"contains,omitempty"`
	// Turn is how many messages of the assistant the request must have; nil
	// if any number will do.
	Turn *int `json:"turn,omitempty"`
}

// missing says what keeps m from answering a request, nothing if it answers it.
func (m *Match) missing(req llm.Request, text string) []string {
	var why []string
	if turn := turns(req); m.Turn != nil && *m.Turn != turn {
		why = append(why, fmt.Sprintf("turn is %d, the request's is %d", *m.Turn, turn))
	}
	for _, s := range m.Contains {
		if !strings.Contains(text, s) {
			why = append(why, fmt.Sprintf("the request does not contain %q", s))
		}
	}
	return why
}

func turns(req llm.Request) int {
	n := 0
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			n++
		}
	}
	return n
}

// textOf is what Match.Contains is looked for in.
func textOf(req llm.Request) string {
	lines := []string{req.System}
	for _, m := range req.Messages {
		lines = append(lines, m.Text())
		for _, c := range m.Calls {
			lines = append(lines, c.Name, c.Arguments)
		}
	}
	return strings.Join(lines, "\n")
}

// Tape is a model that answers from records. It is safe for concurrent use.
type Tape struct {
	name    string
	dialect llm.SchemaDialect
	records []Record

	mu   sync.Mutex
	used []bool
}

// SchemaDialect implements [llm.Dialectal]: it is that of the model that was recorded.
func (t *Tape) SchemaDialect() llm.SchemaDialect { return t.dialect }

// Generate answers req with the first unused record that matches it. Where
// req.OnDelta is set, the reasoning is delivered whole and the text word by word.
// A request that no unused record answers is a [*DivergenceError].
func (t *Tape) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	canonical, err := canonicalJSON(req)
	if err != nil {
		return nil, err
	}
	record, err := t.take(req, canonical)
	if err != nil {
		return nil, err
	}
	res := record.Response
	if req.OnDelta != nil {
		if res.Message.Reasoning != "" {
			req.OnDelta(llm.Delta{Reasoning: res.Message.Reasoning})
		}
		for _, p := range res.Message.Parts {
			for word := range strings.SplitAfterSeq(p.Text, " ") {
				if word != "" {
					req.OnDelta(llm.Delta{Text: word})
				}
			}
		}
	}
	return &res, nil
}

// take claims the first unused record that answers req.
func (t *Tape) take(req llm.Request, canonical string) (*Record, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := textOf(req)
	for i := range t.records {
		r := &t.records[i]
		if t.used[i] {
			continue
		}
		if r.Match == nil && r.canonical == canonical || r.Match != nil && len(r.Match.missing(req, text)) == 0 {
			t.used[i] = true
			return r, nil
		}
	}
	return nil, t.divergence(req, canonical, text)
}

// Unused returns the records that no request has taken so far, in the order of
// the tape.
func (t *Tape) Unused() []Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	var left []Record
	for i, r := range t.records {
		if !t.used[i] {
			left = append(left, r)
		}
	}
	return slices.Clip(left)
}
