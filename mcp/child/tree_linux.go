package child

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An environment is searched for the marker up to maxEnviron bytes. The marker
// is its first entry, unless a descendant has put it in another order.
const (
	usualEnviron = 32 << 10
	maxEnviron   = 2 << 20
)

func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// childInfo is siginfo_t as waitid fills it; the empty array aligns the union
// of the C type, which holds pointers.
type childInfo struct {
	signo, errno, code int32
	_                  [0]uintptr
	pid                int32
	uid                uint32
	status             int32
}

// waitExit waits for a child to end without reaping it.
func waitExit(pid int) (syscall.WaitStatus, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
	status := (*childInfo)(unsafe.Pointer(&info)).status
	const exited = 1 // CLD_EXITED
	if info.Code == exited {
		return syscall.WaitStatus(status & 0xff << 8), nil
	}
	return syscall.WaitStatus(status & 0x7f), nil
}

// hold takes a handle of a process, so that a signal cannot reach another one
// that got the same pid. Kernels before 5.3 have no handles.
func hold(pid int) (send func(syscall.Signal) error, release func()) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		return func(sig syscall.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }, func() { unix.Close(fd) }
	case unix.ESRCH:
		return func(syscall.Signal) error { return err }, func() {}
	default:
		return func(sig syscall.Signal) error { return syscall.Kill(pid, sig) }, func() {}
	}
}

// look is the process with the given pid, without its markers.
func look(pid int) (process, bool) {
	var buf [1024]byte
	stat := readProc(pid, "stat", buf[:])
	// pid (name) state ppid pgrp …: the name may hold spaces and parentheses.
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	fields := strings.Fields(string(rest))
	const state, parent, group, threads, start = 0, 1, 2, 17, 19
	if len(fields) <= start {
		return process{}, false
	}
	p := process{pid: pid}
	p.parent, _ = strconv.Atoi(fields[parent])
	p.group, _ = strconv.Atoi(fields[group])
	p.start, _ = strconv.ParseUint(fields[start], 10, 64)
	// A process whose first thread alone has ended looks like a zombie, too.
	p.dead = fields[state] == "X" || fields[state] == "Z" && (fields[threads] == "0" || fields[threads] == "1")
	return p, true
}

// processes are those in /proc, in the order of their pids. Markers are read
// only of those which started at the given time or later: older ones can't be
// of a tree, and there may be thousands.
func processes(since uint64) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	all := make([]process, 0, len(names))
	buf := make([]byte, usualEnviron)
	environ := func(pid int) []byte {
		env := readProc(pid, "environ", buf)
		for len(env) == len(buf) && len(buf) < maxEnviron {
			buf = make([]byte, 8*len(buf))
			env = readProc(pid, "environ", buf)
		}
		return env
	}
	var again []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		p, ok := look(pid)
		if !ok {
			continue
		}
		if !p.dead && p.start >= since {
			env := environ(pid)
			if len(env) == 0 {
				again = append(again, len(all))
			}
			p.markers = markers(env)
		}
		all = append(all, p)
	}
	// A process shows no environment in the moment of its exec.
	for _, i := range again {
		all[i].markers = markers(environ(all[i].pid))
	}
	return all
}

// markers is the value of TreeVariable in an environment of NUL-ended entries.
func markers(environ []byte) string {
	name := []byte(TreeVariable + "=")
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, name); ok {
			return string(value)
		}
	}
	return ""
}

// readProc reads a file of a process into buf and returns what it read, which
// is nothing for a process that is gone or that belongs to someone else. It is
// done with plain system calls, as there are two files for each process.
func readProc(pid int, file string, buf []byte) []byte {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/"+file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	total := 0
	for total < len(buf) {
		n, err := unix.Read(fd, buf[total:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		total += n
	}
	return buf[:total]
}

// rename gives this process another name than its executable has, so that
// "killall -9 crewhost" ends the host and not its guard.
func rename(name string) { _ = os.WriteFile("/proc/self/comm", []byte(name), 0) }
