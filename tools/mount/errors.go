package mount

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
)

// Errors that callers may look for, beside those of io/fs.
var (
	// ErrTooLarge is wrapped by reads of more than the limit.
	ErrTooLarge = errors.New("too large")
	// ErrNotRegular is wrapped where a path names a device, a pipe, a socket or
	// a folder and a file was wanted.
	ErrNotRegular = errors.New("not a regular file")
	// ErrChanged is wrapped where a file is not what its writer had seen.
	ErrChanged error = &reason{text: "somebody else changed it meanwhile"}
)

var errInvalid = fs.ErrInvalid

// reason is an error that says why in words, and what it is for errors.Is.
type reason struct {
	text string
	is   error
}

func (r *reason) Error() string { return r.text }
func (r *reason) Unwrap() error { return r.is }

// wrap returns err as an error of the virtual path name. What os puts around an
// error names physical paths, and is taken off.
func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var why *reason
	if errors.As(err, &why) {
		err = why
	}
	for {
		var pe *fs.PathError
		var le *os.LinkError
		var se *os.SyscallError
		switch {
		case errors.As(err, &pe):
			err = pe.Err
		case errors.As(err, &le):
			err = le.Err
		case errors.As(err, &se):
			err = se.Err
		default:
			return &fs.PathError{Op: op, Path: shown(name), Err: plain(err)}
		}
	}
}

// shown is a path as an error text may hold it: one line of bounded length.
func shown(name string) string {
	if len(name) > 200 {
		name = name[:200] + "..."
	}
	return seen(name)
}

// seen is a name in which all that can't be seen is U+FFFD.
func seen(name string) string {
	return strings.Map(func(r rune) rune {
		if unseen(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(name, string(utf8.RuneError)))
}

// plain keeps the errors whose texts hold no path, and replaces others.
func plain(err error) error {
	var why *reason
	if errors.As(err, &why) {
		return why
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		if errno == syscall.ENOTDIR {
			return &reason{"a part of the path is a file, not a folder", fs.ErrNotExist}
		}
		return errno
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist),
		errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrClosed):
		for _, known := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrClosed} {
			if errors.Is(err, known) {
				return known
			}
		}
	}
	// What is left is os.Root's refusal of a path that leaves the root, which
	// has no exported name, and what no file system here has ever said.
	return &reason{"the file system refused it", fs.ErrPermission}
}
