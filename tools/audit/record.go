package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// version is that of the format of a record.
const version = 1

const (
	maxLine = 64 << 10 // of a record
	maxText = 512      // of one text in it
)

// Kind is what a record tells of.
type Kind string

// The kinds.
const (
	Began     Kind = "log.began"     // the first record of a log
	Continued Kind = "log.continued" // the first record of a further file
	TornLine  Kind = "log.torn"      // what stands before it was not written to its end
	Lost      Kind = "log.lost"      // records could not be written

	RunStarted  Kind = "run.started"
	RunFinished Kind = "run.finished"
	CallStarted Kind = "call.started" // a tool is about to run
	Call        Kind = "call"         // a call has ended, also one that never ran
	Unlocked    Kind = "unlocked"     // a call was refused, since its tool is not as it is locked
	Forward     Kind = "forward"      // a request left for a server over HTTP, or was refused
)

// Record is one line of the log. Seq, Prev, Version and Hash are the log's business,
// and so is Time where it is zero.
type Record struct {
	Version int       `json:"v"`
	Seq     uint64    `json:"seq"` // from 1
	Prev    string    `json:"prev"`
	Time    time.Time `json:"time"` // UTC
	Kind    Kind      `json:"kind"`

	Run   string `json:"run,omitempty"`  // which run, or which connection of a client
	Crew  string `json:"crew,omitempty"` // the file
	Path  string `json:"path,omitempty"` // the way that the call came
	Agent string `json:"agent,omitempty"`
	Task  string `json:"task,omitempty"`
	// Client is the name of who calls from outside, where that is known.
	Client string `json:"client,omitempty"`

	ID         string     `json:"id,omitempty"` // of a call, at its start and its end
	Server     string     `json:"server,omitempty"`
	Tool       string     `json:"tool,omitempty"` // as it is registered
	Definition string     `json:"definition,omitempty"`
	Arguments  *Arguments `json:"arguments,omitempty"`
	Decision   *Decision  `json:"decision,omitempty"`
	Answer     *Answer    `json:"answer,omitempty"`
	Request    *Request   `json:"request,omitempty"` // of a Forward

	Outcome string `json:"outcome,omitempty"`
	Code    string `json:"code,omitempty"` // of what went wrong
	Ran     *bool  `json:"ran,omitempty"`  // of a Call: the tool was really run
	Bytes   int64  `json:"bytes,omitempty"`
	Millis  int64  `json:"ms,omitempty"`

	Host   string `json:"host,omitempty"` // of the start of a run: the program
	PID    int    `json:"pid,omitempty"`
	Torn   *Torn  `json:"torn,omitempty"`
	Begins *Head  `json:"begins,omitempty"` // of Continued: the first record that is kept, and the hash before it
	Lost   int    `json:"lost,omitempty"`

	Hash string `json:"-"`
}

// Arguments are what is told of a call's arguments.
type Arguments struct {
	Digest string `json:"digest"`
	Bytes  int    `json:"bytes"`
	Shape  string `json:"shape"`
}

// Decision is what the policy said, and which rule.
type Decision struct {
	Verdict string `json:"verdict"`
	Rule    string `json:"rule,omitempty"` // empty: the default
	Place   string `json:"place,omitempty"`
}

// Answer is what whoever was asked said.
type Answer struct {
	Allow bool   `json:"allow"`
	Who   string `json:"who,omitempty"`
	Scope string `json:"scope,omitempty"` // for how long it holds
	// Earlier says that it was given to an earlier question.
	Earlier bool `json:"earlier,omitempty"`
}

// Request is one that went out over HTTP.
type Request struct {
	Origin     string `json:"origin"` // scheme, host and port
	Method     string `json:"method,omitempty"`
	Credential string `json:"credential,omitempty"` // its name
	Kind       string `json:"kind,omitempty"`       // the credential's
	Status     int    `json:"status,omitempty"`
}

// Torn is what a writer left that was stopped in the middle.
type Torn struct {
	Bytes  int    `json:"bytes"`
	Digest string `json:"digest"`
}

// Head is a record, by its number and its hash.
type Head struct {
	Seq  uint64 `json:"seq"`
	Hash string `json:"hash"`
}

// start is what the first record of a log follows.
func start() Head { return Head{Hash: strings.Repeat("0", 2*sha256.Size)} }

// String returns the head as [ParseHead] reads it.
func (h Head) String() string { return strconv.FormatUint(h.Seq, 10) + ":" + h.Hash }

// ParseHead reads a head: NUMBER:HASH.
func ParseHead(s string) (Head, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(s), ":")
	seq, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !isHash(hash) {
		return Head{}, fmt.Errorf("%q is no head of a log: write NUMBER:HASH", s)
	}
	return Head{seq, hash}, nil
}

func isHash(s string) bool {
	raw, err := hex.DecodeString(s)
	return err == nil && len(raw) == sha256.Size && strings.ToLower(s) == s
}

// texts are all that is not of the log's own making.
func (r *Record) texts() []*string {
	all := []*string{&r.Run, &r.Crew, &r.Path, &r.Agent, &r.Task, &r.Client, &r.ID, &r.Server, &r.Tool, &r.Outcome, &r.Code, &r.Host}
	if d := r.Decision; d != nil {
		all = append(all, &d.Verdict, &d.Rule, &d.Place)
	}
	if a := r.Answer; a != nil {
		all = append(all, &a.Who, &a.Scope)
	}
	if q := r.Request; q != nil {
		all = append(all, &q.Origin, &q.Method, &q.Credential, &q.Kind)
	}
	return all
}

// plain is a text on one line, without what is not seen, and not too long: names of
// tools and of arguments are whatever a model comes up with.
func plain(s string, limit int) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }) {
		s = strings.Trim(strconv.QuoteToASCII(s), `"`)
	}
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

const hashMember = `,"hash":"`

// line is the record as it is written, without the end of the line, and its hash.
func (r Record) line() ([]byte, string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, "", err
	}
	body := bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
	hash := hashOf(body)
	line := fmt.Appendf(body, `%s%s"}`, hashMember, hash)
	if len(line) > maxLine {
		return nil, "", fmt.Errorf("a record of %d bytes: the limit is %d", len(line), maxLine)
	}
	return line, hash, nil
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

var (
	errNoRecord = errors.New("it is no record")
	errChanged  = errors.New("it was changed: its hash is another one")
)

// split returns the bytes of a line that its hash is of, and that hash; whole is false
// where the line doesn't end as a record does.
func split(line []byte) (body []byte, hash string, whole bool) {
	const tail = len(hashMember) + 2*sha256.Size + len(`"}`)
	if len(line) < tail || line[0] != '{' || !bytes.HasSuffix(line, []byte(`"}`)) {
		return nil, "", false
	}
	body, end := line[:len(line)-tail], line[len(line)-tail:]
	hash = string(end[len(hashMember) : len(end)-2])
	return body, hash, bytes.HasPrefix(end, []byte(hashMember)) && isHash(hash)
}

// parse reads a line.
func parse(line []byte) (Record, error) {
	var r Record
	body, hash, whole := split(line)
	if !whole {
		return r, errNoRecord
	}
	if hashOf(body) != hash {
		return r, errChanged
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, errNoRecord
	}
	if r.Version != version {
		return r, fmt.Errorf("it is of version %d, and this program reads version %d", r.Version, version)
	}
	r.Hash = hash
	return r, nil
}

// head is the record's.
func (r Record) head() Head { return Head{r.Seq, r.Hash} }
