package config

import (
	"path/filepath"
	"time"

	"crewhost/config/strict"
)

// Journal is what runs write down while they go, so that they can be resumed.
type Journal struct {
	// Enabled is false where the settings switch journals off, or nothing says where
	// the state of a user is kept.
	Enabled bool
	// Named says that the settings name the folder: a run that can't keep a journal
	// there does not begin. Without a name it goes on without one, and says so.
	Named bool
	// Dir is the folder of the journals, absolute; set also where they are off.
	Dir string
	// Runs and Age say which journals are kept: of so many of the newest runs, and
	// those that were written to since. 0: all of them.
	Runs int
	Age  time.Duration
	// Repeatable are patterns of tools that may be called twice for once, and ReadOnly
	// of those that change nothing, whatever their server says of them (R4).
	Repeatable, ReadOnly []Rule
}

// journalDefaults are those of [Journal], as a part of the lowest layer.
const journalDefaults = `
journal: {enabled: true, keep: {runs: 100}}
`

type journalDocument struct {
	Enabled    bool              `key:"enabled"`
	Dir        strict.At[word]   `key:"dir"`
	Keep       keepDocument      `key:"keep"`
	Repeatable []strict.At[word] `key:"repeatable"`
	ReadOnly   []strict.At[word] `key:"read_only"`
}

type keepDocument struct {
	Runs natural       `key:"runs"`
	Age  time.Duration `key:"age"`
}

func (l *loader) journal(d *strict.Decoder, doc journalDocument) Journal {
	j := Journal{Enabled: doc.Enabled, Runs: int(doc.Keep.Runs), Age: doc.Keep.Age}
	switch dir := string(doc.Dir.V); {
	case dir != "":
		j.Dir, j.Named = l.absolute(dir, doc.Dir.Pos), true
	case l.source.UserStateDir != "":
		j.Dir = filepath.Join(l.source.UserStateDir, "crewhost", "runs")
	default:
		j.Enabled = false
	}
	j.Repeatable = rulesOf(d, doc.Repeatable, "journal.repeatable")
	j.ReadOnly = rulesOf(d, doc.ReadOnly, "journal.read_only")
	return j
}
