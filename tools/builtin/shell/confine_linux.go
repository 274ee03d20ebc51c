package shell

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files that are handled, by the version of Landlock that knows them.
const (
	handledFirst = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM

	// ofFiles are the rights that a rule about a file, and no folder, may hold.
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// landlockVersion is what the kernel knows of Landlock, from 1.
func landlockVersion() (int, error) {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("the kernel has no Landlock: %w", errno)
	}
	return int(v), nil
}

func canConfine() error {
	_, err := landlockVersion()
	if err == nil && socketCalls().arch == 0 {
		return errors.New("programs can't be confined on Linux for " + runtime.GOARCH)
	}
	return err
}

// handled are the rights that version of Landlock takes away.
func handled(version int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledFirst}
	if version >= 2 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// access are Landlock's rights for ours.
func access(m may) uint64 {
	var a uint64
	if m&mayRead != 0 {
		a |= unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	if m&mayExecute != 0 {
		a |= unix.LANDLOCK_ACCESS_FS_EXECUTE
	}
	if m&mayWrite != 0 {
		a |= unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	}
	if m&mayRemove != 0 {
		a |= unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REFER
	}
	return a
}

// become gives up what the plan does not name and executes its program. What is given up
// is the thread's, which becomes the whole process then.
func become(p plan) error {
	runtime.LockOSThread()
	version, err := landlockVersion()
	if err != nil {
		return err
	}
	attr := handled(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("making a ruleset: %w", errno)
	}
	ruleset := int(fd)
	unix.CloseOnExec(ruleset)
	for _, r := range p.Rules {
		if err := addRule(ruleset, r, attr.Handled_access_fs); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("giving up rights to files: %w", errno)
	}
	if !p.Network {
		if err := refuseSockets(); err != nil {
			return fmt.Errorf("giving up the network: %w", err)
		}
	}
	// What the host itself inherited is not the program's.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing files: %w", err)
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a dump would be left in a mount
	return fmt.Errorf("executing the program: %w", syscall.Exec(p.Path, p.Args, os.Environ()))
}

func addRule(ruleset int, r rule, known uint64) error {
	fd, err := unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if r.Optional && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("opening what may be used: %w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at what may be used: %w", err)
	}
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: access(r.May) & known, Parent_fd: int32(fd)}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		beneath.Allowed_access &= ofFiles
	}
	if beneath.Allowed_access == 0 {
		return nil
	}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0); errno != 0 {
		return fmt.Errorf("adding a rule: %w", errno)
	}
	return nil
}

// sockets are the system calls by which a socket is made.
type sockets struct{ arch, socket, uring uint32 }

func socketCalls() sockets {
	const uring = 425 // of every architecture
	switch runtime.GOARCH {
	case "amd64":
		return sockets{unix.AUDIT_ARCH_X86_64, 41, uring}
	case "arm64":
		return sockets{unix.AUDIT_ARCH_AARCH64, 198, uring}
	}
	return sockets{}
}

// refuseSockets has the kernel refuse every new socket: Landlock knows TCP alone, and that
// not everywhere. Calls of another architecture, which have other numbers, are refused
// altogether.
func refuseSockets() error {
	const (
		load       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal      = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atLeast    = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		ret        = unix.BPF_RET | unix.BPF_K
		offsetCall = 0
		offsetArch = 4
		x32        = 0x40000000 // the bit of calls of x32, which amd64 may take besides
	)
	calls := socketCalls()
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: calls.arch, Jt: 0, Jf: 5},
		{Code: load, K: offsetCall},
		{Code: atLeast, K: x32, Jt: 3},
		{Code: equal, K: calls.socket, Jt: 2},
		{Code: equal, K: calls.uring, Jt: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)},
	}
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	runtime.KeepAlive(program)
	return err
}
