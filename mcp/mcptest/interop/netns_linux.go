package interop

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// inside marks the process that runs in a network namespace of its own.
const inside = "INTEROP_NETNS"

// Isolated runs the test again in a network namespace that holds nothing but a
// loopback, and reports whether it did; inside it reports false.
func Isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		loopbackUp(t)
		onlyLoopback(t)
		return false
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.count=1")
	again.Env = append(os.Environ(), inside+"=1")
	again.SysProcAttr = ownNetwork()
	out, err := again.CombinedOutput()
	t.Logf("%s", strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatalf("in a network namespace: %v", err)
	}
	return true
}

// ownNetwork starts a process in a network namespace of its own.
func ownNetwork() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return attr
}

// loopbackUp switches on lo, which a new network namespace has switched off.
func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(ifr))); errno != 0 {
		t.Fatalf("switching on the loopback: %v", errno)
	}
}

// onlyLoopback makes sure that nothing here can be reached from outside.
func onlyLoopback(t *testing.T) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range all {
		if i.Flags&net.FlagLoopback == 0 && i.Flags&net.FlagUp != 0 {
			t.Fatalf("interface %s is up", i.Name)
		}
	}
}
