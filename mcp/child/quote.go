package child

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Quote shows an argument list so that each item is seen as one: items are in
// double quotes, with Go's escapes, where they hold anything but plain
// characters (K07).
//
//	npx -y "-b local" ""
func Quote(argv []string) string {
	shown := make([]string, len(argv))
	for i, arg := range argv {
		if shown[i] = arg; arg == "" || strings.ContainsFunc(arg, unplain) {
			shown[i] = strconv.Quote(arg)
		}
	}
	return strings.Join(shown, " ")
}

// unplain reports whether r is something that a reader, or a shell, could take
// for more than itself.
func unplain(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-_./:@%+=,", r)
}

// lookPath finds a command as execvp would in the child: a name without a slash
// in the PATH of env. Relative entries of PATH are passed over, as in os/exec:
// they would mean something else in every directory.
func lookPath(command string, env []string) (string, error) {
	if command == "" {
		return "", errors.New("no command")
	}
	if filepath.Base(command) != command {
		return command, nil
	}
	path := os.Getenv("PATH")
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); sameName(name, "PATH") {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil {
			return found, nil
		}
	}
	return "", &exec.Error{Name: command, Err: exec.ErrNotFound}
}
