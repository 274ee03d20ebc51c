package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/crew"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// hierarchy is a crew with a manager and the workers a and b.
func hierarchy(specs ...string) *crew.Crew {
	c := crewOf(specs...)
	c.Process, c.ManagerAgent = crew.Hierarchical, text("boss")
	c.Agents = append([]*crew.Agent{{Key: "boss", Role: text("Head of papers"), Goal: text("Papers without faults")}}, c.Agents...)
	c.Agents[1].Role, c.Agents[1].Goal = text("Archivist"), text("Find sources")
	c.Agents[2].Tools = []crew.Text{text("file_read"), text("search")}
	return c
}

const (
	toA, toB = `{"agent_id":"a","reason":"knows  archives"}`, `Sure! {"agent_id": "b", "reason": "can read"} Good luck.`
	fine     = `{"approved":true,"feedback":""}`
	notFine  = `{"approved":false,"feedback":"Name\nthe year."}`
)

// The manager chooses, reviews, and its feedback reaches whoever does the task
// anew (K65: and nobody else).
func TestHierarchicalAssignsReviewsAndTellsWhatIsWrong(t *testing.T) {
	d := &diary{says: map[string][]string{
		"assign find": {toA}, "assign write": {toB},
		"review find": {fine}, "review write": {notFine, fine},
	}}
	res, err := process.Run(t.Context(), process.Plan{Crew: hierarchy("find", "write find"), Runner: d, Questioner: d, Events: d.events()})
	if err != nil {
		t.Fatal(err)
	}
	d.check(t,
		"boss is asked to assign find", "task.assigned find boss 1: a: knows archives",
		"task.started find a 1", "a tries find, 1", "boss is asked to review find",
		"task.reviewed find boss 1:  (true)", "task.completed find a 1 (true)",
		"boss is asked to assign write", "task.assigned write boss 1: b: can read",
		"task.started write b 1", "b tries write, 1", "boss is asked to review write",
		"task.reviewed write boss 1: Name the year. (false)",
		`task.retried write b 1: the manager "boss" turned the result down: Name the year. (false)`,
		"task.started write b 2",
		"b tries write, 2 [Your last result, which was turned down: write 1]"+
			" [What Head of papers, who reviewed it, says: Name the year.  Do the task anew so that this is mended, and answer with the whole result.]",
		"boss is asked to review write", "task.reviewed write boss 2:  (true)", "task.completed write b 2 (true)",
	)
	if diff := cmp.Diff(map[string]llm.Usage{
		"assign": {Input: 200, Output: 20, Measured: true}, "review": {Input: 300, Output: 30, Measured: true},
	}, res.Asked); diff != "" {
		t.Error(diff)
	}
	if res.Usage.Input != 509 || res.Tasks[1].Attempts != 2 || res.Tasks[1].Usage.Input != 6 || res.Tasks[1].Agent != "b" || res.Final != "write 2" {
		t.Errorf("%+v", res)
	}
	if got := seen(d.tasks[1]); got != "find" {
		t.Errorf("it saw %q", got)
	}
}

// What the manager is asked says what it needs to know, and in which form to
// answer.
func TestWhatAManagerIsAsked(t *testing.T) {
	c := hierarchy("find@b")
	c.Tasks[0].Description, c.Tasks[0].ExpectedOutput = text("Find the tide tables."), text("Three sources")
	c.Tasks[0].Context = []crew.Named{{Name: "port", Value: text("Brest")}}
	d := &diary{says: map[string][]string{"assign": {toB}, "review": {fine}}}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d}); err != nil {
		t.Fatal(err)
	}
	assign, review := d.asked[0], d.asked[1]
	if assign.Agent.Key != "boss" || assign.Task != c.Tasks[0] || review.Agent.Key != "boss" || review.Task != c.Tasks[0] {
		t.Errorf("%+v", d.asked)
	}
	for _, want := range []string{"Find the tide tables.", "Three sources", "port: Brest", "## a\n\nRole: Archivist\nGoal: Find sources",
		"## b", "Tools: file_read, search", "meant it for b"} {
		if !strings.Contains(assign.Text, want) {
			t.Errorf("the question lacks %q:\n%s", want, assign.Text)
		}
	}
	if strings.Contains(assign.Text, "## boss") || !strings.Contains(string(assign.Schema), `"enum":["a","b"]`) {
		t.Errorf("the manager can choose itself: %s", assign.Schema)
	}
	for _, want := range []string{"Find the tide tables.", "Three sources", "\n> find 1\n"} {
		if !strings.Contains(review.Text, want) {
			t.Errorf("the question lacks %q:\n%s", want, review.Text)
		}
	}
	for _, q := range d.asked {
		var schema jsonschema.Schema
		if err := json.Unmarshal(q.Schema, &schema); err != nil {
			t.Error(err)
		}
		if _, err := schema.Resolve(nil); err != nil {
			t.Error(err)
		}
	}
}

// A review that quotes an approval out of the result approves nothing.
func TestAQuotedApprovalApprovesNothing(t *testing.T) {
	quoting := "The result says " + fine + " of itself. My own judgement: " + notFine
	for name, tt := range map[string]struct {
		second string
		failed bool
	}{
		"and then plainly, no":  {notFine, true},
		"and then plainly, yes": {fine, false},
		"and again":             {quoting, true},
	} {
		d := &diary{says: map[string][]string{"assign": {toA}, "review": {quoting, tt.second}}}
		c := hierarchy("t")
		c.Hierarchical = &crew.HierarchicalConfig{MaxReviews: 1}
		res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d})
		if (err != nil) != tt.failed || len(d.asked) != 3 || !strings.Contains(d.asked[2].Text, "several JSON objects") {
			t.Errorf("%s: %v %v, asked %d times", name, states(res), err, len(d.asked))
		}
	}
}

// An answer that names nobody is asked for once more, with the names; then the
// rule decides, and says so.
func TestHierarchicalWhenTheManagerNamesNobody(t *testing.T) {
	for name, tt := range map[string]struct {
		task    string
		answers []string
		agent   string // who does it
		notice  string
	}{
		"mended":                {"t", []string{`{"agent_id":"nobody"}`, toB}, "b", ""},
		"the first that can be": {"t", []string{`{"agent_id":"boss"} or rather {"agent_id":"b"}`}, "b", ""},
		"in other words":        {"t", []string{"let b do it", "b!"}, "a", `it holds no JSON object; the task goes to "a"`},
		"the task's own":        {"t@b", []string{"?", `{"agent_id":7}`}, "b", `the task goes to "b"`},
		"a list":                {"t", []string{`["a"]`, `{}`}, "a", `agent_id is "", which is none of: a, b; the task goes to "a"`},
		"the task's is it":      {"t@boss", []string{`{"agent_id":"boss"}`, `{"agent_id":"boss"}`}, "a", `agent_id is "boss"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := &diary{says: map[string][]string{"assign": tt.answers, "review": {fine}}}
			res, err := process.Run(t.Context(), process.Plan{Crew: hierarchy(tt.task), Runner: d, Questioner: d, Events: d.events()})
			if err != nil || res.Tasks[0].Agent != tt.agent {
				t.Errorf("%v, %+v", err, res.Tasks)
			}
			told := strings.Join(d.lines, "\n")
			if strings.Contains(told, "notice") != (tt.notice != "") || !strings.Contains(told, tt.notice) {
				t.Errorf("want the notice %q:\n%s", tt.notice, told)
			}
			if n := len(d.asked) - 1; n == 2 && !(strings.Contains(d.asked[1].Text, tt.answers[0]) && strings.HasPrefix(d.asked[1].Text, d.asked[0].Text)) || n > 2 {
				t.Errorf("%d questions, the second: %s", n, d.asked[1].Text)
			}
		})
	}
}

func TestHierarchicalWithOneWorkerHasNobodyToChoose(t *testing.T) {
	c := hierarchy("t")
	c.Agents = c.Agents[:2]
	d := &diary{says: map[string][]string{"review": {fine}}}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d}); err != nil {
		t.Fatal(err)
	}
	d.check(t, "a tries t, 1", "boss is asked to review t")
}

// What is not approved is never taken: neither what was turned down to the last,
// nor what the manager says nothing readable of.
func TestHierarchicalRejections(t *testing.T) {
	for name, tt := range map[string]struct {
		config  *crew.HierarchicalConfig
		reviews []string
		tries   int
		err     string // empty: it is approved
		notice  bool
	}{
		"three times":    {nil, []string{notFine, notFine, notFine}, 3, `turned the result down: Name`, false},
		"without a word": {&crew.HierarchicalConfig{MaxReviews: 1}, []string{`{"approved":false}`}, 1, "no reason was given", false},
		"a fourth":       {&crew.HierarchicalConfig{MaxReviews: 4}, []string{notFine, notFine, notFine, fine}, 4, "", false},
		"none wanted":    {&crew.HierarchicalConfig{MaxReviews: 0}, nil, 1, "", false},
		"read again":     {nil, []string{"Looks good!", fine}, 1, "", false},
		"read again, no": {nil, []string{"APPROVED", `{"approved":"yes"}`}, 1, `having the manager "boss" review it: agent "boss" gave no answer that can be read (review)`, true},
		"no verdict":     {nil, []string{`{"feedback":"fine"}`, `{"feedback":"fine"}`}, 1, "approved is missing", true},
		"it breaks down": {nil, []string{notFine, "!the model is away"}, 2, `having the manager "boss" review it: the model is away`, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := hierarchy("t@a", "u@a t", "v@a")
			c.Hierarchical = tt.config
			kept := &files{held: map[string]string{}}
			c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/t"), Source: "final_message", Format: "text"}
			d := &diary{says: map[string][]string{"assign": {toA, toA, toA}, "review t": tt.reviews, "review": {fine, fine}}}
			res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d, Deliverer: kept, Events: d.events()})
			if res.Tasks[0].Attempts != tt.tries {
				t.Errorf("%d attempts, want %d", res.Tasks[0].Attempts, tt.tries)
			}
			if tt.err == "" {
				if err != nil || kept.held["/out/t"] == "" {
					t.Errorf("%v, %v", err, kept.held)
				}
				return
			}
			var failure *process.CrewError
			if !errors.As(err, &failure) || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%v, want %q", err, tt.err)
			}
			if diff := cmp.Diff([]string{"t failed", "u skipped", "v completed"}, states(res)); diff != "" {
				t.Error(diff)
			}
			if len(kept.held) != 0 || res.Tasks[0].Text == "" {
				t.Errorf("%v, %+v", kept.held, res.Tasks[0])
			}
			if told := strings.Join(d.lines, "\n"); tt.notice != strings.Contains(told, "does not count as approved") {
				t.Errorf("%s", told)
			}
		})
	}
}

// A manager that can't be asked fails the task, and no more than it.
func TestHierarchicalWhenTheManagersModelFails(t *testing.T) {
	d := &diary{says: map[string][]string{
		"assign t": {"!no such model"}, "assign v": {toB}, "review": {fine},
	}}
	res, err := process.Run(t.Context(), process.Plan{Crew: hierarchy("t", "u t", "v"), Runner: d, Questioner: d, Events: d.events()})
	if err == nil || !strings.Contains(err.Error(), `task "t" failed: having the manager "boss" choose who does it: no such model`) {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"t failed", "u skipped", "v completed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	if want := []string{
		"boss is asked to assign t", "task.started t  1",
		`task.failed t  1: having the manager "boss" choose who does it: no such model (false)`,
	}; !cmp.Equal(want, d.lines[:3]) {
		t.Error(cmp.Diff(want, d.lines[:3]))
	}
	if res.Usage.Input != 303 {
		t.Errorf("what the failed question cost is not counted: %+v", res.Usage)
	}
	// A worker that fails is no matter for a review.
	d = &diary{do: map[string][]doing{"t": {failing(errTide)}}, says: map[string][]string{"assign": {toA}}}
	if _, err := process.Run(t.Context(), process.Plan{Crew: hierarchy("t"), Runner: d, Questioner: d}); !errors.Is(err, errTide) {
		t.Error(err)
	}
	d.check(t, "boss is asked to assign t", "a tries t, 1")
}

// A result that was turned down leaves no file that would do for the next one,
// and the manager knows of files that it does not see.
func TestEachAttemptWritesItsOwnFile(t *testing.T) {
	for name, anew := range map[string]bool{"written anew": true, "left as it was": false} {
		kept := &files{held: map[string]string{}, times: map[string]time.Time{}}
		write := func(content string) doing {
			return func(ctx context.Context, in process.TaskInput) (process.Answer, error) {
				if in.Attempt == 1 || anew {
					kept.held["/out/t"] = content
				}
				return said("I wrote it"), in.Accept(ctx, "I wrote it")
			}
		}
		c := hierarchy("t")
		c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/t"), Source: "tool_call"}
		d := &diary{
			do:   map[string][]doing{"t": {write("a page"), write("a better page")}},
			says: map[string][]string{"assign": {toA}, "review": {notFine, fine}},
		}
		_, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: d, Questioner: d, Deliverer: kept})
		if anew != (err == nil) || err != nil && !strings.Contains(err.Error(), "was there before") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(d.asked[1].Text, "write the file /out/t with a tool, and has done so") {
			t.Error(d.asked[1].Text)
		}
	}
}

// However a run is stopped, what was done is there, what was not says so, and
// nothing runs on (goleak sees to that).
func TestStoppedAtAnyPoint(t *testing.T) {
	errStop := errors.New("interrupted")
	for _, p := range []crew.Process{crew.Sequential, crew.Parallel, crew.Graph, crew.Hierarchical} {
		for stop := range 20 {
			c := hierarchy("a", "b a", "c", "d c b")
			if c.Process = p; p != crew.Hierarchical {
				c.ManagerAgent = crew.Text{}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			at := &stopper{after: stop, stop: func() { cancel(errStop) }}
			res, err := process.Run(ctx, process.Plan{Crew: c, Runner: at, Questioner: at})
			cancel(nil)
			if at.calls <= stop { // it was through before
				if err != nil {
					t.Errorf("%s, %d: %v", p, stop, err)
				}
				break
			}
			var failure *process.CrewError
			if !errors.Is(err, errStop) || errors.As(err, &failure) {
				t.Errorf("%s, %d: %v", p, stop, err)
			}
			for _, r := range res.Tasks {
				switch r.State {
				case process.Completed:
				case process.Stopped:
					if !errors.Is(r.Err, errStop) {
						t.Errorf("%s, %d: %+v", p, stop, r)
					}
				case process.NotRun:
					if r.Attempts != 0 || r.Err != nil {
						t.Errorf("%s, %d: %+v", p, stop, r)
					}
				default:
					t.Errorf("%s, %d: %s is %s", p, stop, r.Task, r.State)
				}
			}
		}
	}
}
