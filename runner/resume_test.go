package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp/mcptest"
	"crewhost/runner"
	"crewhost/runner/journal"
	"crewhost/runner/llm"
	"crewhost/tools/permission"
)

// errPower is what ends a life of a run in these tests.
var errPower = errors.New("the power is gone")

// cutAt writes the first lines of a journal, then none.
func cutAt(lines int64) func(*os.File, []byte) error {
	var n atomic.Int64
	return func(f *os.File, line []byte) error {
		if n.Add(1) > lines {
			return errPower
		}
		_, err := f.Write(line)
		return err
	}
}

// mortal is a crew in a folder of its own, of which each life is a host of its own.
type mortal struct {
	t     *testing.T
	ctx   context.Context //nolint:containedctx // of its next life
	dir   string
	state string
	// change changes the settings of a life, or of all.
	change func(*runner.Config)
	accept bool // what has changed
}

// mortalOf copies the crew of a folder.
func mortalOf(t *testing.T, dir string) *mortal {
	t.Helper()
	m := &mortal{t: t, ctx: t.Context(), dir: filepath.Join(t.TempDir(), filepath.Base(dir)), state: t.TempDir()}
	if err := os.CopyFS(m.dir, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"out", "memory"} { // by somebody's own run
		if err := os.RemoveAll(filepath.Join(m.dir, left)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *mortal) runs() string { return filepath.Join(m.state, "crewhost", "runs") }

// live is one life of the run: the first one, or the next of what there is. Of its
// journal so many lines are written; -1 is all.
func (m *mortal) live(lines int64, change ...func(*runner.Config)) (*runner.Output, error) {
	m.t.Helper()
	settings, err := config.Load(config.Source{CrewDir: m.dir, UserStateDir: m.state})
	if err != nil {
		m.t.Fatal(err)
	}
	c, loadErr := crew.Load(m.dir)
	cfg := runner.Config{
		Settings: settings, Asker: yes{}, Crews: []*crew.Crew{c}, Environ: []string{"PATH=" + os.Getenv("PATH")},
		Approver: approverFunc(func(permission.Request) permission.Answer { return permission.Answer{Allow: true} }),
	}
	if lines >= 0 {
		cfg.WriteJournal = cutAt(lines)
	}
	if m.change != nil {
		m.change(&cfg)
	}
	for _, f := range change {
		f(&cfg)
	}
	host, err := runner.Open(m.t.Context(), cfg)
	if err != nil {
		m.t.Fatal(err)
	}
	defer func() {
		if err := host.Close(); err != nil {
			m.t.Error(err)
		}
	}()
	if v := host.Judge(c, loadErr, nil); len(v.Issues) > 0 {
		m.t.Fatal(v.Issues)
	}
	known, err := journal.List(m.runs())
	if err != nil {
		m.t.Fatal(err)
	}
	if len(known) == 0 {
		return host.Run(m.ctx, c, nil)
	}
	log, err := journal.Open(journal.Config{Dir: m.runs(), Write: cfg.WriteJournal}, known[0].ID)
	if err != nil {
		m.t.Fatal(err)
	}
	return host.Resume(m.ctx, runner.Life{Log: log, AcceptChanges: m.accept}, c, nil)
}

// accountOf is what is to be the same, however many lives a run had.
func accountOf(out *runner.Output, err error) []string {
	all := []string{fmt.Sprintf("failure: %v", err)}
	if out == nil {
		return all
	}
	for _, t := range out.Tasks {
		all = append(all, fmt.Sprintf("%s %s %q, %d attempts, %d turns, %d calls, %+v, %s", t.Task, t.State, t.Text, t.Attempts, t.Turns, t.ToolCalls, t.Usage, t.File))
	}
	return append(all, fmt.Sprintf("final: %s", out.Final), fmt.Sprintf("usage: %+v", out.Usage), fmt.Sprintf("asked: %+v", out.Asked), fmt.Sprintf("cost: %+v", out.Cost))
}

// A run of any process that is cut short, and cut short again, comes out as one that
// went through: its outputs, its tokens and its costs are the same.
func TestEveryProcessIsResumed(t *testing.T) {
	mcptest.WithNotes(t)
	for _, name := range []string{
		"code-review",           // hierarchical
		"financial-reports",     // parallel
		"incident-triage",       // autonomous
		"release-notes",         // graph
		"translation-consensus", // consensual
		"codebase-docs",         // coworkers
		"handbook-answers",      // documents
		"regular-guests",        // a memory
		"contract-review",       // sequential
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("..", "testdata", "crews", name)
			// A tape answers each question once, and a host that died has asked some: what
			// the first run asks is recorded, and answered by what is asked alone.
			var recorded recordings
			whole := mortalOf(t, dir)
			want := accountOf(whole.live(-1, func(c *runner.Config) { c.Models = recorded.record }))
			runs, err := journal.List(whole.runs())
			if err != nil || len(runs) != 1 {
				t.Fatal(runs, err)
			}
			data, err := os.ReadFile(runs[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			lines := int64(strings.Count(string(data), "\n"))
			for at := int64(1); at < lines; at += max(1, lines/8) {
				m := mortalOf(t, dir)
				if name != "regular-guests" { // what is remembered says when that was, to the minute
					m.change = func(c *runner.Config) { c.Models = recorded.again }
				}
				if _, err := m.live(at); !errors.Is(err, errPower) {
					t.Fatalf("after line %d of %d the run went on: %v", at, lines, err)
				}
				if at+3 < lines {
					if _, err := m.live(3); err != nil && !errors.Is(err, errPower) {
						t.Errorf("cut short after line %d of %d: the second life: %v", at, lines, err)
						continue
					}
				}
				if state, _ := journal.List(m.runs()); state[0].State == journal.Completed {
					continue // three lines were enough
				}
				if diff := cmp.Diff(want, accountOf(m.live(-1))); diff != "" {
					t.Errorf("cut short after line %d of %d:\n%s", at, lines, diff)
				}
			}
		})
	}
}

// What a run depends on beside its crew file is compared, too: a run whose files have
// changed is not resumed unasked, and stays free for who asks again.
func TestChangedFilesAreShown(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"crewhost.yaml": "llm: {provider: openai, model: plain}\n",
		"crew.yaml": `
name: Harbour
goal: Answer ships
agents: { clerk: { goal: Answer, knowledge: [guides] } }
tasks:
  answer:
    description: Answer the ship.
    expectedOutput: An hour
    agent: clerk
    deliverable: { path: /out/hour.json, source: structured_output, schemaPath: hour.json }
rag: { collections: { guides: { sources: [docs] } } }
`,
		"hour.json":       `{"type":"object","required":["hour"],"properties":{"hour":{"type":"integer"}}}`,
		"docs/harbour.md": "Ships may enter two hours before high tide.\n",
		"out/.keep":       "",
	} {
		put(t, filepath.Join(dir, name), text)
	}
	m := mortalOf(t, dir)
	put(t, filepath.Join(m.dir, "out", ".keep"), "")
	m.change = func(c *runner.Config) {
		with(modelFunc(func(llm.Request) *llm.Response { return answer(`{"hour":2}`) }))(c)
		c.Mounts, c.Dir = []string{"out:/out:rw"}, m.dir
	}
	if _, err := m.live(2); !errors.Is(err, errPower) {
		t.Fatal(err)
	}
	put(t, filepath.Join(m.dir, "hour.json"), `{"type":"object","required":["hour"],"properties":{"hour":{"type":"number"}}}`)
	put(t, filepath.Join(m.dir, "docs", "harbour.md"), "Ships may enter an hour before high tide.\n")
	put(t, filepath.Join(m.dir, "docs", "new.md"), "Ships may leave at any time.\n")
	var changed *runner.ChangedError
	_, err := m.live(-1)
	want := []string{`the document "docs/harbour.md" has changed`, `the document "docs/new.md" is new`, `the schema "hour.json" has changed`}
	if !errors.As(err, &changed) || !cmp.Equal(changed.Changes, want) {
		t.Fatalf("%v", err)
	}
	if out, err := m.live(-1, func(*runner.Config) { m.accept = true }); err != nil || out.Final != `{"hour":2}` {
		t.Errorf("%v, %+v", err, out)
	}
}

// Answers that are known ask nobody, and wait for no maxRpm.
func TestWhatIsKnownDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "crewhost.yaml"), "llm: {provider: openai, model: plain}\n")
	put(t, filepath.Join(dir, "crew.yaml"), `
name: Slow
goal: Take turns
maxRpm: 1
agents: { one: { goal: Answer } }
tasks:
  first: { description: Say one., expectedOutput: A word, agent: one }
  second: { description: Say two., expectedOutput: A word, agent: one }
`)
	m := mortalOf(t, dir)
	m.change = with(modelFunc(func(req llm.Request) *llm.Response { return answer(req.Messages[0].Text()) }))
	const firstEnds = 6 // after the header, the clock and the turn of the first task
	if _, err := m.live(firstEnds - 1); !errors.Is(err, errPower) {
		t.Fatal(err)
	}
	if out, err := m.live(-1); err != nil || out.Took > 30*time.Second {
		t.Errorf("%v: it took %v", err, out.Took)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const ledgerCrew = `
name: Ledger
goal: Keep the books
agents: { clerk: { goal: Write, tools: [file_write] } }
tasks:
  first: { description: Write one., expectedOutput: A word, agent: clerk }
  second: { description: Write two., expectedOutput: A word, agent: clerk }
`

// ledger is a crew that adds a line to a file in each of two tasks: calls that may be
// made once.
func ledger(t *testing.T) *mortal {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "crewhost.yaml"), "llm: {provider: openai, model: plain}\npermissions: {default: allow}\n")
	put(t, filepath.Join(dir, "crew.yaml"), ledgerCrew)
	m := mortalOf(t, dir)
	put(t, m.book(), "")
	m.change = func(c *runner.Config) {
		with(modelFunc(func(req llm.Request) *llm.Response {
			if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
				return answer("written")
			}
			return calls(llm.ToolCall{ID: "1", Name: "file_write", Arguments: `{"path":"/books/book.txt","content":"a line\n","append":true}`})
		}))(c)
		c.Mounts, c.Dir = []string{"books:/books:rw"}, m.dir
	}
	return m
}

func (m *mortal) book() string { return filepath.Join(m.dir, "books", "book.txt") }

// written is how often the file was written to.
func (m *mortal) written() int {
	m.t.Helper()
	data, err := os.ReadFile(m.book())
	if err != nil {
		m.t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// A call of which nobody knows whether it was made is asked about: a person looks, and
// says so. Wherever the run was cut short, each call is made once.
func TestAnUnknownCallIsAskedAbout(t *testing.T) {
	asked, refused := 0, 0
	for at := int64(1); ; at++ {
		m := ledger(t)
		_, err := m.live(at)
		if err == nil {
			break // there are no more lines
		}
		made := m.written()
		person := approverFunc(func(r permission.Request) permission.Answer {
			asked++
			if r.Tool != "file_write" || !strings.Contains(string(r.Arguments), "book.txt") {
				t.Errorf("asked about %+v", r)
			}
			return permission.Answer{} // it was made
		})
		out, err := m.live(-1, func(c *runner.Config) { c.Approver = person })
		switch {
		case err == nil && out.Final == "written" && m.written() == 2:
		case err != nil && strings.Contains(err.Error(), "a person said not to call it again") && m.written() == made:
			refused++
		default:
			t.Errorf("cut short after line %d: %v, %d lines", at, err, m.written())
		}
	}
	if asked != 2 || refused != 2 {
		t.Errorf("asked %d times, refused %d times", asked, refused)
	}
}

// A run that is interrupted says so, and goes on where it was.
func TestAnInterruptedRunIsResumed(t *testing.T) {
	m := ledger(t)
	ctx, interrupt := context.WithCancel(t.Context())
	m.ctx = ctx
	_, err := m.live(-1, func(c *runner.Config) {
		model := c.Models
		c.Models = func(ctx context.Context, p config.Profile, k runner.Credentials) (llm.Model, error) {
			inner, err := model(ctx, p, k)
			return interrupted{inner, interrupt, "two"}, err
		}
	})
	runs, _ := journal.List(m.runs())
	if err == nil || len(runs) != 1 || runs[0].State != journal.Interrupted || m.written() != 1 {
		t.Fatalf("%v, %+v", err, runs)
	}
	m.ctx = t.Context()
	if out, err := m.live(-1); err != nil || out.Final != "written" || m.written() != 2 {
		t.Errorf("%v, %+v, %d lines", err, out, m.written())
	}
}

// interrupted is a model that is asked about a word when somebody interrupts the run.
type interrupted struct {
	llm.Model
	interrupt func()
	word      string
}

func (m interrupted) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	if strings.Contains(req.Messages[0].Text(), m.word) {
		m.interrupt()
		return nil, context.Cause(ctx)
	}
	return m.Model.Generate(ctx, req)
}
