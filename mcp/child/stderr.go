package child

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	maxLine = 8 << 10

	// settleTime is how long the end of stderr is waited for once the direct
	// child has ended: what it wrote last is in the pipe already, unless a
	// descendant keeps the pipe open.
	settleTime = 100 * time.Millisecond
)

// A tail reads all of a stream, keeps its end, and passes its lines on.
type tail struct {
	src   *os.File
	limit int
	emit  func(line string)

	mu   sync.Mutex
	kept []byte // at most 2*limit
	cut  bool   // whether something before kept was dropped

	line    []byte // the line that has not ended yet; touched by drain alone
	drained chan struct{}
}

func newTail(src *os.File, limit int, emit func(string)) *tail {
	if limit <= 0 {
		limit = DefaultStderrLimit
	}
	return &tail{src: src, limit: limit, emit: emit, drained: make(chan struct{})}
}

// drain reads to the end of the stream, or until close.
func (t *tail) drain() {
	defer close(t.drained)
	defer t.src.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := t.src.Read(buf)
		t.add(buf[:n])
		if err != nil {
			break
		}
	}
	if t.emit != nil && len(t.line) > 0 {
		t.flush()
	}
}

func (t *tail) add(b []byte) {
	t.mu.Lock()
	t.kept = append(t.kept, b...)
	if len(t.kept) > 2*t.limit {
		// Moved only when it has doubled, so that a byte is copied once.
		t.kept = t.kept[:copy(t.kept, t.kept[len(t.kept)-t.limit:])]
		t.cut = true
	}
	t.mu.Unlock()
	if t.emit == nil {
		return
	}
	for len(b) > 0 {
		piece, rest, ended := bytes.Cut(b, []byte("\n"))
		t.line = append(t.line, piece[:min(len(piece), maxLine-len(t.line))]...)
		if ended {
			t.flush()
		}
		b = rest
	}
}

func (t *tail) flush() {
	line := strings.ToValidUTF8(strings.TrimSuffix(string(t.line), "\r"), "\uFFFD")
	t.line = t.line[:0]
	t.emit(line)
}

// settle waits for the end of the stream, for at most settleTime.
func (t *tail) settle() {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	select {
	case <-t.drained:
	case <-timer.C:
	}
}

// close ends drain, whoever may hold the other end open.
func (t *tail) close() { t.src.Close() }

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, cut := t.kept, t.cut
	if len(kept) > t.limit {
		kept, cut = kept[len(kept)-t.limit:], true
	}
	if cut {
		if _, after, ok := bytes.Cut(kept, []byte("\n")); ok && len(after) > 0 {
			kept = after
		}
	}
	return strings.ToValidUTF8(string(kept), "")
}
