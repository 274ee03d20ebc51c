package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"crewhost/config/strict"
)

// Source says where the settings come from.
type Source struct {
	// Explicit is the file that --settings names. It is read and no other; that
	// it is missing is an issue (K53).
	Explicit string
	// CrewDir is the folder of the crew, where the look-up begins; where empty,
	// the working directory.
	CrewDir string
	// UserConfigDir is the user's configuration folder, as [os.UserConfigDir]
	// gives it; where empty, it is not looked at.
	UserConfigDir string
	// UserStateDir is where a user's programs keep what they have come to; where
	// empty, memory.dir alone says where memories are.
	UserStateDir string
	// Environ are NAME=value lines as [os.Environ] gives them: CREWHOST_*
	// variables are settings, and all of them are what ${NAME} means.
	Environ []string
	// Unset is what variables that are not set mean; where empty, they are issues. It is
	// for who reads settings without being about to use what they name.
	Unset string
	// Reserved are CREWHOST_* variables that are no settings.
	Reserved []string
	// Overrides are settings that flags give, in their order.
	Overrides []Override
}

// Override is a setting that a flag gives.
type Override struct {
	Flag  string // as it is shown: "--approve"
	Path  string // keys with dots between: "permissions.headless"
	Value string // a scalar, or a YAML list or mapping in brackets
}

// The codes of this package, beside those of [strict].
const (
	CodeFile   = "settings-file" // a file is missing, unreadable, empty or one of two
	CodeName   = "bad-name"      // of a server or a profile
	CodeServer = "bad-server"    // a server's keys contradict each other
)

const orkeonName = "appsettings.json"

// maxBytes is the size of the largest settings file that is read.
const maxBytes = 1 << 20

func limits() strict.Limits { return strict.Limits{Bytes: maxBytes, Depth: 32, Nodes: 10_000} }

// find returns the absolute path of the settings file, or "" where there is
// none. Explicit is returned whether it exists or not.
func (l *loader) find() string {
	if l.source.Explicit != "" {
		path, err := filepath.Abs(l.source.Explicit)
		if err != nil {
			l.fail(strict.Pos{File: l.source.Explicit}, CodeFile, err.Error(), "")
		}
		return path
	}
	if path, done := l.findIn(l.crewDir, orkeonName, filepath.Join("appsettings", orkeonName)); done {
		return path
	}
	for dir := l.crewDir; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		path, done := l.findIn(dir, filepath.Join("appsettings", orkeonName))
		if done && path != "" && worldWritable(filepath.Dir(path)) {
			l.warn(strict.Pos{File: path}, "not read: anybody may write to its folder; name it with --settings to use it")
			continue
		}
		if done {
			return path
		}
	}
	if l.source.UserConfigDir != "" {
		if path, done := l.findIn(filepath.Join(l.source.UserConfigDir, "crewhost")); done {
			return path
		}
	}
	return ""
}

// findIn looks for settings in one folder: crewhost.*, then the others named.
// It is done where it found one, or several, which is an issue.
func (l *loader) findIn(dir string, others ...string) (path string, done bool) {
	var found []string
	for _, name := range []string{"crewhost.yaml", "crewhost.yml", "crewhost.json", "crewhost.toml"} {
		if exists(filepath.Join(dir, name)) {
			found = append(found, name)
		}
	}
	if len(found) > 1 {
		l.fail(strict.Pos{File: filepath.Join(dir, found[0])}, CodeFile,
			"the folder has more than one settings file: "+strings.Join(found, ", "), "keep one, or name one with --settings")
		return "", true
	}
	for _, name := range others {
		if !exists(filepath.Join(dir, name)) {
			continue
		}
		if len(found) > 0 {
			l.warn(strict.Pos{File: filepath.Join(dir, name)}, "not read: %s takes precedence", found[0])
			continue
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		return "", false
	}
	return filepath.Join(dir, found[0]), true
}

// exists reports whether there is something of that name, if only something
// that cannot be read.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, syscall.ENOTDIR)
}

// worldWritable reports whether anybody may put a file into a folder. Windows
// has no such bit.
func worldWritable(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
}

// read returns the document of a settings file, or nil and an issue: missing, a
// directory, unreadable, too large, empty, null, no mapping (K53).
func (l *loader) read(path string, at strict.Pos, what string) *strict.Node {
	data, err := readFile(path)
	if err != nil {
		l.fail(at, CodeFile, what+" "+reason(err), "")
		return nil
	}
	n, issues := strict.Parse(path, data, limits())
	l.issues = append(l.issues, issues...)
	switch {
	case n == nil && len(issues) > 0:
	case n == nil:
		l.fail(at, CodeFile, what+" is empty", "")
	case n.Kind == strict.Null:
		l.fail(at, CodeFile, what+" holds nothing but null", "")
	case n.Kind != strict.Map:
		l.fail(n.Pos, strict.CodeWrongType, what+" must be a mapping, not "+n.Kind.String(), "")
	default:
		return n
	}
	return nil
}

// readFile reads a file, or a pipe that somebody writes to, as a shell's <(…) is.
// A pipe without a writer would never end, and reads as empty here.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errIsDir
	case !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0:
		return nil, errNoFile
	}
	return io.ReadAll(io.LimitReader(f, maxBytes+1))
}

var (
	errIsDir  = errors.New("is a directory, not a file")
	errNoFile = errors.New("is no regular file")
)

// reason says in a few words why a file was not read.
func reason(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "may not be read: permission denied"
	case errors.Is(err, errIsDir), errors.Is(err, errNoFile):
		return err.Error()
	case errors.As(err, &pe):
		return fmt.Sprintf("cannot be read: %s", pe.Err)
	}
	return fmt.Sprintf("cannot be read: %s", err)
}
