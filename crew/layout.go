package crew

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crewhost/config/strict"
)

// layout says where the parts of a crew lie. Paths begin as the path that was
// given does.
type layout struct {
	root     string // the file or folder that is the crew
	name     string // what the crew is called where no file says it
	crewai   bool   // the layout alone tells that the format is CrewAI's
	settings string // the file of the crew's own keys; empty: none
	single   bool   // settings holds the agents and the tasks too

	agents, tasks part
}

// part is where the agents or the tasks lie: in a file by id, or in a folder
// with a file each.
type part struct {
	file   string
	folder string
	files  []string // of the folder, sorted
}

// findLayout judges the path. It reads no file.
func findLayout(path string) (layout, Issues, Issues) {
	f := &finder{}
	l := f.path(path)
	return l, f.issues, f.warnings
}

type finder struct{ issues, warnings Issues }

func (f *finder) fail(path, code, message, hint string) {
	f.issues = append(f.issues, Issue{Pos: Pos{File: path}, Code: code, Message: message, Hint: hint})
}

func (f *finder) warn(path, code, message, hint string) {
	f.warnings = append(f.warnings, Issue{Pos: Pos{File: path}, Code: code, Message: message, Hint: hint})
}

func (f *finder) path(path string) layout {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		f.fail(path, CodeNotFound, "no such file or folder", "")
		return layout{}
	case err != nil:
		f.fail(path, CodeUnreadable, reason(err), "")
		return layout{}
	case info.IsDir():
		return f.folder(filepath.Clean(path))
	case !isYAML(path):
		f.fail(path, CodeLayout, "a crew file ends in .yaml or .yml", "")
		return layout{}
	}
	dir, base := filepath.Split(path)
	if (base == "agents.yaml" || base == "tasks.yaml") && isFile(dir+"agents.yaml") && isFile(dir+"tasks.yaml") {
		f.fail(path, CodeLayout, "this file is one part of a crew", "give its folder: "+filepath.Clean(dir))
		return layout{}
	}
	return layout{root: path, settings: path, single: true, name: strings.TrimSuffix(base, filepath.Ext(base))}
}

// folder judges a folder: the crew in its own folder crew/ first, then what it
// holds itself, then where CrewAI's projects have their pair, then a crew that is
// one file.
func (f *finder) folder(dir string) layout {
	if promoted := filepath.Join(dir, "crew"); holdsCrew(promoted) {
		return f.crew(promoted)
	}
	if holdsCrew(dir) {
		return f.crew(dir)
	}
	pairs := crewAIPairs(dir)
	switch len(pairs) {
	case 1:
		return f.pair(dir, pairs[0])
	case 0:
		if file := filepath.Join(dir, "crew.yaml"); isFile(file) && !isFile(filepath.Join(dir, "agents.yaml")) && !isFile(filepath.Join(dir, "tasks.yaml")) {
			l := f.path(file)
			l.name = nameOf(dir)
			return l
		}
		f.nothing(dir)
	default:
		f.fail(dir, CodeLayout, "more than one crew is here: "+strings.Join(pairs, ", "), "give the folder of one")
	}
	return layout{}
}

// holdsCrew reports whether a folder is laid out as Orkeon's.
func holdsCrew(dir string) bool {
	return isDir(filepath.Join(dir, "agents")) || isDir(filepath.Join(dir, "tasks")) ||
		isFile(filepath.Join(dir, "crew.yaml")) && isPair(dir)
}

func isPair(dir string) bool {
	return isFile(filepath.Join(dir, "agents.yaml")) && isFile(filepath.Join(dir, "tasks.yaml"))
}

// crewAIPairs returns the folders in which CrewAI would look for its pair.
func crewAIPairs(dir string) []string {
	for _, d := range []string{dir, filepath.Join(dir, "config")} {
		if isPair(d) {
			return []string{d}
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, "src"))
	if err != nil {
		return nil
	}
	var pairs []string
	for _, e := range entries {
		if d := filepath.Join(dir, "src", e.Name(), "config"); isPair(d) {
			pairs = append(pairs, d)
		}
	}
	return pairs
}

func (f *finder) pair(given, dir string) layout {
	l := layout{root: dir, crewai: true}
	home := dir
	if filepath.Base(home) == "config" {
		home = filepath.Dir(home)
	}
	l.name = nameOf(home)
	for _, d := range []string{dir, home, given} {
		if file := filepath.Join(d, "crew.yaml"); isFile(file) {
			l.settings = file
			break
		}
	}
	l.agents.file = filepath.Join(dir, "agents.yaml")
	l.tasks.file = filepath.Join(dir, "tasks.yaml")
	return l
}

func (f *finder) crew(dir string) layout {
	l := layout{root: dir, name: nameOf(dir)}
	l.agents = f.part(dir, "agents")
	l.tasks = f.part(dir, "tasks")
	config, crew := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "crew.yaml")
	perEntity := isDir(filepath.Join(dir, "agents")) || isDir(filepath.Join(dir, "tasks"))
	switch {
	case !perEntity:
		l.settings = crew
		return l
	case len(f.issues) > 0:
	case l.agents.file != "" && l.agents.folder == "" || l.tasks.file != "" && l.tasks.folder == "":
		f.fail(dir, CodeLayout, "mixed layouts: one of agents and tasks is a folder, the other a file",
			"use agents/ and tasks/, or agents.yaml and tasks.yaml")
	case isFile(config) && isFile(crew):
		f.warn(crew, CodeNoEffect, "crew.yaml is not read, as config.yaml is there", "keep one")
	case !isFile(config) && !isFile(crew):
		f.fail(dir, CodeNotFound, "the crew's own keys are missing: neither config.yaml nor crew.yaml is here", "")
		return l
	}
	l.settings = crew
	if isFile(config) {
		l.settings = config
	}
	return l
}

// nameOf is the name of a folder, also of one that is given as "." or "..".
func nameOf(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return filepath.Base(abs)
	}
	return ""
}

// part finds the agents or the tasks of a folder.
func (f *finder) part(dir, name string) part {
	file, folder := filepath.Join(dir, name+".yaml"), filepath.Join(dir, name)
	var p part
	if isFile(file) {
		p.file = file
	}
	if !isDir(folder) {
		return p
	}
	if p.file != "" {
		f.fail(dir, CodeLayout, fmt.Sprintf("mixed layouts: both %s.yaml and %s/ are here", name, name), "keep one")
	}
	p.folder = folder
	entries, err := os.ReadDir(folder)
	if err != nil {
		f.fail(folder, CodeUnreadable, reason(err), "")
		return p
	}
	for _, e := range entries {
		path := filepath.Join(folder, e.Name())
		switch ext := filepath.Ext(e.Name()); {
		case strings.HasPrefix(e.Name(), "."):
		case isDir(path):
			f.warn(path, CodeNoEffect, "a folder in "+name+"/ is not read", "")
		case ext == ".yaml":
			p.files = append(p.files, path)
		case isYAML(path):
			f.fail(path, CodeLayout, "the files of "+name+"/ end in .yaml; this one would not be read",
				"rename it "+strings.TrimSuffix(e.Name(), ext)+".yaml")
		}
	}
	slices.Sort(p.files)
	if len(p.files) > maxFiles {
		f.fail(folder, strict.CodeTooLarge, fmt.Sprintf("%d files; the limit is %d", len(p.files), maxFiles), "")
		p.files = nil
	}
	return p
}

// nothing says what was looked for in a folder without a crew.
func (f *finder) nothing(dir string) {
	hint := ""
	for _, name := range []string{"crew.yaml", "crew.yml", "config.yaml", "crew/crew.yaml"} {
		if file := filepath.Join(dir, filepath.FromSlash(name)); isFile(file) {
			hint = "to load one file, give its path: " + file
			break
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if name := e.Name(); hint == "" && (strings.HasSuffix(name, ".ork.ts") || strings.HasSuffix(name, ".ork.js")) {
			hint = name + " is a script, and scripts are not read here"
		}
	}
	f.fail(dir, CodeNotFound, "no crew is here; searched, in the folder and in its crew/: agents/ or tasks/; "+
		"crew.yaml with agents.yaml and tasks.yaml; and in the folder crew.yaml without them, or CrewAI's agents.yaml with tasks.yaml, also in config/ and src/*/config/", hint)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isYAML(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext == ".yaml" || ext == ".yml"
}

// reason returns what an error of the file system says without the path, which
// the issue's place names.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
