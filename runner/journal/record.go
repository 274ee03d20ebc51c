package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Version is the version of the format that this package writes. It reads no other.
const Version = 1

// Header is the first record of a journal: what is run, and on what.
type Header struct {
	Version  int       `json:"version"`
	Run      string    `json:"run"` // id, which sorts by time
	Host     string    `json:"crewhost"`
	At       time.Time `json:"at"`
	Crew     string    `json:"crew"`     // its name
	Path     string    `json:"path"`     // of its file or folder, absolute
	Settings string    `json:"settings"` // path of the settings file; "": none
	Profile  string    `json:"profile,omitempty"`
	Mounts   []string  `json:"mounts,omitempty"`    // beside those of the settings
	MountIDs []string  `json:"mount_ids,omitempty"` // of those of the settings that were chosen
	Dir      string    `json:"dir,omitempty"`       // that relative folders are relative to
	// Inputs are the variables, and Withheld names those that hold a secret, whose
	// values are not here in full.
	Inputs   map[string]string `json:"inputs,omitempty"`
	Withheld []string          `json:"withheld,omitempty"`
	// Basis are digests of what the run depends on, by name: agents, tasks,
	// definitions of tools, the lock.
	Basis map[string]string `json:"basis,omitempty"`
}

// End is the last record of a life of a run that came to an end.
type End struct {
	Code  int    `json:"code"`            // the exit code
	Error string `json:"error,omitempty"` // why, where it is not 0
}

// TaskEnd is what became of a task.
type TaskEnd struct {
	Task  string `json:"task"`
	State string `json:"state"` // as processes call it: completed, failed, skipped, …
	Error string `json:"error,omitempty"`
}

// The states of tasks that resuming looks at.
const (
	TaskCompleted = "completed"
	TaskFailed    = "failed"
)

// Life is the record with which a resumed run goes on.
type Life struct {
	Host string `json:"crewhost"`
	// Changes are the differences that were accepted, and Basis what the run depends
	// on from here on, where there are any.
	Changes []string          `json:"changes,omitempty"`
	Basis   map[string]string `json:"basis,omitempty"`
	// Back are the steps that were taken back, to be done again.
	Back []Back `json:"back,omitempty"`
}

// Back is a step that was taken back, and the digest of its kind and scope.
type Back struct {
	StepID
	In string `json:"in"`
}

// StepID names one step of a run: by the digest of what steps are the same by, and by
// which of them it is, counted from 1.
type StepID struct {
	Key string `json:"key"`
	Nth int    `json:"nth"`
}

// Intent is a step that is about to be done. One that was begun before, and is begun
// again, has the id that it had.
type Intent struct {
	StepID
	In      string          `json:"in"` // digest of kind and scope
	Kind    Kind            `json:"kind"`
	Scope   Scope           `json:"scope,omitzero"`
	Name    string          `json:"name"`
	Effect  Effect          `json:"effect,omitempty"`
	Request json.RawMessage `json:"request,omitempty"`
}

// Result is what came of a step.
type Result struct {
	StepID
	Outcome json.RawMessage `json:"outcome"`
}

// Record is one line of a journal. One of its parts is set.
type Record struct {
	At     time.Time `json:"at"`
	Header *Header   `json:"run,omitempty"`
	Life   *Life     `json:"resumed,omitempty"`
	Intent *Intent   `json:"begin,omitempty"`
	Result *Result   `json:"result,omitempty"`
	Task   *TaskEnd  `json:"task,omitempty"`
	End    *End      `json:"end,omitempty"`
}

// parts counts what is set.
func (r *Record) parts() int {
	n := 0
	for _, set := range []bool{r.Header != nil, r.Life != nil, r.Intent != nil, r.Result != nil, r.Task != nil, r.End != nil} {
		if set {
			n++
		}
	}
	return n
}

// A line is {"seq":N,"sum":"S","record":R} and a line feed: N counts from 1, R is a
// [Record], and S are the first eight bytes, in hexadecimal digits, of the SHA-256 of
// the sum of the line before, of N and of R. So no line can be lost, doubled, moved or
// changed without its sum, or that of the next, saying so.

// sum is the checksum of a line, and what the next one's begins with.
type sum [8]byte

func (s sum) next(seq int64, body []byte) sum {
	h := sha256.New()
	h.Write(s[:])
	var number [20]byte
	h.Write(strconv.AppendInt(number[:0], seq, 10))
	h.Write([]byte{':'})
	h.Write(body)
	var whole [sha256.Size]byte
	h.Sum(whole[:0])
	return sum(whole[:len(s)])
}

// appendLine appends the line of a record's JSON to b.
func appendLine(b []byte, seq int64, s sum, body []byte) []byte {
	b = lineStart(b, seq)
	b = hex.AppendEncode(b, s[:])
	b = append(b, `","record":`...)
	b = append(b, body...)
	return append(b, "}\n"...)
}

func lineStart(b []byte, seq int64) []byte {
	b = append(b, `{"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	return append(b, `,"sum":"`...)
}

// body returns the JSON of the record in a line, which is to be the one of that number
// after one of the sum before, and the line's own sum.
func body(line []byte, seq int64, before sum) ([]byte, sum, error) {
	start := lineStart(nil, seq)
	const between = `","record":`
	from := len(start) + 2*len(before) + len(between)
	switch {
	case !bytes.HasPrefix(line, start):
		return nil, sum{}, fmt.Errorf("it is not line %d of a journal", seq)
	case len(line) < from+2 || !bytes.HasSuffix(line, []byte("}\n")):
		return nil, sum{}, fmt.Errorf("line %d is cut off", seq)
	}
	inner := line[from : len(line)-2]
	own := before.next(seq, inner)
	if string(line[len(start):from]) != hex.EncodeToString(own[:])+between {
		return nil, sum{}, fmt.Errorf("line %d does not hold what its sum says, or a line before it is missing", seq)
	}
	return inner, own, nil
}

// key is what steps are the same by.
func (s Step) key() string { return digest(s.Kind, s.Scope, s.Name, s.Request) }

// in is which steps this one is counted among: those of its kind in its scope.
func (s Step) in() string { return digest(s.Kind, s.Scope) }

func digest(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		raw, ok := p.(json.RawMessage)
		if !ok {
			raw, _ = json.Marshal(p) // texts and numbers encode
		}
		fmt.Fprintf(h, "%d:", len(raw))
		h.Write(raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
