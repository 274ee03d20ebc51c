package shell

import (
	endian "encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// verdict is what the kernel makes of a filter for a call.
func verdict(t *testing.T, program []unix.SockFilter, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	data := make([]byte, 64)
	endian.LittleEndian.PutUint32(data, number)
	endian.LittleEndian.PutUint32(data[4:], arch)
	for i, a := range args {
		endian.LittleEndian.PutUint64(data[16+8*i:], a)
	}
	var acc uint32
	for at := 0; at < len(program); at++ {
		jump := func(yes bool) {
			if in := program[at]; yes {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in := program[at]; in.Code {
		case load:
			acc = endian.LittleEndian.Uint32(data[in.K:])
		case and:
			acc &= in.K
		case equal:
			jump(acc == in.K)
		case atLeast:
			jump(acc >= in.K)
		case ret:
			return in.K
		default:
			t.Fatalf("instruction %+v", in)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

func TestFilter(t *testing.T) {
	arch := auditArch()
	if arch == 0 {
		t.Skip("no filter is made for this architecture")
	}
	const high = 1 << 32 // the kernel takes an int, and so no more than the lower half
	for _, tt := range []struct {
		name    string
		version int
		network bool
		arch    uint32
		number  uint32
		args    []uint64
		want    uint32
	}{
		{"reading", 7, false, arch, unix.SYS_READ, nil, allow},
		{"another architecture", 7, false, arch + 1, unix.SYS_READ, nil, refuse},
		{"x32", 7, false, arch, 0x40000000 | unix.SYS_READ, nil, refuse},
		{"a socket", 7, false, arch, unix.SYS_SOCKET, []uint64{unix.AF_INET}, refuse},
		{"a socket with the network", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_INET}, allow},
		{"the second family", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_INET6}, allow},
		{"the last family", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_NETLINK}, allow},
		{"a local socket", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, refuse},
		{"a local socket in disguise", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_UNIX | high}, refuse},
		{"a virtual machine's", 7, true, arch, unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, refuse},
		{"io_uring", 7, true, arch, unix.SYS_IO_URING_SETUP, nil, refuse},
		{"keys", 7, true, arch, unix.SYS_KEYCTL, nil, refuse},
		{"its own limits", 7, false, arch, unix.SYS_PRLIMIT64, []uint64{0}, allow},
		{"the host's limits", 7, false, arch, unix.SYS_PRLIMIT64, []uint64{42}, refuse},
		{"cutting a file", 3, false, arch, unix.SYS_TRUNCATE, nil, allow},
		{"cutting a file that nothing holds", 2, false, arch, unix.SYS_TRUNCATE, nil, refuse},
		{"cutting by reading", 2, false, arch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC | unix.O_CLOEXEC}, refuse},
		{"cutting by writing", 2, false, arch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_TRUNC | unix.O_WRONLY}, allow},
		{"opening", 2, false, arch, unix.SYS_OPENAT, []uint64{0, 0, unix.O_CLOEXEC}, allow},
	} {
		if got := verdict(t, filterOf(callsOf(tt.version, tt.network)), tt.arch, tt.number, tt.args...); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
}
