package tools_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools"
)

// stub is a tool that answers with its own name.
type stub struct{ def tools.Definition }

func (s stub) Definition() tools.Definition { return s.def }

func (s stub) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Text(s.def.Name), nil
}

func named(name, server string) stub {
	return stub{tools.Definition{Name: name, Server: server}}
}

func TestRegistryHolderKeepsTheNameO12(t *testing.T) {
	var reg tools.Registry
	for _, s := range []stub{named("file_read", ""), named("send_note", "mail")} {
		if err := reg.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, server, want string }{
		{"send_note", "chat", `registering tool "send_note" of server "chat": held by server "mail": name already registered`},
		{"file_read", "mail", `registering tool "file_read" of server "mail": held by a built-in tool: name already registered`},
		{"file_read", "", `registering tool "file_read": held by a built-in tool: name already registered`},
	} {
		err := reg.Add(named(tt.name, tt.server))
		if !errors.Is(err, tools.ErrDuplicate) {
			t.Fatalf("adding %s twice: got %v, want ErrDuplicate", tt.name, err)
		}
		if err.Error() != tt.want {
			t.Errorf("got  %s\nwant %s", err, tt.want)
		}
	}
	held, ok := reg.Lookup("send_note")
	if !ok || held.Definition().Server != "mail" {
		t.Errorf("the holder lost its name: %v", held)
	}
}

func TestRegistryRefusesAnEmptyNameK23(t *testing.T) {
	var reg tools.Registry
	err := reg.Add(named("", "odd"))
	if err == nil || !strings.Contains(err.Error(), `server "odd"`) {
		t.Errorf("got %v, want an error that names the server", err)
	}
	if len(reg.Names()) != 0 {
		t.Error("the nameless tool was registered")
	}
}

func TestRegistryIsSortedAndCaseSensitive(t *testing.T) {
	var reg tools.Registry
	for _, n := range []string{"zeta", "Alpha", "alpha", "größe", "beta_2", "beta.1"} {
		if err := reg.Add(named(n, "")); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"Alpha", "alpha", "beta.1", "beta_2", "größe", "zeta"}
	if diff := cmp.Diff(want, reg.Names()); diff != "" {
		t.Error(diff)
	}
	var defs []string
	for _, d := range reg.Definitions() {
		defs = append(defs, d.Name)
	}
	if diff := cmp.Diff(want, defs); diff != "" {
		t.Error(diff)
	}
	if _, ok := reg.Lookup("ALPHA"); ok {
		t.Error("names are case-sensitive")
	}
}

func TestRegistryZeroValueAndRemove(t *testing.T) {
	var reg tools.Registry
	if len(reg.Names()) != 0 || len(reg.Definitions()) != 0 || reg.Remove("x") {
		t.Error("the zero registry holds something")
	}
	if err := reg.Add(named("x", "a")); err != nil {
		t.Fatal(err)
	}
	if !reg.Remove("x") || reg.Remove("x") {
		t.Error("Remove does not report what it did")
	}
	if err := reg.Add(named("x", "b")); err != nil {
		t.Errorf("a freed name can be taken: %v", err)
	}
}

// O12, W7: a server's tools are replaced by its new ones, and by no name of another.
func TestRegistryReplace(t *testing.T) {
	var reg tools.Registry
	if errs := reg.Replace(nil, []tools.Tool{named("a", "s"), named("b", "s")}); errs[0] != nil || errs[1] != nil {
		t.Fatalf("into an empty registry: %v", errs)
	}
	if err := reg.Add(named("held", "")); err != nil {
		t.Fatal(err)
	}
	changed := named("b", "s")
	changed.def.Description = "new"
	errs := reg.Replace([]string{"a", "b", "unknown"}, []tools.Tool{changed, named("held", "s"), named("", "s"), named("c", "s"), named("c", "s")})
	for i, want := range []bool{true, false, false, true, false} {
		if (errs[i] == nil) != want {
			t.Errorf("tool %d: %v", i, errs[i])
		}
	}
	if !errors.Is(errs[1], tools.ErrDuplicate) || !strings.Contains(errs[1].Error(), "held by a built-in tool") {
		t.Errorf("got %v", errs[1])
	}
	if diff := cmp.Diff([]string{"b", "c", "held"}, reg.Names()); diff != "" {
		t.Error(diff)
	}
	if b, _ := reg.Lookup("b"); b.Definition().Description != "new" {
		t.Error("b was not replaced")
	}
}

// Nobody sees the registry without a tool that is replaced.
func TestRegistryReplaceIsOneStep(t *testing.T) {
	var reg tools.Registry
	both := []tools.Tool{named("x", "s"), named("y", "s")}
	reg.Replace(nil, both)
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		defer close(done)
		for range 1000 {
			reg.Replace([]string{"x", "y"}, both)
		}
	})
	wg.Go(func() {
		for {
			if n := len(reg.Names()); n != 2 {
				t.Errorf("%d tools", n)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	wg.Wait()
}

func TestRegistryConcurrentUse(t *testing.T) {
	var reg tools.Registry
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				name := fmt.Sprintf("t%d_%d", i, j)
				if err := reg.Add(named(name, "")); err != nil {
					t.Error(err)
				}
				reg.Definitions()
				if j%2 == 0 {
					reg.Remove(name)
				}
			}
		})
	}
	wg.Wait()
	if n := len(reg.Names()); n != 8*25 {
		t.Errorf("%d tools are left, want %d", n, 8*25)
	}
}

func TestErrorNamesWhereAndCodeW9(t *testing.T) {
	for _, tt := range []struct {
		err  tools.Error
		want string
	}{
		{tools.Error{Code: tools.CodeCallTimeout, Server: "s", Tool: "t", Detail: "no answer within 2s"},
			`server "s", tool "t": no answer within 2s (tool_call_timeout)`},
		{tools.Error{Code: tools.CodePingTimeout, Server: "s", Detail: "silent"}, `server "s": silent (mcp_ping_timeout)`},
		{tools.Error{Code: tools.CodeToolNotFound, Tool: "t", Err: fs.ErrNotExist}, `tool "t": file does not exist (tool_not_found)`},
		{tools.Error{Code: tools.CodeCancelled, Detail: "stopped"}, `stopped (operation_cancelled)`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}

func TestCodeOf(t *testing.T) {
	inner := &tools.Error{Code: tools.CodeTransportClosed, Server: "s", Err: fs.ErrClosed}
	err := fmt.Errorf("running task: %w", inner)
	if got := tools.CodeOf(err); got != tools.CodeTransportClosed {
		t.Errorf("got %q", got)
	}
	if !errors.Is(err, fs.ErrClosed) {
		t.Error("the cause is lost")
	}
	if got := tools.CodeOf(fs.ErrClosed); got != "" {
		t.Errorf("got %q, want none", got)
	}
	if got := tools.CodeOf(nil); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

func TestServerName(t *testing.T) {
	if got := (tools.Definition{Name: "a"}).ServerName(); got != "a" {
		t.Errorf("got %q", got)
	}
	if got := (tools.Definition{Name: "mcp__s__a", Original: "a"}).ServerName(); got != "a" {
		t.Errorf("got %q", got)
	}
}

func TestFailureIsMarked(t *testing.T) {
	r := tools.Failure("no such file")
	want := tools.Result{Content: []tools.Content{{Kind: tools.KindText, Text: "no such file"}}, IsError: true}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}
