package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"crewhost/runner/llm"
)

const (
	tapeName    = "crewhost"
	tapeVersion = 1
	wholeRuns   = 2         // the version that package tape reads
	maxLine     = 16 << 20  // bytes
	maxTape     = 256 << 20 // bytes
)

// header is the first line of a tape.
type header struct {
	Tape    string `json:"tape"`
	Version int    `json:"version"`
	// Dialect is that of the model which was recorded: requests hold schemas
	// that were adapted to it.
	Dialect *llm.SchemaDialect `json:"schema_dialect,omitempty"`
}

// line is a record as it is written.
type line struct {
	Note     string        `json:"note,omitempty"`
	Request  *llm.Request  `json:"request,omitempty"`
	Match    *Match        `json:"match,omitempty"`
	Response *llm.Response `json:"response"`
}

// Open reads the tape in a file.
func Open(path string) (*Tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a tape: %w", err)
	}
	defer f.Close()
	return Read(f, path)
}

// Read reads a tape. The name stands for it in errors, which begin with
// name:line.
func Read(r io.Reader, name string) (*Tape, error) {
	t := &Tape{name: name}
	limited := &io.LimitedReader{R: r, N: maxTape + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine+1)
	n, begun := 0, false
	for lines.Scan() {
		n++
		text := lines.Bytes()
		if n == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		if !begun {
			head, err := readHeader(text)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: %w", name, n, err)
			}
			if head.Dialect != nil {
				t.dialect = *head.Dialect
			}
			begun = true
			continue
		}
		record, err := readRecord(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		record.Line = n
		t.records = append(t.records, record)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, fmt.Errorf("%s:%d: the line is longer than %d MiB", name, n+1, maxLine>>20)
	case err != nil:
		return nil, fmt.Errorf("reading tape %s: %w", name, err)
	case limited.N == 0:
		return nil, fmt.Errorf("%s: the tape is longer than %d MiB", name, maxTape>>20)
	case !begun:
		return nil, fmt.Errorf(`%s:1: the tape is empty; its first line must be {"tape":%q,"version":%d}`, name, tapeName, tapeVersion)
	}
	t.used = make([]bool, len(t.records))
	return t, nil
}

func readHeader(text []byte) (header, error) {
	var h header
	if err := Strictly(text, &h); err != nil || h.Tape != tapeName {
		return h, fmt.Errorf(`not a tape: the first line must be {"tape":%q,"version":%d}`, tapeName, tapeVersion)
	}
	if h.Version == wholeRuns {
		return h, fmt.Errorf("this is a tape of a whole run (version %d), which crewhost run --replay plays; llm.tape names a tape of a model alone (version %d)", wholeRuns, tapeVersion)
	}
	if h.Version != tapeVersion {
		return h, fmt.Errorf("the tape has version %d, and only version %d can be read", h.Version, tapeVersion)
	}
	return h, nil
}

func readRecord(text []byte) (Record, error) {
	var l line
	if err := Strictly(text, &l); err != nil {
		return Record{}, err
	}
	switch {
	case l.Request == nil && l.Match == nil:
		return Record{}, errors.New("a record needs a request or a match")
	case l.Request != nil && l.Match != nil:
		return Record{}, errors.New("a record has either a request or a match, not both")
	case l.Response == nil:
		return Record{}, errors.New("a record needs a response")
	case l.Match != nil && l.Match.Turn != nil && *l.Match.Turn < 0:
		return Record{}, errors.New("turn counts from 0")
	}
	r := Record{Note: l.Note, Request: l.Request, Match: l.Match, Response: *l.Response}
	m := &r.Response.Message
	if m.Role == "" {
		m.Role = llm.RoleAssistant
	}
	if m.Role != llm.RoleAssistant {
		return Record{}, fmt.Errorf("the role of a response is %s, not %q", llm.RoleAssistant, m.Role)
	}
	switch r.Response.Stop {
	case llm.StopEnd, llm.StopTools, llm.StopLength, llm.StopFilter, llm.StopUnknown:
	case "":
		r.Response.Stop = llm.StopEnd
		if len(m.Calls) > 0 {
			r.Response.Stop = llm.StopTools
		}
	default:
		return Record{}, fmt.Errorf("the stop reason %q is unknown", r.Response.Stop)
	}
	if r.Request != nil {
		var err error
		if r.canonical, err = canonicalJSON(*r.Request); err != nil {
			return Record{}, err
		}
	}
	return r, nil
}

// Strictly decodes a line of a tape: exactly one JSON value, without unknown keys.
func Strictly(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more on the line than one value")
	}
	return nil
}

// canonicalJSON is that of a request.
func canonicalJSON(req llm.Request) (string, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return "", fmt.Errorf("a request cannot be written as JSON: %w", err)
	}
	canonical, err := Canonical(text)
	if err != nil {
		return "", fmt.Errorf("a request cannot be read back: %w", err)
	}
	return string(canonical), nil
}

// Canonical returns JSON that is the same for equal values: without spaces, keys in
// order, numbers digit for digit (K31).
func Canonical(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil { // maps in the order of their keys
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
