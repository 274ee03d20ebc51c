package config

import (
	"path/filepath"

	"crewhost/config/strict"
)

// Audit is whether calls are put on record, and where.
type Audit struct {
	Enabled bool
	// File is the log, absolute. It is set also where the log is not enabled; empty
	// where the user has no folder for state.
	File     string
	MaxBytes int64 // of one file; a full one is put aside
	Keep     int   // full files that are kept; 0: all
	// Required says that nothing runs that can't be put on record.
	Required bool
}

// The bounds of a log where the settings don't say.
const (
	auditBytes = 16 << 20
	auditKeep  = 20
)

// auditDocument is true, false or what there is to say about the log, which switches
// it on. It has no part in the lowest layer: nothing there would mean nothing here.
type auditDocument struct {
	on     bool
	fields struct {
		File     strict.At[word] `key:"file"`
		MaxBytes count           `key:"max_bytes"`
		Keep     *natural        `key:"keep"`
		Required *bool           `key:"required"`
	}
	pos strict.Pos
}

// UnmarshalNode implements [strict.Unmarshaler].
func (a *auditDocument) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	a.pos = n.Pos
	switch n.Kind {
	case strict.Null:
		d.Fail(n.Pos, strict.CodeMissing, "audit says nothing", "write true, or a mapping with file, max_bytes, keep, required")
	case strict.Map:
		a.on = true
		d.Decode(n, &a.fields, "")
	default:
		d.Decode(n, &a.on, "")
	}
}

func (l *loader) audit(d *strict.Decoder, doc auditDocument) Audit {
	a := Audit{Enabled: doc.on, MaxBytes: auditBytes, Keep: auditKeep, Required: true}
	switch file := doc.fields.File; {
	case file.V != "":
		a.File = l.absolute(string(file.V), file.Pos)
	case l.source.UserStateDir != "":
		a.File = filepath.Join(l.source.UserStateDir, "crewhost", "audit", "audit.jsonl")
	case a.Enabled:
		d.Fail(doc.pos, strict.CodeMissing, "audit.file is missing, and nothing says where the state of a user is kept", "name a file")
	}
	if n := doc.fields.MaxBytes; n > 0 {
		a.MaxBytes = int64(n)
	}
	if n := doc.fields.Keep; n != nil {
		a.Keep = int(*n)
	}
	if r := doc.fields.Required; r != nil {
		a.Required = *r
	}
	return a
}
