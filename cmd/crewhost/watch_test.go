package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"crewhost/config/secret"
	"crewhost/mcp/mcptest"
	"crewhost/runner/event/eventtest"
)

// watched is a run in this process that the test watches.
type watched struct {
	t      *testing.T
	events *bufio.Scanner
	reader *os.File // the end of stdout that the test reads
	stdin  *io.PipeWriter
	stderr *bytes.Buffer // to be read after the end
	seen   bytes.Buffer
	code   chan int
}

// told is an event.
type told map[string]any

func (e told) text(name string) string { s, _ := e[name].(string); return s }

// watchIn runs the crew in dir and watches.
func watchIn(t *testing.T, dir string, args ...string) *watched {
	t.Helper()
	return watchAs(t, nil, dir, args...)
}

// watchAs does so in an environment.
func watchAs(t *testing.T, environ []string, dir string, args ...string) *watched {
	t.Helper()
	reader, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in, stdin := io.Pipe()
	w := &watched{t: t, reader: reader, events: bufio.NewScanner(reader), stdin: stdin, stderr: &bytes.Buffer{}, code: make(chan int, 1)}
	w.events.Buffer(nil, 1<<20)
	c := &console{
		in: in, out: io.Discard, err: w.stderr, redactor: &secret.Redactor{}, environ: environ,
		claim: func() (io.WriteCloser, error) { return stdout, nil },
	}
	go func() { w.code <- start(c, append([]string{"run", dir + "/crew.yaml", "--events", "jsonl"}, args...)) }()
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = reader.Close()
	})
	return w
}

// until reads up to an event of the kind.
func (w *watched) until(kind string) told {
	w.t.Helper()
	for w.events.Scan() {
		w.seen.Write(append(w.events.Bytes(), '\n'))
		var e told
		if err := json.Unmarshal(w.events.Bytes(), &e); err != nil {
			w.t.Fatal(err)
		}
		if e["kind"] == kind {
			return e
		}
	}
	w.t.Fatalf("no %s in\n%s", kind, &w.seen)
	return nil
}

// say sends a command.
func (w *watched) say(format string, args ...any) {
	w.t.Helper()
	if _, err := fmt.Fprintf(w.stdin, format+"\n", args...); err != nil {
		w.t.Fatal(err)
	}
}

// leave closes stdin.
func (w *watched) leave() { _ = w.stdin.Close() }

// exit waits for the end, judges the events as a whole and returns the exit code.
func (w *watched) exit() int {
	w.t.Helper()
	last := w.until("run.finished")
	code := <-w.code
	if w.events.Scan() {
		w.t.Errorf("after the end: %s", w.events.Bytes())
	}
	if err := eventtest.Run(w.seen.Bytes()); err != nil {
		w.t.Errorf("%v\n%s", err, &w.seen)
	}
	if last["exitCode"] != float64(code) {
		w.t.Errorf("exit code %d, and the events say %v", code, last["exitCode"])
	}
	return code
}

// crewDir is a folder with a crew of one agent with the tools, whose first turn
// makes the calls, and whose second is to have been told what wants says.
func crewDir(t *testing.T, settings, tools, task string, wants []string, calls ...string) string {
	t.Helper()
	dir := t.TempDir()
	command, args := mcptest.Command(mcptest.Standard, "-tools", "ask,sleep,echo,exit")
	quoted, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "crewhost.yaml", fmt.Sprintf("llm: { provider: replay, tape: tape.jsonl }\nmounts: [\"./out:/out:rw\"]\nmcp: { servers: { standard: { command: %q, args: %s } } }\n%s\n",
		command, quoted, settings))
	write(t, dir, "crew.yaml", `
name: Asks
goal: Ask
agents: { one: { role: Asker, goal: Ask, tools: [`+tools+`] } }
tasks: { only: { description: Ask somebody, expectedOutput: An answer, agent: one`+task+` } }
`)
	contains, err := json.Marshal(wants)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "tape.jsonl", `{"tape":"crewhost","version":1}
{"match":{"turn":0},"response":{"message":{"calls":[`+strings.Join(calls, ",")+`]}}}
{"match":{"contains":`+string(contains)+`,"turn":1},"response":{"message":{"parts":[{"text":"Done."}]}}}
`)
	return dir
}

func callOn(id, tool, arguments string) string {
	return `{"id":` + strconv.Quote(id) + `,"name":` + strconv.Quote(tool) + `,"arguments":` + strconv.Quote(arguments) + `}`
}

func note(id string) string {
	return callOn(id, "file_write", `{"path":"/out/note.txt","content":"tide"}`)
}

// A call that the policy asks about is put to whoever watches, with all there is to
// know, and done or not as the answer is.
func TestApprovalByCommand(t *testing.T) {
	w := watchIn(t, crewDir(t, "", "file_write", "", []string{"/out/note.txt"}, note("c1")))
	e := w.until("approval.needed")
	if e.text("taskId") != "only" || e.text("agentId") != "one" || e.text("agentRole") != "Asker" || e["attempt"] != 1.0 ||
		e.text("callId") != "c1" || e.text("toolName") != "file_write" || !strings.Contains(e.text("arguments"), `"content":"tide"`) ||
		e.text("reason") == "" || e.text("causationId") == "" {
		t.Errorf("%v", e)
	}
	w.say(`{"kind":"approval.given","correlationId":"999","allow":true}`)
	if n := w.until("notice"); n.text("code") != "bad_command" || !strings.Contains(n.text("text"), "none that is open") {
		t.Errorf("%v", n)
	}
	w.say(`{"kind":"approval.given","correlationId":%q,"allow":true}`, e.text("correlationId"))
	if g := w.until("approval.given"); g["allow"] != true || g.text("by") != "command" || g.text("scope") != "once" ||
		g.text("correlationId") != e.text("correlationId") || g.text("toolName") != "file_write" {
		t.Errorf("%v", g)
	}
	if r := w.until("tool.returned"); r["success"] != true || r.text("correlationId") != e.text("causationId") {
		t.Errorf("%v", r)
	}
	if o := w.until("run.output"); o.text("text") != "Done." {
		t.Errorf("%v", o)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

func TestRefusalByCommand(t *testing.T) {
	w := watchIn(t, crewDir(t, "", "file_write", "", []string{"denied", "use the other file"}, note("c1")))
	e := w.until("approval.needed")
	w.say(`{"kind":"approval.given","correlationId":%q,"allow":false,"reason":"use the other file"}`, e.text("correlationId"))
	if r := w.until("tool.returned"); r["success"] != false {
		t.Errorf("%v", r)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

// Calls of one turn are asked about side by side; one that is allowed for the run
// is not asked about again.
func TestApprovalForTheRun(t *testing.T) {
	dir := crewDir(t, "", "file_write", "", []string{"note.txt"}, note("c1"), note("c2"))
	tape, err := os.ReadFile(dir + "/tape.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(tape), `{"parts":[{"text":"Done."}]}`, `{"calls":[`+note("c3")+`]}`, 1)
	write(t, dir, "tape.jsonl", more+`{"match":{"turn":2},"response":{"message":{"parts":[{"text":"Done."}]}}}`+"\n")
	w := watchIn(t, dir)
	first, second := w.until("approval.needed"), w.until("approval.needed")
	for _, e := range []told{second, first} { // in whatever order
		w.say(`{"kind":"approval.given","correlationId":%q,"allow":true,"scope":"run"}`, e.text("correlationId"))
		w.until("approval.given")
	}
	if g := w.until("approval.given"); g.text("callId") != "c3" || g["allow"] != true || g.text("scope") != "run" {
		t.Errorf("%v", g)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
	if n := strings.Count(w.seen.String(), `"approval.needed"`); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// Once stdin is closed, calls are judged as where nobody can be asked (R3).
func TestApprovalWhenNobodyIsThere(t *testing.T) {
	for _, tt := range []struct {
		settings string
		args     []string
		allow    bool
		by       string
	}{
		{"", nil, false, "settings"},
		{"permissions: { headless: allow }", nil, true, "settings"},
		{"", []string{"--approve", "allow"}, true, "flag"},
		{"permissions: { headless: allow }", []string{"--approve", "deny"}, false, "flag"},
	} {
		wants := []string{"The policy denied"} // no person did
		if tt.allow {
			wants = []string{"/out/note.txt"}
		}
		w := watchIn(t, crewDir(t, tt.settings, "file_write", "", wants, note("c1")), tt.args...)
		w.leave()
		if g := w.until("approval.given"); g["allow"] != tt.allow || g.text("by") != tt.by || g.text("callId") != "c1" {
			t.Errorf("%+v: %v", tt, g)
		}
		if code := w.exit(); code != exitOK {
			t.Errorf("%+v: exit code %d:\n%s", tt, code, w.stderr)
		}
	}
}

const colours = `{"prompt":"Which colour?","input_type":"choice","choices":["red","blue"],"default_value":"red"}`

// Questions of agents are answered by id, or the oldest first; what is no answer
// earns a notice, and the question stays open.
func TestQuestionsByCommand(t *testing.T) {
	dir := crewDir(t, "", "human_input", ", humanInput: true", []string{"blue", "a fine day", "approved"},
		callOn("c1", "human_input", colours),
		callOn("c2", "human_input", `{"prompt":"What weather?"}`),
		callOn("c3", "human_input", `{"prompt":"Is that all?","input_type":"approval"}`))
	w := watchIn(t, dir)
	asked := map[string]told{}
	for range 3 {
		e := w.until("input.needed")
		asked[e.text("callId")] = e
	}
	choice := asked["c1"]
	if choice.text("inputKind") != "choice" || choice.text("prompt") != "Which colour?" || choice.text("defaultValue") != "red" ||
		choice.text("taskDescription") != "Ask somebody" || choice.text("taskId") != "only" || fmt.Sprint(choice["choices"]) != "[red blue]" {
		t.Errorf("%v", choice)
	}
	if asked["c2"].text("inputKind") != "text" || asked["c3"].text("inputKind") != "confirm" {
		t.Errorf("%v", asked)
	}
	for _, bad := range []struct{ value, says string }{
		{`"green"`, "none of the choices"}, {`3`, "none of the choices"}, {`{}`, "no text"},
	} {
		w.say(`{"kind":"input.given","correlationId":%q,"value":%s}`, choice.text("correlationId"), bad.value)
		if n := w.until("notice"); !strings.Contains(n.text("text"), bad.says) {
			t.Errorf("%s: %v", bad.value, n)
		}
	}
	w.say(`{"kind":"input.given","correlationId":%q,"value":"blue"}`, choice.text("correlationId"))
	w.until("input.given")
	// The rest without ids, the oldest first.
	rest := []told{asked["c2"], asked["c3"]}
	slices.SortFunc(rest, func(a, b told) int { return int(a["seq"].(float64) - b["seq"].(float64)) })
	for _, e := range rest {
		if e.text("inputKind") == "confirm" {
			w.say(`{"kind":"input.given","value":true}`)
		} else {
			w.say(`{"kind":"input.given","value":"a fine day"}`)
		}
		if g := w.until("input.given"); g.text("correlationId") != e.text("correlationId") || g.text("by") != "command" {
			t.Errorf("%v", g)
		}
	}
	w.say(`{"kind":"input.given","value":"more"}`)
	if n := w.until("notice"); !strings.Contains(n.text("text"), "none is open") {
		t.Errorf("%v", n)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

// Where nobody answers, a question gets its default, and nothing is approved.
func TestQuestionsWhenNobodyIsThere(t *testing.T) {
	for _, tt := range []struct {
		call, want, action, by string
		args                   []string
	}{
		{colours, "red", "accept", "default", nil},
		{`{"prompt":"Your name?","default_value":"Ida"}`, "Ida", "accept", "default", nil},
		{`{"prompt":"Your name?"}`, "nobody can be asked", "cancel", "nobody", nil},
		{`{"prompt":"Shall I?","input_type":"approval"}`, "rejected", "decline", "nobody", nil},
		{`{"prompt":"Shall I?","input_type":"approval"}`, "approved", "accept", "flag", []string{"--approve", "allow"}},
	} {
		w := watchIn(t, crewDir(t, "", "human_input", "", []string{tt.want}, callOn("c1", "human_input", tt.call)), tt.args...)
		w.until("input.needed")
		w.leave()
		if g := w.until("input.given"); g.text("action") != tt.action || g.text("by") != tt.by {
			t.Errorf("%s: %v", tt.call, g)
		}
		if code := w.exit(); code != exitOK {
			t.Errorf("%s: exit code %d:\n%s", tt.call, code, w.stderr)
		}
	}
}

// What is answered where nobody was asked is no answer that a task with humanInput
// waits for: neither the refusal nor a default that the model itself proposed.
func TestHumanInputWhenNobodyIsThere(t *testing.T) {
	const approval = `{"prompt":"Shall I?","input_type":"approval"}`
	for _, tt := range []struct {
		call, want string
		args       []string
		code       int
	}{
		{approval, "rejected", nil, exitFailed},
		{approval, "rejected", []string{"--approve", "deny"}, exitFailed},
		{colours, "red", nil, exitFailed},
		{approval, "approved", []string{"--approve", "allow"}, exitOK},
		{colours, "red", []string{"--approve", "allow"}, exitOK},
	} {
		w := watchIn(t, crewDir(t, "", "human_input", ", humanInput: true", []string{tt.want}, callOn("c1", "human_input", tt.call)), tt.args...)
		w.until("input.needed")
		w.leave()
		if code := w.exit(); code != tt.code || strings.Contains(w.stderr.String(), "no person has answered") != (code != exitOK) {
			t.Errorf("%s %q: exit code %d:\n%s", tt.call, tt.args, code, w.stderr)
		}
	}
}

// What a server asks goes the same way, as a form or as a page to visit (O19).
func TestServersQuestionsByCommand(t *testing.T) {
	form := callOn("c1", "ask", `{"message":"Which region?","schema":{"type":"object","required":["region","count"],"properties":{"region":{"type":"string","enum":["eu","us"]},"count":{"type":"integer","default":2},"fast":{"type":"boolean"}}}}`)
	page := callOn("c1", "ask", `{"message":"Pay.","url":"https://pay.example.com/"}`)
	const allowed = `permissions: { default: allow }`
	w := watchIn(t, crewDir(t, allowed, "ask", "", []string{`"region":"eu"`, `"count":3`}, form))
	e := w.until("input.needed")
	schema, _ := json.Marshal(e["schema"])
	if e.text("inputKind") != "form" || e.text("server") != "standard" || e.text("toolName") != "ask" || e.text("taskId") != "only" ||
		e.text("prompt") != "Which region?" || !strings.Contains(string(schema), `"required":["region","count"]`) || !strings.Contains(string(schema), `"default":2`) {
		t.Errorf("%v", e)
	}
	for _, bad := range []struct{ value, says string }{
		{`{"region":"eu"}`, `"count" is required`}, {`{"region":"asia","count":1}`, `"region"`},
		{`{"region":"eu","count":1,"more":1}`, `no field "more"`}, {`"eu"`, "no object"},
	} {
		w.say(`{"kind":"input.given","value":%s}`, bad.value)
		if n := w.until("notice"); !strings.Contains(n.text("text"), bad.says) {
			t.Errorf("%s: %v", bad.value, n)
		}
	}
	w.say(`{"kind":"input.given","value":{"region":"eu","count":3,"fast":true}}`)
	if g := w.until("input.given"); g.text("action") != "accept" || g.text("causationId") != e.text("causationId") {
		t.Errorf("%v", g)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}

	w = watchIn(t, crewDir(t, allowed, "ask", "", []string{`decline`}, form))
	w.until("input.needed")
	w.say(`{"kind":"input.given","action":"decline"}`)
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}

	w = watchIn(t, crewDir(t, allowed, "ask", "", []string{`accept`}, page))
	if e := w.until("input.needed"); e.text("inputKind") != "visit" || e.text("url") != "https://pay.example.com/" || e["schema"] != nil {
		t.Errorf("%v", e)
	}
	w.say(`{"kind":"input.given"}`)
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}

	// Nobody is there, or --approve deny says so.
	w = watchIn(t, crewDir(t, allowed, "ask", "", []string{`nobody can be asked`}, form))
	w.leave()
	if g := w.until("input.given"); g.text("action") != "cancel" || g.text("by") != "nobody" {
		t.Errorf("%v", g)
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
	w = watchIn(t, crewDir(t, allowed, "ask", "", []string{`Nobody can be asked`}, form), "--approve", "deny")
	if code := w.exit(); code != exitOK || strings.Contains(w.seen.String(), "input.needed") {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

// What becomes of a server during the run is told (W6).
func TestAServerThatDiesIsTold(t *testing.T) {
	dir := crewDir(t, "permissions: { allow: [mcp__standard] }", "exit, echo", "", []string{"exit"}, callOn("c1", "exit", `{}`))
	tape, err := os.ReadFile(dir + "/tape.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Replace(string(tape), `{"parts":[{"text":"Done."}]}`, `{"calls":[`+callOn("c2", "echo", `{"n":1}`)+`]}`, 1)
	write(t, dir, "tape.jsonl", more+`{"match":{"contains":["\"n\":1"],"turn":2},"response":{"message":{"parts":[{"text":"Done."}]}}}`+"\n")
	w := watchIn(t, dir)
	for _, want := range []string{"connected", "faulted<connected", "connecting<faulted", "connected<connecting", "closed<connected"} {
		e := w.until("mcp.server")
		state := e.text("state")
		if from := e.text("from"); from != "" {
			state += "<" + from
		}
		if state != want || e.text("server") != "standard" || (e.text("error") != "") != (state == "faulted<connected") && state != "connecting<faulted" ||
			(e.text("state") == "connected") != (e["tools"] != nil) {
			t.Errorf("want %s: %v", want, e)
		}
	}
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

func TestLinesThatAreNoCommands(t *testing.T) {
	w := watchIn(t, crewDir(t, "", "file_write", "", []string{"denied"}, note("c1")))
	w.until("approval.needed")
	for _, tt := range []struct{ line, code string }{
		{"nonsense", "bad_command"}, {`{"kind":"dance"}`, "unknown_command"}, {`{"kind":"publish","topic":"t","payload":1}`, "no_hub"},
		{`{"kind":"approval.given","allow":true}`, "bad_command"}, {strings.Repeat("x", 2<<20), "bad_command"},
	} {
		w.say("%s", tt.line)
		if n := w.until("notice"); n.text("code") != tt.code {
			t.Errorf("%.40s: %v", tt.line, n)
		}
	}
	w.leave()
	if code := w.exit(); code != exitOK {
		t.Errorf("exit code %d:\n%s", code, w.stderr)
	}
}

// cancel ends a run as an interrupt does, whatever it waits for.
func TestCancelByCommand(t *testing.T) {
	for _, tt := range []struct{ tools, until, call string }{
		{"file_write", "approval.needed", note("c1")},
		{"human_input", "input.needed", callOn("c1", "human_input", colours)},
		{"sleep", "tool.called", callOn("c1", "sleep", `{"seconds":300}`)},
		{"sleep", "run.started", callOn("c1", "sleep", `{"seconds":300}`)},
	} {
		w := watchIn(t, crewDir(t, "permissions: { allow: [mcp__standard, human_input] }", tt.tools, "", nil, tt.call))
		w.until(tt.until)
		w.say(`{"kind":"cancel"}`)
		if e := w.until("error"); e.text("code") != "crew_cancelled" {
			t.Errorf("%v", e)
		}
		if code := w.exit(); code != exitInterrupted || !strings.HasSuffix(w.stderr.String(), "ERROR: interrupted\n") {
			t.Errorf("%s: exit code %d:\n%s", tt.until, code, w.stderr)
		}
	}
}

// tripwire interrupts a run when its nth line is written.
type tripwire struct {
	bytes.Buffer
	n    int
	trip func()
}

func (w *tripwire) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if w.n--; w.n == 0 {
		w.trip()
	}
	return n, err
}

func (*tripwire) Close() error { return nil }

// Whenever an interrupt comes, the events are whole and end with its exit code.
func TestInterruptedAtEveryLine(t *testing.T) {
	dir := crewDir(t, "permissions: { allow: [mcp__standard] }", "sleep", "", nil, callOn("c1", "sleep", `{"seconds":300}`))
	for n := 1; n <= 8; n++ { // run.started to tool.called
		var stderr bytes.Buffer
		w := &tripwire{n: n}
		c := &console{
			in: strings.NewReader(""), out: io.Discard, err: &stderr, redactor: &secret.Redactor{},
			claim: func() (io.WriteCloser, error) { return w, nil },
		}
		w.trip = func() { c.interrupt(errCancelCommand) }
		code := start(c, []string{"run", dir + "/crew.yaml", "--events", "jsonl"})
		lines := strings.Split(strings.TrimSpace(w.String()), "\n")
		if err := eventtest.Run(w.Bytes()); err != nil || code != exitInterrupted || !strings.Contains(lines[len(lines)-1], `"exitCode":130`) {
			t.Errorf("interrupted at %d: exit code %d, %v\n%s\n%s", n, code, err, w, &stderr)
		}
	}
}

// A run whose reader goes away ends with the next event, and says so.
func TestARunThatNobodyWatchesEnds(t *testing.T) {
	w := watchIn(t, crewDir(t, "permissions: { allow: [mcp__standard] }", "sleep", "", nil, callOn("c1", "sleep", `{"seconds":300}`)))
	w.until("task.started")
	_ = w.reader.Close()
	w.say("anything that an event tells of") // it is noticed with the next event
	if code := <-w.code; code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(w.stderr.String(), "ERROR: writing the events: ") {
		t.Errorf("%s", w.stderr)
	}
}
