package mind_test

import (
	"encoding/json"
	"strings"
	"testing"

	"crewhost/tools/builtin/mind"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func bench(t testing.TB) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, func(*mount.FS) []native.Tool { return mind.Tools(mind.Config{}) })
}

func TestThink(t *testing.T) {
	b := bench(t)
	b.WantText("think", `{"thought":"The totals differ by 3."}`, "Noted. Go on.")
	b.WantFailure("think", `{"thought":" \n"}`, `the argument "thought" is blank`)
	b.WantFailure("think", `{"thought":["a"]}`, `must be a string, and is a list`)
	b.WantFailure("think", nativetest.Args("thought", strings.Repeat("é", 32_001)), "longer than 32000 characters")
}

func TestTodo(t *testing.T) {
	b := bench(t)
	for args, want := range map[string]string{
		`{"items":[]}`: "[the list is empty]",
		`{"items":[{"text":"Read","status":"done"},{"text":" Compare\n both ","status":"in_progress"},{"text":"Write"},{"text":"Ask","status":"cancelled"}]}`: "1. [x] Read\n2. [>] Compare both\n3. [ ] Write\n4. [-] Ask\n\n1 of 4 done, 1 in_progress, 1 pending, 1 cancelled.",
		`{"items":["Read",{"text":"Write","status":null}]}`:                               "1. [ ] Read\n2. [ ] Write\n\n0 of 2 done, 2 pending. Mark the next one in_progress when you begin it.",
		`{"items":[{"text":"Read","status":"done"},{"text":"Ask","status":"cancelled"}]}`: "1. [x] Read\n2. [-] Ask\n\n1 of 2 done, 1 cancelled. Nothing is left to do.",
	} {
		b.WantText("todo", args, want)
	}
	for args, want := range map[string]string{
		`{}`:             `the argument "items" is missing`,
		`{"items":null}`: `the argument "items" is missing`,
		`{"items":{}}`:   `must be a list of objects`,
		`{"items":[{"text":"a","status":"in_progress"},{"text":"b","status":"in_progress"},{"text":"c"}]}`: `the items 1, 2 are in_progress, and one at most may be`,
		`{"items":[{"text":"a","status":"doen"}]}`:                                                         `item 1 has the status "doen", and it must be one of pending, in_progress, done, cancelled (did you mean "done"?)`,
		`{"items":[{"text":"a"},{"text":" a "}]}`:                                                          `item 2 is there already: a`,
		`{"items":[{"status":"done"},{"text":" "},{"text":"a","id":1},5,{"text":"b","status":3}]}`:         `item 1 has no text; item 2 has a blank text; item 3 must be an object with text and status alone, both strings; item 4 must be`,
		nativetest.Args("items", strings.Split(strings.Repeat("a,", 100)+"b", ",")):                        `there are 101 items, and at most 100`,
		nativetest.Args("items", []string{strings.Repeat("é", 1001)}):                                      `item 1 is longer than 1000 characters`,
	} {
		b.WantFailure("todo", args, want)
	}
}

func FuzzTodo(f *testing.F) {
	b := bench(f)
	f.Add(`[{"text":"a","status":"done"}]`)
	f.Add(`["a",{"text":"b\n"},null,{"text":null}]`)
	f.Fuzz(func(t *testing.T, items string) {
		b.TB = t
		args := `{"items":` + items + `}`
		if !json.Valid([]byte(args)) {
			return
		}
		if got, failed := b.Call("todo", args); !failed && strings.Count(got, "\n") > 110 {
			t.Errorf("%s: %s", items, got)
		}
	})
}
