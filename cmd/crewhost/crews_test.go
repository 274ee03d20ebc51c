package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/runner/event/eventtest"
)

var update = flag.Bool("update", false, "write what the crews of testdata/crews leave")

const crewsDir = "../../testdata/crews"

// TestCrews runs every crew of testdata/crews on its tape as its want.txtar says,
// in a copy of its folder: it is valid, it leaves what stands there to the last
// byte, and its events are as the schema says. To write a want.txtar anew:
//
//	go test ./cmd/crewhost -run TestCrews -update
//
// A new crew needs a want.txtar with no more than the lines before the first file:
// the command line, what a person answers, and the exit code. The runs are not
// parallel: the library that reads the flags writes to variables of its own.
func TestCrews(t *testing.T) {
	for _, name := range crewNames(t) {
		t.Run(name, func(t *testing.T) {
			s := readSample(t, name)
			s.checkTapes(t)
			warnings, text, events := s.judge(t), s.run(t), s.watch(t)
			s.otherwise(t)
			got := s.archive(t, warnings, text, events)
			file := filepath.Join(crewsDir, name, "want.txtar")
			if *update {
				if err := os.WriteFile(file, txtar.Format(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(txtar.Format(s.want)), string(txtar.Format(got))); diff != "" && !*update {
				t.Errorf("%s (-want +got):\n%s\nstderr:\n%s", file, diff, text.stderr)
			}
		})
	}
}

// Every crew is in the README's table.
func TestReadmeNamesEveryCrew(t *testing.T) {
	text := readme(t)
	for _, name := range crewNames(t) {
		if !strings.Contains(text, "(testdata/crews/"+name+")") {
			t.Errorf("the README does not name testdata/crews/%s", name)
		}
	}
}

func crewNames(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(crewsDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// sample is a crew of testdata/crews and how it is run.
type sample struct {
	name  string
	flags []string // of the run
	says  []string // what a person answers where a program watches
	exit  int
	why   string // what stderr says of a run that fails
	want  *txtar.Archive
	// variants are further runs, whose outcome is their exit code and why. What of
	// the tape answers them alone has a note that begins with otherwise.
	variants []*sample
}

// otherwise is how the note of a record begins that the first run does not use.
const otherwise = "otherwise: "

// readSample reads the lines before the first file of a want.txtar:
//
//	$ crewhost run testdata/crews/robo-adviser --approve allow
//	> yes
//	exit 0
//
// Further command lines are of variants. What stderr must say may stand after the
// exit code.
func readSample(t *testing.T, name string) *sample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(crewsDir, name, "want.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	s := &sample{name: name, want: txtar.Parse(data)}
	var run *sample
	for line := range strings.Lines(string(s.want.Comment)) {
		line = strings.TrimSpace(line)
		answer, answers := strings.CutPrefix(line, "> ")
		flags, begins := strings.CutPrefix(line, "$ crewhost run testdata/crews/"+name)
		exit, exits := strings.CutPrefix(line, "exit ")
		switch {
		case begins && run == nil:
			run = s
			run.flags = strings.Fields(flags)
		case begins:
			run = &sample{name: name, flags: strings.Fields(flags)}
			s.variants = append(s.variants, run)
		case run == nil:
			t.Fatal("want.txtar does not begin with a command line")
		case answers:
			run.says = append(run.says, answer)
		case exits:
			code, why, _ := strings.Cut(exit, " ")
			if run.exit, err = strconv.Atoi(code); err != nil {
				t.Fatalf("want.txtar: %q: %v", line, err)
			}
			run.why = why
		default:
			t.Fatalf("want.txtar: %q is no command line, no answer and no exit code", line)
		}
	}
	if run == nil {
		t.Fatal("want.txtar: no command line")
	}
	return s
}

// outcome is what a run left.
type outcome struct {
	stdout, stderr string
	dir            string // the copy of the crew's folder that it ran in
	office         *office
}

// start runs a command line on the crew, in a copy of its folder.
func (s *sample) start(t *testing.T, exit int, in io.Reader, out io.Writer, flags ...string) outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(crewsDir, s.name))); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "out")); err != nil { // which somebody's own run has left
		t.Fatal(err)
	}
	web := serveWeb(t, dir)
	var stdout, stderr bytes.Buffer
	c := &console{
		in: in, out: io.MultiWriter(&stdout, out), err: &stderr, redactor: &secret.Redactor{},
		environ: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")},
	}
	c.claim = func() (io.WriteCloser, error) {
		return struct {
			io.Writer
			io.Closer
		}{c.out, io.NopCloser(nil)}, nil
	}
	args := append([]string{"run", dir}, flags...)
	if code := start(c, args); code != exit {
		t.Fatalf("%q: exit code %d, want %d:\n%s", flags, code, exit, &stderr)
	}
	return outcome{stdout.String(), stderr.String(), dir, web}
}

// judge has the crew validated and returns the warnings.
func (s *sample) judge(t *testing.T) string {
	t.Helper()
	o := s.start(t, exitOK, strings.NewReader(""), io.Discard, "--validate")
	if !strings.HasPrefix(o.stdout, "VALIDATION OK") {
		t.Errorf("--validate: %s", o.stdout)
	}
	return connection.ReplaceAllString(strings.ReplaceAll(o.stderr, o.dir+string(filepath.Separator), ""), "")
}

// connection matches the lines about servers, which say how long each took.
var connection = regexp.MustCompile("(?m)^MCP server .* connected: .*\n")

func (s *sample) run(t *testing.T) outcome {
	t.Helper()
	return s.start(t, s.exit, strings.NewReader(""), io.Discard, s.flags...)
}

// otherwise runs the variants. None of them leaves the tape.
func (s *sample) otherwise(t *testing.T) {
	t.Helper()
	for _, v := range s.variants {
		if len(v.says) == 0 {
			if o := v.run(t); !strings.Contains(o.stderr, v.why) || strings.Contains(o.stderr, "no record answers") {
				t.Errorf("%q: want %q:\n%s", v.flags, v.why, o.stderr)
			}
			continue
		}
		for _, h := range v.watch(t) {
			if h.Kind == "model.returned" && h.Error != "" {
				t.Errorf("%q, and a person says %q: %s", v.flags, v.says, h.Error)
			}
		}
	}
}

// happening is what is compared of an event.
type happening struct {
	Kind          string
	ToolName      string
	TaskID        string
	AgentID       string
	CorrelationID string
	Success       bool
	Skipped       bool
	Turns         int
	ToolCalls     int
	Tokens        int
	Deliverable   string
	Error         string
}

// watch runs the crew as a program does: it reads events, and answers.
func (s *sample) watch(t *testing.T) []happening {
	t.Helper()
	stdin, answers := io.Pipe()
	defer answers.Close()
	flags := slices.Clone(s.flags)
	if i := slices.Index(flags, "--approve"); i >= 0 && len(s.says) > 0 { // a person is there
		flags = slices.Delete(flags, i, i+2)
	}
	o := s.start(t, s.exit, stdin, &answerer{answers, slices.Clone(s.says)}, append(flags, "--events", "jsonl")...)
	if err := eventtest.Run([]byte(o.stdout)); err != nil {
		t.Fatal(err)
	}
	var all []happening
	for line := range strings.Lines(o.stdout) {
		var h happening
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// answerer answers the questions among the events that are written to it.
type answerer struct {
	w    io.Writer
	says []string
}

func (a *answerer) Write(data []byte) (int, error) {
	for line := range bytes.Lines(data) {
		var h happening
		if json.Unmarshal(line, &h) != nil || len(a.says) == 0 {
			continue
		}
		var given map[string]any
		switch h.Kind {
		case "input.needed":
			given = map[string]any{"kind": "input.given", "value": a.says[0]}
		case "approval.needed":
			given = approval(a.says[0])
		default:
			continue
		}
		given["correlationId"] = h.CorrelationID
		command, err := json.Marshal(given)
		if err != nil {
			return 0, err
		}
		a.says = a.says[1:]
		if _, err := fmt.Fprintf(a.w, "%s\n", command); err != nil {
			return 0, err
		}
	}
	return len(data), nil
}

// approval is the answer to a call that is asked about, in the words of the terminal.
func approval(said string) map[string]any {
	given := map[string]any{"kind": "approval.given", "allow": true}
	switch said {
	case "y":
	case "a":
		given["scope"] = "run"
	case "always":
		given["scope"] = "always"
	default:
		given["allow"], given["reason"] = false, said
	}
	return given
}

// archive is what is compared: warnings, the output, how each task ended, and the
// files.
func (s *sample) archive(t *testing.T, warnings string, text outcome, events []happening) *txtar.Archive {
	t.Helper()
	a := &txtar.Archive{Comment: s.want.Comment}
	if warnings != "" {
		a.Files = append(a.Files, txtar.File{Name: "warnings", Data: line(warnings)})
	}
	a.Files = append(a.Files,
		txtar.File{Name: "stdout", Data: line(text.stdout)},
		txtar.File{Name: "tasks", Data: s.tasks(t, text.dir, events)})
	out := os.DirFS(text.dir)
	err := fs.WalkDir(out, "out", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(out, path)
		a.Files = append(a.Files, txtar.File{Name: path, Data: line(string(data))})
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return a
}

// line ends a text with a line feed, without which an archive has none.
func line(text string) []byte {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text)
}

// tasks says how each task ended, in the order of the crew's files, whatever the
// order in which they were done. It checks that the whole tape was used.
func (s *sample) tasks(t *testing.T, dir string, events []happening) []byte {
	t.Helper()
	loaded, err := crew.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	order := map[string]int{}
	for i, task := range loaded.Tasks {
		order[task.Key] = i
	}
	answers, why := 0, map[string]string{}
	var ends []happening
	for _, h := range events {
		switch h.Kind {
		case "model.returned":
			if answers++; h.Error != "" {
				t.Errorf("task %s: %s", h.TaskID, h.Error)
			}
		case "task.failed":
			why[h.TaskID] = h.Error
		case "task.completed":
			ends = append(ends, h)
		}
	}
	records := slices.DeleteFunc(s.records(t), func(r taped) bool {
		return len(s.variants) > 0 && strings.HasPrefix(r.Note, otherwise)
	})
	if n := len(records); n != answers {
		t.Errorf("%d answers of a model, and the tapes have %d", answers, n)
	}
	slices.SortStableFunc(ends, func(a, b happening) int { return order[a.TaskID] - order[b.TaskID] })
	var b strings.Builder
	for _, h := range ends {
		if h.Skipped {
			fmt.Fprintf(&b, "%s: skipped\n", h.TaskID)
			continue
		}
		state := "completed"
		if !h.Success {
			state = "failed"
		}
		fmt.Fprintf(&b, "%s: %s by %s, %s, %s, %s", h.TaskID, state, h.AgentID, count(h.Turns, "turn"), count(h.ToolCalls, "call"), count(h.Tokens, "token"))
		if h.Deliverable != "" {
			b.WriteString(", " + h.Deliverable)
		}
		if !h.Success {
			b.WriteString(": " + why[h.TaskID])
		}
		b.WriteString("\n")
	}
	return []byte(b.String())
}

// taped is a record of a tape as the test looks at it.
type taped struct {
	place string
	Note  string
	Match *struct {
		Contains []string
		Turn     *int
	}
}

func (s *sample) records(t *testing.T) []taped {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(crewsDir, s.name, "*tape.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []taped
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for text := range strings.Lines(string(data)) {
			if n++; n == 1 {
				continue
			}
			r := taped{place: fmt.Sprintf("%s:%d", filepath.Base(file), n)}
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Fatalf("%s: %v", r.place, err)
			}
			all = append(all, r)
		}
	}
	return all
}

// checkTapes holds the tapes to be strict: each record says which turn it answers,
// of whom, and what must have reached the model by then.
func (s *sample) checkTapes(t *testing.T) {
	t.Helper()
	for _, r := range s.records(t) {
		switch {
		case r.Match == nil: // a whole request
		case r.Match.Turn == nil:
			t.Errorf("%s: which turn?", r.place)
		case len(r.Match.Contains) < 2 || !strings.HasPrefix(r.Match.Contains[0], "You are "):
			t.Errorf("%s: whom does it answer, and what? contains begins with \"You are ROLE.\" and goes on with what was asked", r.place)
		}
	}
}
