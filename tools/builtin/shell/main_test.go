package shell_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"crewhost/tools/builtin/shell"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// TestMain makes the test binary the helper, too, and a program that says what it was
// given.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "confine" {
		fmt.Fprintln(os.Stderr, shell.ConfineMain(os.Args[2:]))
		os.Exit(126)
	}
	os.Exit(m.Run())
}

// run is what a host runs programs by, without the care that it takes of their trees.
func run(ctx context.Context, p shell.Program) (shell.Outcome, error) {
	cmd := exec.CommandContext(ctx, p.Path, p.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.Dir, p.Environ, strings.NewReader(p.Stdin), p.Stdout, p.Stderr, time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return shell.Outcome{Code: exit.ExitCode()}, nil
	}
	return shell.Outcome{}, err
}

// bench has the mounts /in (ro) and /out (rw) for a tool that is changed.
func bench(t *testing.T, changes ...func(*shell.Config)) nativetest.Bench {
	t.Helper()
	cfg := shell.Config{
		Allow: []string{"ls", "cat", "pwd", "grep", "wc", "echo", "git log", "git status", "git diff", "git show", "cp", "env", "find", "sed", "tar", "sort", "printf", "head", "sleep", "mv", "rm"},
		Host:  []string{"PATH=/usr/local/bin:/usr/bin:/bin"}, Run: run,
	}
	for _, change := range changes {
		change(&cfg)
	}
	return nativetest.New(t, func(fsys *mount.FS) []native.Tool {
		cfg.FS = fsys
		return shell.Tools(cfg)
	})
}

// confined has programs confined, where the system can.
func confined(t *testing.T) func(*shell.Config) {
	t.Helper()
	if err := shell.CanConfine(); err != nil {
		t.Skip(err)
	}
	return func(cfg *shell.Config) { cfg.Confine = []string{os.Args[0], "confine"} }
}

func interpreters(cfg *shell.Config) {
	cfg.Interpreters = true
	cfg.Allow = append(cfg.Allow, "sh", "python3")
}

// command makes arguments of a command that runs in /out.
func command(line string, more ...any) string {
	return nativetest.Args(append([]any{"command", line, "working_directory", "/out"}, more...)...)
}
