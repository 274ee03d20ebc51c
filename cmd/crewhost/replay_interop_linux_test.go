//go:build interop

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"crewhost/mcp/mcptest/interop"
)

// A run against the reference servers, which are Node's, and a model over HTTP replays
// with an empty network, no program on the PATH, and none of its secrets on the tape.
func TestInteropReplay(t *testing.T) {
	if interop.Isolated(t) {
		return
	}
	const key, token = "canary-key-of-the-model", "canary-token-of-the-server"
	p := newProof(t, []string{"PATH=" + os.Getenv("PATH"), "MODEL_KEY=" + key, "SERVER_TOKEN=" + token}, key, token)
	files := filepath.Join(p.dir, "files")
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, files, "tide.txt", "high at noon")
	model := cloud(t, key,
		`echo {"message":"hello"}`, `get-sum {"a":2,"b":40}`, `trigger-long-running-operation {"duration":1,"steps":3}`,
		`get-structured-content {"location":"Chicago"}`, `get-tiny-image {}`, `get-env {}`, `trigger-sampling-request {"prompt":"a word","maxTokens":50}`,
		`read_text_file {"path":"`+files+`/tide.txt"}`, `write_file {"path":"`+files+`/new.txt","content":"low at six"}`)
	script := func(name string) string {
		quoted, err := json.Marshal(interop.Script(t, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(quoted)
	}
	write(t, p.dir, "crewhost.yaml", `
llm: { provider: openai, model: m, base_url: "`+model.URL+`/v1", api_key: "${MODEL_KEY}" }
permissions: { default: allow }
mcp:
  servers:
    everything: { command: node, args: [`+script("server-everything/dist/index.js")+`], env: { TOKEN: "${SERVER_TOKEN}" }, sampling: true }
    files: { command: node, args: [`+script("server-filesystem/dist/index.js")+`, "`+files+`"] }
`)
	write(t, p.dir, "crew.yaml", `
name: Callers
goal: Call everything
agents:
  one:
    role: One
    goal: Call
    tools: [echo, get-sum, trigger-long-running-operation, get-structured-content, get-tiny-image, get-env, trigger-sampling-request, read_text_file, write_file]
tasks: { only: { description: Call every tool, expectedOutput: What they say, agent: one } }
`)
	p.prove(model.Close, "Echo: hello", "42", "sampled word is tide", "high at noon")
	if !p.confined {
		t.Error("no network namespace could be made for the replay")
	}
}
