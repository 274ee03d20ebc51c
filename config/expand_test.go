package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// means expands a text as a field does; the second result is the problem or the
// variable that is missing.
func means(s string, env environ) (string, string) {
	parts, problem := parse(s)
	if problem != "" {
		return "", problem
	}
	var b strings.Builder
	for _, p := range parts {
		if p.name == "" {
			b.WriteString(p.text)
			continue
		}
		v, _, ok := env.value(p)
		if !ok {
			return "", "unset: " + p.name
		}
		b.WriteString(v)
	}
	return b.String(), ""
}

// TestExpansion is the rule of K49 and K51.
func TestExpansion(t *testing.T) {
	env := environ{"T1": "one", "EMPTY": "", "RAW": "${T1} $T1 $$ ${T1:-x}", "_a9": "under"}
	for in, want := range map[string]string{
		// K51: all of these are themselves.
		"ab$Q9x$": "ab$Q9x$", "S3cret$USER!": "S3cret$USER!", "$$": "$$", "${": "${", "a${}b": "a${}b", "100%PATH%": "100%PATH%",
		"": "", "$T1": "$T1", "$(T1)": "$(T1)", "${9}": "${9}", "a}b{c": "a}b{c", "${:-x}": "${:-x}", "${é}": "${é}", "$": "$", "${T1": "${T1",
		"${a b}": "${a b}", "${}${}": "${}${}", "%T1%": "%T1%", "\\${T1}": "\\one", "${T1:}": "${T1:}", "${T1!}x": "!",
		// Variables.
		"${T1}": "one", "a${T1}b${T1}c": "aonebonec", "${env:T1}": "one", "${_a9}": "under", "${EMPTY}": "",
		"${T2:-d}": "d", "${EMPTY:-d}": "d", "${T1:-d}": "one", "${T2:-}": "", "${T2:-a b$c:-d}": "a b$c:-d", "${env:T2:-d}": "d",
		"${${T1}": "${one", "${}${T1}": "${}one", "$${}": "$${}", "$$ ${T1}": "$$ one",
		// The escape.
		"$${T1}": "${T1}", "$$${T1}": "$${T1}", "a$${T2:-x}b": "a${T2:-x}b", "$${input:x}": "${input:x}", "$${T1}${T1}": "${T1}one",
		// What came from a variable is not expanded again.
		"${RAW}": "${T1} $T1 $$ ${T1:-x}",
	} {
		if in == "${T1!}x" {
			continue // below
		}
		if got, problem := means(in, env); got != want || problem != "" {
			t.Errorf("%q means %q (%s), want %q", in, got, problem, want)
		}
	}
	for in, want := range map[string]string{
		"${T2}": "unset: T2", "${env:T2}": "unset: T2", "a ${T1} ${T2}": "unset: T2",
		"${input:token}":                 "${input:…} is asked for by an editor",
		"x${workspaceFolder}/y":          "${workspaceFolder} is a variable of an editor",
		"${A:?x}":                        "${A:…} is not a form that is known here",
		"${A?x}":                         "${A?…} is not a form that is known here",
		"${A-x}":                         "${A-…} is not a form that is known here",
		"${A:=x}":                        "${A:…} is not a form that is known here",
		"${A%.*}":                        "${A%…} is not a form that is known here",
		"${T1!}":                         "${T1!…} is not a form that is known here",
		"${config:a.b}":                  "${config:…} is not a form that is known here",
		"${command:x}":                   "${command:…} is not a form that is known here",
		"${user_config.key}":             "${user_config.…} is a variable of another program",
		"${A:-${B}}":                     "${A:-…} has a variable in its default",
		"${ T1 }":                        "${ T1 } has spaces around its name",
		"${T1 }":                         "${T1 } has spaces around its name",
		"${{ secrets.TOKEN }}":           "${{…}} is not a variable here",
		"a${}${input:x}${workspaceRoot}": "${input:…} is asked for by an editor",
	} {
		if got, problem := means(in, env); problem != want {
			t.Errorf("%q: %q, means %q, want %q", in, problem, got, want)
		}
	}
}

// TestOneRuleForAllFields is K49: the same forms in every field, and what is
// wrong is reported with its place.
func TestOneRuleForAllFields(t *testing.T) {
	s := load(t, `
llm: {model: m, base_url: "https://${T1}/v1"}
mcp:
  servers:
    a: {command: "${T1}/x", args: ["${T1}", "${T2:-d}", "${env:T1}", "$${T1}"], env: {E: "${T1}"}, cwd: "${T1}"}
    b: {url: "https://${T1}/?k=${T1}", headers: {H: "Bearer ${T1}"}}
`, "T1=val1")
	a, b := s.MCP.Servers[0], s.MCP.Servers[1]
	got := []string{s.LLM.BaseURL.Reveal(), a.Command.Reveal(), a.Env[0].Value.Reveal(), a.Cwd[strings.LastIndexAny(a.Cwd, `/\`)+1:], b.URL.Reveal(), b.Headers[0].Value.Reveal()}
	for _, arg := range a.Args {
		got = append(got, arg.Reveal())
	}
	if diff := cmp.Diff([]string{"https://val1/v1", "val1/x", "val1", "val1", "https://val1/?k=val1", "Bearer val1", "val1", "d", "val1", "${T1}"}, got); diff != "" {
		t.Error(diff)
	}

	lines := faults(t, `
llm: {model: m, base_url: "https://${N1}/v1", api_key: "x${N2}"}
mcp:
  servers:
    a: {command: "${N1}", args: [x, "${input:k}"], env: {E: "${N1}${N2}"}, cwd: "${A:?x}"}
    b: {url: "${N1}", headers: {H: "Bearer ${N1}"}}
    c: {disabled: true, command: "${N1}"}
`)
	if diff := cmp.Diff(`crewhost.yaml:2:27: llm.base_url: the variable N1 is not set (set it, or give a default: ${N1:-…}) [variable]
crewhost.yaml:2:56: llm.api_key must be one variable and nothing else (${NAME}) [variable]
crewhost.yaml:5:18: the server "a": command: the variable N1 is not set (set it, or give a default: ${N1:-…}) [variable]
crewhost.yaml:5:37: the server "a": args.1: ${input:…} is asked for by an editor (known are ${NAME}, ${NAME:-default} and ${env:NAME}; $${…} is the text ${…}) [variable]
crewhost.yaml:5:61: the server "a": env.E: the variable N1 is not set (set it, or give a default: ${N1:-…}) [variable]
crewhost.yaml:5:61: the server "a": env.E: the variable N2 is not set (set it, or give a default: ${N2:-…}) [variable]
crewhost.yaml:5:81: the server "a": cwd: ${A:…} is not a form that is known here (known are ${NAME}, ${NAME:-default} and ${env:NAME}; $${…} is the text ${…}) [variable]
crewhost.yaml:6:14: the server "b": url: the variable N1 is not set (set it, or give a default: ${N1:-…}) [variable]
crewhost.yaml:6:36: the server "b": headers.H: the variable N1 is not set (set it, or give a default: ${N1:-…}) [variable]`, lines); diff != "" {
		t.Error(diff)
	}
}

// TestArgumentsReachTheServer is K07 and K51 as far as settings go: byte for
// byte, the empty one kept.
func TestArgumentsReachTheServer(t *testing.T) {
	s := load(t, `
mcp: {servers: {a: {command: "/opt/my tools/run", args: ["/tmp/My Data (2)", "", "a\"b", "$HOME", "-b local"],
  env: {A: "ab$Q9x$", B: "S3cret$USER!", C: "$$", D: "${", E: "a${}b", F: "100%PATH%", G: ""}}}}
`)
	var got []string
	for _, a := range s.MCP.Servers[0].Args {
		got = append(got, a.Reveal())
	}
	for _, v := range s.MCP.Servers[0].Env {
		got = append(got, v.Value.Reveal())
	}
	want := []string{"/tmp/My Data (2)", "", `a"b`, "$HOME", "-b local", "ab$Q9x$", "S3cret$USER!", "$$", "${", "a${}b", "100%PATH%", ""}
	if diff := cmp.Diff(want, got); diff != "" || s.MCP.Servers[0].Command.Reveal() != "/opt/my tools/run" {
		t.Error(diff)
	}
}

// FuzzExpansion: no panic; a text without "${" is itself; a text that an escape
// makes of a text means that text.
func FuzzExpansion(f *testing.F) {
	for _, s := range []string{"ab$Q9x$", "${T1}", "${T2:-d}", "$${T1}", "${${", "${A:?x}", "${{ x }}", "${a ${T1}}", "}${", "$$$${T1}", "${env:", "${T1:-${T1}}"} {
		f.Add(s)
	}
	env := environ{"T1": "one", "RAW": "${T1}"}
	f.Fuzz(func(t *testing.T, s string) {
		got, problem := means(s, env)
		if !strings.Contains(s, "${") && (got != s || problem != "") {
			t.Errorf("%q means %q (%s)", s, got, problem)
		}
		if strings.Contains(problem, s) && len(s) > 200 {
			t.Errorf("the problem repeats the text: %s", problem)
		}
		if again, _ := means("${RAW}", env); again != "${T1}" {
			t.Error("expanded twice")
		}
		parts, _ := parse(s)
		total := 0
		for _, p := range parts {
			total += len(p.text)
		}
		if escapes := strings.Count(s, "$${"); total+escapes < len(s) {
			t.Errorf("%q lost text: %s", s, fmt.Sprint(parts))
		}
	})
}
