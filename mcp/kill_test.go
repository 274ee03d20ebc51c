//go:build unix

package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// guard is the command line of the guard of a test's host.
func guard() []string { return []string{os.Args[0], guardArg} }

// victimHost is a host that is killed: it connects one server behind a wrapper,
// says so on stdout, and waits for the end of its stdin.
func victimHost(pidfile string) int {
	sessions, err := mcp.Startup(context.Background(), settings(stdio("a", mcptest.Wrapper, "-pidfile", pidfile)), new(tools.Registry), mcp.Options{Name: "host", Guard: guard()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(sessions.Reports()[0].State)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	if err := sessions.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// However the host ends, neither the wrapper nor the server behind it is left.
func TestNobodyIsLeft(t *testing.T) {
	for name, end := range map[string]func(*exec.Cmd) error{
		"killed": func(cmd *exec.Cmd) error { return cmd.Process.Kill() },
		"closed": func(*exec.Cmd) error { return nil }, // the end of its stdin
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pidfile := filepath.Join(t.TempDir(), "pids")
			host := exec.Command(os.Args[0], hostArg, pidfile)
			stdin, err := host.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			host.Stderr = os.Stderr
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); strings.TrimSpace(line) != string(mcp.StateConnected) {
				t.Errorf("the host says %q, %v", line, err)
			}
			data, err := os.ReadFile(pidfile)
			if err != nil {
				t.Fatal(err)
			}
			pids := strings.Fields(string(data))
			if len(pids) != 2 {
				t.Fatalf("pids %q", pids)
			}
			if err := end(host); err != nil {
				t.Fatal(err)
			}
			stdin.Close()
			_ = host.Wait() // killed, or not
			for _, pid := range pids {
				eventually(t, func() bool { return gone(t, pid) })
			}
		})
	}
}

func gone(t *testing.T, pid string) bool {
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) {
		return true
	}
	// A zombie, whose parent has not looked yet, is gone too.
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", n))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// A server behind a wrapper that forks, as npx does, works and is gone after Close.
func TestWrapper(t *testing.T) {
	pidfile := filepath.Join(t.TempDir(), "pids")
	r := start(t, settings(stdio("a", mcptest.Wrapper, "-pidfile", pidfile, "-tools", "echo"))).connected()
	r.call("echo", `{"a":1}`)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(data)) {
		if !gone(t, pid) {
			t.Errorf("%s is left", pid)
		}
	}
}
