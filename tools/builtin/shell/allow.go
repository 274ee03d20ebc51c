package shell

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"crewhost/tools/native"
)

// looks reports whether a program of an entry only looks at files: one that may run in a
// folder that can't be written to, though nothing but its own nature holds it.
func looks(entry []string) bool {
	name := entry[0]
	if name == "git" {
		return len(entry) > 1 && slices.Contains([]string{"diff", "log", "show", "status"}, entry[1])
	}
	return slices.Contains(strings.Fields("basename cat cmp cut diff dirname du echo file grep head ls md5sum nl pwd rg sha256sum stat tail tr wc where which"), name)
}

// marks reports whether a program changes modes, owners and times of files, which
// confinement does not hold.
func marks(name string) bool {
	return slices.Contains(strings.Fields("chgrp chmod chown setfacl setfattr touch"), baseOf(name))
}

// entries are the words of each entry of a list.
func entries(list []string) [][]string {
	var out [][]string
	for _, text := range list {
		if entry := strings.Fields(text); len(entry) > 0 {
			out = append(out, entry)
		}
	}
	return out
}

// allowed is the entry that a command is of: its program, and then its first arguments,
// each the same. An option before them is another argument, so that none gets around it.
func allowed(list [][]string, argv []string) ([]string, bool) {
	for _, entry := range list {
		if len(entry) <= len(argv) && sameProgram(entry[0], argv[0]) && slices.Equal(entry[1:], argv[1:len(entry)]) {
			return entry, true
		}
	}
	return nil, false
}

// sameProgram compares names of programs as the system does.
func sameProgram(a, b string) bool {
	if runtime.GOOS == "windows" {
		return strings.EqualFold(strings.TrimSuffix(strings.ToLower(a), ".exe"), strings.TrimSuffix(strings.ToLower(b), ".exe"))
	}
	return a == b
}

// runnable are the entries whose programs may be run: without those that run whatever
// they are given, unless that is allowed.
func (c Config) runnable() [][]string {
	return slices.DeleteFunc(entries(c.Allow), func(entry []string) bool { return !c.Interpreters && interprets(entry[0]) })
}

// permit says why a command must not be run, as a text for the model; empty: it may.
func (c Config) permit(argv []string) string {
	name := argv[0]
	list := c.runnable()
	if variable, _, ok := strings.Cut(name, "="); ok && variable != "" {
		return "Nothing was run: a variable before the program is for a shell, and there is none. The command begins with the name of a program."
	}
	if strings.ContainsAny(name, `/\`) {
		return fmt.Sprintf("Nothing was run: %q is a path. The command begins with the name of a program; %s.", native.Shorten(name), c.may(list))
	}
	if entry, ok := allowed(list, argv); ok {
		if why := dangerous(argv, entry, c.Interpreters); why != "" {
			return "Nothing was run: " + why + "."
		}
		return ""
	}
	if interprets(name) {
		if _, listed := allowed(entries(c.Allow), argv); listed {
			return fmt.Sprintf("Nothing was run: %s runs whatever it is given, which the settings do not allow (tools.shell.interpreters). %s.", name, upper(c.may(list)))
		}
	}
	if name == "cd" {
		return "Nothing was run: there is no shell to change the folder of. Name it in the argument working_directory of the call that needs it."
	}
	return fmt.Sprintf("Nothing was run: %q is not one of the programs that may be. %s%s.", native.Shorten(strings.Join(argv[:min(2, len(argv))], " ")), upper(c.may(list)), substitute(name))
}

// may says which programs may be run.
func (c Config) may(list [][]string) string {
	if len(list) == 0 {
		return "no program may be run: tools.shell.allow of the settings names none"
	}
	return "those that may be are " + listed(list)
}

func listed(list [][]string) string {
	const most = 60
	var names []string
	for _, entry := range list {
		names = append(names, strings.Join(entry, " "))
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// substitute names the tool that does what a program would.
func substitute(name string) string {
	tool := map[string]string{
		"curl": "http_api", "wget": "http_api", "find": "glob", "rg": "grep", "sed": "file_edit", "tee": "file_write", "touch": "file_write",
		"jq": "json_tool", "head": "file_read", "tail": "file_read", "psql": "relational_database_query", "mysql": "relational_database_query", "sqlite3": "relational_database_query",
		"pdftotext": "pdf_reader",
	}[name]
	if tool == "" {
		return ""
	}
	return "; the tool " + tool + " does much of what " + name + " does"
}

// baseOf is the name of a program without its folder and what Windows adds.
func baseOf(path string) string {
	return strings.TrimSuffix(strings.ToLower(filepath.Base(path)), ".exe")
}
