package child

import "io"

// A Guard is one small process for a host. It outlives a host that is killed
// and then kills every tree that the host had started with it, whatever of it
// has left its process group or lost its parent. On Windows, where the system
// does that, it is nothing.
//
// It hears of trees through a pipe which only the host holds open: the end of
// the pipe is the end of the host. It lives in a session of its own and ignores
// SIGINT, SIGTERM and SIGHUP, and on Linux it goes by the name of crew-guard,
// so that what ends the host does not end it.
//
// Its methods may be called at the same time. A nil *Guard guards nothing.
type Guard struct{ guard }

// StartGuard starts the guard process and doesn't wait for it to be ready: what
// is told it meanwhile, it finds in the pipe. argv, whose first item is a path,
// has to run [GuardMain] on its standard input; a host gives its own executable
// and a hidden argument.
//
// The caller closes the Guard, after every Process that was started with it.
func StartGuard(argv []string) (*Guard, error) { return startGuard(argv) }

// Close ends the guard process and waits for it to be gone; no tree is touched,
// and those that are left are without a guard. It may be called again.
func (g *Guard) Close() error {
	if g == nil {
		return nil
	}
	return g.close()
}

// GuardMain is what the guard process runs, with the pipe from its host as
// stdin. It returns when the host is gone and its trees are killed; the error
// says what was still there after some seconds. It changes how the process
// takes signals, so nothing else should run in it.
func GuardMain(stdin io.Reader) error { return guardMain(stdin) }
