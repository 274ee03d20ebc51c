package permission_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"crewhost/tools"
	"crewhost/tools/permission"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tool is a tool that is made of a function.
type tool struct {
	def  tools.Definition
	call func(context.Context, tools.Call) (tools.Result, error)
}

func (t tool) Definition() tools.Definition { return t.def }

func (t tool) Call(ctx context.Context, c tools.Call) (tools.Result, error) { return t.call(ctx, c) }

// echo answers with its arguments.
func echo(name, server string) tool {
	return tool{tools.Definition{Name: name, Server: server}, func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Text(string(c.Arguments)), nil
	}}
}

func registry(t *testing.T, ts ...tool) *tools.Registry {
	t.Helper()
	var reg tools.Registry
	for _, x := range ts {
		if err := reg.Add(x); err != nil {
			t.Fatal(err)
		}
	}
	return &reg
}

// approver answers with a function.
type approver func(context.Context, permission.Question) (permission.Answer, error)

func (a approver) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	return a(ctx, q)
}

func allowAll(t *testing.T) *permission.Policy {
	return mustPolicy(t, permission.Config{Default: permission.Allow})
}

func text(r tools.Result) string {
	var b strings.Builder
	for _, c := range r.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}

func TestGuardArgumentsReachTheToolK29K31W8(t *testing.T) {
	g := permission.NewGuard(registry(t, echo("echo", "")), allowAll(t), nil)
	for in, want := range map[string]string{
		"":         "{}",
		"null":     "{}",
		" null\n ": "{}",
		"{}":       "{}",
		`{"id":725653563933458433,"x":1e400,"y":0.1000000000000000055,"z":null}`: `{"id":725653563933458433,"x":1e400,"y":0.1000000000000000055,"z":null}`,
		" {\"a\" : 1} ": " {\"a\" : 1} ",
	} {
		res, err := g.Call(t.Context(), tools.Call{Name: "echo", Arguments: json.RawMessage(in)})
		if err != nil || res.IsError || text(res) != want {
			t.Errorf("%q reached the tool as %q (%v), want %q", in, text(res), err, want)
		}
	}
	for _, in := range []string{"[]", `"x"`, "5", "true", `{"a":1}{"b":2}`, `{"a":`, "{'a':1}", "\xff"} {
		_, err := g.Call(t.Context(), tools.Call{Name: "echo", Arguments: json.RawMessage(in)})
		if tools.CodeOf(err) != tools.CodeArgumentsInvalid {
			t.Errorf("%q: got %v, want %s", in, err, tools.CodeArgumentsInvalid)
		}
	}
}

func TestGuardUnknownTool(t *testing.T) {
	g := permission.NewGuard(registry(t), allowAll(t), nil)
	_, err := g.Call(t.Context(), tools.Call{Name: "nope"})
	if tools.CodeOf(err) != tools.CodeToolNotFound || !strings.Contains(err.Error(), `"nope"`) {
		t.Errorf("got %v", err)
	}
}

func TestGuardDenialIsForTheModelToRead(t *testing.T) {
	ran := tool{tools.Definition{Name: "shell"}, func(context.Context, tools.Call) (tools.Result, error) {
		t.Error("the tool ran")
		return tools.Result{}, nil
	}}
	no := approver(func(context.Context, permission.Question) (permission.Answer, error) {
		return permission.Answer{Reason: "not today"}, nil
	})
	nobody := approver(func(context.Context, permission.Question) (permission.Answer, error) {
		return permission.Answer{Unasked: true, Reason: "stdin is closed"}, nil
	})
	deny := []permission.Rule{{Pattern: "shell", Place: "crewhost.yaml:12"}}
	for _, tt := range []struct {
		name     string
		config   permission.Config
		approver permission.Approver
		want     []string
	}{
		{"by a rule", permission.Config{Deny: deny, Headless: permission.Allow}, nil, []string{"policy denied", `"shell" (crewhost.yaml:12)`}},
		{"by the default", permission.Config{Default: permission.Deny}, no, []string{"policy denied", "default is deny"}},
		{"headless R3", permission.Config{Ask: deny}, nil, []string{"policy denied", "nobody can be asked", `"shell" (crewhost.yaml:12)`}},
		{"by who asks nobody R3", permission.Config{Ask: deny}, nobody, []string{"policy denied", "needs a person's approval", "stdin is closed", `"shell" (crewhost.yaml:12)`}},
		{"by a person", permission.Config{Ask: deny}, no, []string{"person denied", "not today", `"shell" (crewhost.yaml:12)`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var seen []permission.Observation
			g := permission.NewGuard(registry(t, ran), mustPolicy(t, tt.config), tt.approver)
			g.Observe = func(o permission.Observation) { seen = append(seen, o) }
			res, err := g.Call(t.Context(), tools.Call{Name: "shell"})
			if err != nil || !res.IsError {
				t.Fatalf("got %+v, %v, want a result that is an error", res, err)
			}
			for _, w := range append(tt.want, "Repeating the call will not help") {
				if !strings.Contains(text(res), w) {
					t.Errorf("the text does not hold %q: %s", w, text(res))
				}
			}
			if len(seen) != 1 || seen[0].Outcome != permission.Denied || (seen[0].Answer != nil) != (seen[0].Decision.Verdict == permission.Ask) {
				t.Errorf("observed %+v", seen)
			}
		})
	}
}

func TestGuardHeadlessAllow(t *testing.T) {
	g := permission.NewGuard(registry(t, echo("echo", "")), mustPolicy(t, permission.Config{Headless: permission.Allow}), nil)
	if res, err := g.Call(t.Context(), tools.Call{Name: "echo"}); err != nil || res.IsError {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestGuardTellsTheApproverWhoAndWhat(t *testing.T) {
	var got permission.Request
	var why permission.Decision
	yes := approver(func(_ context.Context, q permission.Question) (permission.Answer, error) {
		r, d := q.Request, q.Decision
		got, why = r, d
		return permission.Answer{Allow: true}, nil
	})
	x := echo("mcp__mail__send", "mail")
	x.def.Original = "send"
	readOnly := true
	x.def.Annotations.ReadOnly = &readOnly // grants nothing (R4)
	g := permission.NewGuard(registry(t, x), mustPolicy(t, permission.Config{}), yes)
	res, err := g.Call(t.Context(), tools.Call{Name: "mcp__mail__send", Agent: "writer", Arguments: json.RawMessage(`{"to":"a"}`)})
	if err != nil || res.IsError {
		t.Fatalf("got %+v, %v", res, err)
	}
	want := permission.Request{Tool: "mcp__mail__send", Server: "mail", ServerTool: "send", Agent: "writer", Arguments: json.RawMessage(`{"to":"a"}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if why.Verdict != permission.Ask {
		t.Errorf("the decision is %+v", why)
	}
}

func TestGuardAsksOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		open, most := 0, 0
		slow := approver(func(context.Context, permission.Question) (permission.Answer, error) {
			mu.Lock()
			open++
			most = max(most, open)
			mu.Unlock()
			<-time.After(time.Minute) // a person thinks, in the bubble's time
			mu.Lock()
			open--
			mu.Unlock()
			return permission.Answer{Allow: true}, nil
		})
		reg := registry(t, echo("ask_me", ""), echo("free", ""))
		g := permission.NewGuard(reg, mustPolicy(t, permission.Config{Allow: rules("free")}), slow)
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if res, err := g.Call(t.Context(), tools.Call{Name: "ask_me"}); err != nil || res.IsError {
					t.Errorf("got %+v, %v", res, err)
				}
			})
		}
		wg.Go(func() {
			if _, err := g.Call(t.Context(), tools.Call{Name: "free"}); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d != 0 {
				t.Errorf("a call that needs no approval waited %s", d)
			}
		})
		wg.Wait()
		if most != 1 {
			t.Errorf("%d questions were open at once", most)
		}
		if d := time.Since(start); d != 3*time.Minute {
			t.Errorf("three questions took %s", d)
		}
	})
}

func TestGuardCancelledWhileAskingOrWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		never := approver(func(ctx context.Context, _ permission.Question) (permission.Answer, error) {
			<-ctx.Done()
			return permission.Answer{}, ctx.Err()
		})
		g := permission.NewGuard(registry(t, echo("echo", "")), nil, never)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for range 2 { // one asks, the other waits to
			wg.Go(func() {
				_, err := g.Call(ctx, tools.Call{Name: "echo"})
				if tools.CodeOf(err) != tools.CodeCancelled || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
	})
}

func TestGuardCancelledBeforeTheTool(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	g := permission.NewGuard(registry(t, echo("echo", "")), allowAll(t), nil)
	if _, err := g.Call(ctx, tools.Call{Name: "echo"}); tools.CodeOf(err) != tools.CodeCancelled {
		t.Errorf("got %v", err)
	}
}

func TestGuardApproverFails(t *testing.T) {
	broken := approver(func(context.Context, permission.Question) (permission.Answer, error) {
		return permission.Answer{Allow: true}, io.ErrUnexpectedEOF
	})
	g := permission.NewGuard(registry(t, echo("echo", "")), nil, broken)
	res, err := g.Call(t.Context(), tools.Call{Name: "echo"})
	if !errors.Is(err, io.ErrUnexpectedEOF) || len(res.Content) != 0 {
		t.Errorf("got %+v, %v: an answer beside an error is none", res, err)
	}
}

func TestGuardOutcomes(t *testing.T) {
	boom := errors.New("gone")
	with := func(name string, res tools.Result, err error) tool {
		return tool{tools.Definition{Name: name}, func(context.Context, tools.Call) (tools.Result, error) { return res, err }}
	}
	panics := tool{tools.Definition{Name: "panics"}, func(context.Context, tools.Call) (tools.Result, error) {
		panic("the tool is broken")
	}}
	g := permission.NewGuard(registry(t, with("good", tools.Text("ok"), nil), with("bad", tools.Failure("no"), nil),
		with("gone", tools.Result{}, boom), panics), allowAll(t), nil)
	var last permission.Observation
	g.Observe = func(o permission.Observation) { last = o }
	for _, tt := range []struct {
		name string
		want permission.Outcome
	}{
		{"good", permission.Succeeded}, {"bad", permission.ToolError}, {"gone", permission.Failed},
		{"panics", permission.ToolError}, {"absent", permission.Refused},
	} {
		res, err := g.Call(t.Context(), tools.Call{Name: tt.name})
		if last.Outcome != tt.want || last.Call.Name != tt.name {
			t.Errorf("%s: observed %+v, want %s", tt.name, last, tt.want)
		}
		switch tt.name {
		case "gone":
			if !errors.Is(err, boom) || !errors.Is(last.Err, boom) {
				t.Errorf("the tool's error is lost: %v", err)
			}
		case "panics":
			if err != nil || !res.IsError || strings.Contains(text(res), "goroutine") {
				t.Errorf("a panic became %+v, %v", res, err)
			}
			if last.Err == nil || !strings.Contains(last.Err.Error(), "the tool is broken") {
				t.Errorf("the observer does not learn of the panic: %v", last.Err)
			}
		}
	}
}

func TestGuardDefinitions(t *testing.T) {
	g := permission.NewGuard(registry(t, echo("b", ""), echo("a", "")), mustPolicy(t, permission.Config{Deny: rules("a")}), nil)
	var names []string
	for _, d := range g.Definitions() {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Error(diff)
	}
}

// resourceful is a tool whose argument says which server it is about.
type resourceful struct{ tools.Tool }

func (resourceful) Server(arguments json.RawMessage) string {
	var in struct{ Server string }
	_ = json.Unmarshal(arguments, &in)
	return in.Server
}

// A tool of the host that is about a server is judged as one of that server (R5).
func TestScoped(t *testing.T) {
	policy := mustPolicy(t, permission.Config{
		Allow: []permission.Rule{{Pattern: "mcp__open__*"}, {Pattern: "mcp__half__reader"}, {Pattern: "reader:server=named"}},
		Deny:  []permission.Rule{{Pattern: "mcp__shut"}},
	})
	var reg tools.Registry
	if err := reg.Add(resourceful{echo("reader", "")}); err != nil {
		t.Fatal(err)
	}
	guard := permission.NewGuard(&reg, policy, nil)
	for server, want := range map[string]permission.Outcome{
		"open": permission.Succeeded, "half": permission.Succeeded, "named": permission.Succeeded, "shut": permission.Denied, "other": permission.Denied, "": permission.Denied,
	} {
		var seen permission.Observation
		guard.Observe = func(o permission.Observation) { seen = o }
		if _, err := guard.Call(t.Context(), tools.Call{Name: "reader", Arguments: json.RawMessage(`{"server":"` + server + `"}`)}); err != nil {
			t.Error(err)
		}
		if seen.Outcome != want || seen.Request.Server != server {
			t.Errorf("%q: %+v", server, seen)
		}
	}
}

// A model, and a client, is told by which rule, and not where on this machine it stands.
func TestGuardTellsNoFolders(t *testing.T) {
	at := func(pattern string) []permission.Rule {
		return []permission.Rule{{Pattern: pattern, Place: "/home/me/crewhost.yaml:12"}}
	}
	no := approver(func(context.Context, permission.Question) (permission.Answer, error) { return permission.Answer{}, nil })
	p := mustPolicy(t, permission.Config{Deny: at("shell"), Ask: at("write")})
	for _, who := range []permission.Approver{nil, no} {
		g := permission.NewGuard(registry(t, echo("shell", ""), echo("write", "")), p, who)
		g.Observe = func(o permission.Observation) {
			if !strings.Contains(o.Decision.Reason, "/home/me/crewhost.yaml:12") {
				t.Errorf("the operator is told %s", o.Decision.Reason)
			}
		}
		for _, tool := range []string{"shell", "write"} {
			res, err := g.Call(t.Context(), tools.Call{Name: tool})
			if err != nil || !res.IsError || strings.Contains(text(res), "/home") || !strings.Contains(text(res), "(crewhost.yaml:12)") {
				t.Errorf("%s: %s, %v", tool, text(res), err)
			}
		}
	}
}
