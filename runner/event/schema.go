package event

import (
	_ "embed"
	"encoding/json"
	"slices"
)

//go:embed event.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of events: one definition a kind, each
// closed, and the commands under $defs/command.
func Schema() json.RawMessage { return slices.Clone(schema) }
