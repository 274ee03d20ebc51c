package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools"
	"crewhost/tools/audit"
	"crewhost/tools/permission"
)

// records reads a log, which must be whole.
func records(t *testing.T, path string) []audit.Record {
	t.Helper()
	if _, err := audit.Verify(t.Context(), path, audit.Head{}); err != nil {
		t.Fatal(err)
	}
	var all []audit.Record
	if err := audit.Read(t.Context(), path, func(l audit.Line) error {
		all = append(all, l.Record)
		return l.Err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// A run leaves its beginning, each call before and after, and its end; and of a call's
// arguments and results nothing but their measure.
func TestRunIsPutOnRecord(t *testing.T) {
	turn := 0
	model := modelFunc(func(llm.Request) *llm.Response {
		turn++
		switch turn {
		case 1:
			return calls(llm.ToolCall{ID: "c1", Name: "echo", Arguments: `{"text":"canary-value","sk-canary-key":[1,2]}`})
		case 2:
			return calls(llm.ToolCall{ID: "c2", Name: "file_write", Arguments: `{"path":"/canary"}`})
		}
		return answer("done")
	})
	r := open(t, map[string]string{
		"crewhost.yaml": strings.Replace(echoServer, "allow: [mcp__standard]", "allow: [mcp__standard], deny: [file_write]", 1) + "audit: {file: log/audit.jsonl}\n",
		"crew.yaml":     strings.Replace(oneTask, "[echo]", "[echo, file_write]", 1),
	}, with(model), func(c *runner.Config) {
		c.Version = "7"
		c.Redactor = &secret.Redactor{}
		c.Redactor.Add(secret.New("sk-canary-key"))
	})
	inputs := crew.Inputs{"word": "tide"}
	if _, err := r.host.Run(t.Context(), r.crew(inputs), inputs); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(r.dir, "log", "audit.jsonl")
	all := records(t, path)
	var kinds []string
	for _, rec := range all {
		kinds = append(kinds, string(rec.Kind))
	}
	if got, want := strings.Join(kinds, " "), "log.began run.started call.started call call run.finished"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	began, start, end, denied, finished := all[1], all[2], all[3], all[4], all[5]
	if began.Run != "test" || began.Crew != filepath.Join(r.dir, "crew.yaml") || began.Host != "crewhost 7" || began.PID != os.Getpid() || began.Path != "command" {
		t.Errorf("the run began as %+v", began)
	}
	if finished.Outcome != "completed" || finished.Run != "test" {
		t.Errorf("the run ended as %+v", finished)
	}
	var def tools.Definition
	for _, d := range r.host.Tools() {
		if d.Name == "echo" {
			def = d
		}
	}
	for _, rec := range []audit.Record{start, end} {
		if rec.Run != "test" || rec.Path != "agent" || rec.Agent != "one" || rec.Task != "only" || rec.Server != "standard" || rec.Tool != "echo" ||
			rec.ID != start.ID || rec.ID == "" || rec.Definition != def.Digests().Definition {
			t.Errorf("a call is %+v", rec)
		}
		if a := rec.Arguments; a == nil || a.Shape != `{text: string(12), "•••": list(2) of number}` || a.Bytes != 45 ||
			a.Digest != tools.DigestJSON(json.RawMessage(`{"sk-canary-key":[1,2], "text":"canary-value"}`)) {
			t.Errorf("the arguments are %+v", a)
		}
		if d := rec.Decision; d == nil || d.Verdict != "allow" || d.Rule != "mcp__standard" || !strings.Contains(d.Place, "crewhost.yaml:3") {
			t.Errorf("the decision is %+v", d)
		}
	}
	if end.Outcome != "succeeded" || end.Ran == nil || !*end.Ran || end.Bytes == 0 || start.Outcome != "" {
		t.Errorf("the call ended as %+v", end)
	}
	if denied.Outcome != "denied" || *denied.Ran || denied.Decision.Verdict != "deny" || denied.Tool != "file_write" || denied.ID == end.ID {
		t.Errorf("the denied call is %+v", denied)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte("canary")) {
		t.Errorf("%v: the log holds values:\n%s", err, text)
	}
}

// What a person said is on record, and so are calls that were never made.
func TestAnswersAreOnRecord(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "audit: {file: audit.jsonl}\n"}, func(c *runner.Config) {
		c.Approver = approverFunc(func(req permission.Request) permission.Answer {
			return permission.Answer{Allow: strings.Contains(string(req.Arguments), "yes"), Scope: permission.Run, Reason: "secret reason"}
		})
	})
	for _, path := range []string{"/no", "/yes", "/maybe"} {
		_, _ = r.host.Call(t.Context(), tools.Call{Name: "file_read", Arguments: json.RawMessage(`{"path":"` + path + `"}`)})
	}
	_, _ = r.host.Call(t.Context(), tools.Call{Name: "no_such\x1btool"})
	all := records(t, filepath.Join(r.dir, "audit.jsonl"))
	if len(all) != 7 {
		t.Fatalf("%d records: %+v", len(all), all)
	}
	no, yes, stands, none := all[1], all[3], all[5], all[6]
	if a := no.Answer; a == nil || a.Allow || no.Outcome != "denied" || *no.Ran {
		t.Errorf("%+v, %+v", no, no.Answer)
	}
	if a := yes.Answer; a == nil || !a.Allow || a.Who != "person" || a.Scope != "run" || a.Earlier || yes.Path != "command" || yes.Outcome != "error" || !*yes.Ran {
		t.Errorf("%+v, %+v", yes, yes.Answer)
	}
	if a := stands.Answer; a == nil || !a.Allow || !a.Earlier || stands.Decision.Verdict != "ask" {
		t.Errorf("%+v, %+v", stands, stands.Answer)
	}
	if none.Outcome != "refused" || none.Code != "tool_not_found" || none.Tool != `no_such\x1btool` || none.Decision != nil || none.Definition != "" {
		t.Errorf("%+v", none)
	}
}

// spoken is an approver that says whose its answers are.
type spoken struct{ permission.Approver }

func (spoken) Speaker() string { return "program" }

// What a program allowed is on record as that, and not as a person's word.
func TestAnswersOfAProgramAreOnRecord(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": "audit: {file: audit.jsonl}\n"}, func(c *runner.Config) {
		c.Approver = spoken{approverFunc(func(permission.Request) permission.Answer { return permission.Answer{Allow: true} })}
	})
	_, _ = r.host.Call(t.Context(), tools.Call{Name: "file_read", Arguments: json.RawMessage(`{"path":"/a"}`)})
	all := records(t, filepath.Join(r.dir, "audit.jsonl"))
	if a := all[len(all)-1].Answer; a == nil || !a.Allow || a.Who != "program" {
		t.Errorf("%+v", a)
	}
}

// Where the log can't be written, nothing is done that would have to stand in it.
func TestNothingIsDoneOffTheRecord(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	settings := func(required string) *config.Settings {
		path := filepath.Join(dir, "crewhost.yaml")
		if err := os.WriteFile(path, []byte("audit: {file: file/audit.jsonl, required: "+required+"}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := config.Load(config.Source{Explicit: path})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	var unsaid *runner.AuditError
	if _, err := runner.Open(t.Context(), runner.Config{Settings: settings("true")}); !errors.As(err, &unsaid) {
		t.Errorf("a host without its log is opened: %v", err)
	}
	var log bytes.Buffer
	host, err := runner.Open(t.Context(), runner.Config{Settings: settings("false"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Close(); err != nil || !strings.Contains(log.String(), "calls are not put on record") {
		t.Errorf("%v: %s", err, &log)
	}
}

// A log that breaks in the middle of a run ends it before the next call is made.
func TestBrokenLogEndsARun(t *testing.T) {
	for _, required := range []bool{true, false} {
		var r *rig
		turn := 0
		model := modelFunc(func(llm.Request) *llm.Response {
			turn++
			switch turn {
			case 1:
				return calls(llm.ToolCall{ID: "c1", Name: "file_write", Arguments: `{"path":"/out/one","content":"1"}`})
			case 2:
				path := filepath.Join(r.dir, "audit.jsonl")
				if err := errors.Join(os.Rename(path, path+".away"), os.Mkdir(path, 0o700)); err != nil {
					t.Error(err)
				}
				return calls(llm.ToolCall{ID: "c2", Name: "file_write", Arguments: `{"path":"/out/two","content":"2"}`})
			}
			return answer("done")
		})
		settings := "permissions: {default: allow}\nmounts: ['out:/out:rw']\naudit: {file: audit.jsonl}\n"
		if !required {
			settings = strings.Replace(settings, "jsonl", "jsonl, required: false", 1)
		}
		r = open(t, map[string]string{"crewhost.yaml": settings, "crew.yaml": strings.Replace(oneTask, "echo", "file_write", 1)}, with(model))
		t.Cleanup(func() { // before the host is closed, which forces its log to the disk
			path := filepath.Join(r.dir, "audit.jsonl")
			if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
				t.Error(err)
			}
		})
		inputs := crew.Inputs{"word": "tide"}
		_, err := r.host.Run(t.Context(), r.crew(inputs), inputs)
		var unsaid *runner.AuditError
		var failed *runner.RunError
		if errors.As(err, &unsaid) != required || errors.As(err, &failed) != required {
			t.Errorf("required is %t, and the run came to %v", required, err)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "out", "one")); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(r.dir, "out", "two")); (err == nil) == required {
			t.Errorf("required is %t, and of the second file %v", required, err)
		}
		if required {
			if _, err := r.host.Call(t.Context(), tools.Call{Name: "no_such_tool"}); !errors.As(err, &unsaid) {
				t.Errorf("a call that could not be put on record came to %v", err)
			}
		}
	}
}
