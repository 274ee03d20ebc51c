package lock_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"crewhost/config/strict"
	"crewhost/runner/lock"
)

func digest(seed string) string {
	return "sha256:" + strings.Repeat(fmt.Sprintf("%x", seed)[:2], 32)
}

func tool(name, seed string) lock.Tool {
	return lock.Tool{Name: name, Definition: digest(seed), Description: digest(seed), Schema: digest(seed)}
}

func sample() *lock.File {
	return &lock.File{
		Path: "crewhost.lock",
		Servers: []lock.Server{
			{Name: "web", Transport: "http", URL: "https://tools.example/mcp?key=${KEY}", Reported: "Web", Version: "1.0", Instructions: digest("i"), Tools: []lock.Tool{
				tool("search", "a"), tool("fetch", "b"), tool("no", "c"), tool("Überall \u202e", "d"),
			}},
			{Name: "files", Transport: "stdio", Command: "npx", Args: []string{"-y", "@mcp/files", "", "a: b #c", "${ROOT}"}, Reported: "files", Version: "v2"},
		},
		Crews: []lock.Crew{{Path: "crews/tide watch.yaml", Servers: []lock.Server{{Name: "1", Transport: "stdio", Command: "true", Tools: []lock.Tool{tool("a", "a")}}}}},
	}
}

const golden = `# What MCP servers offered when somebody looked at it last. Review a change of this file
# as you review code. "crewhost lock" writes it anew; "crewhost lock --check" and
# "crewhost run --locked" fail where a server is not as it says.
version: 1
servers:
  files:
    transport: stdio
    command: npx
    args:
      - "-y"
      - "@mcp/files"
      - ""
      - "a: b #c"
      - "${ROOT}"
    name: files
    version: v2
    tools: {}
  web:
    transport: http
    url: "https://tools.example/mcp?key=${KEY}"
    name: Web
    version: "1.0"
    instructions: sha256:6969696969696969696969696969696969696969696969696969696969696969
    tools:
      fetch:
        definition: sha256:6262626262626262626262626262626262626262626262626262626262626262
        description: sha256:6262626262626262626262626262626262626262626262626262626262626262
        schema: sha256:6262626262626262626262626262626262626262626262626262626262626262
      "no":
        definition: sha256:6363636363636363636363636363636363636363636363636363636363636363
        description: sha256:6363636363636363636363636363636363636363636363636363636363636363
        schema: sha256:6363636363636363636363636363636363636363636363636363636363636363
      search:
        definition: sha256:6161616161616161616161616161616161616161616161616161616161616161
        description: sha256:6161616161616161616161616161616161616161616161616161616161616161
        schema: sha256:6161616161616161616161616161616161616161616161616161616161616161
      "\u00dcberall \u202e":
        definition: sha256:6464646464646464646464646464646464646464646464646464646464646464
        description: sha256:6464646464646464646464646464646464646464646464646464646464646464
        schema: sha256:6464646464646464646464646464646464646464646464646464646464646464
crews:
  "crews/tide watch.yaml":
    "1":
      transport: stdio
      command: "true"
      tools:
        a:
          definition: sha256:6161616161616161616161616161616161616161616161616161616161616161
          description: sha256:6161616161616161616161616161616161616161616161616161616161616161
          schema: sha256:6161616161616161616161616161616161616161616161616161616161616161
`

var content = cmp.Options{
	cmpopts.IgnoreTypes(strict.Pos{}), cmpopts.EquateEmpty(),
	cmpopts.SortSlices(func(a, b lock.Server) bool { return a.Name < b.Name }),
	cmpopts.SortSlices(func(a, b lock.Tool) bool { return a.Name < b.Name }),
}

func TestFormat(t *testing.T) {
	f := sample()
	if diff := cmp.Diff(golden, string(f.Encode())); diff != "" {
		t.Fatal(diff)
	}
	f.Path = filepath.Join(t.TempDir(), lock.Name)
	for range 2 { // over itself, too
		if err := f.Write(); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(filepath.Dir(f.Path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	read, err := lock.Read(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, read, content); diff != "" {
		t.Error(diff)
	}
	empty := &lock.File{}
	if again, err := lock.Parse("x", empty.Encode()); err != nil || len(again.Servers)+len(again.Crews) > 0 {
		t.Errorf("%+v, %v", again, err)
	}
	f.SetCrew("crews/tide watch.yaml", nil)
	f.SetCrew("b", []lock.Server{{Name: "x"}})
	if len(f.Crews) != 1 || f.Crew("b")[0].Name != "x" || f.Crew("a") != nil {
		t.Errorf("%+v", f.Crews)
	}
}

// What was edited by hand, or merged badly, is said with its line.
func TestReadIsStrict(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"a digest":       {"schema: sha256:62", "schema: sha256:6X", `crewhost.lock:28:17: "sha256:6X`},
		"no digest":      {"    instructions: sha256:", "    instructions: sha255:", "is no digest"},
		"an unknown key": {"    command: npx", "    comand: npx", `did you mean "command"?`},
		"another twice":  {"      search:\n", "      fetch:\n", "crewhost.lock:33:7: duplicate key"},
		"a version":      {"version: 1\n", "version: 2\n", "crewhost.lock:4:10: it is of version 2"},
		"no version":     {"version: 1\n", "", "version"},
		"no transport":   {"    transport: http\n", "", "transport"},
		"a conflict":     {"servers:\n", "<<<<<<< HEAD\nservers:\n=======\nservers:\n>>>>>>> b\n", "crewhost.lock:5:1: it holds a conflict of a merge"},
		"no YAML":        {"servers:\n", "servers: [\n", "syntax"},
		"a digest less":  {"        schema: sha256:6262626262626262626262626262626262626262626262626262626262626262\n", "", `crewhost.lock:25:7: the schema of "fetch" is missing`},
		"nothing":        {"    transport: http\n", "", `the server "web" has no transport`},
		"a list":         {"    tools: {}", "    tools: []", "must be a mapping"},
	} {
		if !strings.Contains(golden, tt.old) {
			t.Fatalf("%s: the sample has no %q", name, tt.old)
		}
		_, err := lock.Parse("crewhost.lock", []byte(strings.Replace(golden, tt.old, tt.new, 1)))
		var issues strict.Issues
		if !errors.As(err, &issues) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		for _, i := range issues {
			if i.File != "crewhost.lock" {
				t.Errorf("%s: an issue of the file %s", name, i.File)
			}
		}
	}
	var issues strict.Issues
	if _, err := lock.Read(filepath.Join(t.TempDir(), lock.Name)); !errors.As(err, &issues) || issues[0].Code != lock.CodeNone {
		t.Errorf("no file: %v", err)
	}
}

func TestCompare(t *testing.T) {
	parsed, err := lock.Parse("crewhost.lock", sample().Encode())
	if err != nil {
		t.Fatal(err)
	}
	found := sample().Servers
	for name, tt := range map[string]struct {
		change func(s []lock.Server) []lock.Server
		want   []string
	}{
		"nothing": {func(s []lock.Server) []lock.Server { return s }, nil},
		"a server more": {func(s []lock.Server) []lock.Server { return append(s, lock.Server{Name: "new"}) }, []string{
			`crewhost.lock: the server "new" is not locked`,
		}},
		"a server less": {func(s []lock.Server) []lock.Server { return s[1:] }, []string{
			`crewhost.lock:18:3: the server "web" is locked, and is not there any more`,
		}},
		"another command": {func(s []lock.Server) []lock.Server {
			s[1].Command, s[1].Args = "bunx", []string{"-y", "@mcp/files", "", "a: b", "#c", "${ROOT}"}
			return s
		}, []string{
			`crewhost.lock:6:3: the server "files": its args is locked as "\"-y\" \"@mcp/files\" \"\" \"a: b #c\" \"${ROOT}\"", and is`,
			`crewhost.lock:6:3: the server "files": its command is locked as "npx", and is "bunx"`,
		}},
		"another url": {func(s []lock.Server) []lock.Server { s[0].URL = "https://other.example/"; return s }, []string{
			`crewhost.lock:18:3: the server "web": its url is locked as "https://tools.example/mcp?key=${KEY}", and is "https://other.example/"`,
		}},
		"another version": {func(s []lock.Server) []lock.Server { s[0].Version, s[1].Reported = "1.1", ""; return s }, []string{
			`crewhost.lock:6:3: the server "files": its name of itself is locked as "files", and is none`,
			`crewhost.lock:18:3: the server "web": its version is locked as "1.0", and is "1.1"`,
		}},
		"instructions": {func(s []lock.Server) []lock.Server { s[0].Instructions = ""; return s }, []string{
			`its instructions to models is locked as "sha256:696969696969…", and is none`,
		}},
		"a tool more": {func(s []lock.Server) []lock.Server {
			s[0].Tools = append(s[0].Tools, lock.Tool{Name: "new", Text: "Sends all."})
			return s
		}, []string{
			`crewhost.lock:18:3: the server "web": the tool "new" is not locked (it now reads "Sends all."; crewhost lock accepts it`,
		}},
		"a tool less": {func(s []lock.Server) []lock.Server { s[0].Tools = s[0].Tools[1:]; return s }, []string{
			`crewhost.lock:33:7: the server "web": the tool "search" is locked, and is not there any more`,
		}},
		"a description": {func(s []lock.Server) []lock.Server {
			s[0].Tools[1].Description, s[0].Tools[1].Definition = digest("x"), digest("x")
			return s
		}, []string{
			`crewhost.lock:25:7: the server "web": of the tool "fetch" the description (sha256:787878787878…, locked as sha256:626262626262…) has changed`,
		}},
		"both": {func(s []lock.Server) []lock.Server { s[0].Tools[1] = tool("fetch", "x"); return s }, []string{
			`the schema (sha256:787878787878…, locked as sha256:626262626262…) have changed`,
		}},
		"annotations": {func(s []lock.Server) []lock.Server { s[0].Tools[1].Definition = digest("x"); return s }, []string{
			`the annotations have changed`,
		}},
	} {
		servers := make([]lock.Server, len(found))
		copy(servers, sample().Servers)
		drift, down := lock.Compare(parsed.Path, parsed.Servers, tt.change(servers))
		if len(drift) != len(tt.want) || len(down) > 0 {
			t.Errorf("%s: %v, %v", name, drift, down)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(drift[i].Error(), want) {
				t.Errorf("%s:\n got %v\nwant %s", name, drift[i], want)
			}
			if drift[i].Code == "" || drift[i].File != "crewhost.lock" {
				t.Errorf("%s: %+v", name, drift[i])
			}
		}
	}

	// A server that is down is compared as far as it is known.
	servers := sample().Servers
	servers[0] = lock.Server{Name: "web", Transport: "sse", URL: servers[0].URL, Down: "no answer"}
	drift, down := lock.Compare(parsed.Path, parsed.Servers, servers)
	if len(drift) != 1 || drift[0].Code != lock.CodeServerMoved || len(down) != 1 || down[0].Code != lock.CodeServerDown || down[0].Line != 18 {
		t.Errorf("%v, %v", drift, down)
	}
}

// Whatever is written is read back, and nothing that is read is trouble.
func FuzzParse(f *testing.F) {
	f.Add(golden)
	f.Add("version: 1\nservers: {a: {transport: x, tools: {b: {}}}}")
	f.Add("<<<<<<< ")
	f.Fuzz(func(t *testing.T, text string) {
		read, err := lock.Parse("crewhost.lock", []byte(text))
		if err != nil {
			return
		}
		again, err := lock.Parse("crewhost.lock", read.Encode())
		if err != nil {
			t.Fatalf("%v\n%s", err, read.Encode())
		}
		if diff := cmp.Diff(read, again, content, cmpopts.SortSlices(func(a, b lock.Crew) bool { return a.Path < b.Path })); diff != "" {
			t.Fatal(diff)
		}
	})
}
