package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"crewhost/tools/builtin"
	"crewhost/tools/builtin/database"
	"crewhost/tools/builtin/documents"
	"crewhost/tools/builtin/files"
	"crewhost/tools/builtin/mind"
	"crewhost/tools/builtin/people"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/builtin/web"
	"crewhost/tools/native"
)

// The README has every built-in tool, as its definition has it. To write it anew:
//
//	go test ./cmd/crewhost -run TestReadmeTools -update
func TestReadmeTools(t *testing.T) {
	text := readme(t)
	written := fill(t, text, "tools", overview(t))
	written = fill(t, written, "arguments", arguments(t))
	if *update {
		if err := os.WriteFile(filepath.Join("..", "..", "README.md"), []byte(written), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(text, written); diff != "" {
		t.Errorf("the README does not have the tools as they are (-README +tools); go test ./cmd/crewhost -run TestReadmeTools -update writes it:\n%s", diff)
	}
}

// fill puts a text between the marks of a name.
func fill(t *testing.T, text, name, with string) string {
	t.Helper()
	begin, end := "<!-- "+name+": begin -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok := strings.Cut(text, begin)
	_, after, too := strings.Cut(rest, end)
	if !ok || !too {
		t.Fatalf("the README has no %s and %s", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + with + end + after
}

// kinds are the rooms of the tools, in the order of the README.
func kinds() []struct {
	name string
	list []native.Tool
} {
	return []struct {
		name string
		list []native.Tool
	}{
		{"files", files.Tools(nil)},
		{"documents", documents.Tools(nil)},
		{"the web", web.Tools(web.Config{})},
		{"databases", database.Tools(database.Config{})},
		{"programs", shell.Tools(shell.Config{})},
		{"people", people.Tools(nil)},
		{"memory and thought", mind.Tools(mind.Config{})},
	}
}

// off says why a tool is not on by default.
func off(name string) string {
	for _, t := range builtin.All(builtin.Config{}) {
		if t.Tool.Name == name {
			return t.Why
		}
	}
	return ""
}

func overview(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| | tool | what it does |\n| --- | --- | --- |\n")
	n := 0
	for _, kind := range kinds() {
		name := kind.name
		for _, tool := range kind.list {
			what := firstSentence(tool.Description)
			if why := off(tool.Name); why != "" {
				what += " *It " + why + ".*"
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s |\n", name, tool.Name, unread(what, "*"))
			n, name = n+1, ""
		}
	}
	if all := len(builtin.All(builtin.Config{})); n != all {
		t.Errorf("the README's table has %d tools, and there are %d: a kind is missing", n, all)
	}
	return b.String()
}

func arguments(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, tool := range builtin.All(builtin.Config{}) {
		params := parametersOf(json.RawMessage(tool.Tool.Schema))
		var names []string
		for _, p := range params {
			names = append(names, p.Name)
		}
		summary := strings.TrimSpace("<code>" + tool.Tool.Name + "</code> " + strings.Join(names, ", "))
		fmt.Fprintf(&b, "<details><summary>%s</summary>\n\n%s\n", summary, unread(tool.Tool.Description, ""))
		if len(params) > 0 {
			b.WriteString("\n| argument | type | what it is |\n| --- | --- | --- |\n")
		}
		for _, p := range params {
			is := []string{cmp.Or(p.Type, "any value")}
			if p.Required {
				is = append(is, "**required**")
			}
			if p.Bounds != "" {
				is = append(is, unread(p.Bounds, ""))
			}
			if p.Default != "" {
				is = append(is, "default `"+strings.ReplaceAll(p.Default, "|", `\|`)+"`")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", p.Name, strings.Join(is, "; "), unread(p.Text, ""))
			if p.Text == "" {
				t.Errorf("%s: the schema says nothing of %s", tool.Tool.Name, p.Name)
			}
		}
		fmt.Fprintf(&b, "\nEffect: %s.\n\n</details>\n", effectsOf(tool.Tool))
	}
	return b.String()
}

// unread is a text of one line in which Markdown has nothing to read, but for what stays.
func unread(text, stays string) string {
	for _, c := range []struct{ is, as string }{
		{`\`, `\\`}, {"|", `\|`}, {"*", `\*`}, {"<", "&lt;"}, {"$", "&#36;"}, {"[", `\[`},
	} {
		if c.is != stays {
			text = strings.ReplaceAll(text, c.is, c.as)
		}
	}
	return oneLine(text)
}

// The parameters that a schema has are those that people are told of.
func TestParametersOf(t *testing.T) {
	schema := `{"type": "object", "properties": {
		"b": {"type": ["string", "null"], "maxLength": 9, "description": "B", "default": "x"},
		"a": {"type": "array", "items": {"type": "object"}, "minItems": 1, "description": "A"},
		"c": {"anyOf": [{"type": "integer"}, {"type": "string"}], "enum": [1, "two"], "minimum": 1, "maximum": 5},
		"d": {"type": "number", "minimum": 0.5}, "e": true, "f": {}
	}, "required": ["d", "a"]}`
	var got []string
	for _, p := range parametersOf(json.RawMessage(schema)) {
		got = append(got, fmt.Sprintf("%s|%s|%v|%s|%s|%s", p.Name, p.Type, p.Required, p.Default, p.Bounds, p.Text))
	}
	want := []string{
		"a|list of objects|true||at least 1 items|A", "d|number|true||at least 0.5|",
		"b|string or null|false|\"x\"|at most 9 characters|B", "c|integer or string|false||one of 1, two; 1 to 5|", "f||false|||",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, none := range []string{"", "{}", "[]", `{"properties": 5}`, `{"properties": {}}`} {
		if got := parametersOf(json.RawMessage(none)); len(got) > 0 {
			t.Errorf("%s: %v", none, got)
		}
	}
	if !slices.Equal(parametersOf(json.RawMessage(schema))[3].types, []string{"integer", "string"}) {
		t.Error("the types of c")
	}
}
