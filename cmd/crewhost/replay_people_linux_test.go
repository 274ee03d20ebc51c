package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/mcp/mcptest"
)

// What a person said at a terminal – a call allowed once, one for the run, one refused
// with a reason, a question of an agent, a form of a server – is on the tape: a replay
// asks nobody, comes to the same, and needs no terminal.
func TestReplayOfWhatAPersonSaid(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "crewhost")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	command, _ := mcptest.Command(mcptest.Standard)
	write(t, dir, "crewhost.yaml", `
llm: { provider: replay, tape: tape.jsonl }
permissions: { allow: [ask, human_input] }
mcp: { servers: { asker: { command: `+strconv.Quote(command)+`, args: [mcptest-server, standard, -tools, "ask,echo"] } } }
`)
	write(t, dir, "crew.yaml", `
name: Askers
goal: Ask
agents: { one: { role: One, goal: Ask, tools: [echo, ask, human_input] } }
tasks: { only: { description: Ask everybody, expectedOutput: What they say, agent: one } }
`)
	turn := func(n int, calls ...string) string {
		return `{"match":{"turn":` + strconv.Itoa(n) + `},"response":{"message":{"calls":[` + strings.Join(calls, ",") + `]}}}` + "\n"
	}
	call := func(id, tool, arguments string) string {
		return `{"id":"` + id + `","name":"` + tool + `","arguments":` + strconv.Quote(arguments) + `}`
	}
	write(t, dir, "tape.jsonl", `{"tape":"crewhost","version":1}`+"\n"+
		turn(0, call("c1", "echo", `{"text":"first"}`))+
		turn(1, call("c2", "echo", `{"text":"second"}`))+
		turn(2, call("c3", "echo", `{"text":"third"}`), call("c4", "human_input", `{"prompt":"Which tide?"}`))+
		turn(3, call("c5", "ask", `{"message":"Which region?","schema":{"type":"object","required":["region"],"properties":{"region":{"type":"string"}}}}`))+
		`{"match":{"contains":["not now","the spring tide","north"],"turn":4},"response":{"message":{"parts":[{"text":"All were asked."}]}}}`+"\n")

	screen, terminal := openTerminal(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	record := exec.CommandContext(ctx, program, "run", "crew.yaml", "--format", "json", "--record", "run.tape")
	record.Dir, record.Env = dir, append(os.Environ(), "NO_COLOR=1", "XDG_STATE_HOME="+t.TempDir())
	var recorded, shown bytes.Buffer
	record.Stdin, record.Stdout, record.Stderr = terminal, &recorded, terminal
	if err := record.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	var reading sync.WaitGroup
	reading.Go(func() {
		const allow = "Allow?" // what is typed before is an answer to nothing
		answers := []struct{ after, then, typed string }{
			{`with {"text":"first"}`, allow, "y\n"}, {`with {"text":"second"}`, allow, "not now\n"}, {`with {"text":"third"}`, allow, "a\n"},
			{"An agent asks: Which tide?", "", "the spring tide\n"}, {"leaves it open", "region*", "north\n"}, {"y = send", "", "y\n"},
		}
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			shown.Write(buf[:n])
			for i, a := range answers { // in whatever order the questions come
				_, rest, asked := strings.Cut(shown.String(), a.after)
				if a.typed != "" && asked && strings.Contains(rest, a.then) {
					_, _ = io.WriteString(screen, a.typed)
					answers[i].typed = ""
				}
			}
			if err != nil { // the other end is closed
				return
			}
		}
	})
	err = record.Wait()
	reading.Wait()
	if err != nil || !strings.Contains(recorded.String(), "All were asked.") {
		t.Fatalf("%v\n%s", err, &shown)
	}
	for _, flags := range [][]string{nil, {"--approve", "deny"}} {
		p := launch(t, dir, append([]string{"run", "--replay", "run.tape", "--format", "json"}, flags...)...)
		if code, last := p.exit(); code != exitOK {
			t.Errorf("exit code %d: %s\n%s", code, last, &p.seen)
		}
		if diff := cmp.Diff(recorded.String(), p.stdout.String()); diff != "" {
			t.Errorf("%q (-recorded +replayed):\n%s", flags, diff)
		}
	}
	if told := eventsOn(t, filepath.Join(dir, "run.tape")); strings.Count(told, `"kind":"tool.returned"`) != 5 {
		t.Errorf("not all was asked:\n%s", told)
	}
}

// A run that was interrupted in the middle of a call replays up to there, without the
// call, and ends as it did: with 130 and the same events.
func TestReplayOfAnInterruptedRun(t *testing.T) {
	for name, flags := range map[string][]string{"text": nil, "json": {"--format", "json"}, "events": {"--events", "jsonl"}} {
		t.Run(name, func(t *testing.T) {
			dir := wrapped(t)
			p := launch(t, dir, append([]string{"run", "crew.yaml", "--record", "run.tape"}, flags...)...)
			p.until("model turn 1")
			awaitText(t, filepath.Join(dir, "run.tape"), `"kind":"tool","scope"`)
			if err := p.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if code, last := p.exit(); code != exitInterrupted {
				t.Fatalf("exit code %d: %s", code, last)
			}
			gone(t)
			again := launch(t, dir, append([]string{"run", "crew.yaml", "--replay", "run.tape"}, flags...)...)
			if code, last := again.exit(); code != exitInterrupted || last != "ERROR: interrupted" {
				t.Errorf("exit code %d: %s\n%s", code, last, &again.seen)
			}
			if diff := cmp.Diff(p.stdout.String(), again.stdout.String()); diff != "" {
				t.Errorf("(-recorded +replayed):\n%s", diff)
			}
		})
	}
}

// awaitText waits until a file holds a text.
func awaitText(t *testing.T, file, text string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if data, _ := os.ReadFile(file); bytes.Contains(data, []byte(text)) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not written to %s", text, file)
		}
	}
}
