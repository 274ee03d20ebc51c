package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// A waiting has tools that wait to be released or cancelled.
type waiting struct {
	running chan string
	release chan struct{}
	ended   chan error
}

func newWaiting() *waiting {
	return &waiting{running: make(chan string, 1000), release: make(chan struct{}), ended: make(chan error, 1000)}
}

func (w *waiting) tool(name string) tool {
	return named(name, func(ctx context.Context, c tools.Call) (tools.Result, error) {
		w.running <- string(c.Arguments)
		select {
		case <-w.release:
			return tools.Text("released"), nil
		case <-ctx.Done():
			w.ended <- ctx.Err()
			return tools.Result{}, ctx.Err()
		}
	})
}

func (w *waiting) begun(t testing.TB, n int) {
	t.Helper()
	for range n {
		select {
		case <-w.running:
		case <-time.After(patience):
			t.Fatal("the tool is not called")
		}
	}
}

func (w *waiting) cancelled(t testing.TB) {
	t.Helper()
	select {
	case <-w.ended:
	case <-time.After(patience):
		t.Fatal("the call is not cancelled")
	}
}

const handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n" +
	`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// K77, I6: what was read is answered although the input has ended, the last line
// without an end as well.
func TestAnswersAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := named("slow", func(context.Context, tools.Call) (tools.Result, error) {
			time.Sleep(time.Second) // of the test's clock
			return tools.Text("late"), nil
		})
		s := serverOf(t, server.Config{}, slow)
		for name, in := range map[string]string{
			"legacy":                  handshake + legacyLine("1", "tools/list", "") + "\n" + legacyLine("2", "tools/call", `"name":"slow"`) + "\n",
			"legacy, no end":          handshake + legacyLine("1", "tools/list", "") + "\n" + legacyLine("2", "tools/call", `"name":"slow"`),
			"legacy, other ends":      strings.ReplaceAll(handshake+legacyLine("1", "tools/list", "")+"\n"+legacyLine("2", "tools/call", `"name":"slow"`)+"\n", "\n", "\r\n"),
			"modern, and a handshake": modernLine("1", "tools/list", "") + "\n" + modernLine("2", "tools/call", `"name":"slow"`) + "\n" + handshake,
		} {
			var out bytes.Buffer
			if err := s.ServeStdio(context.Background(), strings.NewReader(in), &out); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "late") || strings.Contains(out.String(), `"error"`) {
				t.Errorf("%s: %s", name, out.String())
			}
		}
	})
}

// I6: what doesn't end within the grace is cancelled, its cleanup is waited for, and
// that is no error. What waits for the client is not waited for.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		var log bytes.Buffer
		s := serverOf(t, server.Config{Budgets: server.Budgets{Grace: 3 * time.Second}, Logger: slog.New(slog.NewTextHandler(&log, nil))}, w.tool("wait"))
		for _, era := range []func(id, method, params string) string{legacyLine, modernLine} {
			var out bytes.Buffer
			begin := time.Now()
			in, hold := io.Pipe()
			go func() {
				_, _ = io.WriteString(hold, handshake+era("1", "tools/call", `"name":"wait"`)+"\n"+modernLine("2", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)+"\n")
				synctest.Wait() // both have begun
				hold.Close()
			}()
			if err := s.ServeStdio(context.Background(), in, &out); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took != 3*time.Second {
				t.Errorf("it took %s", took)
			}
			w.cancelled(t)
			if !strings.Contains(log.String(), "cancelled\" requests=1 grace=3s") {
				t.Errorf("nobody is told: %s", &log)
			}
			log.Reset()
			if !strings.Contains(out.String(), `"resultType":"complete","_meta":{"io.modelcontextprotocol/`) {
				t.Errorf("the subscription did not end: %s", out.String())
			}
		}
	})
}

// I6: a call that does not end when it is cancelled keeps nobody for ever.
func TestGraceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		s := serverOf(t, server.Config{}, named("deaf", func(context.Context, tools.Call) (tools.Result, error) {
			<-release
			return tools.Result{}, nil
		}))
		for _, era := range []func(id, method, params string) string{legacyLine, modernLine} {
			begin := time.Now()
			if err := s.ServeStdio(context.Background(), strings.NewReader(handshake+era("1", "tools/call", `"name":"deaf"`)), io.Discard); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took < 10*time.Second || took > 12*time.Second {
				t.Errorf("it took %s, with a grace of 5 s for answers and 5 s for cleaning up", took)
			}
		}
		close(release)
	})
}

// I5: requests run at the same time, and answers come in any order; one is cancelled
// in either era, and the others go on. What is answered or unknown is passed over.
func TestCancellation(t *testing.T) {
	w := newWaiting()
	c := dial(t, serverOf(t, server.Config{}, w.tool("wait"), echo("echo")))
	c.hello("2025-11-25", "{}")
	for _, era := range []func(id, method, params string) string{legacyLine, modernLine} {
		c.say(era(`"a"`, "tools/call", `"name":"wait"`), era("1", "tools/call", `"name":"wait"`))
		w.begun(t, 2)
		if m := c.ask(era("2", "tools/call", `"name":"echo"`)); string(m.ID) != "2" {
			t.Fatalf("got %s", m.line)
		}
		c.say(
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"enough"}}`,
		)
		w.cancelled(t)
		c.wantPing() // and no answer to what was cancelled
		select {
		case <-w.ended:
			t.Error("another call was cancelled")
		default:
		}
		w.release <- struct{}{}
		if m := c.next(); string(m.ID) != "1" || m.Error != nil {
			t.Errorf("got %s", m.line)
		}
	}
}

// broken fails after so many bytes. Before it fails to read, all else has come to rest.
type broken struct{ left int }

var errBroken = errors.New("broken pipe")

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func (b *broken) Read([]byte) (int, error) {
	synctest.Wait()
	return 0, errBroken
}

// I6: where in or out fails, calls are cancelled at once and the failure is told.
func TestFailureOfThePipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWaiting()
		s := serverOf(t, server.Config{}, w.tool("wait"))
		begin := time.Now()
		in := io.MultiReader(strings.NewReader(handshake+legacyLine("1", "tools/call", `"name":"wait"`)+"\n"), &broken{})
		if err := s.ServeStdio(context.Background(), in, io.Discard); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "reading from the client: ") {
			t.Errorf("reading: %v", err)
		}
		w.cancelled(t)

		r, hold := io.Pipe()
		go func() {
			_, _ = io.WriteString(hold, handshake+modernLine("1", "tools/call", `"name":"wait"`)+"\n")
			w.begun(t, 1)
			_, _ = io.WriteString(hold, modernLine("2", "tools/list", "")+"\n")
		}()
		w.begun(t, 1)
		if err := s.ServeStdio(context.Background(), r, &broken{left: 400}); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "writing to the client: ") {
			t.Errorf("writing: %v", err)
		}
		w.cancelled(t)
		if took := time.Since(begin); took > time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

// The end of the context ends everything, also where the client neither writes nor
// reads.
func TestContextEnds(t *testing.T) {
	w := newWaiting()
	s := serverOf(t, server.Config{Budgets: server.Budgets{Grace: 100 * time.Millisecond}}, w.tool("wait"), echo("echo"))
	c := dial(t, s)
	c.hello("2025-11-25", "{}")
	c.say(legacyLine("1", "tools/call", `"name":"wait"`), modernLine("2", "tools/call", `"name":"wait"`))
	w.begun(t, 2)
	end := errors.New("that is all")
	c.end(end)
	if err := <-c.done; !errors.Is(err, end) {
		t.Errorf("got %v", err)
	}
	w.cancelled(t)
	w.cancelled(t)

	ctx, cancel := context.WithCancelCause(context.Background())
	inR, inW := io.Pipe()
	outR, outW := io.Pipe() // that nobody reads
	defer outR.Close()      // a write that is under way ends with it
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(ctx, inR, outW) }()
	// I7: what the server takes in for a client that doesn't read has a bound.
	taken := make(chan int, 1)
	go func() {
		n := 0
		defer func() { taken <- n }()
		for ; n < 10_000; n++ {
			if _, err := io.WriteString(inW, modernLine("1"+strings.Repeat("0", n%10), "tools/list", "")+"\n"); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 10)
	_, _ = outR.Read(buf) // it has begun to answer
	cancel(end)
	if err := <-done; !errors.Is(err, end) {
		t.Errorf("got %v", err)
	}
	if n := <-taken; n > 1000 {
		t.Errorf("%d requests were read", n)
	}
}
