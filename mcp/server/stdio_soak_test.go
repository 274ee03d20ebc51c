package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
)

// Whatever a client does, in whatever order: each request that it has not cancelled
// is answered once, none twice, and nothing is left when it goes (I5, I6). Run with
// -race it is also what finds two that meet.
func TestManyThingsAtOnce(t *testing.T) { synctest.Test(t, manyThingsAtOnce) }

func manyThingsAtOnce(t *testing.T) {
	g, reg := guard(t, append(askers(), echo("echo"),
		named("steps", func(_ context.Context, c tools.Call) (tools.Result, error) {
			for i := range 10 {
				if c.Progress != nil {
					c.Progress(tools.Progress{Done: float64(i + 1)})
				}
			}
			return tools.Text("done"), nil
		}),
		named("wait", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
			<-ctx.Done()
			return tools.Result{}, ctx.Err()
		}),
	))
	lib := new(library)
	s := serverOf(t, server.Config{Guard: g, Resources: lib, Prompts: lib, Budgets: server.Budgets{ConcurrentRequests: 8}})
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		in, out, err := soak(s, reg, lib, random)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for id, want := range in {
			if got := out[id]; got > 1 || got < want {
				t.Errorf("seed %d: request %d has %d answers, want %d", seed, id, got, want)
			}
		}
		for id := range out {
			if _, ok := in[id]; !ok && id >= 0 {
				t.Errorf("seed %d: an answer to %d, which was not asked", seed, id)
			}
		}
	}
}

// soak is one client that does many things. It returns how many answers each request
// must have at least, and how many it had.
func soak(s *server.Server, reg interface {
	Add(tools.Tool) error
	Remove(string) bool
}, lib *library, random *rand.Rand) (wanted, had map[int]int, err error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.ServeStdio(context.Background(), inR, outW)
		outW.Close()
		done <- err
	}()
	wanted, had = map[int]int{}, map[int]int{}
	read := make(chan error, 1)
	go func() {
		scan := bufio.NewScanner(outR)
		for scan.Scan() {
			var m struct {
				ID     *int
				Method string
			}
			if err := json.Unmarshal(scan.Bytes(), &m); err != nil {
				read <- fmt.Errorf("%s: %w", scan.Bytes(), err)
				return
			}
			if m.Method == "" && m.ID != nil {
				had[*m.ID]++
			}
		}
		read <- nil
	}()
	say := func(line string) { _, _ = io.WriteString(inW, line+"\n") }
	say(strings.Replace(strings.TrimSpace(handshake), `"id":0`, `"id":-1`, 1))
	n := 0
	for range 40 {
		era := []func(id, method, params string) string{legacyLine, modernLine}[random.IntN(2)]
		id, answers := fmt.Sprint(n), 1
		switch random.IntN(12) {
		case 0:
			say(era(id, "tools/list", ""))
		case 1:
			say(era(id, "tools/call", `"name":"echo","arguments":{"a":1}`))
		case 2:
			say(strings.Replace(modernLine(id, "tools/call", `"name":"steps"`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1))
		case 3:
			say(era(id, "tools/call", `"name":"wait"`))
			answers = 0 // it has one if there was no place for it
		case 4:
			say(modernLine(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["mem:///a"]}`))
			answers = 0
		case 5:
			say(ask(id, "name", ""))
		case 6:
			say(legacyLine(id, "resources/subscribe", `"uri":"mem:///b"`))
		case 7:
			say(era(id, "resources/read", `"uri":"mem:///a"`))
		case 8:
			say(era(id, "nothing/like/it", ""))
		case 9:
			if random.IntN(2) == 0 {
				_ = reg.Add(echo("more"))
			} else {
				reg.Remove("more")
			}
			s.Refresh()
			lib.change("mem:///a")
			lib.change("mem:///b")
			continue
		default:
			if n == 0 {
				continue
			}
			which := random.IntN(n)
			wanted[which] = 0
			say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, which))
			continue
		}
		wanted[n] = answers
		n++
	}
	inW.Close()
	select {
	case err = <-done:
	case <-time.After(time.Minute):
		err = fmt.Errorf("the server does not end")
	}
	if rerr := <-read; err == nil {
		err = rerr
	}
	return wanted, had, err
}
