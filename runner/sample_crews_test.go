package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp/mcptest"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/runner/llm/replay"
	"crewhost/tools/builtin/people"
)

// TestSampleCrewsReplayStrictly records each crew of testdata/crews while it runs on
// its tape, and runs it once more on what was recorded: there each record answers
// the request that is equal to it in every field, and no other. So a run asks the
// same to the last byte each time, whatever runs beside whatever.
func TestSampleCrewsReplayStrictly(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join("..", "testdata", "crews", "*", "tape.jsonl"))
	if err != nil || len(dirs) == 0 {
		t.Fatal(len(dirs), err)
	}
	mcptest.WithNotes(t)
	for _, tape := range dirs {
		dir := filepath.Dir(tape)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			if c, err := crew.Load(dir); err == nil && c.Memory {
				t.Skip("what is remembered says when that was, to the minute")
			}
			var recorded recordings
			first, failure := runSample(t, dir, recorded.record)
			again, failure2 := runSample(t, dir, recorded.replay)
			if diff := cmp.Diff(failure, failure2); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(first, again); diff != "" {
				t.Error(diff)
			}
			for _, tape := range recorded.replayed {
				for _, r := range tape.Unused() {
					t.Errorf("nothing asked what was recorded in line %d: %+v", r.Line, r.Request)
				}
			}
		})
	}
}

// recordings are the tapes of the profiles of one run.
type recordings struct {
	mu       sync.Mutex
	tapes    map[string]*bytes.Buffer // by the tape of the profile
	replayed []*replay.Tape
}

func (r *recordings) record(_ context.Context, p config.Profile, _ runner.Credentials) (llm.Model, error) {
	tape, err := replay.Open(p.Tape)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tapes == nil {
		r.tapes = map[string]*bytes.Buffer{}
	}
	written := &bytes.Buffer{}
	r.tapes[filepath.Base(p.Tape)] = written
	return replay.NewRecorder(tape, written), nil
}

func (r *recordings) replay(ctx context.Context, p config.Profile, c runner.Credentials) (llm.Model, error) {
	model, err := r.again(ctx, p, c)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.replayed = append(r.replayed, model.(*replay.Tape))
	}
	return model, err
}

// again is what was recorded, once more.
func (r *recordings) again(_ context.Context, p config.Profile, _ runner.Credentials) (llm.Model, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := filepath.Base(p.Tape)
	return replay.Read(bytes.NewReader(r.tapes[name].Bytes()), name)
}

// yes is a person who agrees to everything.
type yes struct{}

func (yes) Ask(context.Context, people.Question) (people.Answer, error) {
	return people.Answer{Text: "yes"}, nil
}

// runSample runs a crew in a copy of its folder. It returns the output of each
// task, and why the run failed.
func runSample(t *testing.T, dir string, models func(context.Context, config.Profile, runner.Credentials) (llm.Model, error)) (outputs []string, failure string) {
	t.Helper()
	place := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(place, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{"out", "memory"} { // by somebody's own run
		if err := os.RemoveAll(filepath.Join(place, left)); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := config.Load(config.Source{CrewDir: place})
	if err != nil {
		t.Fatal(err)
	}
	c, loadErr := crew.Load(place)
	host, err := runner.Open(t.Context(), runner.Config{
		Settings: settings, Models: models, Asker: yes{}, Crews: []*crew.Crew{c}, Environ: []string{"PATH=" + os.Getenv("PATH")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	err = loadErr
	if v := host.Judge(c, err, nil); len(v.Issues) > 0 {
		t.Fatal(v.Issues)
	}
	out, err := host.Run(t.Context(), c, nil)
	if err != nil {
		failure = err.Error()
	}
	for _, task := range out.Tasks {
		outputs = append(outputs, fmt.Sprintf("%s %s %s", task.Task, task.State, task.Text))
	}
	return outputs, failure
}
