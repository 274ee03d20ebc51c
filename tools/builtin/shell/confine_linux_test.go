//go:build linux

package shell_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"crewhost/tools"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/mount"
	"crewhost/tools/native/nativetest"
)

// probe tries what a program that is confined must not be able to.
const probe = `
import ctypes, os, resource, socket
host = %d
c = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    if c.syscall(*arguments) < 0:
        raise OSError(ctypes.get_errno(), arguments[0])
resource.prlimit(0, resource.RLIMIT_CORE) # its own
socket.socketpair()
for attempt in (
    lambda: os.truncate("../in/a.txt", 0),
    lambda: os.listdir("/proc"),
    lambda: socket.socket(),
    lambda: socket.socket(socket.AF_UNIX),
    lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
    lambda: call(425, 1, 0), # io_uring_setup
    lambda: os.mkfifo("fifo"),
    lambda: os.mknod("dev", 0o600 | 0o020000, 259),
    lambda: os.kill(host, 0),
    lambda: os.listdir("/proc/" + str(host)),
    lambda: open("/proc/" + str(host) + "/environ"),
    lambda: os.readlink("/proc/" + str(host) + "/cwd"),
    lambda: resource.prlimit(host, resource.RLIMIT_CORE),
    lambda: call(101, 16, host, 0, 0), # ptrace
    lambda: call(250, 0, -3, 1), # keyctl
    lambda: call(248, b"user", b"x", b"y", 1, -3), # add_key
    lambda: call(249, b"user", b"x", None, 0), # request_key
    lambda: os.listdir("/tmp"),
    lambda: open("/dev/shm/crewhost", "w"),
    lambda: socket.sethostname(socket.gethostname()),
):
    try:
        attempt()
        print("done")
    except OSError as e:
        print("refused" if e.errno in (1, 13) else e)
`

// Confined, a program has the mounts with their rights, and no more of anybody's.
func TestConfined(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := bench(t, confined(t), interpreters)
	b.Put("in/a.txt", "one\n")
	b.Put("in/run", "#!/bin/sh\necho ran\n")
	for link, target := range map[string]string{"out/link": outside, "out/up": filepath.Dir(outside)} {
		if err := os.Symlink(target, filepath.Join(b.Root, link)); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := b.Call("shell_command", command("cat "+outside+" link up/secret /etc/passwd /etc/shadow /proc/self/environ"))
	if strings.Count(got, "Permission denied") != 6 || strings.Contains(got, "canary") {
		t.Error(got)
	}
	if got, _ = b.Call("shell_command", command("ls /etc /root / /tmp /proc .. up/")); strings.Count(got, "Permission denied") != 7 || strings.Count(got, "\n") > 10 {
		t.Error(got)
	}
	for _, line := range []string{
		"cp /in/a.txt /in/b.txt", "cp /in/a.txt up/x", "rm /in/a.txt", "mv /in/a.txt .", "sh -c 'echo x > ../in/a.txt'", "sh -c ': > ../in/a.txt'", "sh -c 'echo x >> link'",
	} {
		got, failed := b.Call("shell_command", command(line))
		if !failed || strings.Contains(got, "canary") || strings.Contains(got, "Nothing was run") || !strings.Contains(strings.ToLower(got), "permission denied") && !strings.Contains(got, "not permitted") {
			t.Errorf("%s: %t, %s", line, failed, got)
		}
	}
	b.Put("out/probe.py", fmt.Sprintf(probe, os.Getpid()))
	b.WantText("shell_command", command("python3 probe.py"), strings.TrimSpace(strings.Repeat("refused\n", 20)))
	if b.Get("in/a.txt") != "one\n" {
		t.Error("changed")
	}
	b.WantFailure("shell_command", command("cat /etc/passwd"), "Programs see the mounts here", "/in (ro), /out (rw)")
	b.WantText("shell_command", command("cp /in/a.txt b"), "[no output]")
	b.WantText("shell_command", command("cp b ../out/c"), "[no output]")
	b.WantText("shell_command", command("mv b d"), "[no output]")
	b.WantText("shell_command", command("rm d"), "[no output]")
	b.WantText("shell_command", command("sh /in/run"), "ran")
	b.WantText("shell_command", command("python3 -c 'print(open(\"../in/a.txt\").read())'"), "one")
	// Of the files of the host it gets none, though the host itself was given some.
	extra, err := os.Open(outside)
	if err != nil {
		t.Fatal(err)
	}
	defer extra.Close()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, extra.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	b.WantText("shell_command", command(`python3 -c 'exec("import os\nfor n in range(3, 99):\n  try: os.fstat(n); print(n)\n  except OSError: pass")'`), "[no output]")
	// In a folder that can't be written to, any program may run: it can't write.
	b.WantFailure("shell_command", command("cp a.txt b", "working_directory", "/in"), "ermission denied")

	// What confinement doesn't hold is looked at.
	b = bench(t, confined(t), func(cfg *shell.Config) { cfg.Allow = []string{"chmod", "touch"} })
	for _, line := range []string{"chmod 600 " + outside, "touch " + outside, "touch ../in"} {
		b.WantFailure("shell_command", command(line), "Nothing was run: the argument")
	}
	b.WantText("shell_command", command("touch x"), "[no output]")
}

// With the network there are still no sockets of other programs of the host.
func TestConfinedNetwork(t *testing.T) {
	b := bench(t, confined(t), interpreters, func(cfg *shell.Config) { cfg.Network = true })
	name := filepath.Join(b.Root, "out", "s")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.WantFailure("shell_command", command(`python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("s")'`), "Permission denied")
	b.WantText("shell_command", command(`python3 -c 'import socket; socket.socket(); socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); socket.socketpair(); print("made")'`), "made")
}

// Rights of parts of a mount hold: the lesser ones for the whole, the greater ones there.
func TestConfinedParts(t *testing.T) {
	base := confined(t)
	root := t.TempDir()
	for _, dir := range []string{"a/part", "b/part/deep", "c"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var ms []mount.Mount
	for _, spec := range []string{"a:/a:ro;part:rw", "b:/b:rw;part:ro;part/deep:rw", "c:/c:rwnd"} {
		m, err := mount.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m.In(root))
	}
	fsys, err := mount.Open(ms)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	cfg := shell.Config{FS: fsys, Allow: []string{"touch", "rm"}, Host: []string{"PATH=/usr/bin:/bin"}, Run: run}
	base(&cfg)
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{"touch /a/x", false}, {"touch /a/part/x", true}, {"rm /a/part/x", true},
		{"touch /b/x", false}, {"touch /b/part/x", false}, {"touch /b/part/deep/x", true},
		{"touch /c/x", true}, {"touch /c/x", true}, {"rm /c/x", false},
	} {
		res, err := shell.Tools(cfg)[0].Call(t.Context(), tools.Call{Arguments: []byte(nativetest.Args("command", c.line, "working_directory", "/a"))})
		if err != nil || res.IsError == c.ok {
			t.Errorf("%s: %+v, %v", c.line, res, err)
		}
	}
}
