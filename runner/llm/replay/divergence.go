package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"crewhost/runner/llm"
)

const maxDiff = 120 // lines of a divergence

// DivergenceError is a request that the tape does not answer: the run does
// something else than the one on the tape.
type DivergenceError struct {
	Tape   string // its name
	Line   int    // of the nearest unused record; 0 if every record is used
	Used   int    // line of a used record that would have answered; 0 if none
	Unused int    // records left
	Total  int    // records on the tape
	// Diff is how the request (+) differs from the nearest record (-), or what
	// keeps that record's match from answering it; lines, and at most a screen or
	// two of them. Error leaves it out, so that it may stand in a line of a log.
	Diff string
}

// Error says all but the difference, in one line.
func (e *DivergenceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tape %s: no record answers the request (%d of %d are unused)", e.Tape, e.Unused, e.Total)
	if e.Used > 0 {
		fmt.Fprintf(&b, "; line %d does, but it has answered already", e.Used)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "; the nearest is %s:%d", e.Tape, e.Line)
	}
	return b.String()
}

// divergence says how far req is from what is left on the tape. Nearest is, among
// the records with as many turns as the request if there are any, the one that
// agrees with it longest from the start. t.mu is held.
func (t *Tape) divergence(req llm.Request, canonical, text string) error {
	e := &DivergenceError{Tape: t.name, Total: len(t.records)}
	var nearest *Record
	best := nearness{}
	for i := range t.records {
		r := &t.records[i]
		if t.used[i] {
			if r.Match == nil && r.canonical == canonical || r.Match != nil && len(r.Match.missing(req, text)) == 0 {
				e.Used = r.Line
			}
			continue
		}
		e.Unused++
		if n := near(r, req, canonical, text); nearest == nil || n.above(best) {
			nearest, best = r, n
		}
	}
	switch {
	case nearest == nil:
	case nearest.Match != nil:
		e.Line = nearest.Line
		e.Diff = limit("  " + strings.Join(nearest.Match.missing(req, text), "\n  ") + "\nthe request:\n" + lines(canonical))
	default:
		e.Line = nearest.Line
		e.Diff = Difference(fmt.Sprintf("%s:%d", t.name, nearest.Line), nearest.canonical, "request", canonical)
	}
	return e
}

// Difference shows how one JSON text (-) differs from another (+), for people: a line
// a value, and a screen or two at most. A text may be empty.
func Difference(oldName, old, newName, new string) string {
	layout := func(text string) []byte {
		if text == "" {
			return nil
		}
		return []byte(lines(text))
	}
	d := diff.Diff(oldName, layout(old), newName, layout(new))
	_, d, _ = bytes.Cut(d, []byte("\n")) // its first line names a command
	return limit(string(d))
}

// nearness orders records by how near they are to a request.
type nearness struct {
	sameTurn bool
	agrees   float64 // 0 to 1
}

func (n nearness) above(m nearness) bool {
	if n.sameTurn != m.sameTurn {
		return n.sameTurn
	}
	return n.agrees > m.agrees
}

func near(r *Record, req llm.Request, canonical, text string) nearness {
	if r.Match != nil {
		conditions := len(r.Match.Contains) + 1
		return nearness{
			sameTurn: r.Match.Turn == nil || *r.Match.Turn == turns(req),
			agrees:   1 - float64(len(r.Match.missing(req, text)))/float64(conditions),
		}
	}
	// Keys are in order, so the messages come early and decide; the system
	// prompt and the tools, which many requests share, come late.
	common := 0
	for common < len(canonical) && common < len(r.canonical) && canonical[common] == r.canonical[common] {
		common++
	}
	return nearness{
		sameTurn: len(r.Request.Messages) == len(req.Messages),
		agrees:   float64(common) / float64(max(len(canonical), 1)),
	}
}

// lines lays JSON out for people: a line a value, and a line for each line of a
// text.
func lines(canonical string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(canonical), "", "  ") != nil {
		return canonical + "\n"
	}
	var out strings.Builder
	for row := range strings.SplitSeq(b.String(), "\n") {
		margin := row[:len(row)-len(strings.TrimLeft(row, " "))]
		for i := 0; i < len(row); i++ {
			out.WriteByte(row[i])
			if row[i] != '\\' || i+1 == len(row) {
				continue
			}
			i++
			out.WriteByte(row[i])
			if row[i] == 'n' && i+1 < len(row) && row[i+1] != '"' {
				out.WriteString("\n" + margin + "  ")
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// limit cuts s to a number of lines.
func limit(s string) string {
	s = strings.TrimRight(s, "\n")
	rows := strings.Split(s, "\n")
	for i, row := range rows {
		if len(row) > 400 {
			rows[i] = strings.ToValidUTF8(row[:400], "") + "…"
		}
	}
	if len(rows) > maxDiff {
		rows = append(rows[:maxDiff:maxDiff], fmt.Sprintf("… and %d more lines", len(rows)-maxDiff))
	}
	return strings.Join(rows, "\n")
}
