package journal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crewhost/runner/journal"
)

var began = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)

// create begins a journal of a run.
func create(t *testing.T, cfg journal.Config) *journal.Log {
	t.Helper()
	l, err := journal.Create(cfg, journal.Header{Run: "run-1", Crew: "c", Host: "1.0", At: began, Basis: map[string]string{"crew": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// resume goes on with the run of a folder.
func resume(t *testing.T, cfg journal.Config) *journal.Log {
	t.Helper()
	l, err := journal.Open(cfg, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := l.Resume(journal.Life{Host: "1.0"}); err != nil {
		t.Fatal(err)
	}
	return l
}

func closed(t *testing.T, l *journal.Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// turn is a step of a task: the nth request to its model.
func turn(task string, n int) journal.Step {
	return journal.Step{Kind: journal.Model, Scope: journal.Scope{Task: task, Agent: "a", Attempt: 1}, Name: "default", Request: fmt.Appendf(nil, `{"turn":%d}`, n)}
}

// call is a step that may not be done twice.
func call(task, id string) journal.Step {
	return journal.Step{
		Kind: journal.Tool, Scope: journal.Scope{Task: task, Agent: "a", Call: id}, Name: "mcp__bank__pay",
		Request: []byte(`{"amount":1}`), Effect: journal.Once,
	}
}

// do carries out a step, and says whether it was done or known.
func do(t *testing.T, l journal.Steps, s journal.Step, outcome string) (got string, live bool) {
	t.Helper()
	raw, err := l.Do(t.Context(), s, func(context.Context) (json.RawMessage, error) {
		live = true
		return json.RawMessage(outcome), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw), live
}

// begun begins a step and is cut short.
func begun(t *testing.T, l journal.Steps, s journal.Step) {
	t.Helper()
	cut := errors.New("cut short")
	if _, err := l.Do(t.Context(), s, func(context.Context) (json.RawMessage, error) { return nil, cut }); !errors.Is(err, cut) {
		t.Fatal(err)
	}
}

// What a run did is not done again: the same steps have the same outcomes, in their
// order, and what comes after is done.
func TestASecondLife(t *testing.T) {
	cfg := journal.Config{Dir: filepath.Join(t.TempDir(), "runs")}
	l := create(t, cfg)
	for i, s := range []journal.Step{turn("x", 1), call("x", "1"), turn("x", 2), turn("x", 2), turn("y", 1)} {
		if got, live := do(t, l, s, fmt.Sprint(i)); !live || got != fmt.Sprint(i) {
			t.Errorf("step %d: %s, live %v", i, got, live)
		}
	}
	begun(t, l, turn("y", 2))
	closed(t, l)

	for life := range 3 {
		l = resume(t, cfg)
		for _, want := range []struct {
			step    journal.Step
			outcome string
			live    bool
		}{
			{turn("y", 1), "4", false}, {turn("x", 1), "0", false}, {call("x", "1"), "1", false}, {turn("x", 2), "2", false},
			{turn("x", 2), "3", false}, {turn("y", 2), "5", life == 0}, {turn("x", 3), "6", life == 0},
		} {
			if got, live := do(t, l, want.step, want.outcome); live != want.live || got != want.outcome {
				t.Errorf("life %d: %s %s: %s, live %v", life, want.step.Scope.Task, want.step.Request, got, live)
			}
		}
		if n := l.Restored(); n != 5 && life == 0 || n != 7 && life > 0 {
			t.Errorf("%d steps were restored", n)
		}
		closed(t, l)
	}
	if info, err := os.Stat(filepath.Join(cfg.Dir, "run-1.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if info, err := os.Stat(cfg.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info.Mode(), err)
	}
}

// What may not be done twice, and of which nobody knows whether it was done, is asked
// about.
func TestTheUnknown(t *testing.T) {
	cfg := journal.Config{Dir: t.TempDir()}
	l := create(t, cfg)
	do(t, l, turn("x", 1), "0")
	begun(t, l, call("x", "1"))
	closed(t, l)

	never := func(context.Context) (json.RawMessage, error) {
		t.Error("it was done again")
		return nil, nil
	}
	l = resume(t, cfg)
	do(t, l, turn("x", 1), "")
	_, err := l.Do(t.Context(), call("x", "1"), never)
	var unknown *journal.UnknownError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"mcp__bank__pay" of task "x"`) {
		t.Errorf("%v", err)
	}
	closed(t, l)

	no := errors.New("no")
	cfg.Unknown = func(context.Context, journal.Step) error { return no }
	l = resume(t, cfg)
	if _, err := l.Do(t.Context(), call("x", "1"), never); !errors.Is(err, no) {
		t.Errorf("%v", err)
	}
	closed(t, l)

	cfg.Unknown = func(context.Context, journal.Step) error { return nil }
	l = resume(t, cfg)
	if _, live := do(t, l, call("x", "1"), "1"); !live {
		t.Error("it was not done though a person said so")
	}
	closed(t, l)
	l = resume(t, cfg)
	if got, live := do(t, l, call("x", "1"), ""); live || got != "1" {
		t.Error("it was done once more")
	}
}

// A run that asks for something else than it did is stopped, and says what differs.
func TestADivergence(t *testing.T) {
	cfg := journal.Config{Dir: t.TempDir()}
	l := create(t, cfg)
	do(t, l, turn("x", 1), "0")
	do(t, l, turn("x", 2), "1")
	closed(t, l)
	l = resume(t, cfg)
	do(t, l, turn("x", 1), "0")
	never := func(context.Context) (json.RawMessage, error) { return nil, errors.New("it was done") }
	_, err := l.Do(t.Context(), turn("x", 3), never)
	var diverged *journal.DivergenceError
	if !errors.As(err, &diverged) || !strings.HasSuffix(err.Error(), "task \"x\" asks for something else (model default)") || diverged.Difference() != "  turn: it was 2, and is 3" {
		t.Errorf("%v", err)
	}
	if _, err := l.Do(t.Context(), turn("new", 1), never); !errors.As(err, &diverged) {
		t.Errorf("the run went on: %v", err)
	}
}

// In a task that failed, what it failed by is done anew: the request that was refused,
// or else its last turn. What other tasks did stands.
func TestAFailedTask(t *testing.T) {
	for name, tt := range map[string]struct {
		steps []journal.Step
		last  string
		again int // which of the steps
	}{
		"a refusal":            {[]journal.Step{turn("x", 1), call("x", "1"), turn("x", 2)}, `{"fault":{"text":"429"}}`, 2},
		"an answer":            {[]journal.Step{turn("x", 1), turn("x", 2)}, `{"value":1}`, 1},
		"nothing to do anew":   {[]journal.Step{turn("x", 1), call("x", "1")}, `{"value":1}`, -1},
		"a refusal in between": {[]journal.Step{turn("y", 1), turn("x", 1)}, `{"fault":{}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := journal.Config{Dir: t.TempDir()}
			l := create(t, cfg)
			for i, s := range tt.steps {
				outcome := "{}"
				if i == len(tt.steps)-1 {
					outcome = tt.last
				}
				do(t, l, s, outcome)
			}
			do(t, l, turn("z", 1), `{"fault":{}}`)
			for _, task := range []journal.TaskEnd{{Task: "x", State: journal.TaskFailed}, {Task: "z", State: journal.TaskCompleted}} {
				if err := l.Task(task); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.End(journal.End{Code: 2}); err != nil {
				t.Fatal(err)
			}
			closed(t, l)
			for life := range 2 {
				l = resume(t, cfg)
				for i, s := range append(tt.steps, turn("z", 1)) {
					if _, live := do(t, l, s, "{}"); live != (i == tt.again && life == 0) {
						t.Errorf("life %d, step %d: done %v", life, i, live)
					}
				}
				if err := l.Task(journal.TaskEnd{Task: "x", State: journal.TaskCompleted}); err != nil {
					t.Fatal(err)
				}
				closed(t, l)
			}
		})
	}
}

// What was taken back may be asked otherwise the next time, and is then as if it had
// never been.
func TestWhatWasTakenBackMayDiffer(t *testing.T) {
	cfg := journal.Config{Dir: t.TempDir()}
	l := create(t, cfg)
	do(t, l, turn("x", 1), `{"fault":{}}`)
	begun(t, l, turn("y", 1))
	if err := l.Task(journal.TaskEnd{Task: "x", State: journal.TaskFailed}); err != nil {
		t.Fatal(err)
	}
	closed(t, l)
	for life := range 3 {
		l = resume(t, cfg)
		for _, s := range []journal.Step{turn("x", 10), turn("y", 10), turn("x", 20), turn("y", 20)} {
			if _, live := do(t, l, s, "1"); live != (life == 0) {
				t.Errorf("life %d: %s done %v", life, s.Request, live)
			}
		}
		if err := l.Task(journal.TaskEnd{Task: "x", State: journal.TaskCompleted}); err != nil {
			t.Fatal(err)
		}
		closed(t, l)
	}
}

// Two processes don't resume one run.
func TestOneAtATime(t *testing.T) {
	cfg := journal.Config{Dir: t.TempDir()}
	l := create(t, cfg)
	var busy *journal.BusyError
	if _, err := journal.Open(cfg, "run-1"); !errors.As(err, &busy) {
		t.Errorf("%v", err)
	}
	if run := journal.Look(cfg.Dir, "run-1"); run.State != journal.Running {
		t.Error(run.State)
	}
	closed(t, l)
	resume(t, cfg)
}

// Secrets are in no field of a journal.
func TestSecretsAreMasked(t *testing.T) {
	const canary = `c4n"ary`
	cfg := journal.Config{Dir: t.TempDir(), Mask: func(s string) string { return strings.ReplaceAll(s, canary, "•••") }}
	l, err := journal.Create(cfg, journal.Header{Run: "run-1", Crew: canary, Inputs: map[string]string{"key": canary, "n": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	outcome, _ := json.Marshal(map[string]string{"text": "it is " + canary, canary: "x"})
	if got, _ := do(t, l, turn("x", 1), string(outcome)); got != string(outcome) {
		t.Error("the run itself got", got)
	}
	if err := errors.Join(l.Task(journal.TaskEnd{Task: "x", Error: canary}), l.End(journal.End{Error: canary}), l.Close()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(cfg.Dir, "run-1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("ary")) || bytes.Count(data, []byte("•••")) != 6 {
		t.Errorf("%s", data)
	}
	l, err = journal.Open(cfg, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if h := l.Header(); len(h.Withheld) != 1 || h.Withheld[0] != "key" || h.Inputs["n"] != "1" {
		t.Errorf("%+v", h)
	}
}

// A journal that can't be written ends the run.
func TestAFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	n := 0
	l := create(t, journal.Config{Dir: t.TempDir(), Write: func(f *os.File, line []byte) error {
		if n++; n > 2 {
			return full
		}
		_, err := f.Write(line)
		return err
	}})
	for range 2 {
		if _, err := l.Do(t.Context(), turn("x", 1), func(context.Context) (json.RawMessage, error) { return []byte("1"), nil }); !errors.Is(err, full) {
			t.Errorf("%v", err)
		}
	}
}

func done(context.Context) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
