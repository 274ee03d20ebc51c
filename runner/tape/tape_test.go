package tape_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/tape"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// life is a run, real or replayed: steps and a stream of events.
type life struct {
	t     testing.TB
	steps journal.Steps
	told  *event.Stream
	world func(journal.Step) (string, error) // what comes of steps
}

func (l *life) do(ctx context.Context, kind journal.Kind, task, name, request string) string {
	raw, err := l.steps.Do(ctx, step(kind, task, name, request), func(context.Context) (json.RawMessage, error) {
		text, err := l.world(step(kind, task, name, request))
		if err != nil {
			return nil, err
		}
		return json.Marshal(text)
	})
	if err != nil {
		return "error: " + err.Error()
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		l.t.Error(err)
	}
	return text
}

func step(kind journal.Kind, task, name, request string) journal.Step {
	raw, _ := json.Marshal(request)
	return journal.Step{Kind: kind, Scope: journal.Scope{Task: task, Agent: "a"}, Name: name, Request: raw}
}

// work is what tasks do that run side by side. The sums that are told depend on which
// of them is quicker.
func work(l *life, tasks int) string {
	results := make([]string, tasks)
	var all sync.WaitGroup
	for i := range tasks {
		all.Go(func() {
			task := fmt.Sprintf("t%d", i)
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: task, Agent: "a", Attempt: 1})
			for turn := range 3 {
				id := l.told.ID()
				l.told.Emit(event.Event{Kind: event.ModelCalled, Task: task, Correlation: id, Turn: turn})
				answer := l.do(l.t.Context(), journal.Model, task, "default", fmt.Sprintf("question %d", turn))
				l.told.Emit(event.Event{
					Kind: event.ModelReturned, Task: task, Agent: "a", Correlation: id, Turn: turn, Success: new(true),
					InputTokens: len(answer), OutputTokens: turn, DurationMS: rand.Int64N(50),
				})
				results[i] += answer
			}
			l.told.Emit(event.Event{Kind: event.TaskCompleted, Task: task, Success: new(true), Text: results[i]})
		})
	}
	all.Wait()
	return strings.Join(results, "|")
}

// record has a run be recorded, and returns its tape, what it told and what it came to.
func record(t testing.TB, mask func(string) string, do func(*life) string) (file, events, result string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "run.tape")
	rec, err := tape.Create(file, mask)
	if err != nil {
		t.Fatal(err)
	}
	rec.Start(tape.Start{Run: "r1", Host: "test", Target: "crew.yaml"})
	var told bytes.Buffer
	sink, _ := event.JSONL(&told)
	l := &life{t: t, steps: rec.Steps(journal.Live{}), told: event.NewStream("r1", time.Now, sink, rec.Event), world: quickOrSlow}
	l.told.Emit(event.Event{Kind: event.RunStarted, Begin: &event.Begin{Target: "crew.yaml"}})
	rec.Host(json.RawMessage(`{}`))
	rec.Run(tape.Run{Crew: "crew.yaml", Digest: crewDigest})
	result = do(l)
	raw, _ := json.Marshal(result)
	rec.Result(raw)
	l.told.Emit(event.Event{Kind: event.RunFinished, Success: new(true), DurationMS: 77})
	rec.End(tape.End{})
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	return file, told.String(), result
}

func quickOrSlow(s journal.Step) (string, error) {
	for range rand.IntN(5_000) {
		_ = s.Kind
	}
	return string(s.Kind) + " " + s.Scope.Task + string(s.Request), nil
}

// replay holds a run against a tape.
func replay(t testing.TB, file string, opts tape.Options, do func(*life) string) (events, result string, err error) {
	t.Helper()
	read, err := tape.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	l := &life{t: t, world: func(journal.Step) (string, error) {
		t.Error("a step was done")
		return "", nil
	}}
	opts.Tell = func() { l.told.Catch() }
	r := read.Replay(opts)
	var told bytes.Buffer
	sink, _ := event.JSONL(&told)
	l.told = event.NewStream("another", time.Now, sink)
	l.told.Follow(r)
	l.steps = r
	l.told.Emit(event.Event{Kind: event.RunStarted, Begin: &event.Begin{Target: "other.yaml"}})
	r.Begin()
	result = do(l)
	err = r.Finish()
	l.told.Emit(event.Event{Kind: event.RunFinished, Success: new(true), DurationMS: 1})
	return told.String(), result, err
}

func TestReplayIsTheSameToTheLastByte(t *testing.T) {
	for range 8 {
		file, events, result := record(t, nil, func(l *life) string { return work(l, 8) })
		gotEvents, gotResult, err := replay(t, file, tape.Options{}, func(l *life) string { return work(l, 8) })
		if err != nil {
			t.Fatal(err)
		}
		if gotResult != result {
			t.Errorf("result\n%s\nwant\n%s", gotResult, result)
		}
		if gotEvents != events {
			t.Fatalf("events\n%s\nwant\n%s", gotEvents, events)
		}
	}
}

func TestDivergences(t *testing.T) {
	file, _, _ := record(t, nil, func(l *life) string { return work(l, 2) })
	for _, tt := range []struct {
		name string
		do   func(*life) string
		want []string // of the error and its difference
	}{
		{"changed request", func(l *life) string {
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: "t0", Agent: "a", Attempt: 1})
			l.told.Emit(event.Event{Kind: event.ModelCalled, Task: "t0", Correlation: l.told.ID()})
			return l.do(l.t.Context(), journal.Model, "t0", "default", "question 7")
		}, []string{"model default asks for what is not on the tape", "task t0", "agent a", "run.tape:", `-  "request": "question 0"`, `+  "request": "question 7"`}},
		{"another tool", func(l *life) string { return l.do(l.t.Context(), journal.Tool, "t1", "shell", "rm") },
			[]string{"tool shell asks for what is not on the tape", `+  "name": "shell"`}},
		{"missing step", func(l *life) string { return "" }, []string{"it does not come to the event task.started"}},
		{"another event", func(l *life) string {
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: "t0", Agent: "a", Attempt: 2})
			return ""
		}, []string{"the event task.started is not on the tape as the run tells it", `-  "attempt": 1`, `+  "attempt": 2`}},
		{"event too many", func(l *life) string {
			work(l, 2)
			l.told.Emit(event.Event{Kind: event.Notice, Text: "hm"})
			return ""
		}, []string{"the event notice is not on the tape", `+  "text": "hm"`}},
		{"step too many", func(l *life) string {
			work(l, 2)
			return l.do(l.t.Context(), journal.Model, "t0", "default", "question 0")
		}, []string{"no step is left", "was asked for already"}},
		{"other sums", func(l *life) string {
			l.world = nil
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: "t0", Agent: "a", Attempt: 1})
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: "t1", Agent: "a", Attempt: 1})
			id := l.told.ID()
			l.told.Emit(event.Event{Kind: event.ModelReturned, Task: "t0", Agent: "a", Correlation: id, Turn: 0, Success: new(true), InputTokens: 1})
			return ""
		}, []string{"the event model.returned is not on the tape as the run tells it", "promptTokens"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stopped error
			_, _, err := replay(t, file, tape.Options{Stop: func(err error) { stopped = err }}, tt.do)
			var d *tape.DivergenceError
			if !errors.As(err, &d) {
				t.Fatalf("got %v", err)
			}
			if !errors.Is(stopped, err) {
				t.Errorf("the run was stopped with %v", stopped)
			}
			for _, want := range tt.want {
				if !strings.Contains(d.Error()+"\n"+d.Diff, want) {
					t.Errorf("it lacks %s:\n%v\n%s", want, d, d.Diff)
				}
			}
			if strings.Contains(d.Error(), "\n") {
				t.Errorf("the error is no single line: %q", d)
			}
			if strings.Contains(d.Error(), "has been changed") {
				t.Errorf("it says of a crew that is the same: %v", d)
			}
		})
	}
}

// What differs in a run of another crew may differ for that.
func TestDivergenceOfAChangedCrew(t *testing.T) {
	file, _, _ := record(t, nil, func(l *life) string { return l.do(t.Context(), journal.Tool, "t", "look", "1") })
	for crew, changed := range map[string]bool{crewDigest: false, "sha256:another": true} {
		read, err := tape.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		r := read.Replay(tape.Options{})
		r.Crew(crew)
		r.Begin()
		(&life{t: t, steps: r, world: quickOrSlow}).do(t.Context(), journal.Tool, "t", "look", "2")
		if err := r.Err(); err == nil || strings.HasSuffix(err.Error(), "; the crew has been changed since") != changed {
			t.Errorf("%s: %v", crew, err)
		}
	}
}

const crewDigest = "sha256:that of the tape"

// A run that waits for what will not come is told so, and does not wait for ever.
func TestDeadEnd(t *testing.T) {
	do := func(l *life, tells bool) string {
		if tells {
			l.told.Emit(event.Event{Kind: event.TaskStarted, Task: "t", Agent: "a", Attempt: 1})
		}
		return l.do(l.t.Context(), journal.Tool, "t", "look", "1")
	}
	file, _, _ := record(t, nil, func(l *life) string { return do(l, true) })
	_, got, err := replay(t, file, tape.Options{Patience: 20 * time.Millisecond}, func(l *life) string { return do(l, false) })
	var d *tape.DivergenceError
	if !errors.As(err, &d) || !strings.Contains(err.Error(), "it does not come to the event task.started") || d.Line == 0 || d.Task != "t" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(got, "error: ") {
		t.Errorf("no step failed: %s", got)
	}
}

// A run that waits for what is slow to come is not taken for one that stands still as
// long as it does anything; and then it is.
func TestSlowIsNoDeadEnd(t *testing.T) {
	const patience = 10 * time.Second
	note := func(l *life, text string) { l.told.Emit(event.Event{Kind: event.Notice, Text: text}) }
	file, _, _ := record(t, nil, func(l *life) string {
		note(l, "first")
		answer := l.do(t.Context(), journal.Tool, "t", "look", "1")
		for i := range 4 {
			note(l, fmt.Sprint(i))
		}
		return answer
	})
	synctest.Test(t, func(t *testing.T) {
		for _, comes := range []bool{true, false} {
			began := time.Now()
			_, _, err := replay(t, file, tape.Options{Patience: patience}, func(l *life) (answer string) {
				var waiting sync.WaitGroup
				waiting.Go(func() { answer = l.do(t.Context(), journal.Tool, "t", "look", "1") })
				for i := range 4 {
					time.Sleep(patience * 6 / 10)
					note(l, fmt.Sprint(i))
				}
				if comes {
					note(l, "first")
				}
				waiting.Wait()
				return answer
			})
			took := time.Since(began)
			if comes != (err == nil) || took < patience*24/10 || took > patience*35/10 {
				t.Errorf("comes: %v: %v after %v", comes, err, took)
			}
		}
	})
}

func TestStepsWithinSteps(t *testing.T) {
	do := func(l *life) string {
		raw, err := l.steps.Do(l.t.Context(), step(journal.Tool, "t", "ask", "outer"), func(ctx context.Context) (json.RawMessage, error) {
			inner := l.do(ctx, journal.Model, "t", "default", "inner")
			l.told.Emit(event.Event{Kind: event.ToolProgress, Task: "t", Progress: &event.Progress{Done: 1}})
			return json.Marshal(inner)
		})
		if err != nil {
			l.t.Error(err)
		}
		return string(raw)
	}
	file, events, result := record(t, nil, do)
	got, gotResult, err := replay(t, file, tape.Options{}, do)
	if err != nil || got != events || gotResult != result {
		t.Errorf("%v\n%s\n%s", err, got, events)
	}
	read, err := tape.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if steps := read.Steps(); len(steps) != 2 || steps[1].Within != 1 || steps[0].Within != 0 {
		t.Errorf("%+v", steps)
	}
}

func TestGoingOnLive(t *testing.T) {
	do := func(l *life) string {
		var all []string
		for i := range 4 {
			all = append(all, l.do(l.t.Context(), journal.Tool, "t", "look", fmt.Sprint(i)))
		}
		return strings.Join(all, ",")
	}
	file, _, _ := record(t, nil, do)
	for from, live := range map[int]int{1: 4, 3: 2, 5: 0} {
		read, err := tape.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		r := read.Replay(tape.Options{From: from})
		r.Begin()
		l := &life{t: t, steps: r, told: nil, world: func(journal.Step) (string, error) {
			done++
			return "live", nil
		}}
		got := do(l)
		if done != live || strings.Count(got, "live") != live {
			t.Errorf("from %d: %d steps were done: %s", from, done, got)
		}
		if err := r.Finish(); err != nil {
			t.Error(err)
		}
	}
}

// What differs before the step from which a run is live is a divergence all the same.
func TestDivergenceBeforeGoingOnLive(t *testing.T) {
	file, _, _ := record(t, nil, func(l *life) string {
		return l.do(l.t.Context(), journal.Tool, "t", "look", "1") + l.do(l.t.Context(), journal.Tool, "t", "look", "2")
	})
	read, err := tape.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	r := read.Replay(tape.Options{From: 2})
	r.Begin()
	l := &life{t: t, steps: r, world: quickOrSlow}
	l.do(t.Context(), journal.Tool, "t", "look", "0")
	var d *tape.DivergenceError
	if err := r.Err(); !errors.As(err, &d) {
		t.Errorf("got %v", err)
	}
}

func TestCarriedOut(t *testing.T) {
	do := func(l *life) string { return l.do(l.t.Context(), journal.File, "t", "/out/a", "content") }
	file, _, _ := record(t, nil, do)
	for _, same := range []bool{true, false} {
		read, err := tape.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		r := read.Replay(tape.Options{Carry: func(s journal.Step) bool { return s.Kind == journal.File }})
		r.Begin()
		do(&life{t: t, steps: r, world: func(s journal.Step) (string, error) {
			if done++; same {
				return quickOrSlow(s)
			}
			return "no room", nil
		}})
		if err := r.Err(); done != 1 || (err == nil) != same || err != nil && !strings.Contains(err.Error(), "something else came of it") {
			t.Errorf("same: %v: done %d times, %v", same, done, err)
		}
	}
}

func TestSecretsStayOut(t *testing.T) {
	const secret, token = "hunter2-canary", "sk-proj-0123456789abcdefghij"
	mask := func(s string) string {
		return strings.NewReplacer(secret, "•••", token, "•••").Replace(s)
	}
	file := filepath.Join(t.TempDir(), "t")
	rec, err := tape.Create(file, mask)
	if err != nil {
		t.Fatal(err)
	}
	all := func(s string) string {
		return fmt.Sprintf("%s %s Basic %s %s", s, token, base64.StdEncoding.EncodeToString([]byte("user:"+s)), base64.RawURLEncoding.EncodeToString([]byte("??>>"+s)))
	}
	text := all(secret)
	raw, _ := json.Marshal(map[string]any{text: []any{text, map[string][]byte{"data": []byte("\xff\x00" + text)}}})
	rec.Start(tape.Start{Run: "r", Host: "h", Target: text, Crew: text})
	rec.Event(event.Event{Seq: 1, Kind: event.Notice, Text: text})
	rec.Host(raw)
	rec.Run(tape.Run{Crew: text, Name: text, Inputs: map[string]string{"key": text}})
	s := journal.Step{Kind: journal.Tool, Name: text, Request: raw, Scope: journal.Scope{Task: text, Agent: text, Call: text}}
	for _, failure := range []error{nil, errors.New(text)} {
		_, _ = rec.Steps(journal.Live{}).Do(t.Context(), s, func(context.Context) (json.RawMessage, error) { return raw, failure })
	}
	rec.Result(raw)
	rec.End(tape.End{Exit: 2, Error: text})
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{secret, token, "hunter2", base64.StdEncoding.EncodeToString([]byte("user:" + secret))[4:], base64.RawURLEncoding.EncodeToString([]byte("??>>" + secret))[4:]} {
		if bytes.Contains(data, []byte(leak)) {
			t.Errorf("the tape holds %q:\n%s", leak, data)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	read, err := tape.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	// The same request is the same request, secrets and all.
	r := read.Replay(tape.Options{Mask: mask})
	r.Begin()
	if _, err := r.Do(t.Context(), s, nil); err != nil {
		t.Error(err)
	}
}

func TestCreateOverwritesNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t")
	if err := os.WriteFile(file, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := tape.Create(file, nil); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("%v", err)
	}
	if data, _ := os.ReadFile(file); string(data) != "mine" {
		t.Error("the file was overwritten")
	}
	// A run that never began leaves none.
	other := filepath.Join(t.TempDir(), "t")
	rec, err := tape.Create(other, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(other); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A tape that can't be written any more ends its run at the next step, and what is on it
// can be read.
func TestNoRoomForATape(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t")
	rec, err := tape.Create(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec.Start(tape.Start{Run: "r", Host: "test", Target: "crew.yaml"})
	rec.Host(json.RawMessage(`{}`))
	rec.Run(tape.Run{Crew: "crew.yaml"})
	done := 0
	l := &life{t: t, steps: rec.Steps(journal.Live{}), world: func(journal.Step) (string, error) {
		if done++; done == 2 {
			if err := rec.Spoil(); err != nil {
				t.Error(err)
			}
		}
		return "done", nil
	}}
	look := func() string { return l.do(t.Context(), journal.Tool, "t", "look", "1") }
	if got := look(); got != "done" {
		t.Error(got)
	}
	for range 2 { // what came of the second is not on the tape; the third is not done
		if got := look(); !strings.Contains(got, "error: recording to "+file) {
			t.Error(got)
		}
	}
	if done != 2 {
		t.Errorf("%d steps were done", done)
	}
	if err := rec.Close(); err == nil || !strings.Contains(err.Error(), "recording to "+file) {
		t.Error(err)
	}
	read, err := tape.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	if steps := read.Steps(); read.Complete() || len(steps) != 2 || steps[0].Done == nil || steps[1].Done != nil {
		t.Errorf("%+v", steps)
	}
}

func TestReadRefuses(t *testing.T) {
	const (
		head  = `{"tape":"crewhost","version":2}` + "\n"
		start = head + `{"start":{"at":"2026-01-02T03:04:05Z","run":"r","host":"h","target":"c"}}` + "\n"
		run   = start + `{"host":{}}` + "\n" + `{"run":{"at":"2026-01-02T03:04:05Z","crew":"c"}}` + "\n"
		one   = run + `{"step":{"n":1,"at":"2026-01-02T03:04:05Z","kind":"model","scope":{},"request":{}}}` + "\n"
		done  = `{"done":{"n":1,"at":"2026-01-02T03:04:05Z","outcome":{}}}` + "\n"
		end   = `{"end":{"at":"2026-01-02T03:04:05Z","exit":0}}` + "\n"
	)
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "t:1: the tape is empty"},
		{"no tape", "{}\n", "t:1: not a tape"},
		{"version 1", `{"tape":"crewhost","version":1,"schema_dialect":{}}` + "\n", "t:1: this is a tape of a model alone (version 1)"},
		{"version 3", `{"tape":"crewhost","version":3}` + "\n", "t:1: the tape has version 3"},
		{"no start", head + `{"host":{}}` + "\n", "t:2: the second line must be start"},
		{"two starts", start + strings.Split(start, "\n")[1] + "\n", "t:3: start comes first"},
		{"no run", start, "no run is on the tape"},
		{"run before host", start + `{"run":{"at":"2026-01-02T03:04:05Z","crew":"c"}}` + "\n", "t:3: run comes once, and after the host"},
		{"step before run", start + strings.Split(one, "\n")[4] + "\n", "t:3: steps and results come after"},
		{"unknown key", run + `{"step":{"n":1,"kinds":"model"}}` + "\n", `t:5: json: unknown field "kinds"`},
		{"unknown line", run + `{"stop":{}}` + "\n", `t:5: json: unknown field "stop"`},
		{"no member", run + `{}` + "\n", "t:5: a line has one member"},
		{"two members", run + `{"host":{},"result":{}}` + "\n", "t:5: a line has one member"},
		{"wrong number", run + strings.Replace(strings.Split(one, "\n")[4], `"n":1`, `"n":2`, 1) + "\n", "t:5: this is step 1, and it says that it is 2"},
		{"within itself", run + strings.Replace(strings.Split(one, "\n")[4], `"n":1`, `"n":1,"within":1`, 1) + "\n", "can't be within step 1"},
		{"done twice", one + done + done, "t:7: step 1 has ended already"},
		{"done of none", run + done, "t:5: there is no step 1"},
		{"no outcome", one + `{"done":{"n":1,"at":"2026-01-02T03:04:05Z"}}` + "\n", "either an outcome or open"},
		{"event's number", start + `{"event":{"v":2,"seq":2,"ts":"2026-01-02T03:04:05Z","kind":"notice"}}` + "\n", "t:3: this is event 1, and it says that it is 2"},
		{"event's kind", start + `{"event":{"v":2,"seq":1,"ts":"2026-01-02T03:04:05Z","kind":"x"}}` + "\n", `t:3: reading an event: the kind "x" is unknown`},
		{"after the end", run + end + end, "t:6: there is something after the end"},
		{"two on a line", run + strings.TrimSpace(done) + done, "there is more on the line"},
		{"cut in the middle", run + `{"step":{"n":` + "\n" + end, "t:5: unexpected EOF"},
		{"long line", start + `{"host":"` + strings.Repeat("x", 1<<20) + `"}` + "\n", "t:3: the line is longer than 1 MiB"},
		{"long tape", start + strings.Repeat("\n", 3<<20), "t: the tape is longer than 2 MiB"},
	} {
		_, err := tape.ReadUpTo(strings.NewReader(tt.text), "t", 1<<20, 2<<20)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	// What a crash leaves is read as far as it goes, and says so.
	for _, text := range []string{one, one + `{"done":{"n":1,"at":"20`, one + done[:len(done)-1], run} {
		read, err := tape.Read(strings.NewReader("\ufeff"+strings.ReplaceAll(text, "\n", "\r\n")), "t")
		if err != nil || read.Complete() {
			t.Errorf("%v", err)
		}
	}
}

// A tape that ends in the middle of its run is replayed up to there.
func TestIncompleteTape(t *testing.T) {
	do := func(l *life) string {
		return l.do(l.t.Context(), journal.Tool, "t", "look", "1") + l.do(l.t.Context(), journal.Tool, "t", "look", "2")
	}
	file, _, _ := record(t, nil, do)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for cut := 5; cut < len(lines)-1; cut++ {
		read, err := tape.Read(strings.NewReader(strings.Join(lines[:cut], "")), "t")
		if err != nil {
			t.Fatalf("%d lines: %v", cut, err)
		}
		r := read.Replay(tape.Options{Patience: 20 * time.Millisecond})
		r.Begin()
		do(&life{t: t, steps: r, world: quickOrSlow})
		var incomplete *tape.IncompleteError
		if err := r.Finish(); !errors.As(err, &incomplete) {
			t.Errorf("%d lines: got %v", cut, err)
		}
	}
}

// However hostile a tape is, it is read or refused, and what is read can be replayed
// and compared.
func FuzzRead(f *testing.F) {
	file, _, _ := record(f, nil, func(l *life) string { return work(l, 2) })
	data, err := os.ReadFile(file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add([]byte(`{"tape":"crewhost","version":2}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := tape.Read(bytes.NewReader(data), "t")
		if err != nil {
			return
		}
		if found := tape.Compare(read, read); len(found) > 0 {
			t.Errorf("it differs from itself: %+v", found)
		}
		r := read.Replay(tape.Options{Patience: time.Millisecond})
		stream := event.NewStream("x", time.Now)
		stream.Follow(r)
		stream.Emit(event.Event{Kind: event.RunStarted})
		r.Begin()
		stream.Catch()
		for _, s := range read.Steps() {
			_, _ = r.Do(t.Context(), journal.Step{Kind: s.Kind, Scope: s.Scope, Name: s.Name, Request: s.Request},
				func(context.Context) (json.RawMessage, error) { return nil, errors.New("no") })
		}
		stream.Emit(event.Event{Kind: event.RunFinished})
		_ = r.Finish()
	})
}
