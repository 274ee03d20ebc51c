//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crewhost/mcp/mcptest"
	"crewhost/runner/event/eventtest"
)

// patience bounds waiting for what should be there at once, on a busy machine.
const patience = 30 * time.Second

// program is a crewhost that runs.
type program struct {
	*exec.Cmd
	t      *testing.T
	stderr *bufio.Scanner
	seen   bytes.Buffer
	stdout bytes.Buffer
}

// launch starts the test binary as crewhost in dir.
func launch(t *testing.T, dir string, args ...string) *program {
	t.Helper()
	return launchOn(t, dir, nil, args...)
}

// launchOn is launch with a stdin.
func launchOn(t *testing.T, dir string, stdin io.Reader, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The name decides which of its programs the test binary is.
	link := filepath.Join(t.TempDir(), "crewhost")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	p := &program{Cmd: exec.Command(link, args...), t: t}
	p.Dir = dir
	p.Stdin = stdin
	p.Stdout = &p.stdout
	stderr, err := p.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.stderr = bufio.NewScanner(stderr)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill() })
	return p
}

// until reads stderr up to a line that contains text.
func (p *program) until(text string) string {
	p.t.Helper()
	for p.stderr.Scan() {
		p.seen.WriteString(p.stderr.Text() + "\n")
		if strings.Contains(p.stderr.Text(), text) {
			return p.stderr.Text()
		}
	}
	p.t.Fatalf("stderr ended without %q:\n%s", text, &p.seen)
	return ""
}

// exit waits for the end and returns the exit code and the last line of stderr.
func (p *program) exit() (code int, last string) {
	p.t.Helper()
	for p.stderr.Scan() {
		last = p.stderr.Text()
		p.seen.WriteString(last + "\n")
	}
	err := p.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode(), last
}

// wrapped writes a crew whose server is started by a wrapper that forks it, as
// npx does, and tells its pids on stderr.
func wrapped(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	command, args := mcptest.Command(mcptest.Wrapper, "-tools", "sleep")
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = strconv.Quote(a)
	}
	write(t, dir, "crewhost.yaml", `
llm: { provider: replay, tape: tape.jsonl }
permissions: { default: allow }
mcp: { servers: { wrapped: { command: `+strconv.Quote(command)+`, args: [`+strings.Join(quoted, ", ")+`], env: { MARK: `+strconv.Quote(mark(t))+` } } } }
`)
	write(t, dir, "crew.yaml", `
name: Sleeper
goal: Sleep
agents: { one: { role: One, goal: Sleep, tools: [sleep] } }
tasks: { only: { description: Sleep, expectedOutput: Nothing, agent: one } }
`)
	write(t, dir, "tape.jsonl", `{"tape":"crewhost","version":1}
{"match":{"turn":0},"response":{"message":{"calls":[{"id":"c1","name":"sleep","arguments":"{\"seconds\":300}"}]}}}
`)
	return dir
}

// mark is a value that the processes of one test have in their environment, and
// no others.
func mark(t *testing.T) string {
	return "crewhost-test-" + t.Name() + "-" + strconv.Itoa(os.Getpid())
}

// marked returns the processes of the test, by /proc.
func marked(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil || len(paths) == 0 {
		t.Skip("no /proc here to find processes in")
	}
	var pids []string
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err == nil && bytes.Contains(environ, []byte("MARK="+mark(t)+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

// gone waits until no process of the test is left.
func gone(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		left := marked(t)
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind: %q", left)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// A signal ends a watched run in the same way, and the events are whole.
func TestInterruptIsTold(t *testing.T) {
	p := launch(t, wrapped(t), "run", "crew.yaml", "--events", "jsonl")
	p.until("task only: agent one")
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code, last := p.exit(); code != exitInterrupted || last != "ERROR: interrupted" {
		t.Errorf("exit code %d, %q", code, last)
	}
	if err := eventtest.Run(p.stdout.Bytes()); err != nil || !bytes.Contains(p.stdout.Bytes(), []byte(`"exitCode":130`)) {
		t.Errorf("%v\n%s", err, &p.stdout)
	}
	gone(t)
}

// A signal while a tool runs ends the run with 130, and the server's whole tree
// with it; so it does while the servers start.
func TestInterrupt(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p := launch(t, wrapped(t), "run", "crew.yaml")
			p.until("model turn 1")
			if n := len(marked(t)); n < 2 {
				t.Fatalf("%d processes of the server, want the wrapper and its child", n)
			}
			if err := p.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code, last := p.exit(); code != 130 || last != "ERROR: interrupted" {
				t.Errorf("exit code %d, last line %q", code, last)
			}
			if p.stdout.Len() > 0 {
				t.Errorf("stdout %q", &p.stdout)
			}
			gone(t)
		})
	}
	t.Run("startup", func(t *testing.T) {
		dir := wrapped(t)
		command, args := mcptest.Command(mcptest.Hang)
		write(t, dir, "crewhost.yaml", `
mcp: { servers: { hanging: { command: `+strconv.Quote(command)+`, args: [`+strings.Join(args, ", ")+`], env: { MARK: `+strconv.Quote(mark(t))+` } }, missing: { command: no-such-command } } }
`)
		p := launch(t, dir, "run", "--validate", "crew.yaml")
		p.until(`"missing" could not be connected`)
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		if code, last := p.exit(); code != 130 || last != "ERROR: interrupted" {
			t.Errorf("exit code %d, last line %q", code, last)
		}
		gone(t)
	})
}

// After kill -9 of the host nothing of a server is left, the grandchild included.
func TestKilledHostLeavesNobody(t *testing.T) {
	p := launch(t, wrapped(t), "run", "crew.yaml")
	p.until("model turn 1")
	if n := len(marked(t)); n < 2 {
		t.Fatalf("%d processes of the server, want the wrapper and its child", n)
	}
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if code, _ := p.exit(); code != -1 {
		t.Errorf("exit code %d", code)
	}
	gone(t)
}

// After each normal end nothing is left either: a listing, a verdict, a failed
// run.
func TestNormalEndLeavesNobody(t *testing.T) {
	for _, args := range [][]string{{"run", "--list-tools"}, {"run", "--validate", "crew.yaml"}, {"mcp", "ping"}, {"run", "crew.yaml", "--settings", "failing.yaml"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			dir := wrapped(t)
			text, err := os.ReadFile(filepath.Join(dir, "crewhost.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, "failing.yaml", strings.Replace(string(text), "tape.jsonl", "empty.jsonl", 1))
			write(t, dir, "empty.jsonl", `{"tape":"crewhost","version":1}`+"\n")
			p := launch(t, dir, args...)
			p.until(`"wrapped" connected`)
			p.exit()
			if left := marked(t); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}
