package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/tools/audit"
)

// The test binary is a writer, too, where the environment names a log.
func TestMain(m *testing.M) {
	path := os.Getenv("AUDIT_TEST_LOG")
	if path == "" {
		os.Exit(m.Run())
	}
	n, _ := strconv.Atoi(os.Getenv("AUDIT_TEST_RECORDS"))
	log, err := audit.Open(context.Background(), audit.Config{Path: path, MaxBytes: 4096})
	for i := 0; i < n && err == nil; i++ {
		err = log.Append(context.Background(), audit.Record{Kind: audit.Call, Tool: "t", PID: os.Getpid()})
	}
	if err = errors.Join(err, log.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func open(t *testing.T, cfg audit.Config) *audit.Log {
	t.Helper()
	log, err := audit.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func add(t *testing.T, log *audit.Log, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if err := log.Append(t.Context(), audit.Record{Kind: audit.Call, Tool: tool}); err != nil {
			t.Fatal(err)
		}
	}
}

func verify(t *testing.T, path string) (audit.Report, error) {
	t.Helper()
	return audit.Verify(t.Context(), path, audit.Head{})
}

func whole(t *testing.T, path string) audit.Report {
	t.Helper()
	r, err := verify(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// broken wants a log to be broken in one place, for a reason that has these words.
func broken(t *testing.T, err error, place, words string) {
	t.Helper()
	var b *audit.Break
	if !errors.As(err, &b) {
		t.Fatalf("got %v, and wanted a break at %s", err, place)
	}
	if got := filepath.Base(b.File) + ":" + strconv.Itoa(b.Line); got != place || !strings.Contains(b.Reason, words) {
		t.Errorf("got a break at %s: %s; wanted it at %s: …%s…", got, b.Reason, place, words)
	}
}

func TestLogGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.jsonl")
	log := open(t, audit.Config{Path: path})
	add(t, log, "a", "b")
	other := open(t, audit.Config{Path: path})
	add(t, other, "c")
	add(t, log, "d")
	r := whole(t, path)
	if r.Records != 5 || r.First != 1 || r.Files != 1 || r.Head != log.Head() || r.Head.Seq != 5 {
		t.Errorf("%+v; the writer's head is %v", r, log.Head())
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the log: %v, %v", info, err)
	}
	var tools []string
	err := audit.Read(t.Context(), path, func(l audit.Line) error {
		tools = append(tools, l.Record.Tool)
		if l.Record.Time.IsZero() || l.Record.Time.Location() != time.UTC {
			t.Errorf("the time of a record is %v", l.Record.Time)
		}
		return l.Err
	})
	if err != nil || strings.Join(tools, "") != "abcd" {
		t.Errorf("%v, %v", tools, err)
	}
}

// What a tamperer can do to a log of six records, and where it is seen.
func TestTampering(t *testing.T) {
	edit := func(f func(lines []string) []string) func(string) string {
		return func(text string) string {
			return strings.Join(f(strings.SplitAfter(strings.TrimSuffix(text, ""), "\n")), "")
		}
	}
	other := filepath.Join(t.TempDir(), "audit.jsonl")
	add(t, open(t, audit.Config{Path: other}), "z", "y", "x", "w", "v")
	foreign, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change       func(string) string
		place, words string
	}{
		"changed byte":       {func(s string) string { return strings.Replace(s, `"tool":"c"`, `"tool":"C"`, 1) }, "audit.jsonl:4", "its hash is another one"},
		"changed last":       {func(s string) string { return strings.Replace(s, `"tool":"e"`, `"tool":"E"`, 1) }, "audit.jsonl:6", "its hash is another one"},
		"changed first":      {func(s string) string { return strings.Replace(s, `"log.began"`, `"log.begun"`, 1) }, "audit.jsonl:1", "its hash is another one"},
		"removed line":       {edit(func(l []string) []string { return slices.Delete(l, 2, 3) }), "audit.jsonl:3", "record 4 follows record 2"},
		"removed first":      {edit(func(l []string) []string { return l[1:] }), "audit.jsonl:1", "does not begin here"},
		"swapped lines":      {edit(func(l []string) []string { l[2], l[3] = l[3], l[2]; return l }), "audit.jsonl:3", "record 4 follows record 2"},
		"line twice":         {edit(func(l []string) []string { return slices.Insert(l, 3, l[2]) }), "audit.jsonl:4", "not in its place"},
		"inserted text":      {edit(func(l []string) []string { return slices.Insert(l, 3, "hello\n") }), "audit.jsonl:4", "it is no record"},
		"inserted record":    {edit(func(l []string) []string { return slices.Insert(l, 3, strings.SplitAfter(string(foreign), "\n")[3]) }), "audit.jsonl:4", "does not follow"},
		"replaced line":      {edit(func(l []string) []string { l[3] = strings.SplitAfter(string(foreign), "\n")[3]; return l }), "audit.jsonl:4", "does not follow"},
		"empty line":         {edit(func(l []string) []string { return slices.Insert(l, 3, "\n") }), "audit.jsonl:4", "it is no record"},
		"line end changed":   {func(s string) string { return strings.Replace(s, "\"}\n", "\"}\r\n", 1) }, "audit.jsonl:1", "it is no record"},
		"cut tail":           {edit(func(l []string) []string { return l[:5] }), "audit.jsonl:0", "its end was cut off"},
		"cut within a line":  {func(s string) string { return s[:len(s)-20] }, "audit.jsonl:6", "it is torn"},
		"replaced file":      {func(string) string { return string(foreign) }, "audit.jsonl:6", "written anew"},
		"empty file":         {func(string) string { return "" }, "audit.jsonl:0", "there is no record"},
		"a member afterward": {func(s string) string { return strings.Replace(s, "\"}\n", "\",\"x\":1}\n", 1) }, "audit.jsonl:1", "it is no record"},
		"endless line":       {func(s string) string { return s + strings.Repeat("x", 1<<20) }, "audit.jsonl:7", "no record has"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			log := open(t, audit.Config{Path: path})
			add(t, log, "a", "b", "c", "d", "e")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(tt.change(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err = audit.Verify(t.Context(), path, log.Head())
			broken(t, err, tt.place, tt.words)
		})
	}
}

// A head that was kept holds for the log as it has grown since.
func TestVerifyExpects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := open(t, audit.Config{Path: path})
	add(t, log, "a")
	head, err := audit.ParseHead(" " + log.Head().String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	add(t, log, "b", "c")
	if r, err := audit.Verify(t.Context(), path, head); err != nil || r.Since != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, wrong := range []string{"", "1", "1:", ":" + head.Hash, "-1:" + head.Hash, "1:" + strings.ToUpper(head.Hash), "1:" + head.Hash + "0"} {
		if _, err := audit.ParseHead(wrong); err == nil {
			t.Errorf("%q is taken for a head", wrong)
		}
	}
}

func TestRotation(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	log := open(t, audit.Config{Path: path, MaxBytes: 1000, Keep: 3})
	for i := range 60 {
		add(t, log, fmt.Sprint("tool", i))
	}
	r := whole(t, path)
	if r.Files != 4 || r.First == 1 || r.Head.Seq < 60 || r.Records != r.Head.Seq-r.First+1 {
		t.Fatalf("%+v", r)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "audit.0*.jsonl"))
	if want := filepath.Join(dir, fmt.Sprintf("audit.%012d.jsonl", r.First)); len(files) != 3 || files[0] != want {
		t.Errorf("kept are %v, and the first should be %s", files, want)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 1400 {
			t.Errorf("%v, %v", info, err)
		}
	}

	// An older file that was not removed in time does no harm; one more that is gone is seen.
	oldest, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	_, err = verify(t, path)
	broken(t, err, filepath.Base(files[1])+":1", "the files before it are missing")
	_, err = audit.Verify(t.Context(), path, audit.Head{Seq: 1, Hash: r.Head.Hash})
	broken(t, err, filepath.Base(files[1])+":1", "")
	if err := os.WriteFile(files[0], oldest, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = audit.Verify(t.Context(), path, audit.Head{Seq: 1, Hash: r.Head.Hash})
	broken(t, err, filepath.Base(files[0])+":1", "older than what is kept")

	// In the middle, a file can't be missing at all, nor be a changed one.
	middle, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], bytes.Replace(middle, []byte(`"tool":"tool`), []byte(`"tool":"pool`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = verify(t, path)
	broken(t, err, filepath.Base(files[1])+":2", "its hash is another one")
	if err := os.Remove(files[1]); err != nil {
		t.Fatal(err)
	}
	_, err = verify(t, path)
	broken(t, err, filepath.Base(files[2])+":1", "what was between them is missing")
}

// A writer that was stopped between two files: the next one goes on.
func TestStoppedBetweenFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	add(t, open(t, audit.Config{Path: path}), "a", "b")
	if err := os.Rename(path, filepath.Join(dir, "audit.000000000001.jsonl")); err != nil {
		t.Fatal(err)
	}
	if r := whole(t, path); r.Records != 3 {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, audit.Config{Path: path}), "c")
	if r := whole(t, path); r.Records != 5 || r.Files != 2 {
		t.Errorf("%+v", r)
	}
}

// What a writer leaves that is stopped in the middle of a line, wherever that is, is
// seen, said by the next writer, and hidden by nobody.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	add(t, open(t, audit.Config{Path: path}), "a", "b")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, kept := range []int{0, 2} {
		rest := lines[kept]
		for cut := 1; cut < len(rest); cut += 7 {
			before := slices.Concat(bytes.Join(lines[:kept], nil), rest[:cut])
			if err := os.WriteFile(path, before, 0o600); err != nil {
				t.Fatal(err)
			}
			place := fmt.Sprintf("audit.jsonl:%d", kept+1)
			_, err := verify(t, path)
			broken(t, err, place, "it is torn")

			add(t, open(t, audit.Config{Path: path}), "c")
			r := whole(t, path)
			if r.TornLines != 1 || len(r.Torn) != 1 || filepath.Base(r.Torn[0].String()) != place {
				t.Fatalf("cut at %d: %+v", cut, r)
			}
			after, err := os.ReadFile(path)
			if err != nil || !bytes.HasPrefix(after, before) {
				t.Fatalf("cut at %d: what was there is gone: %v", cut, err)
			}
			// Nor can the torn line be changed later.
			after[len(before)-1] ^= 1
			if err := os.WriteFile(path, after, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := verify(t, path); err == nil {
				t.Fatalf("cut at %d: a torn line that was changed is not seen", cut)
			}
		}
	}

	// The record about it can be torn, too, in the worst way.
	if err := os.WriteFile(path, slices.Concat(text, []byte("{\"v\":1\n{\"v\"")), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, open(t, audit.Config{Path: path}), "d")
	if r := whole(t, path); r.TornLines != 1 {
		t.Errorf("%+v", r)
	}
}

// A log that was changed is not gone on with, and one that is changed under its writer
// is noticed.
func TestNobodyGoesOnAfterAChange(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	log := open(t, audit.Config{Path: path})
	add(t, log, "a", "b")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"b"`), []byte(`"B"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	var b *audit.Break
	if _, err := audit.Open(t.Context(), audit.Config{Path: path}); !errors.As(err, &b) {
		t.Errorf("a changed log is opened: %v", err)
	}
	if err := log.Append(t.Context(), audit.Record{Kind: audit.Call}); err == nil {
		t.Error("a changed log is written to")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := log.Append(t.Context(), audit.Record{Kind: audit.Call}); err == nil || !strings.Contains(err.Error(), "record 3, which this program wrote, is gone") {
		t.Errorf("a log that is gone is begun anew: %v", err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, log, "c") // and the two that were lost are said
	if r := whole(t, path); r.Lost != 2 || r.Records != 5 {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("no log\n"), 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(t.Context(), audit.Config{Path: path}); !errors.As(err, &b) {
		t.Errorf("what is no log is gone on with: %v", err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", dir, filepath.Join(file, "audit.jsonl")} {
		if _, err := audit.Open(t.Context(), audit.Config{Path: path}); err == nil {
			t.Errorf("%q is opened", path)
		}
	}
	if _, err := verify(t, filepath.Join(dir, "none.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is not there: %v", err)
	}
}

// A cancelled call is put on record all the same.
func TestAppendAfterTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := open(t, audit.Config{Path: path})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Append(ctx, audit.Record{Kind: audit.Call}); err != nil {
		t.Error(err)
	}
}

// Processes and goroutines that write one log take turns, over its files.
func TestManyWriters(t *testing.T) {
	const processes, each = 4, 40
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var running sync.WaitGroup
	for range processes {
		running.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "AUDIT_TEST_LOG="+path, fmt.Sprint("AUDIT_TEST_RECORDS=", each), "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("a writer: %v\n%s", err, out)
			}
		})
	}
	log := open(t, audit.Config{Path: path, MaxBytes: 4096})
	for range processes {
		running.Go(func() {
			for range each {
				if err := log.Append(t.Context(), audit.Record{Kind: audit.Call, Tool: "t", PID: 1}); err != nil {
					t.Error(err)
				}
				if _, err := verify(t, path); err != nil { // between two records, at any time
					var b *audit.Break
					if errors.As(err, &b) {
						t.Error(err)
					}
				}
			}
		})
	}
	running.Wait()
	r := whole(t, path)
	by := map[int]int{}
	if err := audit.Read(t.Context(), path, func(l audit.Line) error {
		if l.Record.Kind == audit.Call {
			by[l.Record.PID]++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(by) != processes+1 || r.Files < 2 || r.TornLines > 0 {
		t.Errorf("%v in %d files", by, r.Files)
	}
	for pid, n := range by {
		if want := each; pid != 1 && n != want || pid == 1 && n != processes*each {
			t.Errorf("process %d has %d records", pid, n)
		}
	}
}

// What others choose is masked, on one line, and bounded.
func TestTextsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log := open(t, audit.Config{Path: path, Mask: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }})
	err := log.Append(t.Context(), audit.Record{
		Kind: audit.Call, Tool: "a\x1b[2J\u202e\nhunter2" + strings.Repeat("ü", 1<<16), Agent: "hunter2",
		Decision: &audit.Decision{Rule: "hunter2"}, Answer: &audit.Answer{Who: "hunter2"}, Request: &audit.Request{Origin: "https://hunter2.example"},
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, []byte("hunter2")) || bytes.ContainsAny(text, "\x1b\u202e") || len(text) > 4096 {
		t.Errorf("%d bytes, %v: %.600s", len(text), err, text)
	}
	whole(t, path)
}

// Every file that a fuzzer comes up with is read without trouble, and what can be gone
// on with is whole afterwards.
func FuzzLog(f *testing.F) {
	path := filepath.Join(f.TempDir(), "audit.jsonl")
	log, err := audit.Open(f.Context(), audit.Config{Path: path, Now: func() time.Time { return time.Unix(0, 0) }})
	if err != nil {
		f.Fatal(err)
	}
	if err := log.Append(f.Context(), audit.Record{Kind: audit.Call, Tool: "a", Arguments: &audit.Arguments{Shape: "{}"}}); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-10])
	f.Add([]byte{})
	f.Add([]byte("\n\n{\"v\":1"))
	f.Add(append(slices.Clone(text), text...))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		_, before := verify(t, path)
		log, err := audit.Open(t.Context(), audit.Config{Path: path})
		if err != nil {
			if before == nil {
				t.Fatalf("whole, and can't be gone on with: %v", err)
			}
			return
		}
		add(t, log, "b")
		if _, err := verify(t, path); err != nil && before == nil {
			t.Fatalf("it was whole before: %v", err)
		}
		after, err := os.ReadFile(path)
		if err != nil || !bytes.HasPrefix(after, data) {
			t.Fatalf("what was there has changed: %v", err)
		}
	})
}

func TestShape(t *testing.T) {
	mask := func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	for in, want := range map[string]string{
		`{}`: `{}`, `[]`: `list(0)`, `"abc"`: `string(3)`, `7`: `number`, `null`: `null`, `{`: `invalid`, ``: `invalid`,
		`{"path":"/output/x","n":1e999,"dry":true,"none":null}`:             `{path: string(9), n: number, dry: bool, none: null}`,
		`{"edits":[{"old":"a","new":"bc"},{"x":1}],"after":[1,2]}`:          `{edits: list(2) of {old: string(1), new: string(2)}, after: list(2) of number}`,
		`{"a":{"b":{"c":{"d":{"e":{"f":1,"g":[1]},"h":[[]]}}}},"i":"x"}`:    `{a: {b: {c: {d: {e: {2 members}, h: list(1)}}}}, i: string(1)}`,
		"{\"a\\u001b[2J\\n\":1,\"b\u202e\":2,\"c d\":3,\"\":4,\"\\\"}\":5}": `{"a\x1b[2J\n": number, "b\u202e": number, "c d": number, "": number, "\"}": number}`,
		`{"key-hunter2":"hunter2"}`:                                         `{"key-***": string(7)}`,
		`{"a":[[["x",2],3],4]}`:                                             `{a: list(2) of list(2) of list(2) of string(1)}`,
		`{"` + strings.Repeat("k", 100) + `":1}`:                            `{"` + strings.Repeat("k", 64) + `"…(100): number}`,
		`{"` + strings.Repeat("k", 60) + `hunter2":1}`:                      `{"` + strings.Repeat("k", 60) + `***": number}`,
	} {
		if got := audit.Shape(json.RawMessage(in), mask); got != want {
			t.Errorf("%s\n got %s\nwant %s", in, got, want)
		}
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprintf(`"m%d":[%d]`, i, i))
	}
	got := audit.Shape(json.RawMessage("{"+strings.Join(many, ",")+"}"), nil)
	if !strings.HasSuffix(got, ", 968 more}") || len(got) > 1100 {
		t.Errorf("%s", got)
	}
	long := strings.Repeat(`"`+strings.Repeat("é", 40)+`":{"a":1},`, 30)
	if got := audit.Shape(json.RawMessage("{"+long+`"z":1}`), nil); !strings.HasSuffix(got, "…") || len(got) > 1100 {
		t.Errorf("%d: %s", len(got), got)
	}
}

// A shape is bounded, on one line, and holds no value.
func FuzzShape(f *testing.F) {
	for _, seed := range []string{`{"a":["SECRET",{"b":"SECRET"}]}`, `[[[[[[[[1]]]]]]]]`, `{"\u202e":"SECRET"}`, `"SECRET"`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := audit.Shape(data, nil)
		if len(got) > 1100 || strings.ContainsAny(got, "\n\x1b\u202e") {
			t.Errorf("%q", got)
		}
		if value := string(data); json.Valid(data) && strings.HasPrefix(value, `"`) && len(value) > 12 && strings.Contains(got, value[1:len(value)-1]) {
			t.Errorf("%s shows its value: %s", data, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	log, err := audit.Open(b.Context(), audit.Config{Path: filepath.Join(b.TempDir(), "audit.jsonl")})
	if err != nil {
		b.Fatal(err)
	}
	r := audit.Record{
		Kind: audit.Call, Run: "0123456789", Agent: "writer", Task: "write", Server: "files", Tool: "write_file", Outcome: "succeeded",
		Arguments: &audit.Arguments{Digest: strings.Repeat("0", 71), Shape: "{path: string(12)}"}, Decision: &audit.Decision{Verdict: "allow"},
	}
	for b.Loop() {
		if err := log.Append(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkVerify says what a record costs, and that memory doesn't grow with them.
func BenchmarkVerify(b *testing.B) {
	for _, records := range []int{1000, 20_000} {
		b.Run(fmt.Sprint(records), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "audit.jsonl")
			log, err := audit.Open(b.Context(), audit.Config{Path: path})
			if err != nil {
				b.Fatal(err)
			}
			for range records {
				if err := log.Append(b.Context(), audit.Record{Kind: audit.Call, Tool: "t"}); err != nil {
					b.Fatal(err)
				}
			}
			var before, after runtime.MemStats
			peak := uint64(0)
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				n := 0
				err := audit.Read(b.Context(), path, func(audit.Line) error {
					if n++; n%500 == 0 {
						runtime.GC()
						runtime.ReadMemStats(&after)
						peak = max(peak, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(peak), "live-bytes")
		})
	}
}
