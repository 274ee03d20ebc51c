package event_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"crewhost/runner/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func send(p *event.Pipe, texts ...string) {
	for _, text := range texts {
		p.Send(event.Event{Kind: event.Notice, Text: text})
	}
}

func TestAPipeWritesEverythingInOrder(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := event.NewPipe(w, event.PipeConfig{Backlog: 100})
	read := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(r)
		read <- string(all)
	}()
	const n = 2000
	for i := range n {
		p.Send(event.Event{Kind: event.Notice, Seq: int64(i + 1), Text: strings.Repeat("x", i%100)})
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	send(p, "after the end")
	_ = w.Close()
	all := <-read
	lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	if len(lines) != n || !strings.Contains(lines[n-1], `"seq":2000,`) || !strings.HasPrefix(lines[n-1], "{") {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// A reader who stops reading holds up the run for as long as the pipe is
// patient, and then no more.
func TestAStalledReaderIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		var lost error
		p := event.NewPipe(w, event.PipeConfig{Backlog: 300, Patience: time.Minute, Lost: func(err error) { lost = err }})
		began := time.Now()
		send(p, "1", "2") // no more than may wait
		if took := time.Since(began); took != 0 {
			t.Errorf("held up for %v", took)
		}
		go func() { // slow, and not stalled
			time.Sleep(50 * time.Second)
			_, _ = bufio.NewReaderSize(r, 16).ReadString('\n')
		}()
		send(p, strings.Repeat("x", 200))
		if took := time.Since(began); took < 110*time.Second || took > 2*time.Minute || lost == nil {
			t.Errorf("given up after %v: %v", took, lost)
		}
		send(p, strings.Repeat("x", 300))
		if err := p.Close(); !errors.Is(err, lost) || p.Err() == nil {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("the end was held up: %v", took)
		}
		_ = r.Close()
	})
}

// The end of a run waits no longer either, and less where there is a hurry.
func TestTheEndDoesNotWaitForEver(t *testing.T) {
	for _, hurry := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, w := io.Pipe()
			hurried := make(chan struct{})
			p := event.NewPipe(w, event.PipeConfig{Patience: time.Minute, Hurry: hurried})
			send(p, "1")
			want := time.Minute
			if hurry {
				close(hurried)
				want = 3 * time.Second
			}
			began := time.Now()
			if err := p.Close(); err == nil || !strings.Contains(err.Error(), "nobody reads") || time.Since(began) != want {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			_ = r.Close()
		})
	}
}

func TestAReaderThatIsGoneIsLost(t *testing.T) {
	r, w := io.Pipe()
	_ = r.CloseWithError(errFull)
	lost := make(chan error, 2)
	p := event.NewPipe(w, event.PipeConfig{Lost: func(err error) { lost <- err }})
	send(p, "1")
	if err := <-lost; !errors.Is(err, errFull) {
		t.Error(err)
	}
	send(p, "2", "3")
	if err := p.Close(); !errors.Is(err, errFull) {
		t.Error(err)
	}
	if len(lost) > 0 {
		t.Error("lost twice")
	}
}

func TestAShortWriteIsTheLastLine(t *testing.T) {
	b := &brittle{left: 1, short: true}
	p := event.NewPipe(b, event.PipeConfig{})
	send(p, "1", "2", "3")
	if err := p.Close(); !errors.Is(err, io.ErrShortWrite) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Errorf("%v, %q", err, b.Bytes())
	}
}
