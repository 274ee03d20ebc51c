package child

import (
	"runtime"
	"slices"
	"strings"
)

// inherited are the variables that a child gets from its host: those without
// which ordinary programs do not run, and none that is likely to hold a secret.
// A name that ends in a star stands for all names that begin so.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM",
	"LANG", "LANGUAGE", "LC_*", "TZ",
	"TMPDIR", "TEMP", "TMP",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
	"http_proxy", "https_proxy", "no_proxy", "all_proxy",
	HostsVariable,
}

// inheritedWindows are those that Windows programs need besides.
var inheritedWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT",
	"USERNAME", "USERPROFILE", "HOMEDRIVE", "HOMEPATH",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "COMMONPROGRAMFILES",
	"PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS", "OS",
}

// Environ is the environment of a child: from parent, entries of the form
// "name=value" as [os.Environ] has them, the variables that programs need to
// run at all (path, home, user, locale, time zone, temporary folder, proxies;
// on Windows also those of the system) and [HostsVariable]; and over them own, whose values win
// (K03). No name is there twice: of several entries the last holds. The result
// is sorted by name. Entries without a name or with a NUL byte are left out.
func Environ(parent, own []string) []string {
	return environ(runtime.GOOS, parent, own)
}

func environ(goos string, parent, own []string) []string {
	windows := goos == "windows"
	fold := func(name string) string {
		if windows {
			return strings.ToUpper(name)
		}
		return name
	}
	names := inherited
	if windows {
		names = slices.Concat(inherited, inheritedWindows)
	}

	entries := make(map[string]string, len(own)+len(names))
	for _, entry := range parent {
		if name := nameOf(entry); name != "" && passes(names, fold(name)) {
			entries[fold(name)] = entry
		}
	}
	for _, entry := range own {
		if name := nameOf(entry); name != "" {
			entries[fold(name)] = entry
		}
	}
	sorted := make([]string, 0, len(entries))
	for _, entry := range entries {
		sorted = append(sorted, entry)
	}
	slices.SortFunc(sorted, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return sorted
}

// nameOf is the name in a well-formed entry, else empty.
func nameOf(entry string) string {
	name, _, ok := strings.Cut(entry, "=")
	if !ok || strings.ContainsRune(entry, 0) {
		return ""
	}
	return name
}

func passes(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool {
		if prefix, ok := strings.CutSuffix(n, "*"); ok {
			return strings.HasPrefix(name, prefix)
		}
		return n == name
	})
}

// sameName compares names of variables as the system does.
func sameName(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(a, b)
	}
	return a == b
}
