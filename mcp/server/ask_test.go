package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crewhost/mcp/server"
	"crewhost/tools"
)

const nameForm = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`

// asking is a tool that asks by ask what its result says.
func asking(name string, ask func(context.Context, server.Caller) (string, error)) tool {
	return named(name, func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		caller, ok := server.CallerFrom(ctx)
		if !ok {
			return tools.Failure("nobody calls"), nil
		}
		said, err := ask(ctx, caller)
		if err != nil {
			return tools.Failure(err.Error()), nil
		}
		return tools.Text(said), nil
	})
}

// elicit asks one name.
func elicit(ctx context.Context, c server.Caller, message string) (string, error) {
	e, err := c.Elicit(ctx, message, json.RawMessage(nameForm))
	if err != nil {
		return "", err
	}
	return fmt.Sprint(e.Action, " ", e.Content["name"]), nil
}

func askers() []tool {
	return []tool{
		asking("name", func(ctx context.Context, c server.Caller) (string, error) { return elicit(ctx, c, "Your name?") }),
		asking("twice", func(ctx context.Context, c server.Caller) (string, error) {
			one, err := elicit(ctx, c, "One?")
			if err != nil {
				return "", err
			}
			two, err := elicit(ctx, c, "Two?")
			return one + ", " + two, err
		}),
		asking("sample", func(ctx context.Context, c server.Caller) (string, error) {
			raw, err := c.Sample(ctx, json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}],"maxTokens":9}`))
			var res struct{ Content json.RawMessage }
			_ = json.Unmarshal(raw, &res)
			return string(res.Content), err
		}),
		asking("roots", func(ctx context.Context, c server.Caller) (string, error) {
			raw, err := c.Roots(ctx)
			return string(raw), err
		}),
		asking("all", func(ctx context.Context, c server.Caller) (string, error) {
			var group sync.WaitGroup
			said := make([]string, 3)
			errs := make([]error, 3)
			for i, ask := range []func() (string, error){
				func() (string, error) { return elicit(ctx, c, "Your name?") },
				func() (string, error) {
					raw, err := c.Sample(ctx, json.RawMessage(`{"messages":[],"maxTokens":9}`))
					return string(raw), err
				},
				func() (string, error) {
					raw, err := c.Roots(ctx)
					return string(raw), err
				},
			} {
				group.Go(func() { said[i], errs[i] = ask() })
			}
			group.Wait()
			return strings.Join(said, "|"), errors.Join(errs...)
		}),
		asking("short", func(ctx context.Context, c server.Caller) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			_, err := elicit(ctx, c, "Quick?")
			return fmt.Sprint("waited: ", err), nil
		}),
		asking("log", func(ctx context.Context, c server.Caller) (string, error) {
			c.Log(ctx, "debug", "l", "not asked for")
			c.Log(ctx, "warning", "l", map[string]any{"n": 1})
			return "logged", nil
		}),
	}
}

// A round is an answer that asks.
type round struct {
	ResultType    string
	RequestState  string
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
}

func (r round) keys() []string {
	var keys []string
	for key := range r.InputRequests {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func roundOf(t testing.TB, m message) round {
	t.Helper()
	var r round
	if err := json.Unmarshal(m.Result, &r); err != nil || r.ResultType != "input_required" || r.RequestState == "" || len(r.InputRequests) == 0 {
		t.Fatalf("no question: %v in %s", err, m.line)
	}
	return r
}

const canAll = `{"elicitation":{},"sampling":{},"roots":{}}`

func ask(id, name, more string) string {
	params := `"name":"` + name + `"`
	if more != "" {
		params += "," + more
	}
	return modernLineOf(id, "tools/call", params, canAll)
}

func again(r round, responses string) string {
	return `"requestState":"` + r.RequestState + `","inputResponses":{` + responses + `}`
}

func accept(name string) string { return `{"action":"accept","content":{"name":"` + name + `"}}` }

// In the modern era a tool asks by an answer, and its call goes on when the client
// comes back with what it answers, once or more often.
func TestAskModern(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, askers()...))
	r := roundOf(t, c.ask(ask("1", "name", "")))
	if q := r.InputRequests["q1"]; q.Method != "elicitation/create" || string(q.Params) != `{"mode":"form","message":"Your name?","requestedSchema":`+nameForm+`}` {
		t.Errorf("the question is %s %s", q.Method, q.Params)
	}
	// What is no answer is asked again, and what is more than asked is passed over.
	for _, responses := range []string{"", `"x":` + accept("no"), `"q1":{"action":"accept","content":{"name":7}}`, `"q1":{"action":"accept"}`, `"q1":{"roots":[]}`} {
		r = roundOf(t, c.ask(ask("2", "name", again(r, responses))))
	}
	if m := c.ask(ask("3", "name", again(r, `"q1":`+accept("Ada")+`,"more":`+accept("no")))); !strings.Contains(m.line, `"text":"accept Ada"`) || !strings.Contains(m.line, `"resultType":"complete"`) {
		t.Errorf("got %s", m.line)
	}

	r = roundOf(t, c.ask(ask("1", "twice", "")))
	first := r.RequestState
	r = roundOf(t, c.ask(ask("2", "twice", again(r, `"q1":{"action":"decline"}`))))
	if r.RequestState == first {
		t.Error("the state is the same again")
	}
	if m := c.ask(ask("3", "twice", again(r, `"q2":{"action":"cancel"}`))); !strings.Contains(m.line, `"text":"decline <nil>, cancel <nil>"`) {
		t.Errorf("got %s", m.line)
	}

	r = roundOf(t, c.ask(ask("1", "all", "")))
	if len(r.InputRequests) != 3 {
		t.Errorf("three questions at a time are asked as %v", r.keys())
	}
	answers := map[string]string{
		"elicitation/create":     accept("Ada"),
		"sampling/createMessage": `{"role":"assistant","content":{"type":"text","text":"Hi"},"model":"m"}`,
		"roots/list":             `{"roots":[{"uri":"file:///a"}]}`,
	}
	for i, key := range r.keys() {
		m := c.ask(ask("2", "all", again(r, `"`+key+`":`+answers[r.InputRequests[key].Method])))
		if i == 2 {
			if !strings.Contains(m.line, "accept Ada|") || !strings.Contains(m.line, `file:///a`) {
				t.Errorf("got %s", m.line)
			}
			break
		}
		next := roundOf(t, m)
		if len(next.InputRequests) != 2-i {
			t.Errorf("after an answer %v are open", next.keys())
		}
		r.RequestState = next.RequestState
	}
}

// A state that was changed, was used, is another call's, or was never given out is
// refused; and the call that it is about can still be gone on with.
func TestAskState(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, askers()...))
	r := roundOf(t, c.ask(ask("1", "name", "")))
	good := again(r, `"q1":`+accept("Ada"))
	for name, line := range map[string]string{
		"changed":        ask("2", "name", strings.Replace(good, `","input`, `-TAMPERED","input`, 1)),
		"made up":        ask("2", "name", `"requestState":"ABCDEFGHIJKLMNOPQRSTUVWXYZ"`),
		"another call's": ask("2", "twice", good),
	} {
		if m := c.ask(line); m.Error == nil || m.Error.Code != -32602 {
			t.Errorf("%s: %s", name, m.line)
		}
	}
	if m := c.ask(ask("3", "name", good)); !strings.Contains(m.line, "accept Ada") {
		t.Errorf("got %s", m.line)
	}
	if m := c.ask(ask("4", "name", good)); m.Error == nil || m.Error.Code != -32602 {
		t.Errorf("used: %s", m.line)
	}
}

// Who can't be asked isn't.
func TestAskNobody(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, askers()...))
	c.hello("2025-11-25", "{}")
	for _, name := range []string{"name", "sample", "roots"} {
		for _, line := range []string{modernLine("1", "tools/call", `"name":"`+name+`"`), legacyLine("1", "tools/call", `"name":"`+name+`"`)} {
			if m := c.ask(line); !strings.Contains(m.line, server.ErrNoClient.Error()) || !strings.Contains(m.line, `"isError":true`) {
				t.Errorf("%s: %s", name, m.line)
			}
		}
	}
	if _, ok := server.CallerFrom(context.Background()); ok {
		t.Error("somebody calls where nobody does")
	}
}

// In the initialize lineage a tool asks by a request of the server's.
func TestAskLegacy(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, askers()...))
	c.hello("2025-11-25", canAll)
	for name, tt := range map[string]struct{ method, answer, want string }{
		"name":   {"elicitation/create", accept("Ada"), "accept Ada"},
		"sample": {"sampling/createMessage", `{"role":"assistant","content":{"type":"text","text":"Hi"},"model":"m"}`, `\"text\":\"Hi\"`},
		"roots":  {"roots/list", `{"roots":[{"uri":"file:///a","name":"a"}]}`, `file:///a`},
	} {
		q := c.ask(legacyLine("1", "tools/call", `"name":"`+name+`"`))
		if q.Method != tt.method {
			t.Fatalf("%s: the question is %s", name, q.line)
		}
		if m := c.ask(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":` + tt.answer + `}`); !strings.Contains(m.line, tt.want) {
			t.Errorf("%s: %s", name, m.line)
		}
		q = c.ask(legacyLine("1", "tools/call", `"name":"`+name+`"`))
		if m := c.ask(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"error":{"code":-1,"message":"not now"}}`); !strings.Contains(m.line, "not now") {
			t.Errorf("%s: %s", name, m.line)
		}
	}
	// An answer that is too large fails the question and nothing else (K83).
	q := c.ask(legacyLine("1", "tools/call", `"name":"name"`))
	if m := c.ask(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"x":"` + strings.Repeat("x", 2<<20) + `"}}`); !strings.Contains(m.line, "larger than") {
		t.Errorf("an answer that is too large: %s", m.line)
	}
	// A call that is cancelled waits for no answer.
	c.ask(legacyLine("2", "tools/call", `"name":"name"`))
	c.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	for m := c.ask(`{"jsonrpc":"2.0","id":"p","method":"ping"}`); string(m.ID) != `"p"`; m = c.next() {
		if m.Method != "notifications/cancelled" {
			t.Errorf("got %s", m.line)
		}
	}
}

// Prompts and resources ask as tools do.
func TestAskForPromptsAndResources(t *testing.T) {
	lib := &library{ask: func(ctx context.Context) string {
		c, _ := server.CallerFrom(ctx)
		said, err := elicit(ctx, c, "Which?")
		return fmt.Sprint(said, err)
	}}
	c := dial(t, serverOf(t, server.Config{Resources: lib, Prompts: lib}))
	for method, params := range map[string]string{"prompts/get": `"name":"ask"`, "resources/read": `"uri":"mem:///ask"`} {
		r := roundOf(t, c.ask(modernLineOf("1", method, params, canAll)))
		if m := c.ask(modernLineOf("2", method, params+","+again(r, `"q1":`+accept("Ada")), canAll)); !strings.Contains(m.line, "accept Ada") {
			t.Errorf("%s: %s", method, m.line)
		}
	}
}

// A call that waits holds its place, but not all of them, and not for ever; where
// its time or its connection ends, so does it (I9).
func TestAskWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 10)
		s := serverOf(t, server.Config{Budgets: server.Budgets{ConcurrentRequests: 4}}, append(askers(), asking("wait", func(ctx context.Context, c server.Caller) (string, error) {
			said, err := elicit(ctx, c, "Well?")
			if errors.Is(err, server.ErrNoClient) {
				return "", err
			}
			ended <- err
			return said, err
		}))...)
		c := dial(t, s)
		r := roundOf(t, c.ask(ask("1", "wait", "")))
		roundOf(t, c.ask(ask("2", "wait", "")))
		if m := c.ask(ask("3", "wait", "")); !strings.Contains(m.line, "too many calls wait") {
			t.Errorf("a third: %s", m.line)
		}
		time.Sleep(4 * time.Minute)
		r = roundOf(t, c.ask(ask("4", "wait", again(r, ""))))
		time.Sleep(2 * time.Minute) // the second one's time is over
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "did not come back") {
			t.Errorf("got %v", err)
		}
		if m := c.ask(ask("5", "wait", again(r, `"q1":`+accept("Ada")))); !strings.Contains(m.line, "accept Ada") {
			t.Errorf("the first: %s", m.line)
		}
		<-ended
		// Its own patience may be shorter, and the client learns what came of it.
		r = roundOf(t, c.ask(ask("6", "short", "")))
		time.Sleep(2 * time.Second)
		if m := c.ask(ask("7", "short", again(r, ""))); !strings.Contains(m.line, "waited: context deadline exceeded") {
			t.Errorf("a short one: %s", m.line)
		}
		begin := time.Now()
		roundOf(t, c.ask(ask("8", "wait", "")))
		c.in.Close()
		if err := <-c.done; err != nil {
			t.Error(err)
		}
		if err := <-ended; err == nil || time.Since(begin) > time.Second {
			t.Errorf("after %s: %v", time.Since(begin), err)
		}
	})
}

// Where there is one place, a call that waits would keep out all others (I9): a client
// that is asked by an answer to its request is not asked. One that is sent a request
// is there while it is asked.
func TestAskInTheOnlyPlace(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{Budgets: server.Budgets{ConcurrentRequests: 1}}, append(askers(), echo("echo"))...))
	if m := c.ask(ask("1", "name", "")); !strings.Contains(m.line, "one request is served at a time") {
		t.Errorf("asked: %s", m.line)
	}
	if m := c.ask(modernLine("2", "tools/call", `"name":"echo"`)); m.Error != nil {
		t.Errorf("the place is not free: %s", m.line)
	}
}

// A question that is too large for an answer is none, and what is asked after the
// answer is not asked.
func TestAskInVain(t *testing.T) {
	late := make(chan error)
	s := serverOf(t, server.Config{Budgets: server.Budgets{ResponseBytes: 2000}},
		asking("large", func(ctx context.Context, c server.Caller) (string, error) {
			return elicit(ctx, c, strings.Repeat("x", 3000))
		}),
		asking("late", func(ctx context.Context, c server.Caller) (string, error) {
			ctx = context.WithoutCancel(ctx)
			go func() {
				late <- nil
				c.Log(ctx, "error", "l", "late")
				_, err := elicit(ctx, c, "Late?")
				_, err2 := c.Sample(ctx, json.RawMessage("{}"))
				_, err3 := c.Roots(ctx)
				late <- errors.Join(err, err2, err3)
			}()
			return "done", nil
		}),
	)
	c := dial(t, s)
	c.hello("2025-11-25", canAll)
	c.ask(legacyLine("1", "logging/setLevel", `"level":"debug"`))
	if m := c.ask(ask("1", "large", "")); !strings.Contains(m.line, "larger than an answer may be") {
		t.Errorf("got %s", m.line)
	}
	for _, line := range []string{ask("2", "late", ""), legacyLine("2", "tools/call", `"name":"late"`)} {
		if m := c.ask(line); !strings.Contains(m.line, `"text":"done"`) {
			t.Errorf("got %s", m.line)
		}
		<-late
		if err := <-late; strings.Count(fmt.Sprint(err), "the call is over") != 3 {
			t.Errorf("late: %v", err)
		}
		c.wantPing()
	}
}

// Logs go to the client where it has asked for their level, in either era.
func TestLog(t *testing.T) {
	c := dial(t, serverOf(t, server.Config{}, askers()...))
	c.hello("2025-11-25", "{}")
	const want = `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"n":1},"level":"warning","logger":"l"}}`
	if m := c.ask(legacyLine("1", "tools/call", `"name":"log"`)); m.Method != "" {
		t.Errorf("nobody asked for %s", m.line)
	}
	c.ask(legacyLine("1", "logging/setLevel", `"level":"info"`))
	if m := c.ask(legacyLine("1", "tools/call", `"name":"log"`)); m.line != want {
		t.Errorf("got %s", m.line)
	}
	c.next()
	if m := c.ask(modernLine("1", "tools/call", `"name":"log"`)); m.Method != "" {
		t.Errorf("nobody asked for %s", m.line)
	}
	if m := c.ask(strings.Replace(modernLine("1", "tools/call", `"name":"log"`), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"info",`, 1)); m.line != want {
		t.Errorf("got %s", m.line)
	}
	c.next()
}

// Of a client that leaves while it is asked, a tool learns that it has left.
func TestAskWhoLeaves(t *testing.T) {
	heard := make(chan error, 1)
	asks := named("asks", func(ctx context.Context, _ tools.Call) (tools.Result, error) {
		caller, _ := server.CallerFrom(ctx)
		_, err := caller.Elicit(context.WithoutCancel(ctx), "Your name?", json.RawMessage(nameForm))
		heard <- err
		return tools.Result{}, err
	})
	c := dial(t, serverOf(t, server.Config{Budgets: server.Budgets{Grace: time.Millisecond}}, asks))
	c.hello("2025-11-25", canAll)
	if q := c.ask(legacyLine("1", "tools/call", `"name":"asks"`)); q.Method != "elicitation/create" {
		t.Fatal(q.line)
	}
	c.in.Close()
	if err := <-heard; err == nil || err.Error() != "asking the client for input: the connection has ended" {
		t.Errorf("got %v", err)
	}
}
