package mount

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// pseudo is the name of a file system that is a window into the kernel, or "": its
// files are the memory, the keys and the switches of processes and of the machine.
// Numbers are those of statfs(2).
func pseudo(kind uint32) string {
	switch kind {
	case 0x9fa0:
		return "proc"
	case 0x62656572:
		return "sysfs"
	case 0x1cd1:
		return "devpts"
	case 0x64626720:
		return "debugfs"
	case 0x74726163:
		return "tracefs"
	case 0x73636673:
		return "securityfs"
	case 0xf97cff8c:
		return "selinuxfs"
	case 0x43415d53:
		return "smackfs"
	case 0x0027e0eb:
		return "cgroup"
	case 0x63677270:
		return "cgroup2"
	case 0xcafe4a11:
		return "bpf"
	case 0xde5e81e4:
		return "efivarfs"
	case 0x6165676c:
		return "pstore"
	case 0x62656570:
		return "configfs"
	case 0x42494e4d:
		return "binfmt_misc"
	case 0x19800202:
		return "mqueue"
	case 0x6e736673:
		return "nsfs"
	case 0x67596969:
		return "rpc_pipefs"
	case 0x65735543:
		return "fusectl"
	case 0x9fa1:
		return "openpromfs"
	case 0x9fa2:
		return "usbdevfs"
	case 0xabba1974:
		return "xenfs"
	case 0x6c6f6f70:
		return "binder"
	}
	return ""
}

// checkSystem refuses a file or a folder of a file system that holds no files.
func checkSystem(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var stat syscall.Statfs_t
	if cerr := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Fstatfs(int(fd), &stat)
		}
	}); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	// The type has another width on each processor; its lower 32 bits are the number.
	if name := pseudo(uint32(stat.Type)); name != "" {
		return &reason{"it lies in the system's " + name + ", which holds no files of anybody's", fs.ErrPermission}
	}
	return nil
}
