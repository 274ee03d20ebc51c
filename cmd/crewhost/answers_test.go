package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"crewhost/config/secret"
)

// vendor is a server of a model that gives the answers of a list, one a request.
type vendor struct {
	*httptest.Server
	mu       sync.Mutex
	answers  []string // of JSON, or of events if they begin with "data:"
	requests []chatRequest
}

// chatRequest is what is looked at of a request.
type chatRequest struct {
	Stream   bool
	Messages []struct {
		Role       string
		Content    any
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
}

func newVendor(t *testing.T, answers ...string) *vendor {
	t.Helper()
	v := &vendor{answers: answers}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v.mu.Lock()
		defer v.mu.Unlock()
		var req chatRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		v.requests = append(v.requests, req)
		if len(v.answers) == 0 {
			http.Error(w, "no answer is left", http.StatusTeapot)
			return
		}
		answer := v.answers[0]
		v.answers = v.answers[1:]
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(answer, "data:") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(v.Close)
	return v
}

// ask runs a crew whose agent reads files on the vendor's model.
func (v *vendor) ask(t *testing.T, flags ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a.txt", "ebb\n")
	write(t, dir, "b.txt", "flood\n")
	write(t, dir, "crewhost.yaml", fmt.Sprintf(`
llm: { provider: openai-compatible, model: m, base_url: "%s/v1", max_retries: 0 }
mounts: ["%s:/in:ro"]
permissions: { allow: [file_read] }
`, v.URL, filepath.ToSlash(dir)))
	write(t, dir, "crew.yaml", `
name: Reader
goal: Know the tides
agents: { reader: { goal: Read, tools: [file_read] } }
tasks: { read: { description: Read both., expectedOutput: A sentence, agent: reader } }
`)
	var out, errs bytes.Buffer
	c := &console{in: strings.NewReader(""), out: &out, err: &errs, redactor: &secret.Redactor{}, environ: []string{"HOME=" + dir}}
	code = start(c, append([]string{"run", filepath.Join(dir, "crew.yaml")}, flags...))
	return code, out.String(), errs.String()
}

// streamed is a stream of deltas that ends in a reason.
func streamed(reason string, deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
	}
	fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%q}]}\n\n", reason)
	return b.String()
}

// TestStreamedCalls (K73): however a stream takes two calls apart, both are run,
// each with its own arguments, and each is answered under its own id.
func TestStreamedCalls(t *testing.T) {
	const done = "data: [DONE]\n\n"
	part := func(calls ...string) string { return `{"tool_calls":[` + strings.Join(calls, ",") + `]}` }
	const a, b = `"{\"path\":\"/in/a.txt\"}"`, `"{\"path\":\"/in/b.txt\"}"`
	answer := streamed("stop", `{"content":"Ebb, then "}`, `{"content":"flood."}`) + done
	for name, calls := range map[string]string{
		"without index": streamed("tool_calls",
			part(`{"id":"x","function":{"name":"file_read","arguments":`+a+`}}`),
			part(`{"id":"y","function":{"name":"file_read","arguments":`+b+`}}`)) + done,
		"index 0 twice": streamed("tool_calls",
			part(`{"index":0,"id":"x","function":{"name":"file_read","arguments":`+a+`}}`),
			part(`{"index":0,"id":"y","function":{"name":"file_read","arguments":`+b+`}}`)) + done,
		"interleaved by index": streamed("tool_calls",
			part(`{"index":0,"id":"x","function":{"name":"file_read"}}`, `{"index":1,"id":"y","function":{"name":"file_read"}}`),
			part(`{"index":1,"function":{"arguments":"{\"path\":"}}`), part(`{"index":0,"function":{"arguments":"{\"path\":"}}`),
			part(`{"index":0,"function":{"arguments":"\"/in/a.txt\"}"}}`), part(`{"index":1,"function":{"arguments":"\"/in/b.txt\"}"}}`)) + done,
		"name twice, arguments null": streamed("tool_calls",
			part(`{"index":0,"id":"x","function":{"name":"file_read","arguments":null}}`),
			part(`{"index":0,"function":{"name":"file_read","arguments":`+a+`}}`),
			part(`{"index":1,"id":"y","function":{"name":"file_read","arguments":`+b+`}}`)) + done,
		"no [DONE]": streamed("tool_calls",
			part(`{"index":0,"id":"x","function":{"name":"file_read","arguments":`+a+`}}`),
			part(`{"index":1,"id":"y","function":{"name":"file_read","arguments":`+b+`}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t, calls, answer)
			code, stdout, stderr := v.ask(t, "--stream")
			if code != exitOK || strings.TrimSpace(stdout) != "Ebb, then flood." {
				t.Fatalf("exit code %d, %q:\n%s", code, stdout, stderr)
			}
			last := v.requests[len(v.requests)-1]
			var got []string
			for _, m := range last.Messages {
				for _, c := range m.ToolCalls {
					got = append(got, c.ID+" "+c.Function.Name+c.Function.Arguments)
				}
				if m.Role == "tool" {
					got = append(got, fmt.Sprint(m.ToolCallID, " = ", m.Content))
				}
			}
			want := `x file_read{"path":"/in/a.txt"}` + "\n" + `y file_read{"path":"/in/b.txt"}` + "\nx = ebb\n\ny = flood\n"
			if all := strings.Join(got, "\n"); all != want || !last.Stream {
				t.Errorf("got\n%s\nwant\n%s", all, want)
			}
		})
	}
	t.Run("arguments behind their end", func(t *testing.T) {
		v := newVendor(t, streamed("tool_calls",
			part(`{"index":0,"id":"x","function":{"name":"file_read","arguments":`+a+`}}`), part(`{"index":0,"function":{"arguments":`+b+`}}`))+done)
		code, stdout, stderr := v.ask(t, "--stream")
		if code != exitFailed || stdout != "" || !strings.Contains(stderr, "go on after their end") {
			t.Errorf("exit code %d, %q:\n%s", code, stdout, stderr)
		}
	})
}

// TestAnswersWithoutText (K75): what holds no answer is asked for again, and in the
// end fails the task with the reason; thoughts are never passed off as the answer.
func TestAnswersWithoutText(t *testing.T) {
	whole := func(message string) string {
		return `{"choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}]}`
	}
	answer := whole(`{"content":"Noon."}`)
	for name, tt := range map[string]struct {
		answers []string
		code    int
		stdout  string
		stderr  string
	}{
		"reasoning beside an empty text": {[]string{whole(`{"content":"","reasoning_content":"hidden"}`), answer}, exitOK, "Noon.", ""},
		"null and no calls":              {[]string{whole(`{"content":null}`), answer}, exitOK, "Noon.", ""},
		"think alone":                    {[]string{whole(`{"content":"<think>hidden</think>"}`), answer}, exitOK, "Noon.", ""},
		"parts in a list":                {[]string{whole(`{"content":[{"type":"text","text":"No"},{"type":"text","text":"on."}]}`)}, exitOK, "Noon.", ""},
		"text beside a call": {[]string{
			whole(`{"content":"Let me look.","tool_calls":[{"id":"x","type":"function","function":{"name":"file_read","arguments":"{\"path\":\"/in/a.txt\"}"}}]}`), answer,
		}, exitOK, "Noon.", "file_read(path): done"},
		"no choices": {[]string{`{"choices":[]}`}, exitFailed, "", "choices"},
		"thoughts for ever": {[]string{
			whole(`{"content":"","reasoning_content":"hidden"}`), whole(`{"content":"<think>hidden</think>"}`), whole(`{"content":null,"reasoning":"hidden"}`), answer,
		}, exitFailed, "", "(empty_answer)"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := newVendor(t, tt.answers...).ask(t)
			if code != tt.code || strings.TrimSpace(stdout) != tt.stdout || !strings.Contains(stderr, tt.stderr) || strings.Contains(stdout+stderr, "hidden") {
				t.Errorf("exit code %d, %q:\n%s", code, stdout, stderr)
			}
		})
	}
}
