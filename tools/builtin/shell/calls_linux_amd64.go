package shell

import "golang.org/x/sys/unix"

const sysOpen = unix.SYS_OPEN
