//go:build unix

package secret_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crewhost/config/secret"
)

// A program that is stopped takes what it started with it.
func TestCommandLeavesNobody(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the test, at the latest
		defer cancel()
		for ctx.Err() == nil {
			if data, err := os.ReadFile(pidFile); err == nil && strings.HasSuffix(string(data), "\n") {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	_, _, err := secret.Command{Environ: os.Environ()}.Lookup(ctx, secret.Ref{
		Source: secret.FromCommand, Name: "sh",
		Args: []string{"-c", `sleep 600 & echo $! >"$1"; wait`, "sh", pidFile},
	})
	if err == nil {
		t.Fatal("no error of a program that was stopped")
	}
	data, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for syscall.Kill(pid, 0) == nil && !zombie(pid) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d is left behind", pid)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// zombie reports whether a process is dead and merely not reaped by whoever
// inherited it.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
