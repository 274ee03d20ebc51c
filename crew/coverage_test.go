package crew

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"crewhost/config/strict"
)

// TestSampleCrewsUseEveryKey holds the crews of testdata/crews at the root of the
// project to the schema: between them they use every key of it, in both formats,
// but for those of CrewAI's that no crew can use.
func TestSampleCrewsUseEveryKey(t *testing.T) {
	names := sampleCrews(t)
	every := table()
	missing := func(names []string) []string {
		used := map[schemaKey]bool{}
		for _, name := range names {
			useOf(t, name, used)
		}
		var labels []string
		for k, label := range every {
			if !used[k] && !refused(t, k) && k != (schemaKey{reflect.TypeFor[serverDoc](), "URL"}) { // what is at a URL is not here
				labels = append(labels, label)
			}
		}
		slices.Sort(labels)
		return labels
	}
	for _, label := range missing(names) {
		t.Errorf("no crew of testdata/crews has the key %s", label)
	}

	// It can fail: without the crew that alone has a key, the key is missing, and
	// without any crew all are.
	t.Run("reduced", func(t *testing.T) {
		without := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "incident-triage" })
		if len(without) != len(names)-1 {
			t.Fatal("there is no crew incident-triage")
		}
		left := missing(without)
		for _, label := range []string{"autonomous", "autonomous.budget", "autonomous.budget.spawns"} {
			if !slices.Contains(left, label) {
				t.Errorf("%s is not missed; what is: %v", label, left)
			}
		}
		if all := missing(nil); len(all) < 120 || !slices.Contains(all, "agents.*.guardrails.toolRules") || !slices.Contains(all, "format") {
			t.Errorf("%d keys: %v", len(all), all)
		}
	})
}

// schemaKey is a key of the schema: a field of one of its structs.
type schemaKey struct {
	in    reflect.Type
	field string
}

var (
	crewType                        = reflect.TypeFor[crewDoc]()
	agentType, taskType             = reflect.TypeFor[agentDoc](), reflect.TypeFor[taskDoc]()
	crewaiAgentType, crewaiTaskType = reflect.TypeFor[crewaiAgent](), reflect.TypeFor[crewaiTask]()
)

// table returns every key of the schema with its path in a crew.
func table() map[schemaKey]string {
	every := map[schemaKey]string{}
	var walk func(reflect.Type, string)
	walk = func(typ reflect.Type, at string) {
		typ, at = element(typ, at)
		for f, key := range fieldsOf(typ) {
			k := schemaKey{typ, f.Name}
			if _, known := every[k]; known {
				continue
			}
			every[k] = at + key
			walk(f.Type, at+key+".")
		}
	}
	walk(crewType, "")
	walk(agentType, "agents.*.")
	walk(taskType, "tasks.*.")
	walk(crewaiAgentType, "agents.* of CrewAI's.")
	walk(crewaiTaskType, "tasks.* of CrewAI's.")
	return every
}

// fieldsOf are the fields of a struct of the schema with their keys.
func fieldsOf(typ reflect.Type) func(func(reflect.StructField, string) bool) {
	return func(yield func(reflect.StructField, string) bool) {
		if typ.Kind() != reflect.Struct {
			return
		}
		for i := range typ.NumField() {
			f := typ.Field(i)
			key, _, _ := strings.Cut(strings.TrimSuffix(f.Tag.Get("key"), ",required"), "|")
			if key != "" && key != "@" && !yield(f, key) {
				return
			}
		}
	}
}

// element is the type of what a field holds one or many of.
func element(typ reflect.Type, at string) (reflect.Type, string) {
	for {
		switch {
		case typ.Kind() == reflect.Pointer, typ.Kind() == reflect.Slice:
			typ = typ.Elem()
		case typ == reflect.TypeFor[crewaiLLM]():
			return reflect.TypeFor[llmDoc](), at
		case typ == reflect.TypeFor[serversDoc]():
			return reflect.TypeFor[serverDoc](), at + "*."
		case strings.HasPrefix(typ.Name(), "Named["):
			v, _ := typ.FieldByName("V")
			typ, at = v.Type, at+"*."
		default:
			return typ, at
		}
	}
}

// useOf notes which keys a crew uses: a key with nothing after it is not used.
func useOf(t *testing.T, name string, used map[schemaKey]bool) {
	t.Helper()
	path := filepath.Join("..", "testdata", "crews", name)
	l, issues, _ := findLayout(path)
	r := &reader{}
	root, crewai := r.tree(l)
	if issues = append(issues, r.issues...); len(issues) > 0 {
		t.Fatal(issues)
	}
	agents, tasks := agentType, taskType
	if crewai {
		agents, tasks = crewaiAgentType, crewaiTaskType
	}
	var walk func(*strict.Node, reflect.Type)
	walk = func(n *strict.Node, typ reflect.Type) {
		named := strings.HasPrefix(typ.String(), "[]strict.Named[")
		typ, _ = element(typ, "")
		for _, item := range n.Items {
			walk(item, typ)
		}
		for _, e := range n.Entries {
			if named {
				walk(e.Value, typ)
				continue
			}
			for f := range fieldsOf(typ) {
				keys := strings.Split(strings.TrimSuffix(f.Tag.Get("key"), ",required"), "|")
				if e.Value.Kind == strict.Null || !slices.ContainsFunc(keys, func(key string) bool { return fold(key) == fold(e.Key) }) {
					continue
				}
				used[schemaKey{typ, f.Name}] = true
				walk(e.Value, f.Type)
				switch {
				case typ == crewType && f.Name == "Agents":
					walkEach(e.Value, agents, walk)
				case typ == crewType && f.Name == "Tasks":
					walkEach(e.Value, tasks, walk)
				}
			}
		}
	}
	walk(root, crewType)
	if data, err := os.ReadFile(l.settings); err == nil && expandAnchors(l.settings, data, maxFile).block {
		used[schemaKey{crewType, "Anchors"}] = true // a pass before the tree takes it out
	}
}

func walkEach(entities *strict.Node, typ reflect.Type, walk func(*strict.Node, reflect.Type)) {
	for _, e := range entities.Entries {
		walk(e.Value, typ)
	}
}

// refused reports whether a key is one of CrewAI's that change what a crew does
// and need Python: a crew that has it is refused.
func refused(t *testing.T, k schemaKey) bool {
	t.Helper()
	if k.in != crewaiAgentType && k.in != crewaiTaskType {
		return false
	}
	agent := map[string]string{"role": "R", "goal": "G"}
	task := map[string]string{"description": "D", "expectedOutput": "E"}
	for f, key := range fieldsOf(k.in) {
		if f.Name != k.field || f.Type != reflect.TypeFor[*strict.Node]() {
			continue
		}
		if k.in == crewaiAgentType {
			agent[key] = "x"
		} else {
			task[key] = "x"
		}
	}
	flow := func(m map[string]string) string {
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(m)) {
			pairs = append(pairs, key+": "+m[key])
		}
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	_, issues := loadBytes("crew.yaml", []byte("format: crewai\nname: N\nagents: {a: "+flow(agent)+"}\ntasks: {t: "+flow(task)+"}\n"))
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Code == CodeUnsupportedKey })
}

func sampleCrews(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("..", "testdata", "crews"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
