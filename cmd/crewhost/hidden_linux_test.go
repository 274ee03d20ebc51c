package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
)

// atTerminal starts the program in dir with a terminal for stdin and stderr. What it
// shows there is what the function gives, until a line has the text.
func atTerminal(t *testing.T, dir string, args ...string) (cmd *exec.Cmd, screen, terminal *os.File, until func(text string) string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "crewhost")
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	screen, terminal = openTerminal(t)
	cmd = exec.Command(link, args...)
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, terminal, terminal
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+dir, "XDG_STATE_HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	seen := ""
	return cmd, screen, terminal, func(text string) string {
		t.Helper()
		buf := make([]byte, 1024)
		for !strings.Contains(seen, text) {
			n, err := screen.Read(buf)
			if err != nil {
				t.Fatalf("no %q: %v\n%s", text, err, seen)
			}
			seen += string(buf[:n])
		}
		return seen
	}
}

func echoes(t *testing.T, terminal *os.File) bool {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// A secret is asked for at a terminal, which does not show it, and which is as it was
// afterwards.
func TestHidden(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "crewhost.yaml", "vault: { key: { file: vault.key } }\n")
	cmd, screen, terminal, until := atTerminal(t, dir, "vault", "set", "https://mcp.example.com")
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until("The token (not shown as you type; Enter ends it):")
	if echoes(t, terminal) {
		t.Error("what is typed now is shown")
	}
	if _, err := io.WriteString(screen, "canary-tokem\x7fn\r"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, err := terminal.WriteString("the end\n"); err != nil {
		t.Fatal(err)
	}
	if shown := until("the end"); strings.Contains(shown, "canary") || !echoes(t, terminal) {
		t.Errorf("%q", shown)
	}
	v := vault.New(vault.Config{File: filepath.Join(dir, "crewhost", "vault.age"), Key: sealed.KeyFile(filepath.Join(dir, "vault.key"))})
	if c, _, err := v.Lookup(t.Context(), "https://mcp.example.com"); err != nil || c.Secret.Reveal() != "canary-token" {
		t.Error(err, c.Secret.Reveal())
	}
	if !strings.HasPrefix(out.String(), "Set the static_bearer for https://mcp.example.com in ") {
		t.Error(out.String())
	}
}

// A signal in the middle of it, or Ctrl-C, leaves a terminal that shows what is typed.
func TestHiddenIsInterrupted(t *testing.T) {
	for name, interrupt := range map[string]func(*exec.Cmd, *os.File) error{
		"a signal": func(cmd *exec.Cmd, _ *os.File) error { return cmd.Process.Signal(os.Interrupt) },
		"Ctrl-C": func(_ *exec.Cmd, screen *os.File) error {
			_, err := io.WriteString(screen, "canary\x03")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) { testInterrupted(t, interrupt) })
	}
}

func testInterrupted(t *testing.T, interrupt func(*exec.Cmd, *os.File) error) {
	t.Helper()
	cmd, screen, terminal, until := atTerminal(t, t.TempDir(), "vault", "set", "https://mcp.example.com")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until("The token (not shown")
	if err := interrupt(cmd, screen); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !echoes(t, terminal) {
		t.Errorf("exit code %d, shows what is typed: %v", code, echoes(t, terminal))
	}
}
