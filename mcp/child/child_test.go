//go:build linux || darwin

package child

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// patience is how long a test waits for what should come at once.
const patience = 20 * time.Second

// quickExit keeps the race detector from a second's sleep at the end of a
// process.
const quickExit = "GORACE=atexit_sleep_ms=0"

// spawn starts a program of the tests and closes it at the end.
func spawn(t *testing.T, cfg Config, kind ...string) *Process {
	t.Helper()
	argv := self(kind...)
	if cfg.Command == "" {
		cfg.Command = argv[0]
	}
	cfg.Args = append(argv[1:], cfg.Args...)
	if cfg.Env == nil {
		cfg.Env = Environ(os.Environ(), []string{quickExit})
	}
	p, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Stdout().SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatalf("stdout takes no deadline: %v", err)
	}
	return p
}

// ready waits until all processes that a line of kinds names are.
func ready(t *testing.T, p *Process, line string) map[string]process {
	t.Helper()
	return readyPids(t, p.Stdout(), kinds(line))
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for overdue := time.After(patience); !condition(); {
		select {
		case <-tick.C:
		case <-overdue:
			t.Fatalf("not after %v: %s", patience, what)
		}
	}
}

// checkGone fails for each of the processes that is there yet.
func checkGone(t *testing.T, processes map[string]process) {
	t.Helper()
	for kind, p := range processes {
		if alive(p) {
			t.Errorf("%s (pid %d) is left", kind, p.pid)
		}
	}
}

// Arguments arrive byte for byte, from a path with a space, and the environment
// as it was given (W2, K07, K03).
func TestStartArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my tools")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	command := filepath.Join(dir, "echo (1)")
	if err := os.Symlink(self()[0], command); err != nil {
		t.Fatal(err)
	}
	want := []string{"/tmp/My Data (2)", "", `a"b`, "$HOME", "-b local"}
	p := spawn(t, Config{Command: command, Args: want, Env: []string{"TOKEN=t 1", TreeVariable + "=foreign", quickExit}, Dir: dir}, "echo")

	var got echo
	if err := json.NewDecoder(p.Stdout()).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{TreeVariable + "=" + p.marker, "TOKEN=t 1", quickExit}, got.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Dir != resolved {
		t.Errorf("working directory is %s, want %s", got.Dir, resolved)
	}
	<-p.Done()
	if exit, ok := p.Exit(); !ok || exit != (Exit{}) {
		t.Errorf("Exit() = %v, %v", exit, ok)
	}
}

// A command that can't be started is named, its items one by one (K07), and the
// cause is kept.
func TestStartError(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := []struct {
		name  string
		ctx   context.Context
		cfg   Config
		cause error
		text  string
	}{
		{"not in PATH", t.Context(), Config{Command: "no-such-command", Args: []string{"-b local", ""}, Env: []string{"PATH=" + dir}},
			exec.ErrNotFound, `starting no-such-command "-b local" "": `},
		{"no such path", t.Context(), Config{Command: dir + "/my server"}, fs.ErrNotExist, `starting "` + dir + `/my server": `},
		{"not executable", t.Context(), Config{Command: plain}, fs.ErrPermission, plain},
		{"no such folder", t.Context(), Config{Command: "/bin/sh", Dir: dir + "/nope"}, fs.ErrNotExist, dir + "/nope"},
		{"no command", t.Context(), Config{}, nil, `starting "": no command`},
		{"label", t.Context(), Config{Command: "no-such-command", Args: []string{"sk-test-123"}, Label: "no-such-command •••"},
			exec.ErrNotFound, "starting no-such-command •••: "},
		{"cancelled", cancelled, Config{Command: "/bin/sh"}, context.Canceled, "starting /bin/sh: "},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, err := Start(test.ctx, test.cfg)
			if err == nil {
				p.Close()
				t.Fatal("started")
			}
			if test.cause != nil && !errors.Is(err, test.cause) {
				t.Errorf("%v is not %v", err, test.cause)
			}
			if !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), "sk-test") {
				t.Errorf("error %q, want %q in it", err, test.text)
			}
		})
	}
}

// A name is looked up in the child's PATH, not in the host's.
func TestStartLooksInPathOfChild(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(self()[0], filepath.Join(dir, "my-server")); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, Config{Command: "my-server", Env: []string{quickExit, "PATH=relative::" + dir}}, "polite")
	ready(t, p, "polite")
}

func TestExit(t *testing.T) {
	p := spawn(t, Config{}, "fail")
	<-p.Done()
	if exit, _ := p.Exit(); exit.String() != "exit status 3" || exit.Code != 3 {
		t.Errorf("ended with %v", exit)
	}
	if got := p.Stderr(); !strings.HasSuffix(got, "\nno such folder\n") {
		t.Errorf("%d bytes of stderr at the end", len(got))
	}

	p = spawn(t, Config{}, "stubborn")
	ready(t, p, "stubborn")
	if _, ok := p.Exit(); ok {
		t.Error("an exit before the end")
	}
	p.Kill()
	<-p.Done()
	if exit, _ := p.Exit(); exit.String() != "signal: killed" || exit.Code != -1 {
		t.Errorf("ended with %v", exit)
	}
}

// Close leaves nobody of a tree behind, whatever the tree looks like, within
// the shutdown timeout and its margin (W2, W11).
func TestCloseEndsTree(t *testing.T) {
	const (
		short = 400 * time.Millisecond // for those who have to be killed
		long  = 2 * time.Second        // for those who end on SIGTERM
		never = 10 * time.Minute       // for those who end by themselves
	)
	tests := []struct {
		tree     string
		shutdown time.Duration
		exit     string // of the direct child
		leaves   bool   // the direct child leaves by itself, before Close
		linux    bool   // needs the marker
	}{
		{tree: "polite", shutdown: never, exit: "exit status 0"},
		{tree: "term", shutdown: long, exit: "exit status 7"},
		{tree: "stubborn", shutdown: short, exit: "signal: killed"},
		{tree: "wrap polite", shutdown: never, exit: "exit status 0"},
		{tree: "wrap term", shutdown: long, exit: "exit status 0"},
		{tree: "wrap stubborn", shutdown: short, exit: "signal: killed"},
		{tree: "wrap wrap stubborn", shutdown: short, exit: "signal: killed"},
		{tree: "wrap -leave stubborn", shutdown: short, exit: "exit status 5", leaves: true},
		{tree: "wrap -leave term", shutdown: never, exit: "exit status 5", leaves: true},
		{tree: "wrap -setsid stubborn", shutdown: short, exit: "signal: killed"},
		{tree: "wrap -setsid -bare stubborn", shutdown: short, exit: "signal: killed"},
		{tree: "wrap -leave -setsid stubborn", shutdown: short, exit: "exit status 5", leaves: true, linux: true},
		{tree: "wrap -leave -bare stubborn", shutdown: short, exit: "exit status 5", leaves: true},
		{tree: "wrap -leave -setsid wrap -setsid stubborn", shutdown: short, exit: "exit status 5", leaves: true, linux: true},
		{tree: "wrap -setsid wrap -leave -setsid stubborn", shutdown: short, exit: "exit status 0", leaves: true, linux: true},
	}
	for _, test := range tests {
		t.Run(test.tree, func(t *testing.T) {
			if test.linux && runtime.GOOS != "linux" {
				t.Skip("markers can be read on Linux alone")
			}
			t.Parallel()
			p := spawn(t, Config{ShutdownTimeout: test.shutdown}, strings.Fields(test.tree)...)
			all := ready(t, p, test.tree)
			if p.Pid() <= 0 || p.Pid() == os.Getpid() {
				t.Fatalf("pid %d", p.Pid())
			}
			if test.leaves {
				<-p.Done()
			}
			began := time.Now()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took > test.shutdown+killMargin {
				t.Errorf("Close took %v", took)
			}
			checkGone(t, all)
			if exit, ok := p.Exit(); !ok || exit.String() != test.exit {
				t.Errorf("ended with %v, %v; want %s", exit, ok, test.exit)
			}
			if _, there := look(p.Pid()); there {
				t.Error("the direct child was not reaped")
			}
			if err := p.Close(); err != nil {
				t.Errorf("second Close: %v", err)
			}
			p.Kill() // nobody is there to be killed
		})
	}
}

// A child that leaves at the end of its stdin is never signalled, and Close
// doesn't wait out its time.
func TestCloseIsQuick(t *testing.T) {
	p := spawn(t, Config{ShutdownTimeout: 10 * time.Minute}, "wrap", "polite")
	ready(t, p, "wrap polite")
	closed := make(chan error, 2)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { closed <- p.Close() })
	}
	wg.Wait()
	for range 2 {
		if err := <-closed; err != nil {
			t.Error(err)
		}
	}
	if exit, _ := p.Exit(); exit != (Exit{}) {
		t.Errorf("ended with %v", exit)
	}
}

// Kill ends the whole tree, but no other one, and makes a Close that waits
// return.
func TestKill(t *testing.T) {
	other := spawn(t, Config{}, "wrap", "polite")
	bystanders := ready(t, other, "wrap polite")
	p := spawn(t, Config{ShutdownTimeout: 10 * time.Minute}, "wrap", "-setsid", "stubborn")
	all := ready(t, p, "wrap stubborn")
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	p.Kill()
	wg.Wait()
	checkGone(t, all)
	for kind, p := range bystanders {
		if !alive(p) {
			t.Errorf("%s of another tree is gone", kind)
		}
	}
}

// Twenty trees that share a guard end together.
func TestCloseMany(t *testing.T) {
	guard := startTestGuard(t)
	const line = "wrap -setsid polite"
	var all []map[string]process
	var ps []*Process
	for range 20 {
		ps = append(ps, spawn(t, Config{Guard: guard}, strings.Fields(line)...))
	}
	for _, p := range ps {
		all = append(all, ready(t, p, line))
	}
	var wg sync.WaitGroup
	for _, p := range ps {
		wg.Go(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, processes := range all {
		checkGone(t, processes)
	}
}

// A child that doesn't read can't block a host that writes.
func TestStdinTakesDeadline(t *testing.T) {
	p := spawn(t, Config{ShutdownTimeout: 100 * time.Millisecond}, "stubborn")
	ready(t, p, "stubborn")
	if err := p.Stdin().SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdin().Write(make([]byte, 4<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("writing: %v", err)
	}
}

// What a child writes last, after the end of its stdin, can be read until Close
// returns.
func TestStdoutToTheEnd(t *testing.T) {
	p := spawn(t, Config{}, "polite")
	ready(t, p, "polite")
	p.Stdin().Close()
	rest, err := io.ReadAll(p.Stdout())
	if err != nil || string(rest) != "bye\n" {
		t.Errorf("read %q, %v", rest, err)
	}
}

// 64 MiB on stderr block nobody and cost what the limit says.
func TestStderrFlood(t *testing.T) {
	var lines int
	var last string
	p := spawn(t, Config{StderrLimit: 4 << 10, Stderr: func(line string) { lines++; last = line }}, "flood")
	ready(t, p, "flood")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if lines != 64<<10+1 || last != "last words" {
		t.Errorf("%d lines, the last one %q", lines, last)
	}
	got := p.Stderr()
	if len(got) > 4<<10 || !strings.HasSuffix(got, "x\nlast words\n") {
		t.Errorf("%d bytes kept, ending with %q", len(got), got[max(0, len(got)-20):])
	}
}

// Done doesn't wait for a grandchild that holds stderr open, and stderr is read
// on.
func TestStderrHeldOpen(t *testing.T) {
	p := spawn(t, Config{ShutdownTimeout: 100 * time.Millisecond}, "wrap", "-leave", "stubborn")
	all := ready(t, p, "wrap stubborn")
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("Done waits for the grandchild")
	}
	if !alive(all["stubborn"]) {
		t.Error("the grandchild ended before Close")
	}
}

// The parent-death signal comes with the end of the thread that forked. A child
// outlives the goroutine that started it, and its thread.
func TestChildOutlivesCallersThread(t *testing.T) {
	argv := self("polite")
	var p *Process
	var err error
	var wg sync.WaitGroup
	wg.Go(func() {
		runtime.LockOSThread() // and never unlocked: the thread ends here
		p, err = Start(t.Context(), Config{Command: argv[0], Args: argv[1:], Env: []string{quickExit}})
	})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ready(t, p, "polite")
	p.Stdin().Close()
	<-p.Done()
	if exit, _ := p.Exit(); exit != (Exit{}) {
		t.Errorf("ended with %v", exit)
	}
}

func TestTreeEnv(t *testing.T) {
	env := []string{"A=1", TreeVariable + "=x", "B=2"}
	if got, want := treeEnv(env, "", "m"), []string{TreeVariable + "=m", "A=1", "B=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := treeEnv(nil, "o/p", "m"), []string{TreeVariable + "=o/p/m"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
