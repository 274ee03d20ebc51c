package crew

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/strict"
)

const (
	own   = "name: n\ngoal: g\n"
	agent = "goal: g\n"
	task  = "description: d\nexpectedOutput: e\n"
)

// tree writes files by name and returns their folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

// That a file is no mapping is told once, and nothing of what is not in it.
func TestAFileThatIsAList(t *testing.T) {
	if _, issues := loadBytes("crew.yaml", []byte("[]")); len(issues) != 1 || issues[0].Line != 1 {
		t.Errorf("got %v", issues)
	}
}

func TestLoadRefuses(t *testing.T) {
	one := map[string]string{"crew.yaml": own + "agents: {a: {goal: g}}\ntasks: {t: {description: d, expectedOutput: e}}\n"}
	pair := map[string]string{"agents.yaml": "a: {}\n", "tasks.yaml": "t: {}\n"}
	for name, c := range map[string]struct {
		files      map[string]string
		path, want string
	}{
		"nothing there":                {nil, "nope.yaml", "nope.yaml: no such file or folder [not-found]"},
		"another ending":               {map[string]string{"crew.json": "{}"}, "crew.json", "crew.json: a crew file ends in .yaml or .yml [layout]"},
		"a part of a crew":             {pair, "agents.yaml", "agents.yaml: this file is one part of a crew (give its folder: "},
		"the own keys of three":        {map[string]string{"crew.yaml": own, "agents.yaml": "", "tasks.yaml": ""}, "crew.yaml", "crew.yaml: the agents and the tasks are in files of their own (give the folder: "},
		"a folder with one other file": {map[string]string{"team.yaml": one["crew.yaml"]}, ".", "no crew is here"},
		"one file and half a pair":     {map[string]string{"crew.yaml": one["crew.yaml"], "agents.yaml": ""}, ".", "no crew is here"},
		"an empty folder":              {nil, ".", "no crew is here; searched"},
		"a script":                     {map[string]string{"x.ork.ts": ""}, ".", "(x.ork.ts is a script, and scripts are not read here)"},
		"crew/crew is not looked at":   {map[string]string{"crew/crew/agents/a.yaml": agent}, ".", "no crew is here"},
		"no folder of tasks":           {map[string]string{"config.yaml": own, "agents/a.yaml": agent}, ".", "tasks is empty: a crew needs at least one"},
		"an empty entity":              {map[string]string{"config.yaml": own, "agents/a.yaml": "", "tasks/t.yaml": task}, ".", "agents/a.yaml: agents.a is empty [missing]"},
		"an entity that is a list":     {map[string]string{"config.yaml": own, "agents/a.yaml": "[x]", "tasks/t.yaml": task}, ".", "agents/a.yaml:1:1: agents.a must be a mapping, not a list"},
		"own keys that are a list":     {map[string]string{"config.yaml": "[x]", "agents/a.yaml": agent, "tasks/t.yaml": task}, ".", "config.yaml:1:1: the crew's own keys must be a mapping, not a list"},
		"entities that are a text":     {map[string]string{"crew.yaml": own, "agents.yaml": "x", "tasks.yaml": "t: {description: d, expectedOutput: e}"}, ".", "agents.yaml:1:1: agents must be a mapping, not a string"},
		"an overlay of no agent":       {map[string]string{"crew.yaml": "format: crewai\nagents: {b: {}}", "agents.yaml": "bb: {role: r, goal: g}", "tasks.yaml": "t: {description: d, expected_output: e}"}, ".", `crew.yaml:2:10: agents.b is not in `},
		"an overlay that is a list":    {map[string]string{"crew.yaml": "format: crewai\nagents: [b]", "agents.yaml": "b: {role: r, goal: g}", "tasks.yaml": "t: {description: d, expected_output: e}"}, ".", `agents must be a mapping, not a list`},
		"an order of an unknown task":  {map[string]string{"crew.yaml": "format: crewai\ntasks: [tt, t, t, {}]", "agents.yaml": "b: {role: r, goal: g}", "tasks.yaml": "t: {description: d, expected_output: e}"}, ".", `tasks.0: there is no task "tt" (did you mean "t"?)`},
		"a format that is none":        {map[string]string{"crew.yaml": own + "format: crewal\nagents: {a: {goal: g}}\ntasks: {t: {description: d, expectedOutput: e}}\n"}, "crew.yaml", `format: "crewal" is none of orkeon, crewai (did you mean "crewai"?)`},
		"own keys with a fault":        {map[string]string{"crew.yaml": "a: [", "agents.yaml": "b: [", "tasks.yaml": ""}, ".", "agents.yaml:2:1: did not find expected node content"},
		"a format that is another":     {map[string]string{"crew.yaml": own + "format: orkeon", "config/agents.yaml": "b: {goal: g}", "config/tasks.yaml": "t: {description: d, expectedOutput: e, output_file: x}"}, ".", `tasks.yaml:1:40: unknown key "output_file" in tasks.t`},
		"a file that is null":          {map[string]string{"crew.yaml": "null"}, "crew.yaml", "crew.yaml: \"goal\" is missing [missing]"},
		"a mount of another id":        {map[string]string{"crew.yaml": one["crew.yaml"] + "mounts: [\"id1|/d\"]\n"}, "crew.yaml", `with the 26 letters and digits of an id`},
		"a file that is a list":        {map[string]string{"crew.yaml": "[a]"}, "crew.yaml", "the document must be a mapping, not a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Load(filepath.Join(tree(t, c.files), c.path))
			var issues Issues
			if !errors.As(err, &issues) {
				t.Fatalf("got %v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// A folder with a crew in one file is that crew, whose default name is the folder's.
func TestLoadFolderWithOneFile(t *testing.T) {
	dir := tree(t, map[string]string{"harbour/crew.yaml": "format: crewai\nagents: {a: {role: r, goal: g}}\ntasks: {t: {description: d, expected_output: e}}\n"})
	c, err := Load(filepath.Join(dir, "harbour"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Name.V != "harbour" || c.Path != filepath.Join(dir, "harbour", "crew.yaml") || len(c.Tasks) != 1 {
		t.Errorf("%q, %s, %d tasks", c.Name.V, c.Path, len(c.Tasks))
	}
}

func TestLoadNamesFilesAsThePathDoes(t *testing.T) {
	t.Chdir("testdata/bad")
	for path, want := range map[string]string{
		"wrapped.yaml":   "wrapped.yaml:1:1: ",
		"./wrapped.yaml": "./wrapped.yaml:1:1: ",
		"twice":          "twice/agents/a.yaml:1:1: ",
		"./twice/":       "twice/agents/a.yaml:1:1: ",
	} {
		if _, err := Load(filepath.FromSlash(path)); err == nil || !strings.HasPrefix(filepath.ToSlash(err.Error()), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestLoadWarnings(t *testing.T) {
	dir := tree(t, map[string]string{
		"config.yaml": own, "crew.yaml": own, "agents/a.yaml": agent, "agents/old/b.yaml": "", "agents/.c.yaml": "", "tasks/t.yaml": task,
	})
	c, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, c.Warnings,
		filepath.Join(dir, "agents", "old")+": a folder in agents/ is not read",
		filepath.Join(dir, "crew.yaml")+": crew.yaml is not read, as config.yaml is there",
	)
}

func TestLoadUnreadable(t *testing.T) {
	dir := tree(t, map[string]string{"config.yaml": own, "tasks/t.yaml": task + "agent: a\n", "agents/b.yaml": "goal: [\n"})
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "agents", "a.yaml")); err != nil {
		t.Skip(err)
	}
	_, err := Load(dir)
	// That a.yaml cannot be read is one issue; that the task names it is none.
	var issues Issues
	if errors.As(err, &issues); len(issues) != 2 || issues[0].Code != CodeUnreadable || issues[1].Code != strict.CodeSyntax {
		t.Errorf("got %v", err)
	}
}

// TestLoadDevice: a file that never ends, or never begins, is not opened.
func TestLoadDevice(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "crew.yaml")
	if err := os.Symlink("/dev/zero", path); err != nil {
		t.Skip(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

// TestReaderBounds: the files of a crew are bounded together, not each alone (K67).
func TestReaderBounds(t *testing.T) {
	path := filepath.Join(tree(t, map[string]string{"t.yaml": "a: [x, y, z]\n"}), "t.yaml")
	for name, c := range map[string]struct {
		spent reader
		want  string
	}{
		"room for all": {reader{bytes: maxBytes - 13, nodes: maxNodes - 5}, ""},
		"bytes":        {reader{bytes: maxBytes - 12}, "with this file the crew has more than 8388608 bytes"},
		"values":       {reader{nodes: maxNodes - 4}, "with this file the crew has more than 100000 values"},
	} {
		r := c.spent
		if _, ok := r.file(path); ok != (c.want == "") || c.want != "" && !strings.Contains(r.issues.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, r.issues, c.want)
		}
	}
}

func TestToolNames(t *testing.T) {
	c := parse(t, own+"agents: {a: {goal: g, tools: [b, a]}, b: {goal: g, tools: [a, B]}}\ntasks: {t: {description: d, expectedOutput: e, tools: [c]}}\n")
	if diff := cmp.Diff([]string{"B", "a", "b", "c"}, c.ToolNames()); diff != "" {
		t.Error(diff)
	}
}

func TestValidateToolRulesAndProfiles(t *testing.T) {
	c := parse(t, own+`llm: {profile: x}
agents: {a: {goal: g, guardrails: {toolRules: {file_raed: [once], delegate_work_to_coworker: [seldom]}}}}
tasks: {t: {description: d, expectedOutput: e, llmOverride: {profile: Cheap}}}
`)
	expect(t, c.Validate(host{tools: []string{"file_read"}, profiles: []string{"cheap"}}, nil),
		`crew.yaml:3:16: llm.profile: unknown model profile "x"`,
		`crew.yaml:4:48: agents.a.guardrails.toolRules: unknown tool "file_raed" (did you mean "file_read"?)`,
		`crew.yaml:5:71: tasks.t.llmOverride.profile: unknown model profile "Cheap" (did you mean "cheap"?)`,
	)
	expect(t, c.Validate(host{tools: []string{"file_raed"}}, nil)[:1], `crew.yaml:3:16: llm.profile: unknown model profile "x" (the settings have no profiles)`)
}

// TestCycles: one issue for each dependency that closes a cycle, the cycle
// printed from where it is entered, always the same.
func TestCycles(t *testing.T) {
	text := own + `agents: {a: {goal: g}}
tasks:
  a: {description: d, expectedOutput: e, dependencies: [b, c]}
  b: {description: d, expectedOutput: e, dependencies: [a]}
  c: {description: d, expectedOutput: e, dependencies: [a, d]}
  d: {description: d, expectedOutput: e}
  e: {description: d, expectedOutput: e, dependencies: [f, d]}
  f: {description: d, expectedOutput: e, dependencies: [e]}
`
	for range 3 {
		_, issues := loadBytes("crew.yaml", []byte(text))
		expect(t, issues,
			"crew.yaml:6:57: tasks wait for each other: a → b → a [dependency-cycle]",
			"crew.yaml:7:57: tasks wait for each other: a → c → a [dependency-cycle]",
			"crew.yaml:10:57: tasks wait for each other: e → f → e [dependency-cycle]",
		)
	}
}

func TestLimitsOfTexts(t *testing.T) {
	crew := func(role, goal int) string {
		return own + "agents: {a: {role: " + strings.Repeat("é", role) + ", goal: " + strings.Repeat("é", goal) + "}}\ntasks: {t: {description: d, expectedOutput: e}}\n"
	}
	parse(t, crew(256, 2048))
	_, issues := loadBytes("crew.yaml", []byte(crew(257, 2049)))
	expect(t, issues, "crew.yaml:3:20: agents.a.role has 257 characters; the limit is 256", "crew.yaml:3:285: agents.a.goal has 2049 characters; the limit is 2048")
}

// FuzzLoad: whatever the bytes, there is a crew or an issue, every issue has a
// code and a message of one line, and a crew without issues can be used.
func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"testdata/good", "testdata/bad"} {
		files, err := filepath.Glob(dir + "/*.yaml")
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	for _, s := range []string{"", "null", "- a", "format: crewai\nagents: {a: {role: r, goal: g, llm: x/y}}\ntasks: {t: {description: d, expected_output: e, output_file: x.md}}", "agents: {\"\": }\ntasks: {a: }", "crew: {crew: {}}",
		own + "agents: {a: {goal: g, guardrails: {toolRules: {\"x\\ny\": [\"\"]}}}, \"b\\nc\": {goal: g, maxIter: 0}}\nrag: {collections: {\"x\\ny\": {}}}\n" +
			"tasks: {t: {description: d, expectedOutput: e, context: {\"x\\ny\": \"{z}\"}}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, issues := loadBytes("crew.yaml", data)
		for _, i := range issues {
			if i.Code == "" || i.Message == "" || strings.ContainsAny(i.Error(), "\n\r") {
				t.Errorf("%q", i.Error())
			}
		}
		if c == nil {
			if len(issues) == 0 {
				t.Fatal("neither a crew nor an issue")
			}
			return
		}
		for _, i := range c.Validate(host{tools: []string{"file_read"}}, Inputs{"a": "b"}) {
			if strings.ContainsAny(i.Error(), "\n\r") {
				t.Errorf("%q", i.Error())
			}
		}
		c.Expand(Inputs{"a": "b"})
		if len(issues) == 0 && (len(c.Agents) == 0 || len(c.Tasks) == 0 || c.Name.V == "") {
			t.Errorf("a crew without an issue and without its parts: %s", dump(c))
		}
	})
}
