package child

import (
	"fmt"
	"time"
)

const (
	// killMargin is what Close waits beyond the shutdown timeout for processes
	// to vanish that were killed. The kernel takes microseconds, except for a
	// process that is stuck in it (a dead network mount).
	killMargin = 2 * time.Second

	// The tree is looked at again after firstLook, then ever more seldom.
	firstLook = time.Millisecond
	lastLook  = 50 * time.Millisecond
)

// Close ends the tree and returns when nobody of it is left, also if the direct
// child had ended long before. It closes stdin and grants half of the shutdown
// timeout; then, or as soon as the direct child has left others behind, it
// sends SIGTERM to all of the tree and grants the other half; then it kills
// them. It takes no longer than the shutdown timeout and two seconds, whoever
// may hold which of the pipes open.
//
// Close may be called again; every call waits for the first and returns its
// error, which says that something could not be killed (it is stuck in the
// kernel, or runs as another user). How the child ended is no error: see
// [Process.Exit].
func (p *Process) Close() error {
	p.close.Do(func() { p.closeErr = p.end() })
	return p.closeErr
}

// Kill kills all of the tree and doesn't wait for it to be gone. Close is still
// due, and quick then.
func (p *Process) Kill() { p.tree.kill() }

func (p *Process) end() error {
	p.stdin.Close()
	p.ended(p.shutdown / 2)
	if !p.gone(time.Now()) {
		p.tree.terminate()
		if !p.gone(time.Now().Add(p.shutdown/2)) && !p.vanish(time.Now().Add(killMargin)) {
			p.stderr.close()
			p.stdout.Close()
			return fmt.Errorf("ending %s: killed, but not gone after %v", p.label, killMargin)
		}
	}
	p.stderr.close()
	p.stdout.Close()
	p.running.Wait()
	// The guard forgets the tree before its pid can be given to others.
	p.guard.forget(p.marker)
	p.tree.release()
	return nil
}

// ended waits for the direct child to end, for at most d.
func (p *Process) ended(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// gone waits for the direct child to end and the rest of the tree to be empty,
// until the deadline. It looks at least once.
func (p *Process) gone(deadline time.Time) bool {
	if !p.ended(time.Until(deadline)) {
		return false
	}
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		if p.tree.empty() {
			return true
		}
		if time.Now().Add(pause).After(deadline) {
			return false
		}
		time.Sleep(pause) //nolint:forbidigo // the end of another's process is no event
	}
}

// vanish kills the tree until it is empty. Once is not enough where a process
// forks while it is looked for.
func (p *Process) vanish(deadline time.Time) bool {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		p.tree.kill()
		if p.gone(time.Now().Add(pause)) {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
