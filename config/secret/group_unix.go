//go:build unix

package secret

import (
	"os/exec"
	"syscall"
)

// ownGroup has the program lead a process group, all of which ends when the
// program is stopped.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
