// Package builtin holds the tools that every host has, a folder for each kind:
//
//	files      read, write and edit files of the mounts, list and search folders
//	documents  JSON, CSV, XML, PDF, spreadsheets, texts, mail
//	web        HTTP APIs, pages, search engines, GitHub
//	database   SQLite, PostgreSQL, MySQL
//	shell      programs of an allow-list
//	people     a person's answer
//	mind       thoughts, a to-do list, the crew's memory and documents
//
// They are made of package tools/native, and registered together:
//
//	var reg tools.Registry
//	all, err := builtin.Register(&reg, builtin.Config{FS: fsys, Asker: terminal})
//
// A tool that could do harm, or that lacks something, is off until the settings turn it
// on, and [Offer] says how.
package builtin

import (
	"errors"
	"slices"
	"strings"

	"crewhost/tools"
	"crewhost/tools/builtin/database"
	"crewhost/tools/builtin/documents"
	"crewhost/tools/builtin/files"
	"crewhost/tools/builtin/mind"
	"crewhost/tools/builtin/people"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/builtin/web"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Config is what the tools work with. The zero value is useful for listing them: those
// that are on say, when called, what they lack.
type Config struct {
	// FS is the file system of all tools that have files; nil holds no mount. It takes
	// the place of that of Web, Database and Shell.
	FS *mount.FS
	// Asker asks a person; nil means that nobody can be asked.
	Asker people.Asker
	Mind  mind.Config
	Web   web.Config
	// Database and Shell are nil where the settings don't turn them on.
	Database *database.Config
	Shell    *shell.Config
	// Disabled are the names of tools that the settings turn off.
	Disabled []string
}

// Offer is a tool as the settings leave it.
type Offer struct {
	Tool native.Tool
	// Why says what keeps it off and which setting turns it on, as the end of a sentence
	// that begins with its name. One that is on has none.
	Why string
}

// Register adds the tools that are on to reg, and returns all of them, as [All] does. The
// error joins the refusals of reg.
func Register(reg *tools.Registry, cfg Config) ([]Offer, error) {
	var errs []error
	all := All(cfg)
	for _, t := range all {
		if t.Why == "" {
			errs = append(errs, reg.Add(t.Tool))
		}
	}
	return all, errors.Join(errs...)
}

// All returns every tool by name, on or off.
func All(cfg Config) []Offer {
	var all []Offer
	add := func(why string, list ...native.Tool) {
		for _, t := range list {
			o := Offer{t, why}
			if slices.Contains(cfg.Disabled, t.Name) {
				o.Why = "is one of tools.disabled in the settings"
			}
			all = append(all, o)
		}
	}
	add("", files.Tools(cfg.FS)...)
	add("", documents.Tools(cfg.FS)...)
	add("", people.Tools(cfg.Asker)...)
	add("", mind.Tools(cfg.Mind)...)
	cfg.Web.FS = cfg.FS
	for _, t := range web.Tools(cfg.Web) {
		why := ""
		if t.Name == "web_search" && cfg.Web.Search.Client == nil {
			why = "needs a search engine; name one in tools.web_search of the settings"
		}
		add(why, t)
	}
	data, why := cfg.Database, ""
	if data == nil {
		data, why = &database.Config{}, "is off; tools.database.enabled in the settings turns it on"
	}
	with := *data
	with.FS = cfg.FS
	add(why, database.Tools(with)...)
	programs, why := cfg.Shell, ""
	if programs == nil {
		programs, why = &shell.Config{}, "is off; tools.shell.enabled in the settings turns it on"
	}
	run := *programs
	run.FS = cfg.FS
	add(why, shell.Tools(run)...)
	slices.SortFunc(all, func(a, b Offer) int { return strings.Compare(a.Tool.Name, b.Tool.Name) })
	return all
}
