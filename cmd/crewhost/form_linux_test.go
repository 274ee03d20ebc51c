package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"crewhost/mcp/mcptest"
)

// openTerminal returns both ends of a new pseudoterminal.
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return screen, terminal
}

// O19: the whole way, from a server's question to a person at a real terminal
// and back; stdout has the result and nothing else.
func TestFormAtTerminal(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "crewhost")); err != nil {
		t.Fatal(err)
	}
	command, _ := mcptest.Command(mcptest.Standard)
	write(t, dir, "crewhost.yaml", `
mcp: { servers: { asker: { command: `+command+`, args: [mcptest-server, standard, -tools, ask] } } }
permissions: { default: allow }
`)
	screen, terminal := openTerminal(t)
	const schema = `{"type":"object","required":["region"],"properties":{"zone":{"type":"string"},"region":{"type":"string","enum":["eu","us"]}}}`
	cmd := exec.Command(filepath.Join(dir, "crewhost"), "mcp", "call", "ask", "--args", `{"message":"Which region?","schema":`+schema+`}`)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var stdout, shown bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, &stdout, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	// Whoever sits there answers each line that asks.
	var reading sync.WaitGroup
	reading.Go(func() {
		answers := []struct{ after, typed string }{
			{"Enter alone leaves it out", "north\n"}, {"one of the choices", "mars\n"}, {"Not taken", "us\n"}, {"y = send", "y\n"},
		}
		buf := make([]byte, 4096)
		for {
			n, err := screen.Read(buf)
			shown.Write(buf[:n])
			if len(answers) > 0 && strings.Contains(shown.String(), answers[0].after) {
				_, _ = io.WriteString(screen, answers[0].typed)
				answers = answers[1:]
			}
			if err != nil { // the other end is closed
				return
			}
		}
	})
	err = cmd.Wait()
	reading.Wait()
	if err != nil || stdout.String() != `{"q":{"action":"accept","content":{"region":"us","zone":"north"}}}`+"\n" {
		t.Errorf("%v, stdout %q\n%s", err, &stdout, &shown)
	}
}
