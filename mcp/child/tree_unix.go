//go:build linux || darwin

package child

import (
	"os"
	"strings"
	"sync"
	"syscall"
)

// A mark is what a tree is recognised by.
type mark struct {
	marker string
	pid    int    // of the direct child, and so of its group
	start  uint64 // when the direct child started, in the system's own unit
}

// A tree is the direct child and its descendants.
type tree struct {
	mark
	proc   *os.Process
	census *census

	mu       sync.Mutex
	known    []process // members that were alive when last looked for
	released bool      // whether the pid may be someone else's by now
}

// launch starts the child. The calling goroutine is locked to its thread.
func launch(path string, cfg Config, marker string, files [3]*os.File) (*tree, error) {
	proc, err := os.StartProcess(path, append([]string{cfg.Command}, cfg.Args...), &os.ProcAttr{
		Dir:   cfg.Dir,
		Env:   treeEnv(cfg.Env, os.Getenv(TreeVariable), marker),
		Files: files[:],
		Sys:   groupLeader(),
	})
	if err != nil {
		return nil, err
	}
	self, _ := look(proc.Pid)
	return &tree{
		mark:   mark{marker: marker, pid: proc.Pid, start: self.start},
		proc:   proc,
		census: cfg.Guard.shared(),
	}, nil
}

// wait waits for the direct child to end and leaves it to be reaped.
func (t *tree) wait() Exit {
	status, err := waitExit(t.pid)
	if err != nil {
		// Someone else in this process reaps all children.
		return Exit{Code: -1}
	}
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal().String()}
	}
	return Exit{Code: status.ExitStatus()}
}

// empty reports whether all of the tree has ended.
func (t *tree) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.find()) == 0
}

// terminate asks all of the tree to end.
func (t *tree) terminate() { t.signal(syscall.SIGTERM) }

// kill ends those of the tree that are there now.
func (t *tree) kill() { t.signal(syscall.SIGKILL) }

func (t *tree) signal(sig syscall.Signal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.released {
		return
	}
	// Looked for before anybody dies: whose parent is gone is harder to find.
	found := t.find()
	_ = syscall.Kill(-t.pid, sig)
	for _, p := range found {
		if p.group != t.pid {
			p.signal(sig)
		}
	}
}

// find looks for the living members of the tree. One that was a member stays
// one until it is dead, even if nothing tells it any more: a process that is
// ending has lost its environment already, and its parent perhaps.
func (t *tree) find() []process {
	all := t.census.take()
	t.known = members(all, t.mark, t.known...)
	return t.known
}

// release reaps the direct child, which has ended, and so gives its pid free.
// The last blow is for a system on which processes can't be listed.
func (t *tree) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = true
	_ = syscall.Kill(-t.pid, syscall.SIGKILL)
	_, _ = t.proc.Wait()
}

// A process is an entry of the system's process table.
type process struct {
	pid, parent, group int
	start              uint64
	dead               bool   // ended, and not yet reaped
	markers            string // the value of TreeVariable
}

// signal signals the process if it is still the one that was listed.
func (p process) signal(sig syscall.Signal) {
	handle, release := hold(p.pid)
	defer release()
	if now, ok := look(p.pid); ok && now.start == p.start {
		_ = handle(sig)
	}
}

// members are the living processes of a tree, in the order of all: by their
// group, by their marker, because they were before, or by their parent. The
// host is none of them, whatever its environment says.
func members(all []process, m mark, before ...process) []process {
	host := os.Getpid()
	group := m.pid
	in := make(map[int]bool)
	started := make(map[int]uint64)
	for _, p := range before {
		started[p.pid] = p.start
	}
	for _, p := range all {
		if p.pid == m.pid && p.start != m.start {
			group = 0 // the number was given out again
		}
	}
	for _, p := range all {
		start, was := started[p.pid]
		in[p.pid] = group > 0 && p.group == group || strings.Contains(p.markers, m.marker) || was && start == p.start
	}
	in[host] = false
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] && p.pid != host {
				in[p.pid], grown = true, true
			}
		}
	}
	var found []process
	for _, p := range all {
		if in[p.pid] && !p.dead {
			found = append(found, p)
		}
	}
	return found
}

// A census lists the processes of the system for all who ask at the same time:
// twenty trees that end together look at the table a few times, not twenty
// each.
type census struct {
	counting sync.Mutex // held while the table is read
	mu       sync.Mutex
	next     *count // the count that has not begun
}

type count struct {
	once sync.Once
	all  []process
}

// take lists the processes as they are after the call. The result is shared and
// not to be changed.
func (c *census) take() []process {
	c.mu.Lock()
	n := c.next
	if n == nil {
		n = new(count)
		c.next = n
	}
	c.mu.Unlock()
	n.once.Do(func() {
		c.counting.Lock()
		defer c.counting.Unlock()
		// Whoever comes from now on may know of a younger process.
		c.mu.Lock()
		c.next = nil
		c.mu.Unlock()
		host, _ := look(os.Getpid())
		n.all = processes(host.start)
	})
	return n.all
}
