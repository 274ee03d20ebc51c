package shell

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// variable is the value of a variable of an environment; the last entry holds.
func variable(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		n, value, _ := strings.Cut(entry, "=")
		if n == name || runtime.GOOS == "windows" && strings.EqualFold(n, name) {
			return value
		}
	}
	return ""
}

// environ is the environment of a program: what of the host's tells of no secret, a home
// that is empty, what this kind of program needs, and what the settings say. No name is
// there twice: the last entry holds.
func (c Config) environ(path []string, home string, needs []string) []string {
	env := []string{"PATH=" + strings.Join(path, string(filepath.ListSeparator)), "HOME=" + home, "TMPDIR=" + home, "TERM=dumb", "NO_COLOR=1", "PAGER=cat", "LANG=C.UTF-8"}
	pass := []string{"LANG", "LC_ALL", "TZ"}
	if runtime.GOOS == "windows" {
		env = append(env, "USERPROFILE="+home, "TEMP="+home, "TMP="+home)
		pass = append(pass, "SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "PATHEXT")
	}
	for _, name := range pass {
		if value := variable(c.Host, name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	own := slices.DeleteFunc(slices.Clone(c.Environ), func(e string) bool {
		return strings.HasPrefix(e, "GIT_CONFIG_COUNT=") // it would undo what holds git
	})
	var out []string
	for _, entry := range slices.Concat(env, needs, own) {
		name, _, _ := strings.Cut(entry, "=")
		out = append(slices.DeleteFunc(out, func(e string) bool { return strings.HasPrefix(e, name+"=") }), entry)
	}
	return out
}

// path are the folders that programs are looked for in: those of the host's PATH that are
// absolute and in no mount, where an agent could have put one.
func (c Config) path(masks []mask) []string {
	var dirs []string
	for _, dir := range filepath.SplitList(variable(c.Host, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil || slices.ContainsFunc(masks, func(m mask) bool { return len(m.physical) > 1 && within(real, m.physical) }) {
			continue
		}
		dirs = append(dirs, dir)
	}
	return dirs
}

func within(p, root string) bool {
	return p == root || strings.HasPrefix(p, strings.TrimSuffix(root, string(filepath.Separator))+string(filepath.Separator))
}

// find is the program of that name in the first of the folders that has it.
func find(name string, dirs []string) (string, error) {
	endings := []string{""}
	if runtime.GOOS == "windows" {
		endings = []string{".exe", ".com"} // a .bat is read by a shell
		name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	}
	for _, dir := range dirs {
		for _, ending := range endings {
			path := filepath.Join(dir, name+ending)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
				return path, nil
			}
		}
	}
	return "", errors.New("it is not on the PATH of the host")
}
