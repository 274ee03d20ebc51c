package shell

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A call is a system call that is refused to a program, for what Landlock doesn't know.
// Those of sockets are among them: it knows TCP alone, and that not everywhere.
type call struct {
	number uint32
	// arg is the number of an argument, of which the bits of mask decide: the call is
	// refused with one of never, or, where there is only, with any but one of only.
	// Where there is neither, it is refused whatever its arguments.
	arg         int
	mask        uint32
	only, never []uint32
}

const allBits = 1<<32 - 1

// callsOf are the calls that are refused where the kernel has that version of Landlock.
func callsOf(version int, network bool) []call {
	calls := []call{
		{number: unix.SYS_IO_URING_SETUP}, // makes sockets, too
		// Keys of the user who runs the host, which lie in no file.
		{number: unix.SYS_KEYCTL}, {number: unix.SYS_ADD_KEY}, {number: unix.SYS_REQUEST_KEY},
		// Its own limits, and not those of the host.
		{number: unix.SYS_PRLIMIT64, arg: 0, mask: allBits, only: []uint32{0}},
	}
	if network {
		// No socket with a name in a folder: who may speak to that of a container engine,
		// of a key agent or of a desktop may do what they can.
		calls = append(calls, call{number: unix.SYS_SOCKET, arg: 0, mask: allBits, only: []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}})
	} else {
		calls = append(calls, call{number: unix.SYS_SOCKET})
	}
	if version < 3 { // it lets anything be cut off
		const mask = unix.O_TRUNC | unix.O_ACCMODE
		calls = append(calls, call{number: unix.SYS_TRUNCATE}, call{number: unix.SYS_OPENAT2},
			call{number: unix.SYS_OPENAT, arg: 2, mask: mask, never: []uint32{unix.O_TRUNC | unix.O_RDONLY}})
		if sysOpen != 0 {
			calls = append(calls, call{number: sysOpen, arg: 1, mask: mask, never: []uint32{unix.O_TRUNC | unix.O_RDONLY}})
		}
	}
	return calls
}

// auditArch is what the kernel calls this architecture; zero: no filter is made for it.
func auditArch() uint32 {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64
	}
	return 0
}

// The instructions of a filter, and where it finds what it looks at.
const (
	load       = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	and        = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	equal      = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	atLeast    = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	ret        = unix.BPF_RET | unix.BPF_K
	offsetCall = 0
	offsetArch = 4
	offsetArgs = 16 // eight bytes each; the lower half is first

	allow  = unix.SECCOMP_RET_ALLOW
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
)

// filterOf is the program of a filter. Calls of another architecture, which have other
// numbers, are refused altogether.
func filterOf(calls []call) []unix.SockFilter {
	const x32 = 0x40000000 // the bit of calls of x32, which amd64 may take besides
	program := []unix.SockFilter{
		{Code: load, K: offsetArch},
		{Code: equal, K: auditArch(), Jt: 1},
		{Code: ret, K: refuse},
		{Code: load, K: offsetCall},
		{Code: atLeast, K: x32, Jf: 1},
		{Code: ret, K: refuse},
	}
	for _, c := range calls {
		then := c.judge()
		program = append(program, unix.SockFilter{Code: equal, K: c.number, Jf: uint8(len(then))})
		program = append(program, then...)
	}
	return append(program, unix.SockFilter{Code: ret, K: allow})
}

// judge are the instructions for the call itself, which end the filter.
func (c call) judge() []unix.SockFilter {
	values, listed, other := c.never, refuse, uint32(allow)
	switch {
	case c.only != nil:
		values, listed, other = c.only, allow, refuse
	case c.never == nil:
		return []unix.SockFilter{{Code: ret, K: refuse}}
	}
	out := []unix.SockFilter{{Code: load, K: uint32(offsetArgs + 8*c.arg)}, {Code: and, K: c.mask}}
	for i, v := range values {
		out = append(out, unix.SockFilter{Code: equal, K: v, Jt: uint8(len(values) - i)})
	}
	return append(out, unix.SockFilter{Code: ret, K: other}, unix.SockFilter{Code: ret, K: listed})
}

// filterCalls has the kernel refuse the calls from now on.
func filterCalls(calls []call) error {
	program := filterOf(calls)
	filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
	runtime.KeepAlive(program)
	return err
}
