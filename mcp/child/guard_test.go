//go:build linux || darwin

package child

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func startTestGuard(t *testing.T) *Guard {
	t.Helper()
	guard, err := StartGuard(self("guard"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := guard.Close(); err != nil {
			t.Error(err)
		}
	})
	return guard
}

// killHost starts a host with the given trees, kills it, and returns the
// processes that it had, after some preparation.
func killHost(t *testing.T, guarded string, prepare func(map[string]process), trees ...string) map[string]process {
	t.Helper()
	n := 1 // for "all"
	if guarded == "guarded" {
		n++
	}
	for _, tree := range trees {
		n += kinds(tree)
	}
	argv := self(append([]string{"host", guarded}, trees...)...)
	host := exec.Command(argv[0], argv[1:]...)
	host.Env = append(os.Environ(), quickExit)
	host.Stderr = os.Stderr
	stdout, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	all := readyPids(t, stdout, n)
	delete(all, "all")
	for kind, p := range all {
		if kind != "wrap" && !strings.HasPrefix(kind, "wrap") && !alive(p) {
			t.Errorf("%s is gone too early", kind)
		}
	}
	prepare(all)
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	return all
}

// After kill -9 of the host nobody is left, and the guard is gone, too, though
// it was told to go before.
func TestGuardAvengesHost(t *testing.T) {
	trees := []string{"polite", "stubborn", "wrap stubborn", "wrap -leave stubborn", "wrap -leave -bare stubborn"}
	if runtime.GOOS == "linux" {
		trees = append(trees, "wrap -setsid stubborn", "wrap -leave -setsid stubborn", "wrap -setsid wrap -leave -setsid stubborn")
	}
	all := killHost(t, "guarded", func(all map[string]process) {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			// Only a guard that is up ignores signals, which it need not be
			// yet.
			if runtime.GOOS == "linux" {
				eventually(t, "the guard is up", func() bool {
					comm, _ := os.ReadFile("/proc/" + strconv.Itoa(all["guard"].pid) + "/comm")
					return string(comm) == "crew-guard\n"
				})
				_ = syscall.Kill(all["guard"].pid, sig)
			}
		}
	}, trees...)
	for kind, p := range all {
		eventually(t, kind+" is gone", func() bool { return !alive(p) })
	}
}

// A host that is killed while it starts and closes trees leaves nobody, not
// even one that it was just about to start.
func TestGuardAvengesBusyHost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who is left is known by the marker alone")
	}
	for _, n := range []int{1, 4, 9} {
		outer := mark{marker: rand.Text()}
		argv := self("busy", "wrap", "-leave", "-setsid", "stubborn")
		host := exec.Command(argv[0], argv[1:]...)
		host.Env = append(os.Environ(), quickExit, TreeVariable+"="+outer.marker)
		host.Stderr = os.Stderr
		stdout, err := host.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		readyPids(t, stdout, n)
		if err := host.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = host.Wait()
		eventually(t, "everybody is gone", func() bool { return len(members(processes(0), outer)) == 0 })
	}
}

// Host and guard killed together still take the direct children with them.
func TestParentDeathSignal(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal")
	}
	for _, guarded := range []string{"guarded", "alone"} {
		all := killHost(t, guarded, func(all map[string]process) {
			if guard, ok := all["guard"]; ok {
				_ = syscall.Kill(guard.pid, syscall.SIGKILL)
			}
		}, "stubborn", "stubborn", "stubborn")
		for kind, p := range all {
			eventually(t, kind+" is gone", func() bool { return !alive(p) })
		}
	}
}

// A guard that is closed kills nobody, and one that has died is no trouble.
func TestGuardClose(t *testing.T) {
	guard := startTestGuard(t)
	if p, _ := look(guard.proc.Pid); p.group != p.pid {
		t.Errorf("the guard is in the group of its host: %+v", p)
	}
	p := spawn(t, Config{Guard: guard}, "polite")
	all := ready(t, p, "polite")
	if err := guard.Close(); err != nil {
		t.Fatal(err)
	}
	if p, there := look(guard.proc.Pid); there {
		t.Errorf("the guard is left: %+v", p)
	}
	if err := guard.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if !alive(all["polite"]) {
		t.Error("the child is gone with the guard")
	}
	p.Stdin().Close()
	<-p.Done()
	if exit, _ := p.Exit(); exit != (Exit{}) {
		t.Errorf("ended with %v", exit)
	}

	guard = startTestGuard(t)
	if err := guard.proc.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard is dead", func() bool { p, ok := look(guard.proc.Pid); return !ok || p.dead })
	p = spawn(t, Config{Guard: guard}, "polite")
	ready(t, p, "polite")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A guard that is stopped holds neither the host's work up nor its end.
func TestGuardStopped(t *testing.T) {
	guard := startTestGuard(t)
	if err := guard.proc.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p := spawn(t, Config{Guard: guard}, "polite")
	ready(t, p, "polite")
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := guard.Close(); err != nil {
		t.Error(err)
	}
	if _, there := look(guard.proc.Pid); there {
		t.Error("the guard is left")
	}
}

func TestStartGuardError(t *testing.T) {
	for _, argv := range [][]string{nil, {t.TempDir() + "/no such guard", "x"}} {
		if guard, err := StartGuard(argv); err == nil {
			guard.Close()
			t.Errorf("StartGuard(%q) started", argv)
		}
	}
	var none *Guard
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}

// The guard hears of a tree before it can exist and until its pid is free, and
// of one that could not be started no longer than that.
func TestWhatGuardHears(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	guard := &Guard{guard{pipe: w}}
	p := spawn(t, Config{Guard: guard}, "polite")
	ready(t, p, "polite")
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Config{Command: "/no/such/command", Guard: guard}); err == nil {
		t.Fatal("started")
	}
	w.Close()
	said, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(said), "\n")
	if len(lines) != 6 || len(lines[3]) < 3 {
		t.Fatalf("said %q", lines)
	}
	want := []string{
		"? " + p.marker,
		fmt.Sprintf("+ %s %d %d", p.marker, p.Pid(), p.tree.start),
		"- " + p.marker,
		"? " + lines[3][2:],
		"- " + lines[3][2:],
		"",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestListen(t *testing.T) {
	tests := []struct {
		name, said string
		want       map[string]mark
	}{
		{"nothing", "", map[string]mark{}},
		{"a life", "? a\n+ a 12 99\n- a\n", map[string]mark{}},
		{"expected, running", "? a\n? b\n+ a 12 99\n", map[string]mark{"a": {"a", 12, 99}, "b": {marker: "b"}}},
		{"never everybody", "+ a 1 0\n+ b 0 0\n+ c -1 0\n+ d x 0\n", map[string]mark{
			"a": {marker: "a"}, "b": {marker: "b"}, "c": {marker: "c"}, "d": {marker: "d"}}},
		{"noise", "\n?\n+\nhello\n+ a\n! a\n", map[string]mark{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := listen(strings.NewReader(test.said))
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(mark{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A census shows whoever was there before it was asked for, however many ask.
func TestCensus(t *testing.T) {
	c := new(census)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			argv := self("fail")
			proc, err := os.StartProcess(argv[0], argv, &os.ProcAttr{})
			if err != nil {
				t.Error(err)
				return
			}
			if !slices.ContainsFunc(c.take(), func(p process) bool { return p.pid == proc.Pid && p.parent == os.Getpid() }) {
				t.Errorf("process %d is not there", proc.Pid)
			}
			_, _ = proc.Wait()
		})
	}
	wg.Wait()
}

// The name of a process can't pass for the state of it.
func TestLookAtOddName(t *testing.T) {
	p := spawn(t, Config{}, "odd")
	ready(t, p, "odd")
	got, ok := look(p.Pid())
	if !ok || got.dead || got.parent != os.Getpid() || got.group != p.Pid() || got.start != p.tree.start {
		t.Errorf("%+v, %v", got, ok)
	}
}

// Members are found by group, by marker and by parent; another tree, the host,
// the dead and a group whose number was given out again are none.
func TestMembers(t *testing.T) {
	const leader = 100
	me := os.Getpid()
	all := []process{
		{pid: 1},
		{pid: me, group: me, markers: "ours"},
		{pid: leader, parent: me, group: leader, start: 7, dead: true},
		{pid: 101, parent: 1, group: leader},
		{pid: 102, parent: 1, group: 102, markers: "outer/ours/inner"},
		{pid: 103, parent: 104, group: 103},
		{pid: 104, parent: 102, group: 104},
		{pid: 105, parent: me, group: 105, markers: "other"},
		{pid: 106, parent: 101, group: leader, dead: true},
		{pid: 107, parent: 1, group: 107},
	}
	pids := func(m mark) []int {
		var got []int
		for _, p := range members(all, m) {
			got = append(got, p.pid)
		}
		return got
	}
	if diff := cmp.Diff([]int{101, 102, 103, 104}, pids(mark{"ours", leader, 7})); diff != "" {
		t.Errorf("members (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{102, 103, 104}, pids(mark{"ours", leader, 6})); diff != "" {
		t.Errorf("members with a foreign leader (-want +got):\n%s", diff)
	}
	if found := members(all, mark{marker: "theirs"}, process{pid: 107}, process{pid: 105, start: 1}); len(found) != 1 || found[0].pid != 107 {
		t.Errorf("who was a member before: %v, want 107 alone", found)
	}
	if diff := cmp.Diff([]int{102, 103, 104}, pids(mark{marker: "ours"})); diff != "" {
		t.Errorf("members by marker (-want +got):\n%s", diff)
	}
}
