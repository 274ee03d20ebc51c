// Package nativetest calls the host's own tools in tests, as a host would, and holds
// them to what each of them owes.
//
//	b := nativetest.New(t, func(fsys *mount.FS) []native.Tool { return files.Tools(fsys) })
//	b.Put("in/a.txt", "alpha")
//	b.WantText("file_read", `{"path": "/in/a.txt"}`, "alpha")
package nativetest

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bench is a registry of tools over two mounts: /in, which is read-only, and /out, which
// is not. They are the folders in and out of Root.
type Bench struct {
	testing.TB
	Reg  *tools.Registry
	FS   *mount.FS
	Root string
}

// New makes a bench of the tools, which the test's end takes away.
func New(t testing.TB, make func(*mount.FS) []native.Tool) Bench {
	t.Helper()
	root := t.TempDir()
	var ms []mount.Mount
	for _, spec := range []string{"in:/in:ro", "out:/out:rw"} {
		m, err := mount.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		m = m.In(root)
		if err := os.Mkdir(m.Physical, 0o755); err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m)
	}
	fsys, err := mount.Open(ms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	var reg tools.Registry
	for _, tool := range make(fsys) {
		if err := reg.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	return Bench{t, &reg, fsys, root}
}

// Put writes a file on the host, below Root.
func (b Bench) Put(name, content string) {
	b.Helper()
	p := filepath.Join(b.Root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(content), 0o644)); err != nil {
		b.Fatal(err)
	}
}

// Get reads a file of the host, below Root.
func (b Bench) Get(name string) string {
	b.Helper()
	data, err := os.ReadFile(filepath.Join(b.Root, filepath.FromSlash(name)))
	if err != nil {
		b.Error(err)
	}
	return string(data)
}

// Args makes arguments of pairs of a name and a value.
func Args(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			panic("nativetest: the name of an argument is no string")
		}
		m[name] = pairs[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Call calls a tool that the host can run, and returns its one text. No result may be
// empty, or tell where a mounted folder is.
func (b Bench) Call(name, arguments string) (text string, failed bool) {
	b.Helper()
	tool, ok := b.Reg.Lookup(name)
	if !ok {
		b.Fatalf("no tool %s", name)
	}
	res, err := tool.Call(b.Context(), tools.Call{Name: name, Arguments: json.RawMessage(arguments)})
	if err != nil {
		b.Fatalf("%s %s: %v", name, arguments, err)
	}
	if len(res.Content) != 1 || res.Content[0].Text == "" {
		b.Fatalf("%s %s: got %+v, want one text", name, arguments, res)
	}
	text = res.Content[0].Text
	if strings.Contains(text, b.Root) {
		b.Errorf("%s %s tells where a folder is: %s", name, arguments, text)
	}
	return text, res.IsError
}

// WantText fails the test unless the call succeeds with that text.
func (b Bench) WantText(name, arguments, want string) {
	b.Helper()
	if got, failed := b.Call(name, arguments); failed || got != want {
		b.Errorf("%s %.100s\ngot  %.300q (failed: %t)\nwant %.300q", name, arguments, got, failed, want)
	}
}

// WantParts fails the test unless the call succeeds with a text that has the parts.
func (b Bench) WantParts(name, arguments string, parts ...string) {
	b.Helper()
	got, failed := b.Call(name, arguments)
	if failed {
		b.Errorf("%s %.100s failed: %.300q", name, arguments, got)
	}
	b.holds(name, arguments, got, parts)
}

// WantFailure fails the test unless the tool fails with a text that has the parts.
func (b Bench) WantFailure(name, arguments string, parts ...string) {
	b.Helper()
	got, failed := b.Call(name, arguments)
	if !failed {
		b.Errorf("%s %.100s did not fail: %.300q", name, arguments, got)
	}
	b.holds(name, arguments, got, parts)
}

func (b Bench) holds(name, arguments, got string, parts []string) {
	b.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			b.Errorf("%s %.100s\ngot %.500q\nwant it to hold %q", name, arguments, got, p)
		}
	}
}

// CheckSchemas holds the schemas to what the tools take: each property has a
// description to act on, those that are required are missed, and no other is taken.
func (b Bench) CheckSchemas() {
	b.Helper()
	for _, def := range b.Reg.Definitions() {
		var s jsonschema.Schema
		if err := json.Unmarshal(def.InputSchema, &s); err != nil {
			b.Fatalf("%s: %v", def.Name, err)
		}
		if _, err := s.Resolve(nil); err != nil {
			b.Errorf("%s: %v", def.Name, err)
		}
		if s.Type != "object" || def.Description == "" || def.Title == "" || def.Server != "" {
			b.Errorf("%s: %+v", def.Name, def)
		}
		var raw struct {
			Properties           map[string]struct{ Description string }
			AdditionalProperties *bool
		}
		if err := json.Unmarshal(def.InputSchema, &raw); err != nil {
			b.Fatal(err)
		}
		if raw.AdditionalProperties == nil || *raw.AdditionalProperties {
			b.Errorf("%s takes properties that it does not name", def.Name)
		}
		for name, p := range raw.Properties {
			if p.Description == "" {
				b.Errorf("%s: %s has no description", def.Name, name)
			}
		}
		got, failed := b.Call(def.Name, `{"no_such":1}`)
		if !failed || !strings.Contains(got, `no argument "no_such"`) {
			b.Errorf("%s took an unknown argument: %s", def.Name, got)
		}
		for _, name := range s.Required {
			if !strings.Contains(got, `"`+name+`" is missing`) {
				b.Errorf("%s does without %s, its schema does not: %s", def.Name, name, got)
			}
		}
	}
}
