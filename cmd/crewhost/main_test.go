package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"crewhost/mcp/mcptest"
	"crewhost/runner/event/eventtest"
)

// TestMain makes the test binary three programs in one: the tests, crewhost
// itself (its guard included), and MCP servers for it to start.
func TestMain(m *testing.M) {
	if mcptest.IsServer() {
		end(mcptest.Main())
	}
	if len(os.Args) == 2 && os.Args[1] == guardArgument || len(os.Args) == 3 && os.Args[1] == confineArgument {
		main()
		os.Exit(exitOK)
	}
	// Under the race detector each program would sleep for a second before it ends.
	_ = os.Setenv("GORACE", noSleepAtExit)
	testscript.Main(m, map[string]func(){
		"crewhost": main,
		// The program, until it kills itself.
		"crewhost-killed": mainKilled,
		"notes":           func() { end(mcptest.RunNotes()) }, // which some crews of testdata start
		"mcpserver": func() {
			os.Args = slices.Insert(os.Args, 1, "mcptest-server")
			end(mcptest.Main())
		},
		// A library that prints where only the protocol may.
		"prints": func() {
			out, err := claimStdout()
			if err != nil {
				panic(err)
			}
			fmt.Println("a library prints")
			_, _ = os.NewFile(1, "stdout").WriteString("and so does C\n")
			_, _ = io.WriteString(out, "protocol\n")
			os.Exit(exitOK)
		},
		// A browser, as Linux and macOS open it.
		"xdg-open": visit,
		"open":     visit,
	})
}

const noSleepAtExit = "atexit_sleep_ms=0"

// visit is somebody who agrees to everything: it goes where it is sent.
func visit() {
	resp, err := http.Get(os.Args[1])
	if err != nil {
		os.Exit(exitFailed)
	}
	_ = resp.Body.Close()
}

// TestScripts runs the command line as people do: each script in
// testdata/script starts the real program and reads what it prints.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"events": events, "repeat": repeat, "holds": holds, "collected": hasCollected},
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("CONFIG", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GORACE", noSleepAtExit)
			collect(env)
			handler, err := mcptest.Handler("-tools", "echo")
			if err != nil {
				return err
			}
			protected := httptest.NewServer(mcptest.Protect(handler))
			env.Defer(protected.Close)
			env.Setenv("PROTECTED_URL", protected.URL+"/mcp")
			env.Setenv("CLIENT_SECRET", mcptest.ProtectedSecret)
			return nil
		},
	})
}

// events FILE KIND… holds the events of a run, whole, against the schema and what
// every stream has, and wants each of the kinds among them.
func events(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: events FILE KIND…")
	}
	text := ts.ReadFile(args[0])
	if err := eventtest.Run([]byte(text)); err != nil {
		ts.Fatalf("%v\nin\n%s", err, text)
	}
	for _, kind := range args[1:] {
		if !strings.Contains(text, `"kind":"`+kind+`"`) {
			ts.Fatalf("no %s in\n%s", kind, text)
		}
	}
}

// repeat TEXT N FILE writes a file of N times the text, which a script is too short
// for.
func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat TEXT N FILE")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Repeat(args[0], n)), 0o644))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
