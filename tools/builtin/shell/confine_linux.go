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
	if err == nil && auditArch() == 0 {
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
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("giving up capabilities: %w", err)
	}
	if err := filterCalls(callsOf(version, p.Network)); err != nil {
		return fmt.Errorf("giving up system calls: %w", err)
	}
	// What the host itself inherited is not the program's.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("closing files: %w", err)
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // a dump would be left in a mount
	return fmt.Errorf("executing the program: %w", syscall.Exec(p.Path, p.Args, os.Environ()))
}

// dropCapabilities takes from root what is more than files: to load modules, set the clock,
// end anybody's processes and so on. Those of files stay, as a mount may be of others.
func dropCapabilities() error {
	const files = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData // of 32 capabilities each
	if err := unix.Capget(&header, &held[0]); err != nil {
		return err
	}
	if held[unix.CAP_SETPCAP/32].Effective&(1<<(unix.CAP_SETPCAP%32)) != 0 {
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			if c < 32 && files&(1<<c) != 0 {
				continue
			}
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) { // the kernel does not know it
				return err
			}
		}
	}
	// What is in no set now is not there after the program's start either.
	for i, keep := range [2]uint32{files, 0} {
		held[i].Effective &= keep
		held[i].Permitted &= keep
		held[i].Inheritable = 0
	}
	return unix.Capset(&header, &held[0])
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
