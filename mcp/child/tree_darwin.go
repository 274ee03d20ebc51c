package child

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// childInfo is the beginning of siginfo_t.
type childInfo struct {
	signo, errno, code, pid int32
	uid                     uint32
	status                  int32
	_                       [128]byte
}

// waitExit waits for a child to end without reaping it. Neither syscall nor
// unix has waitid for macOS; package os makes the same call as this.
func waitExit(pid int) (syscall.WaitStatus, error) {
	const idPid, exited = 1, 1 // P_PID, CLD_EXITED
	var info childInfo
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, idPid, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if errno == 0 {
			break
		}
		if errno != syscall.EINTR {
			return 0, errno
		}
	}
	if info.code == exited {
		return syscall.WaitStatus(info.status & 0xff << 8), nil
	}
	return syscall.WaitStatus(info.status & 0x7f), nil
}

// hold stands in for a handle of a process, which macOS does not have.
func hold(pid int) (send func(syscall.Signal) error, release func()) {
	return func(sig syscall.Signal) error { return syscall.Kill(pid, sig) }, func() {}
}

// look is the process with the given pid.
func look(pid int) (process, bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, false
	}
	return entry(info), true
}

// processes are those of the kernel's table. A marker is never shown: macOS
// hides environments.
func processes(uint64) []process {
	infos, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	all := make([]process, len(infos))
	for i := range infos {
		all[i] = entry(&infos[i])
	}
	return all
}

func entry(info *unix.KinfoProc) process {
	const zombie = 5 // SZOMB
	started := info.Proc.P_starttime
	return process{
		pid:    int(info.Proc.P_pid),
		parent: int(info.Eproc.Ppid),
		group:  int(info.Eproc.Pgid),
		start:  uint64(started.Sec)*1e6 + uint64(started.Usec),
		dead:   info.Proc.P_stat == zombie,
	}
}

func rename(string) {}
