// Package child starts programs, supervises them, and ends them as whole trees.
//
// A server that is started as a command is rarely one process: npx forks node,
// a shell forks what it wraps, and some leave daemons behind. Killing the
// process that was started kills the wrapper alone. So everything here is about
// the tree: a [Process] is the direct child together with all that came of it,
// and after [Process.Close] none of it is left.
//
//	p, err := child.Start(ctx, child.Config{
//		Command: "npx",
//		Args:    []string{"-y", "@modelcontextprotocol/server-memory"},
//		Env:     child.Environ(os.Environ(), []string{"TOKEN=t1"}),
//		Guard:   guard,
//	})
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	// speak on p.Stdin() and p.Stdout()
//
// # How a tree is known
//
// On Linux and macOS the direct child leads a process group of its own. Its
// environment carries the variable [TreeVariable] with a random marker, which
// descendants inherit. A process belongs to the tree if it is in the group, if
// it carries the marker (read from /proc, so on Linux alone), or if its parent
// belongs to the tree. That finds those which left the group with setsid and
// those whose parents are gone; only who has dropped environment, group and
// parent alike is lost. On Windows the tree is a job object.
//
// # When the host ends
//
// A host that ends in good order closes its children. For one that does not
// (kill -9, a crash, the out-of-memory killer) there are two more lines of
// defence. The kernel kills the direct child with its parent (Linux: a
// parent-death signal; Windows: the job object). And a [Guard], one small
// process for a host, outlives it and kills what is left of every tree.
//
// # Never a process of others
//
// A pid is only a number, and numbers are given out again. The direct child is
// therefore not reaped before Close has ended its tree: while it waits to be
// reaped, its pid, which is also the number of its group, cannot be given to
// another process. Any other process is signalled through a handle of it
// (Linux: a pidfd) after a look that it still is the one that was found (W2).
package child

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// DefaultShutdownTimeout is the time between the closing of stdin and the
	// kill, for a Config that gives none.
	DefaultShutdownTimeout = 4 * time.Second

	// DefaultStderrLimit is the number of bytes of stderr that are kept, for a
	// Config that gives none.
	DefaultStderrLimit = 64 << 10

	// TreeVariable is the environment variable by which the processes of a tree
	// are found. Its value is the marker of the tree; where one host runs below
	// another, it is the markers from the outermost to the innermost, with
	// slashes between them, so that the outer host still finds everyone.
	TreeVariable = "CREWHOST_TREE"

	// HostsVariable is the environment variable that says which hosts a process
	// runs under. It is for hosts to read and to write; here it is only passed on.
	HostsVariable = "CREWHOST_SERVING"
)

// Config says what to start.
type Config struct {
	// Command is the program: a path, or a name to be looked up in the PATH of
	// Env (of the host, if Env has none). A relative path is relative to Dir.
	// No shell is involved, anywhere.
	Command string

	// Args are the arguments, without the command. Each arrives byte for byte
	// as one item, spaces, quotes and emptiness included (K07).
	Args []string

	// Env is the whole environment, as [Environ] makes it. Nothing is added to
	// it but [TreeVariable].
	Env []string

	// Dir is the working directory; the host's own, if empty.
	Dir string

	// Label is what errors call the command. If empty, it is the quoted
	// argument list. A caller whose arguments hold secrets gives its own.
	Label string

	// ShutdownTimeout is the time that Close grants from closing stdin to the
	// kill: half of it to leave by oneself, the other half after SIGTERM. Zero
	// or less means [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration

	// StderrLimit is how many bytes of stderr are kept, the last ones; zero or
	// less means [DefaultStderrLimit]. All of stderr is read in any case, so a
	// talkative child never blocks.
	StderrLimit int

	// Stderr, if set, is called with each line of stderr as it comes, without
	// its line ending, cut to 8 KiB. Calls come one after another from a
	// goroutine of the Process, and stderr is not read meanwhile: be quick.
	Stderr func(line string)

	// Guard, if set, kills the tree should the host die.
	Guard *Guard
}

// A Process is a running child and its tree. Who starts it closes it: until
// Close, a child that has ended by itself keeps its entry in the process table,
// and what it left behind runs on.
//
// All methods may be called at the same time.
type Process struct {
	label    string
	shutdown time.Duration
	guard    *Guard
	tree     *tree
	marker   string

	stdin  *os.File
	stdout *os.File
	stderr *tail

	running sync.WaitGroup // the waiting and the draining goroutine
	done    chan struct{}
	exit    Exit // written before done is closed

	close    sync.Once
	closeErr error
}

// Exit is how a direct child ended.
type Exit struct {
	Code   int    // the exit status; -1 if a signal ended the process, or nobody knows
	Signal string // the name of that signal, such as "killed"; else empty
}

// String is "exit status 3" or "signal: killed".
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Start starts the command that cfg describes and returns without waiting for
// anything it does. The context bounds the start alone: it is not kept, and its
// end does not end the child.
//
// The error names the command and keeps its cause: [os/exec.ErrNotFound] for a
// name that is not in PATH, [io/fs.ErrNotExist] for a path that does not exist.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	label := cfg.Label
	if label == "" {
		label = Quote(append([]string{cfg.Command}, cfg.Args...))
	}
	p, err := start(ctx, cfg, label)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", label, err)
	}
	return p, nil
}

func start(ctx context.Context, cfg Config, label string) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	path, err := lookPath(cfg.Command, cfg.Env)
	if err != nil {
		return nil, err
	}
	if cfg.Dir != "" {
		// The system's own error would be that of a missing command.
		if _, err := os.Stat(cfg.Dir); err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
	}
	var std pipes
	if err := std.open(); err != nil {
		return nil, err
	}

	p := &Process{
		label:    label,
		shutdown: cfg.ShutdownTimeout,
		guard:    cfg.Guard,
		marker:   rand.Text(),
		stdin:    std.host[0],
		stdout:   std.host[1],
		stderr:   newTail(std.host[2], cfg.StderrLimit, cfg.Stderr),
		done:     make(chan struct{}),
	}
	if p.shutdown <= 0 {
		p.shutdown = DefaultShutdownTimeout
	}

	// The guard hears of the marker before the tree exists: a host that dies
	// between here and the next message still leaves nobody behind.
	p.guard.expect(p.marker)
	launched := make(chan error)
	p.running.Go(func() {
		// The parent-death signal comes when the thread that forked ends, not
		// the process. This goroutine forks and then waits for the child,
		// holding on to its thread all the while: the thread cannot end before
		// the child or the host does. It costs nothing, as waiting for a
		// process occupies a thread anyway.
		runtime.LockOSThread()
		t, err := launch(path, cfg, p.marker, std.child)
		if err != nil {
			runtime.UnlockOSThread()
			launched <- err
			return
		}
		p.tree = t
		launched <- nil
		p.exit = t.wait()
		runtime.UnlockOSThread()
		p.stderr.settle()
		close(p.done)
	})
	err = <-launched
	closeAll(std.child[:])
	if err != nil {
		p.guard.forget(p.marker)
		closeAll(std.host[:])
		return nil, err
	}
	p.guard.watch(p.tree)
	p.running.Go(p.stderr.drain)
	return p, nil
}

// Stdin is the host's end of the child's standard input. On Linux and macOS it
// takes write deadlines: a child that does not read cannot hold its host up
// beyond one. Close closes it, and so may the caller.
func (p *Process) Stdin() *os.File { return p.stdin }

// Stdout is the host's end of the child's standard output. On Linux and macOS
// it takes read deadlines. Close closes it, after the tree is gone.
func (p *Process) Stdout() *os.File { return p.stdout }

// Pid is the process id of the direct child.
func (p *Process) Pid() int { return p.tree.pid }

// Done is closed when the direct child has ended, by itself or otherwise, and
// what it wrote to stderr is there in [Process.Stderr]. Others of the tree may
// run on. It comes without a call of Close, which is due all the same.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how the direct child ended. It is false as long as Done is open.
func (p *Process) Exit() (Exit, bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

// Stderr is the end of what was written to stderr so far, by the child or
// others of its tree: at most StderrLimit bytes of valid UTF-8, from the start
// of a line if something before it was dropped.
func (p *Process) Stderr() string { return p.stderr.String() }

// pipes are the standard streams: stdin, stdout and stderr, each with the end
// that the host keeps and the one that the child gets.
type pipes struct{ host, child [3]*os.File }

func (s *pipes) open() error {
	for i := range s.host {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(s.host[:])
			closeAll(s.child[:])
			return err
		}
		if s.host[i], s.child[i] = r, w; i == 0 {
			s.host[i], s.child[i] = w, r
		}
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// treeEnv is env with the marker as its first entry, behind the markers of the
// hosts that this one runs under.
func treeEnv(env []string, outer, marker string) []string {
	if outer != "" {
		marker = outer + "/" + marker
	}
	all := append(make([]string, 0, len(env)+1), TreeVariable+"="+marker)
	for _, entry := range env {
		if !strings.HasPrefix(entry, TreeVariable+"=") {
			all = append(all, entry)
		}
	}
	return all
}
