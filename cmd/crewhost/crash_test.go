package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// The parts of a run that is killed: a model that has no memory, so that it may be
// asked by any process, and a server of tools that counts its calls.

// till is an MCP server of two tools, pay and note, for many runs: each has a path of
// its own, and calls are counted by it. It outlives the hosts that are killed.
type till struct {
	*httptest.Server

	mu    sync.Mutex
	calls map[string][]string // by path: the tool, and its argument n
}

func newTill(t *testing.T) *till {
	s := &till{calls: map[string][]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// made returns the calls of a run, sorted.
func (s *till) made(path string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.calls[path]))
}

func (s *till) serve(w http.ResponseWriter, r *http.Request) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name      string `json:"name"`
			Arguments struct {
				N int `json:"n"`
			} `json:"arguments"`
		} `json:"params"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&m); {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": m.ID}
	switch m.Method {
	case "initialize":
		answer["result"] = map[string]any{
			"protocolVersion": "2025-06-18", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]any{"name": "till", "version": "1"},
		}
	case "ping":
		answer["result"] = map[string]any{}
	case "tools/list":
		var list []any
		for _, name := range []string{"note", "pay"} {
			list = append(list, map[string]any{
				"name": name, "description": name,
				"inputSchema": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}},
			})
		}
		answer["result"] = map[string]any{"tools": list}
	case "tools/call":
		n := m.Params.Arguments.N
		s.mu.Lock()
		s.calls[r.URL.Path] = append(s.calls[r.URL.Path], fmt.Sprintf("%s-%d", m.Params.Name, n))
		s.mu.Unlock()
		answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": fmt.Sprintf("receipt %d", 100+n)}}}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

var numbered = regexp.MustCompile(`Task number (\d+): (\w+)`)

// clerk is a model that does numbered tasks: it calls the tool that the task names,
// and tells what came of it. It answers by what it is asked alone.
func clerk(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			Messages []struct {
				Role    string `json:"role"`
				Content any    `json:"content"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var task, tool, receipt string
		for _, m := range req.Messages {
			text := fmt.Sprint(m.Content)
			if found := numbered.FindStringSubmatch(text); found != nil && m.Role == "user" {
				task, tool = found[1], found[2]
			}
			if m.Role == "tool" {
				receipt = text
			}
		}
		message := map[string]any{"role": "assistant", "content": fmt.Sprintf("Task %s: %s", task, receipt)}
		if receipt == "" {
			name, arguments := tool, fmt.Sprintf(`{"n":%s}`, task)
			if tool == "file_write" {
				name, arguments = tool, fmt.Sprintf(`{"path":"/out/%s.txt","content":"%s"}`, task, task)
			}
			message = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
				"id": "c" + task, "type": "function", "function": map[string]any{"name": name, "arguments": arguments},
			}}}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": "x", "object": "chat.completion", "model": "clerk",
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}},
			"usage":   map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
		})
	}))
	t.Cleanup(s.Close)
	return s
}

// clerks writes a crew of n tasks, one of three steps each, and its settings. Of each
// three tasks one pays, one notes, which does no harm twice, and one writes a file.
func clerks(t *testing.T, dir, model, till string, n int, settings string) {
	t.Helper()
	write(t, dir, "crewhost.yaml", fmt.Sprintf(`
llm: {provider: openai-compatible, base_url: %s/v1, model: clerk}
mcp: {servers: {till: {url: %s, required: true}}}
permissions: {default: allow}
mounts: ["out:/out:rw"]
journal: {repeatable: [mcp__till__note]%s}
`, model, till, settings))
	var tasks strings.Builder
	for i := range n {
		tool := []string{"pay", "note", "file_write"}[i%3]
		fmt.Fprintf(&tasks, "  t%02d: {agent: clerk, expectedOutput: A receipt., description: 'Task number %d: %s'", i+1, i+1, tool)
		if i%10 == 9 {
			fmt.Fprintf(&tasks, ", deliverable: {path: /out/final-%d.md, source: final_message}", i+1)
		}
		tasks.WriteString("}\n")
	}
	write(t, dir, "crew.yaml", "name: Clerks\ngoal: Pay\nagents:\n  clerk: {role: Clerk, goal: Do the tasks, tools: [pay, note, file_write]}\ntasks:\n"+tasks.String())
	if err := os.MkdirAll(filepath.Join(dir, "out"), 0o755); err != nil {
		t.Fatal(err)
	}
}

// Where a program that kills itself does so: NTH:MODE, in the environment of the
// tests' own program alone.
const killVariable = "KILL_AT"

const (
	killBefore = "before" // nothing of the line is written
	killHalf   = "half"   // the half of it
	killAfter  = "after"  // all of it
)

// killPoint reads the variable.
func killPoint() (nth int, mode string) {
	at, mode, _ := strings.Cut(os.Getenv(killVariable), ":")
	nth, _ = strconv.Atoi(at)
	return nth, mode
}
