package mount

import (
	"io/fs"
	"os"
	"syscall"
)

// pseudo are the file systems that are windows into the kernel: their files are
// the memory, the keys and the switches of processes and of the machine.
// Numbers are those of statfs(2).
var pseudo = map[uint32]string{
	0x9fa0:     "proc",
	0x62656572: "sysfs",
	0x1cd1:     "devpts",
	0x64626720: "debugfs",
	0x74726163: "tracefs",
	0x73636673: "securityfs",
	0xf97cff8c: "selinuxfs",
	0x43415d53: "smackfs",
	0x0027e0eb: "cgroup",
	0x63677270: "cgroup2",
	0xcafe4a11: "bpf",
	0xde5e81e4: "efivarfs",
	0x6165676c: "pstore",
	0x62656570: "configfs",
	0x42494e4d: "binfmt_misc",
	0x19800202: "mqueue",
	0x6e736673: "nsfs",
	0x67596969: "rpc_pipefs",
	0x65735543: "fusectl",
	0x9fa1:     "openpromfs",
	0x9fa2:     "usbdevfs",
	0xabba1974: "xenfs",
	0x6c6f6f70: "binder",
}

// checkSystem refuses a file or a folder of a file system that holds no files.
func checkSystem(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var stat syscall.Statfs_t
	if cerr := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; err == syscall.EINTR; {
			err = syscall.Fstatfs(int(fd), &stat)
		}
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	// The type has another width on each processor; its lower half is the number.
	if name, is := pseudo[uint32(stat.Type&0xffffffff)]; is { //nolint:gosec // cut on purpose
		return &reason{"it lies in the system's " + name + ", which holds no files of anybody's", fs.ErrPermission}
	}
	return nil
}
