package runner_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/runner/llm"
)

// slowModel answers in a time, as vendors do: it writes a file, then is done.
type slowModel struct{ takes time.Duration }

func (m slowModel) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	select {
	case <-time.After(m.takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	res := &llm.Response{Message: llm.Message{Role: llm.RoleAssistant}, Stop: llm.StopEnd, Usage: llm.Usage{Input: 1000, Output: 100, Measured: true}}
	if req.Messages[len(req.Messages)-1].Role == llm.RoleTool {
		res.Message.Parts = []llm.Part{{Text: "done"}}
		return res, nil
	}
	res.Stop = llm.StopTools
	res.Message.Calls = []llm.ToolCall{{ID: "1", Name: "file_write", Arguments: `{"path":"/out/x.txt","content":"x","append":true}`}}
	return res, nil
}

// BenchmarkJournal is a run of ten tasks, of two turns and a call that may be made once
// each, whose model answers in 50 ms, with a journal and without. What a journal costs
// may be a twentieth of the run: "overhead-%" is how much it is.
func BenchmarkJournal(b *testing.B) {
	took := map[bool]time.Duration{}
	for b.Loop() {
		for _, on := range []bool{false, true} {
			began := time.Now()
			runOf(b, on, 50*time.Millisecond)
			took[on] += time.Since(began)
		}
	}
	b.ReportMetric(100*float64(took[true]-took[false])/float64(took[false]), "overhead-%")
}

func runOf(b *testing.B, on bool, takes time.Duration) {
	b.Helper()
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "out"), 0o755); err != nil {
		b.Fatal(err)
	}
	text := "name: Ten\ngoal: Write\nagents:\n  a: {role: A, goal: Write, tools: [file_write]}\ntasks:\n"
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		text += "  " + key + ": {agent: a, description: Write it, expectedOutput: A word.}\n"
	}
	path := filepath.Join(dir, "crew.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	settings, err := config.Load(config.Source{CrewDir: dir, UserStateDir: filepath.Join(dir, "state")})
	if err != nil {
		b.Fatal(err)
	}
	settings.Permissions.Default, settings.Journal.Enabled = "allow", on
	h, err := runner.Open(b.Context(), runner.Config{
		Settings: settings, Mounts: []string{"out:/out:rw"}, Dir: dir,
		Models: func(context.Context, config.Profile, runner.Credentials) (llm.Model, error) {
			return slowModel{takes}, nil
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	c, err := crew.Load(path)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := h.Run(b.Context(), c, nil); err != nil {
		b.Fatal(err)
	}
}
