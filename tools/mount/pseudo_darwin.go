package mount

import (
	"io/fs"
	"os"
	"syscall"
)

// checkSystem refuses a file or a folder of a file system that holds no files.
func checkSystem(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var stat syscall.Statfs_t
	if cerr := conn.Control(func(fd uintptr) { err = syscall.Fstatfs(int(fd), &stat) }); cerr != nil {
		return cerr
	}
	if err != nil {
		return err
	}
	var name []byte
	for _, c := range stat.Fstypename {
		if c == 0 {
			break
		}
		name = append(name, byte(c))
	}
	switch string(name) {
	case "devfs", "fdesc":
		return &reason{"it lies in the system's " + string(name) + ", which holds no files of anybody's", fs.ErrPermission}
	}
	return nil
}
