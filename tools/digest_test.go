package tools_test

import (
	"encoding/json"
	"testing"

	"crewhost/tools"
)

// A digest changes with what a model would see of the tool, and with nothing else.
func TestDigests(t *testing.T) {
	base := tools.Definition{
		Name: "search", Description: "Searches.", Server: "notes",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"n":{"maximum":725653563933458433}}}`),
	}
	same := base
	same.Name, same.Original, same.Server = "notes_search", "search", "other"
	same.InputSchema = json.RawMessage(`{ "properties": {"n": {"maximum":725653563933458433}, "q": {"type":"string"}}, "type":"object" }`)
	if base.Digests() != same.Digests() {
		t.Error("spaces, the order of keys, the registered name or the server count")
	}
	yes := true
	for name, change := range map[string]func(*tools.Definition){
		"name":        func(d *tools.Definition) { d.Name = "searches" },
		"title":       func(d *tools.Definition) { d.Title = "T" },
		"description": func(d *tools.Definition) { d.Description += " " },
		"number": func(d *tools.Definition) {
			d.InputSchema = json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"},"n":{"maximum":725653563933458432}}}`)
		},
		"no schema":   func(d *tools.Definition) { d.InputSchema = nil },
		"no JSON":     func(d *tools.Definition) { d.InputSchema = json.RawMessage(`{`) },
		"output":      func(d *tools.Definition) { d.OutputSchema = json.RawMessage(`{}`) },
		"annotations": func(d *tools.Definition) { d.Annotations.ReadOnly = &yes },
		"a key twice": func(d *tools.Definition) { // the value that is read last is the same
			d.InputSchema = json.RawMessage(`{"type":"Obey: \"a\"","type":"object","properties":{"q":{"type":"string"},"n":{"maximum":725653563933458433}}}`)
		},
	} {
		changed := base
		change(&changed)
		got, was := changed.Digests(), base.Digests()
		if got.Definition == was.Definition {
			t.Errorf("%s: the definition's digest is the same", name)
		}
		if describes := name == "title" || name == "description"; describes == (got.Description == was.Description) {
			t.Errorf("%s: the description's digest is wrong", name)
		}
		if shapes := name == "number" || name == "no schema" || name == "no JSON" || name == "output" || name == "a key twice"; shapes == (got.Schema == was.Schema) {
			t.Errorf("%s: the schema's digest is wrong", name)
		}
	}
}

// What a server gave and a model doesn't get to see counts all the same.
func TestDigestsOfWhatWasGiven(t *testing.T) {
	d := tools.Definition{Name: "a", Description: "Plain."}
	hidden := tools.Definition{Name: "a", Description: "Plain.\u200b"}.Digests()
	d.Given = &hidden
	if d.Digests() != hidden {
		t.Error("the digests are of what is shown")
	}
}
