package child

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A tree is a job object. All that a process in a job starts is in the job, and
// when its last handle is closed, by the host or by the host's death, the
// system kills everyone in it.
type tree struct {
	pid  int
	proc *os.Process

	mu  sync.Mutex
	job windows.Handle // zero once it is closed
}

// launch starts the child suspended, so that it is in the job before it can
// start anyone itself.
func launch(path string, cfg Config, marker string, files [3]*os.File) (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	proc, err := os.StartProcess(path, append([]string{cfg.Command}, cfg.Args...), &os.ProcAttr{
		Dir:   cfg.Dir,
		Env:   treeEnv(cfg.Env, os.Getenv(TreeVariable), marker),
		Files: files[:],
		Sys:   &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP},
	})
	if err != nil {
		windows.CloseHandle(job)
		return nil, err
	}
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	var assigned error
	err = proc.WithHandle(func(handle uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(handle))
		if assigned == nil {
			if status, _, _ := resume.Call(handle); status != 0 {
				assigned = windows.NTStatus(status)
			}
		}
	})
	if err = errors.Join(err, assigned); err != nil {
		_ = proc.Kill()
		_, _ = proc.Wait()
		windows.CloseHandle(job)
		return nil, err
	}
	return &tree{pid: proc.Pid, proc: proc, job: job}, nil
}

func (t *tree) wait() Exit {
	state, err := t.proc.Wait()
	if err != nil {
		return Exit{Code: -1}
	}
	return Exit{Code: state.ExitCode()}
}

// empty reports whether nobody is left in the job.
func (t *tree) empty() bool {
	// JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
	var info struct {
		userTime, kernelTime, periodUserTime, periodKernelTime int64
		faults, total, active, terminated                      uint32
	}
	err := windows.QueryInformationJobObject(t.job, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil)
	return err != nil || info.active == 0
}

// terminate does nothing: Windows has no request to end for a process without a
// window. Such a process has seen the end of its stdin.
func (t *tree) terminate() {}

func (t *tree) kill() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.job != 0 {
		_ = windows.TerminateJobObject(t.job, 1)
	}
}

func (t *tree) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = windows.CloseHandle(t.job)
	t.job = 0
}

// guard is nothing: the job objects are enough.
type guard struct{}

func startGuard([]string) (*Guard, error) { return new(Guard), nil }

func (*guard) close() error { return nil }

func guardMain(stdin io.Reader) error {
	_, err := io.Copy(io.Discard, stdin)
	return err
}

func (*Guard) expect(string) {}
func (*Guard) watch(*tree)   {}
func (*Guard) forget(string) {}
