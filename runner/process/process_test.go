package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker does tasks by functions, by the task's key; without one it answers
// "<key> done". It keeps what it was asked for, in the order of asking.
type worker struct {
	do map[string]func(ctx context.Context, in process.TaskInput) (process.Answer, error)

	mu    sync.Mutex
	asked []process.TaskInput
}

func (w *worker) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	w.mu.Lock()
	w.asked = append(w.asked, in)
	w.mu.Unlock()
	if do := w.do[in.Task.Key]; do != nil {
		return do(ctx, in)
	}
	return said(in.Task.Key + " done"), nil
}

// told is who was asked for what and saw which outputs, in order.
func (w *worker) told() []string {
	var out []string
	for _, in := range w.asked {
		var seen []string
		for _, p := range in.Prior {
			seen = append(seen, p.Task)
		}
		out = append(out, fmt.Sprintf("%s by %s saw %v", in.Task.Key, in.Agent.Key, seen))
	}
	return out
}

func said(text string) process.Answer {
	return process.Answer{Text: text, Turns: 1, ToolCalls: 2, Usage: llm.Usage{Input: 3, Output: 1, Measured: true}}
}

type doing = func(context.Context, process.TaskInput) (process.Answer, error)

func failing(err error) doing {
	return func(context.Context, process.TaskInput) (process.Answer, error) { return said("half"), err }
}

func text(s string) crew.Text { return crew.Text{V: s, Set: s != ""} }

// task makes a task from "key[@agent][&] [dependency…]"; & is asynchronous.
func task(spec string) *crew.Task {
	words := strings.Fields(spec)
	name, async := strings.CutSuffix(words[0], "&")
	key, agent, _ := strings.Cut(name, "@")
	t := &crew.Task{Key: key, Agent: text(agent), Async: async, Description: text("same"), ExpectedOutput: text("same")}
	for _, d := range words[1:] {
		t.Dependencies = append(t.Dependencies, text(d))
	}
	return t
}

func crewOf(specs ...string) *crew.Crew {
	c := &crew.Crew{Name: text("papers"), Process: crew.Sequential, Agents: []*crew.Agent{{Key: "a"}, {Key: "b"}}}
	for _, s := range specs {
		c.Tasks = append(c.Tasks, task(s))
	}
	return c
}

func states(r *process.Result) []string {
	var out []string
	for _, t := range r.Tasks {
		out = append(out, t.Task+" "+string(t.State))
	}
	return out
}

func TestOrder(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tasks []string
		want  string
		err   string
	}{
		{"as declared", []string{"c", "a", "b"}, "c a b", ""},
		{"a task moves behind what it needs, no further", []string{"a c", "b", "c", "d"}, "b c a d", ""},
		{"a diamond", []string{"top", "left top", "right top", "bottom left right"}, "top left right bottom", ""},
		{"backwards", []string{"c b", "b a", "a"}, "a b c", ""},
		{"one dependency twice", []string{"b a a", "a"}, "a b", ""},
		{"a cycle", []string{"a", "b c", "c b", "d c"}, "", "b, c, d"},
		{"itself", []string{"a a"}, "", "cycle"},
		{"nothing", []string{"a x"}, "", `"x", which is no task`},
		{"none", nil, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			order, err := process.Order(crewOf(tt.tasks...))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("%v, want %q", err, tt.err)
				}
				return
			}
			var keys []string
			for _, o := range order {
				keys = append(keys, o.Key)
			}
			if got := strings.Join(keys, " "); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestSequential(t *testing.T) {
	w := &worker{}
	var events []string
	res, err := process.Run(t.Context(), process.Plan{
		Crew: crewOf("write@b find", "find", "check write", "title"), Runner: w,
		Events: event.NewStream("r", func() time.Time { return time.Time{} }, eventtest.Sink(t), func(e event.Event) {
			events = append(events, fmt.Sprintf("%s %s %s %d", e.Kind, e.Task, e.Agent, e.InputTokens))
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	// Declared agents are kept; the others take turns.
	want := []string{"find by a saw []", "write by b saw [find]", "check by b saw [find write]", "title by a saw [find write check]"}
	if diff := cmp.Diff(want, w.told()); diff != "" {
		t.Error(diff)
	}
	if res.Final != "title done" || res.Usage != (llm.Usage{Input: 12, Output: 4, Measured: true}) {
		t.Errorf("%+v", res)
	}
	if r := res.Tasks[1]; r.Task != "write" || r.Agent != "b" || r.Text != "write done" || r.State != process.Completed || r.Turns != 1 || r.ToolCalls != 2 {
		t.Errorf("%+v", r)
	}
	wantEvents := []string{
		"task.started find a 0", "task.completed find a 3", "task.started write b 0", "task.completed write b 3",
		"task.started check b 0", "task.completed check b 3", "task.started title a 0", "task.completed title a 3",
	}
	if diff := cmp.Diff(wantEvents, events); diff != "" {
		t.Error(diff)
	}
}

// Twins differ by key alone, and keep their own outputs.
func TestTwinsKeepTheirOwnOutputsK65(t *testing.T) {
	w := &worker{do: map[string]doing{
		"one": func(context.Context, process.TaskInput) (process.Answer, error) { return said("first"), nil },
		"two": func(context.Context, process.TaskInput) (process.Answer, error) { return said("second"), nil },
	}}
	if _, err := process.Run(t.Context(), process.Plan{Crew: crewOf("one", "two", "three one"), Runner: w}); err != nil {
		t.Fatal(err)
	}
	want := []process.TaskOutput{{Task: "one", Agent: "a", Text: "first"}, {Task: "two", Agent: "b", Text: "second"}}
	if diff := cmp.Diff(want, w.asked[2].Prior); diff != "" {
		t.Error(diff)
	}
}

func TestOneRuleForFailures(t *testing.T) {
	errTide := errors.New("the tide is out")
	w := &worker{do: map[string]doing{"b": failing(errTide)}}
	var told []string
	res, err := process.Run(t.Context(), process.Plan{
		Crew: crewOf("a", "b", "c b", "d c a", "e a"), Runner: w,
		Events: event.NewStream("r", time.Now, eventtest.Sink(t), func(e event.Event) {
			if e.Kind == event.TaskFailed || e.Kind == event.TaskSkipped {
				told = append(told, fmt.Sprintf("%s %s %s%s", e.Kind, e.Task, e.Error, e.Reason))
			}
		}),
	})
	var failure *process.CrewError
	if !errors.As(err, &failure) || !errors.Is(err, errTide) || len(failure.Failed) != 1 || len(failure.Skipped) != 2 {
		t.Fatalf("%v", err)
	}
	want := `crew "papers": task "b" failed: the tide is out; task "c" was skipped: task "b", on which it depends, failed; ` +
		`task "d" was skipped: task "c", on which it depends, was skipped`
	if err.Error() != want {
		t.Errorf("%s\nwant %s", err, want)
	}
	if diff := cmp.Diff([]string{"a completed", "b failed", "c skipped", "d skipped", "e completed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	if res.Final != "e done" || res.Tasks[1].Text != "half" || res.Usage.Input != 9 {
		t.Errorf("%+v", res)
	}
	// The output of a failed task is no output.
	if diff := cmp.Diff([]string{"a by a saw []", "b by b saw [a]", "e by a saw [a]"}, w.told()); diff != "" {
		t.Error(diff)
	}
	wantTold := []string{
		"task.failed b the tide is out",
		`task.skipped c task "b", on which it depends, failed`,
		`task.skipped d task "c", on which it depends, was skipped`,
	}
	if diff := cmp.Diff(wantTold, told); diff != "" {
		t.Error(diff)
	}
}

func TestAStoppedRunKeepsWhatIsDone(t *testing.T) {
	errStop := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	w := &worker{do: map[string]doing{"b": func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
		cancel(errStop)
		<-ctx.Done()
		return said("so far"), context.Cause(ctx)
	}}}
	res, err := process.Run(ctx, process.Plan{Crew: crewOf("a", "b", "c b", "d"), Runner: w})
	if !errors.Is(err, errStop) || !strings.Contains(err.Error(), "1 of 4 tasks") {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a completed", "b stopped", "c not_run", "d not_run"}, states(res)); diff != "" {
		t.Error(diff)
	}
	if res.Final != "a done" || res.Tasks[1].Text != "so far" {
		t.Errorf("%+v", res)
	}
}

// The asynchronous task ends only once the task behind it has begun, and what
// depends on it begins only after it.
func TestAsyncTasksRunBeside(t *testing.T) {
	begun := make(chan struct{})
	var after bool
	w := &worker{do: map[string]doing{
		"slow": func(context.Context, process.TaskInput) (process.Answer, error) {
			<-begun
			after = true
			return said("slow done"), nil
		},
		"next": func(context.Context, process.TaskInput) (process.Answer, error) {
			close(begun)
			return said("next done"), nil
		},
		"join": func(context.Context, process.TaskInput) (process.Answer, error) {
			if !after {
				t.Error("it began before what it depends on was done")
			}
			return said("join done"), nil
		},
	}}
	res, err := process.Run(t.Context(), process.Plan{Crew: crewOf("first", "slow&", "next", "more", "join slow", "last", "late&"), Runner: w})
	if err != nil {
		t.Fatal(err)
	}
	if res.Final != "late done" {
		t.Errorf("final %q", res.Final)
	}
	saw := map[string]string{}
	for _, line := range w.told() {
		key, rest, _ := strings.Cut(line, " ")
		_, saw[key], _ = strings.Cut(rest, " saw ")
	}
	want := map[string]string{
		"first": "[]", "slow": "[first]", "next": "[first]", "more": "[first next]", "join": "[first slow next more]",
		"last": "[first slow next more join]", "late": "[first slow next more join last]",
	}
	if diff := cmp.Diff(want, saw); diff != "" {
		t.Error(diff)
	}
}

func TestAsyncTasksFailAndStopLikeOthers(t *testing.T) {
	errTide := errors.New("the tide is out")
	res, err := process.Run(t.Context(), process.Plan{
		Crew:   crewOf("slow&", "two& slow", "three two", "four"),
		Runner: &worker{do: map[string]doing{"slow": failing(errTide)}},
	})
	if !errors.Is(err, errTide) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"slow failed", "two skipped", "three skipped", "four completed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		res, err := process.Run(ctx, process.Plan{
			Crew: crewOf("slow&", "two& slow", "three two", "four"),
			Runner: &worker{do: map[string]doing{"slow": func(ctx context.Context, _ process.TaskInput) (process.Answer, error) {
				<-ctx.Done()
				return process.Answer{}, ctx.Err()
			}}},
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"slow stopped", "two not_run", "three not_run", "four not_run"}, states(res)); diff != "" {
			t.Error(diff)
		}
	})
}

// A run that is stopped says how far it has come, and why where that is said.
func TestStoppedText(t *testing.T) {
	for want, cause := range map[string]error{
		`running crew "Crew": stopped with 0 of 1 tasks completed`:              nil,
		`running crew "Crew": stopped with 0 of 1 tasks completed: it is night`: errors.New("it is night"),
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		c := crewOf("a")
		c.Name.V = "Crew"
		_, err := process.Run(ctx, process.Plan{Crew: c, Runner: &worker{do: map[string]doing{"a": func(context.Context, process.TaskInput) (process.Answer, error) {
			cancel(cause)
			return process.Answer{}, context.Cause(ctx)
		}}}})
		if err == nil || err.Error() != want || !errors.Is(err, context.Cause(ctx)) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestPlansThatCannotRun(t *testing.T) {
	w := &worker{}
	anarchic := crewOf("a")
	anarchic.Process = "anarchic"
	for _, tt := range []struct {
		plan process.Plan
		want string
	}{
		{process.Plan{Runner: w}, "no crew"},
		{process.Plan{Crew: crewOf("a")}, "no runner"},
		{process.Plan{Crew: crewOf("a b", "b a"), Runner: w}, "cycle"},
		{process.Plan{Crew: anarchic, Runner: w}, `there is no process "anarchic"`},
	} {
		if _, err := process.Run(t.Context(), tt.plan); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	_, err := process.Run(t.Context(), process.Plan{Crew: crewOf("a@nobody"), Runner: w})
	if err == nil || !strings.Contains(err.Error(), `"nobody" is none of the crew`) || len(w.asked) != 0 {
		t.Error(err)
	}
}

// files keeps deliverables in memory.
type files struct {
	held  map[string]string
	times map[string]time.Time
	err   error
}

func (f *files) Deliver(_ context.Context, path string, content []byte) error {
	if f.err != nil {
		return f.err
	}
	f.held[path] = string(content)
	return nil
}

func (f *files) Stamp(_ context.Context, path string) (process.Stamp, error) {
	content, ok := f.held[path]
	if !ok {
		return process.Stamp{}, f.err
	}
	return process.Stamp{Modified: f.times[path], Size: int64(len(content))}, f.err
}

func TestDeliverables(t *testing.T) {
	const schema = `{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}`
	for _, tt := range []struct {
		name   string
		what   crew.Deliverable
		answer string
		want   string // of the file; empty: an error with err
		err    string
	}{
		{"answer", crew.Deliverable{Source: "final_message", Format: "markdown", Sanitize: true}, "Here it is:\n\n# Tides\n<|im_end|>", "# Tides\n", ""},
		{"answer as it is", crew.Deliverable{Source: "final_message", Format: "markdown"}, "Here:\n# T", "Here:\n# T", ""},
		{"structured", crew.Deliverable{Source: "structured_output", SchemaInline: text(schema)},
			"Sure: {\"no\":1}\n```json\n{\"id\": 725653563933458433}\n```", "{\"id\": 725653563933458433}\n", ""},
		{"structured by a file", crew.Deliverable{Source: "structured_output", SchemaPath: text("s.json")}, `{"id":1}`, "{\"id\":1}\n", ""},
		{"structured without a schema", crew.Deliverable{Source: "structured_output"}, `[1]`, "[1]\n", ""},
		{"structured against its schema", crew.Deliverable{Source: "structured_output", SchemaInline: text(schema)}, `{"id":"x"}`, "", `want integer`},
		{"no JSON", crew.Deliverable{Source: "structured_output", SchemaInline: text(schema)}, `sorry`, "", "holds no JSON"},
		{"no schema", crew.Deliverable{Source: "structured_output", SchemaInline: text(`{"type":3}`)}, `{}`, "", "no JSON Schema"},
		{"no schema file", crew.Deliverable{Source: "structured_output", SchemaPath: text("gone.json")}, `{}`, "", "gone.json"},
		{"a tool was to write", crew.Deliverable{Source: "tool_call"}, "I wrote it", "", "is not there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := crewOf("a")
			tt.what.Path = text("/out/f")
			c.Tasks[0].Deliverable = &tt.what
			kept := &files{held: map[string]string{}}
			w := &worker{do: map[string]doing{"a": func(context.Context, process.TaskInput) (process.Answer, error) {
				return said(tt.answer), nil
			}}}
			res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Deliverer: kept,
				Schema: func(_ context.Context, path string) ([]byte, error) {
					if path != "s.json" {
						return nil, fs.ErrNotExist
					}
					return []byte(schema), nil
				}})
			if tt.want == "" {
				var bad *process.DeliverableError
				if !errors.As(err, &bad) || bad.Path != "/out/f" || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				if len(kept.held) != 0 || res.Tasks[0].State != process.Failed {
					t.Errorf("%v, %+v", kept.held, res.Tasks[0])
				}
				return
			}
			if err != nil || kept.held["/out/f"] != tt.want || res.Tasks[0].File != "/out/f" {
				t.Errorf("%q, %v, want %q", kept.held["/out/f"], err, tt.want)
			}
			// Of a structured answer, others see what is in the file.
			if seen := strings.TrimSpace(tt.want); tt.what.Source == "structured_output" && res.Final != seen {
				t.Errorf("others see %q, want %q", res.Final, seen)
			}
		})
	}
}

func TestADeliverableThatCannotBeWrittenFailsItsTask(t *testing.T) {
	errFull := errors.New("disk full")
	for _, source := range []string{"final_message", "structured_output", "tool_call"} {
		c := crewOf("a", "b a")
		c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: source}
		w := &worker{do: map[string]doing{"a": func(context.Context, process.TaskInput) (process.Answer, error) { return said("{}"), nil }}}
		res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Deliverer: &files{err: errFull}})
		if !errors.Is(err, errFull) || res.Tasks[0].State != process.Failed || res.Tasks[1].State != process.Skipped {
			t.Errorf("%s: %v", source, err)
		}
	}
	c := crewOf("a")
	c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "final_message"}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: &worker{}}); err == nil || !strings.Contains(err.Error(), "keeps no files") {
		t.Error(err)
	}
	c.Tasks[0].Deliverable.Source = "none"
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: &worker{}}); err != nil {
		t.Errorf("none: %v", err)
	}
}

// While the agent can still mend it, it hears what is wrong with its answer.
func TestAnswersAreJudgedWhileTheyCanBeMended(t *testing.T) {
	kept := &files{held: map[string]string{}}
	c := crewOf("json", "file", "text")
	c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/j"), Source: "structured_output", SchemaInline: text(`{"type":"object"}`)}
	c.Tasks[1].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "tool_call"}
	c.Tasks[2].Deliverable = &crew.Deliverable{Path: text("/out/t"), Source: "final_message"}
	w := &worker{do: map[string]doing{
		"json": func(ctx context.Context, in process.TaskInput) (process.Answer, error) {
			if err := in.Accept(ctx, "[]"); err == nil || !strings.Contains(err.Error(), "does not hold to its schema") {
				t.Error(err)
			}
			if string(in.Schema) != `{"type":"object"}` {
				t.Errorf("schema %s", in.Schema)
			}
			return said("{}"), in.Accept(ctx, "{}")
		},
		"file": func(ctx context.Context, in process.TaskInput) (process.Answer, error) {
			if err := in.Accept(ctx, "done"); err == nil || !strings.Contains(err.Error(), "/out/f") {
				t.Error(err)
			}
			kept.held["/out/f"] = "by a tool"
			return said("done"), in.Accept(ctx, "done")
		},
		"text": func(_ context.Context, in process.TaskInput) (process.Answer, error) {
			if in.Accept != nil {
				t.Error("any text is an answer")
			}
			return said("done"), nil
		},
	}}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Deliverer: kept}); err != nil {
		t.Error(err)
	}
}

// A file that an earlier run left is not what this task wrote.
func TestAFileFromAnEarlierRunIsNoDeliverable(t *testing.T) {
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	for name, touch := range map[string]bool{"written anew": true, "left alone": false} {
		t.Run(name, func(t *testing.T) {
			kept := &files{held: map[string]string{"/out/f": "page"}, times: map[string]time.Time{"/out/f": early}}
			c := crewOf("a")
			c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "tool_call"}
			w := &worker{do: map[string]doing{"a": func(ctx context.Context, in process.TaskInput) (process.Answer, error) {
				if touch {
					kept.times["/out/f"] = late // the same words, written again
				}
				return said("done"), in.Accept(ctx, "done")
			}}}
			_, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: w, Deliverer: kept})
			if touch != (err == nil) || err != nil && !strings.Contains(err.Error(), "was there before") {
				t.Error(err)
			}
		})
	}
}
