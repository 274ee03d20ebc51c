package crew

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	values := Inputs{"a": "1", "long_name": "2", "b-c": "3", "nested": "{a}"}.folded()
	for in, want := range map[string]string{
		"":                       "",
		"{a}":                    "1",
		"{A}{a}":                 "11",
		"{Long-Name}":            "2",
		"{b_c} {B-C}":            "3 3",
		"{nested}":               "{a}",
		`\{a}`:                   "{a}",
		`\\{a}`:                  `\{a}`,
		`\{a} {a}`:               "{a} 1",
		"{{a}}":                  "{{a}}",
		"{{a}":                   "{1",
		"{a}}":                   "1}",
		"{{{a}}}":                "{{{a}}}",
		"${a} $ {a}":             "${a} $ 1",
		"{ a } {a } {} {1a}":     "{ a } {a } {} {1a}",
		`{"a":{a}}`:              `{"a":1}`,
		"{unknown} {a}":          "{unknown} 1",
		`\{unknown} \{not one}`:  `{unknown} \{not one}`,
		"é{a}ü":                  "é1ü",
		"p{color:red}":           "p{color:red}",
		"{a\n}":                  "{a\n}",
		strings.Repeat("{a}", 4): "1111",
	} {
		got := expand(in, func(name string) (string, bool) {
			v, ok := values[foldName(name)]
			return v, ok
		})
		if got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestExpandCopies(t *testing.T) {
	c := parse(t, `name: n
goal: For {x}
inputs: {x: own, y: also own}
agents:
  a: {role: "r {x}", goal: "g {y}", backstory: "b {x}"}
tasks:
  t:
    description: d {x}
    expectedOutput: e {x}
    context: {tone: "{x}"}
    deliverable: {path: "/{x}.md"}
    guardrails: {rules: ["{x} stays"]}
`)
	before := dump(c)
	d := c.Expand(Inputs{"X": "run"})
	if diff := cmp.Diff(before, dump(c)); diff != "" {
		t.Error("the crew was changed:", diff)
	}
	want := "For run|r run|g also own|b run|d run|e run|run|/run.md|{x} stays"
	a, k := d.Agents[0], d.Tasks[0]
	got := strings.Join([]string{
		d.Goal.V, a.Role.V, a.Goal.V, a.Backstory.V, k.Description.V, k.ExpectedOutput.V,
		k.Context[0].Value.V, k.Deliverable.Path.V, k.Guardrails.Rules[0].V,
	}, "|")
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if diff := cmp.Diff(Inputs{"X": "run", "y": "also own"}, d.Inputs); diff != "" {
		t.Error(diff)
	}
	if issues := c.Validate(host{}, nil); len(issues) > 0 {
		t.Error(issues)
	}
}

func TestUnused(t *testing.T) {
	c := parse(t, "name: n\ngoal: '{b-b}'\nagents: {a: {goal: 'g {a}'}}\ntasks: {t: {description: d, expectedOutput: e}}\n")
	got := c.Unused(Inputs{"A": "", "B_B": "", "z": "", "c": "", InitialContext: ""})
	if diff := cmp.Diff([]string{"c", "z"}, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzExpand: the text outside of placeholders stays, values arrive whole, and
// what expand replaces is what variables lists.
func FuzzExpand(f *testing.F) {
	for _, s := range []string{"{a}", "{{a}}", `\{a}`, "${a}", `{"k":{a}}`, "{a}{b-c}{B_C}", "{", "}{", "{é}", "\\{a}}", "{\x00}"} {
		f.Add(s, "v{a}")
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		same := expand(text, func(string) (string, bool) { return "", false })
		if strings.ReplaceAll(text, `\`, "") != strings.ReplaceAll(same, `\`, "") {
			t.Errorf("without values %q became %q", text, same)
		}
		names := variables(text)
		n := 0
		out := expand(text, func(string) (string, bool) { n++; return value, true })
		if n < len(names) || len(names) == 0 && out != same {
			t.Errorf("%q: %d names, %d replaced, %q", text, len(names), n, out)
		}
		if n > 0 && !strings.Contains(out, value) {
			t.Errorf("%q: the value %q is not in %q", text, value, out)
		}
	})
}
