//go:build linux || darwin

package child

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// What a host tells its guard, a line each:
//
//	? marker              a tree with this marker is about to be started
//	+ marker pid start    it has been, with this direct child
//	- marker              it has ended
//
// A line is shorter than what a pipe takes in one piece, so none is ever cut.
const (
	sayExpect = "?"
	sayWatch  = "+"
	sayForget = "-"
)

const (
	// sayTimeout is how long a host waits for a guard that does not read. A
	// pipe holds a thousand messages, so only one that is stopped does not.
	sayTimeout = time.Second

	// avengeTimeout is how long a guard tries to kill those that are left.
	avengeTimeout = 5 * time.Second
)

type guard struct {
	census census

	mu     sync.Mutex
	pipe   *os.File
	proc   *os.Process
	deaf   bool // nothing more is to be said
	closed bool
}

func startGuard(argv []string) (*Guard, error) {
	if len(argv) == 0 {
		return nil, errors.New("starting guard: no command")
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting guard: %w", err)
	}
	defer r.Close()
	// It must not hold the host's output open, or whoever reads that would wait
	// for it.
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("starting guard: %w", err)
	}
	defer null.Close()
	env := Environ(os.Environ(), nil)
	if outer := os.Getenv(TreeVariable); outer != "" {
		env = append(env, TreeVariable+"="+outer)
	}
	proc, err := os.StartProcess(argv[0], argv, &os.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: []*os.File{r, null, null},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		w.Close()
		return nil, fmt.Errorf("starting guard %s: %w", Quote(argv), err)
	}
	return &Guard{guard{pipe: w, proc: proc}}, nil
}

// close kills the guard process while the pipe is still open, so that it can't
// take the end of the pipe for the end of the host. There is nothing that it
// would have to do before.
func (g *guard) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed, g.deaf = true, true
	defer g.pipe.Close()
	if err := g.proc.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending guard: %w", err)
	}
	if _, err := g.proc.Wait(); err != nil {
		return fmt.Errorf("ending guard: %w", err)
	}
	return nil
}

// shared is the census of all trees with the same guard.
func (g *Guard) shared() *census {
	if g == nil {
		return new(census)
	}
	return &g.census
}

func (g *Guard) expect(marker string) { g.tell(sayExpect, marker) }
func (g *Guard) forget(marker string) { g.tell(sayForget, marker) }

func (g *Guard) watch(t *tree) {
	g.tell(sayWatch, t.marker, strconv.Itoa(t.pid), strconv.FormatUint(t.start, 10))
}

func (g *Guard) tell(words ...string) {
	if g != nil {
		g.say(words...)
	}
}

// say writes a line. A guard that is gone or stuck is not spoken to again: the
// host does its work without it.
func (g *guard) say(words ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.deaf {
		return
	}
	_ = g.pipe.SetWriteDeadline(time.Now().Add(sayTimeout))
	if _, err := io.WriteString(g.pipe, strings.Join(words, " ")+"\n"); err != nil {
		g.deaf = true
	}
}

func guardMain(stdin io.Reader) error {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	rename("crew-guard")
	return avenge(listen(stdin))
}

// listen reads what the host says until it is gone, and returns the trees that
// are left, by their markers.
func listen(r io.Reader) map[string]mark {
	trees := make(map[string]mark)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) < 2:
		case words[0] == sayExpect:
			trees[words[1]] = mark{marker: words[1]}
		case words[0] == sayForget:
			delete(trees, words[1])
		case words[0] == sayWatch && len(words) == 4:
			m := mark{marker: words[1]}
			pid, err := strconv.Atoi(words[2])
			start, err2 := strconv.ParseUint(words[3], 10, 64)
			// To kill "group 0" or "group 1" would be to kill everybody.
			if err == nil && err2 == nil && pid > 1 {
				m.pid, m.start = pid, start
			}
			trees[m.marker] = m
		}
	}
	return trees
}

// avenge kills the trees and looks again until nobody is left. It is content
// when it has seen nobody twice: a process in the moment of its exec shows no
// marker.
func avenge(trees map[string]mark) error {
	deadline := time.Now().Add(avengeTimeout)
	for nobody := 0; len(trees) > 0 && nobody < 2; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // the end of another's process is no event
		all := processes(0)
		nobody++
		var left []int
		for _, m := range trees {
			found := members(all, m)
			// One blow for all of the group, also for those who come just now.
			if slices.ContainsFunc(found, func(p process) bool { return m.pid > 1 && p.group == m.pid }) {
				_ = syscall.Kill(-m.pid, syscall.SIGKILL)
			}
			for _, p := range found {
				p.signal(syscall.SIGKILL)
				left = append(left, p.pid)
			}
		}
		if len(left) > 0 {
			nobody = 0
			if time.Now().After(deadline) {
				slices.Sort(left)
				return fmt.Errorf("killed, but not gone after %v: processes %v", avengeTimeout, slices.Compact(left))
			}
		}
	}
	return nil
}
