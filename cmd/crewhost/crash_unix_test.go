//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"crewhost/runner/journal"
)

// mainKilled is main, killed at a line of its journal.
func mainKilled() {
	nth, mode := killPoint()
	var n atomic.Int64
	c, flush := newConsole()
	c.writeJournal = func(f *os.File, line []byte) error {
		here := int(n.Add(1)) == nth
		if here && mode == killHalf {
			line = line[:len(line)/2]
		}
		if !here || mode != killBefore {
			if _, err := f.Write(line); err != nil {
				return err
			}
		}
		if here {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}
	code := start(c, os.Args[1:])
	flush()
	os.Exit(code)
}

// ending is how a program ended.
type ending struct {
	code           int // -1: it was killed
	stdout, stderr string
}

// ran runs the test binary as one of its programs.
func ran(t *testing.T, name, dir, kill string, args ...string) ending {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Args[0] = name
	cmd.Dir = dir
	// There are many of them, each short: they need not collect what they leave.
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), killVariable+"="+kill, "GOGC=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return ending{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// A host that is killed at any line of its journal – before it, in the middle of it, or
// after it – goes on where it was: the output is that of a run which nobody killed,
// what may be done once was done once, and what nobody knows of is not done at all.
func TestKilledAtEveryLine(t *testing.T) {
	const tasks = killedTasks // of three steps each
	model := clerk(t)
	till := newTill(t)
	whole := t.TempDir()
	clerks(t, whole, model.URL, till.URL+"/whole", tasks, "")
	want := ran(t, "crewhost", whole, "", "run", "crew.yaml")
	if want.code != exitOK || !strings.Contains(want.stdout, fmt.Sprintf("Task %d: receipt %d", tasks, 100+tasks)) {
		t.Fatalf("the run that nobody kills: %+v", want)
	}
	calls := till.made("/whole")
	runs, err := journal.List(filepath.Join(whole, "state", "crewhost", "runs"))
	if err != nil || len(runs) != 1 || runs[0].State != journal.Completed {
		t.Fatalf("%+v, %v", runs, err)
	}
	data, err := os.ReadFile(runs[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Count(data, []byte("\n"))

	points := make(chan point)
	var unknown atomic.Int64
	t.Run("all", func(t *testing.T) {
		for worker := range 2 {
			t.Run(fmt.Sprint(worker), func(t *testing.T) {
				t.Parallel()
				for p := range points {
					if killedAt(t, model.URL, till, tasks, fmt.Sprintf("%d:%s", p.nth, p.mode), p.nth == 1, p.nth == lines, want.stdout, calls) {
						unknown.Add(1)
					}
				}
			})
		}
		go func() {
			defer close(points)
			for _, p := range pointsOf(data) {
				points <- p
			}
		}()
	})
	// Each call of pay, which is every third, is unknown after its beginning was written, and
	// before its result was, whole.
	if n := unknown.Load(); n != (tasks+2)/3*3 {
		t.Errorf("%d times it was not known whether a call was made", n)
	}
	t.Logf("%d lines", lines)
}

// point is where a run is killed.
type point struct {
	nth  int
	mode string
}

// pointsOf are all lines of a journal. At those about a call that may be made once, and
// at the first and the last, a run is killed in each way; at the others it is in one,
// and in the next at the next.
func pointsOf(data []byte) (points []point) {
	modes := []string{killBefore, killHalf, killAfter}
	lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	once := false
	for i, line := range lines {
		was := once // it is the result of what is begun in the line before
		once = bytes.Contains(line, []byte(`"effect":"once"`))
		if once || was || i == 0 || i == len(lines)-1 {
			for _, mode := range modes {
				points = append(points, point{i + 1, mode})
			}
			continue
		}
		points = append(points, point{i + 1, modes[i%len(modes)]})
	}
	return points
}

// killedAt kills a run and resumes it. It reports whether the run could not go on, for
// nobody knows whether a call was made.
func killedAt(t *testing.T, model string, till *till, tasks int, kill string, first, last bool, want string, calls []string) (unknown bool) {
	t.Helper()
	dir := t.TempDir()
	clerks(t, dir, model, till.URL+"/"+kill, tasks, "")
	if got := ran(t, "crewhost-killed", dir, kill, "run", "crew.yaml"); got.code != -1 {
		t.Errorf("%s: it was not killed: %+v", kill, got)
		return false
	}
	got := ran(t, "crewhost", dir, "", "run", "--resume", "last")
	made := till.made("/" + kill)
	seen := map[string]int{}
	for _, line := range made {
		if seen[line]++; strings.HasPrefix(line, "pay") && seen[line] > 1 {
			t.Errorf("%s: %s was called twice", kill, line)
		}
	}
	switch {
	case got.code == exitOK && got.stdout == want && len(seen) == len(calls):
		return false
	case got.code == exitFailed && strings.Contains(got.stderr, `the call of the tool "pay" of task "t`) && strings.Contains(got.stderr, "journal.repeatable"):
		return true
	case first && !strings.HasSuffix(kill, killAfter) && got.code == exitUsage && strings.Contains(got.stderr, "nothing to resume"):
		return false // it had not begun
	case last && strings.HasSuffix(kill, killAfter) && got.code == exitUsage && strings.Contains(got.stderr, "nothing to resume"):
		return false // it was over
	}
	t.Errorf("%s: %+v\ncalls: %v", kill, got, made)
	return false
}
