package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/mcp/mcptest"
	"crewhost/runner/event/eventtest"
)

// A cloud is a vendor's model over HTTP: it makes the calls, one a turn, and then
// repeats what the tools said. A server that has it asked gets a word of its own.
func cloud(t *testing.T, key string, calls ...string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Stream   bool
			Messages []struct {
				Role    string
				Content any
			}
			Tools []any
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		message, stop := map[string]any{"role": "assistant", "content": "The sampled word is tide."}, "stop"
		if len(asked.Tools) > 0 {
			said := []string{}
			for _, m := range asked.Messages {
				if m.Role == "tool" {
					said = append(said, fmt.Sprint(m.Content))
				}
			}
			if n := len(said); n < len(calls) {
				name, arguments, _ := strings.Cut(calls[n], " ")
				message["content"] = "I call " + name + "."
				message["tool_calls"] = []any{map[string]any{
					"index": 0, "id": fmt.Sprintf("call_%d", n), "type": "function", "function": map[string]any{"name": name, "arguments": arguments},
				}}
				stop = "tool_calls"
			} else {
				message["content"] = "They said: " + strings.Join(said, "; ")
			}
		}
		usage := map[string]any{"prompt_tokens": 100 + len(asked.Messages), "completion_tokens": 7, "total_tokens": 107 + len(asked.Messages)}
		choice := map[string]any{"index": 0, "finish_reason": stop}
		if !asked.Stream {
			choice["message"] = message
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"id": "c", "object": "chat.completion", "model": "m-2", "choices": []any{choice}, "usage": usage})
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(v map[string]any) {
			v["id"], v["object"], v["model"] = "c", "chat.completion.chunk", "m-2"
			data, _ := json.Marshal(v)
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
			w.(http.Flusher).Flush()
		}
		for _, piece := range strings.SplitAfter(message["content"].(string), " ") {
			chunk(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"content": piece}}}})
		}
		last := map[string]any{}
		if message["tool_calls"] != nil {
			last["tool_calls"] = message["tool_calls"]
		}
		choice["delta"] = last
		chunk(map[string]any{"choices": []any{choice}})
		chunk(map[string]any{"choices": []any{}, "usage": usage})
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return server
}

// A proof is a run that is recorded and then replayed with nothing left of what it was
// recorded with.
type proof struct {
	t        *testing.T
	dir      string
	secrets  []string // that the tape must not hold
	environ  []string // of the recording
	program  string
	confined bool // this process may make networks
}

func newProof(t *testing.T, environ []string, secrets ...string) *proof {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &proof{t: t, dir: t.TempDir(), environ: environ, secrets: secrets}
	p.program = filepath.Join(t.TempDir(), "crewhost") // the name decides which of its programs the test binary is
	if err := os.Symlink(self, p.program); err != nil {
		t.Fatal(err)
	}
	p.confined = confine(exec.Command(p.program, "version")).Run() == nil
	if !p.confined {
		t.Log("no network namespace can be made here; what the run was recorded with is gone all the same")
	}
	return p
}

// confine gives a program a network of its own, in which there is nothing.
func confine(c *exec.Cmd) *exec.Cmd {
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNET | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	return c
}

func (p *proof) run(c *exec.Cmd, environ []string, exit int) (stdout, stderr string) {
	p.t.Helper()
	var out, aside bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = p.dir, append([]string{"HOME=" + p.dir, noSleep}, environ...), &out, &aside
	err := c.Run()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || c.ProcessState.ExitCode() != exit {
		p.t.Fatalf("%q: %v\n%s%s", c.Args, err, &out, &aside)
	}
	return out.String(), aside.String()
}

const noSleep = "GORACE=" + noSleepAtExit

// record runs a command line and records it.
func (p *proof) record(tape string, args ...string) (stdout string) {
	p.t.Helper()
	stdout, _ = p.run(exec.Command(p.program, append([]string{"run", "crew.yaml", "--record", tape}, args...)...), p.environ, exitOK)
	data, err := os.ReadFile(filepath.Join(p.dir, tape))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, secret := range p.secrets {
		if bytes.Contains(data, []byte(secret)) {
			p.t.Errorf("%s holds the secret %q", tape, secret)
		}
	}
	return stdout
}

// replay runs it again with no network, no program on the PATH, and no variable.
func (p *proof) replay(tape string, args ...string) (stdout string) {
	p.t.Helper()
	c := exec.Command(p.program, append([]string{"run", "crew.yaml", "--replay", tape}, args...)...)
	if p.confined {
		confine(c)
	}
	stdout, _ = p.run(c, []string{"PATH="}, exitOK)
	return stdout
}

// prove records a run in each form, has gone be called, and replays.
func (p *proof) prove(gone func(), want ...string) {
	p.t.Helper()
	forms := map[string][]string{
		"text": nil, "json": {"--format", "json"}, "events": {"--events", "jsonl", "--stream"},
	}
	recorded := map[string]string{}
	for _, form := range []string{"text", "json", "events"} { // the first of them finds no file of another
		recorded[form] = p.record(form+".tape", forms[form]...)
	}
	for _, text := range want {
		if !strings.Contains(recorded["text"], text) {
			p.t.Errorf("the run did not come to %q:\n%s", text, recorded["text"])
		}
	}
	if err := eventtest.Run([]byte(recorded["events"])); err != nil {
		p.t.Error(err)
	}
	gone()
	for form, flags := range forms {
		if diff := cmp.Diff(recorded[form], p.replay(form+".tape", flags...)); diff != "" {
			p.t.Errorf("%s (-recorded +replayed):\n%s", form, diff)
		}
	}
}

// A run with a model over HTTP, a key, and a server that asks a person and the model,
// replays in a network without anything, with the server's program and the model gone.
func TestReplayNeedsNothing(t *testing.T) {
	const key, token = "canary-key-of-the-model", "canary-token-of-the-server"
	p := newProof(t, []string{"PATH=" + os.Getenv("PATH"), "MODEL_KEY=" + key, "SERVER_TOKEN=" + token, "ANSWER=canary-answer"}, key, token, "canary-answer")
	model := cloud(t, key,
		`echo {"text":"hello"}`, `fail {"text":"on purpose"}`, `env {"name":"TOKEN"}`, `ask_model {"prompt":"a word","max_tokens":50}`, `file_write {"path":"/out/note.txt","content":"tide"}`)
	command, args := mcptest.Command("standard", "-tools", "echo,fail,env,ask_model")
	link := filepath.Join(t.TempDir(), "server")
	if err := os.Symlink(command, link); err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.dir, "crewhost.yaml", `
llm: { provider: openai, model: m, base_url: "`+model.URL+`/v1", api_key: "${MODEL_KEY}", prices: { "m*": { input: 3, output: 15 } } }
permissions: { default: allow }
mounts: ["./out:/out:rw"]
mcp: { servers: { standard: { command: `+link+`, args: `+string(quoted)+`, env: { TOKEN: "${SERVER_TOKEN}" }, sampling: true } } }
`)
	write(t, p.dir, "crew.yaml", `
name: Callers
goal: Call everything
agents: { one: { role: One, goal: Call, tools: [echo, fail, env, ask_model, file_write] } }
tasks: { only: { description: Call every tool, expectedOutput: What they say, agent: one } }
`)
	if err := os.Mkdir(filepath.Join(p.dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.prove(func() {
		model.Close()
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(p.dir, "out", "note.txt")); err != nil {
			t.Fatal(err)
		}
	}, "hello", "no such note", "TOKEN=•••", "sampled word is tide", "Created /out/note.txt")
	if _, err := os.Stat(filepath.Join(p.dir, "out", "note.txt")); err == nil {
		t.Error("a replay without --replay-files has written a file")
	}
	if p.replay("text.tape", "--replay-files"); true {
		if _, err := os.Stat(filepath.Join(p.dir, "out", "note.txt")); err != nil {
			t.Error(err)
		}
	}
}
