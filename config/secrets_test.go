package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"crewhost/config/secret"
)

// TestSettingsShowNoSecret is K55: a secret in any field is in no way of
// printing the settings, and the redactor knows it.
func TestSettingsShowNoSecret(t *testing.T) {
	const s1, s2, s3 = "sk-test-123", "p%40ss-word1", "value/of+variable=="
	s := load(t, `
llm:
  model: m
  base_url: https://u:`+s2+`@llm.example.com/v1?key=`+s1+`&v=${VAR}
  api_key: `+s1+`
  profiles: {p: {model: x, api_key: "${VAR}", base_url: "https://tok-as-user@x.example.com/"}}
mcp:
  servers:
    a:
      command: run-${VAR}
      args: [`+s1+`, --token, hunter-3, "--api-key=hunter-4", -H, "Authorization: Bearer hunter-5", "postgres://me:hunter-6@db/x?sslkey=hunter-7", "${VAR}", "--header=X-Api-Key: hunter-8", --password, "${NOPE:-hunter-9}",
        "--token=hunter-11${VAR}", --secret, "hunter-12${VAR:-hunter-13}", "https://${VAR}:hunter-14@h/?a=${VAR}&key=hunter-15", "${URL}?key=hunter-16", "https://${VAR}:${VAR}@h/?k=${VAR}&port=${PORT:-80}"]
      env: {TOKEN: `+s1+`, PLAIN: literal-env, V: "x${VAR}y", D: "${NOPE:-default-env}", DB_LOGIN: swordfish, LOG: debug}
    b:
      url: https://u:`+s2+`@mcp.example.com/mcp?key=`+s1+`&v=${VAR}&page=
      headers: {Authorization: Bearer `+s1+`, X-Key: "${VAR}", Cookie: "a=b; c=hunter-10", Accept: application/json}
`, "VAR="+s3, "URL=https://h.example.com/")
	shown := fmt.Sprintf("%v %+v %#v", s, s, s)
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		out, err := encode(s)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(out)
	}
	shown += strings.Join(s.Warnings, "\n")
	var r secret.Redactor
	r.Add(s.Secrets()...)
	for _, hidden := range []string{
		s1, s2, "p@ss-word1", s3, "tok-as-user", "hunter-3", "hunter-4", "hunter-5", "hunter-6", "hunter-7", "hunter-8", "hunter-9", "hunter-10",
		"hunter-15", "hunter-16",
		"literal-env", "default-env", "swordfish",
	} {
		if i := strings.Index(shown, hidden); i >= 0 {
			t.Errorf("%s is shown: …%s…", hidden, shown[max(0, i-80):min(len(shown), i+80)])
		}
		if got := r.Redact("a " + hidden + " b"); got != "a ••• b" {
			t.Errorf("%s is not redacted: %s", hidden, got)
		}
	}
	if strings.Contains(shown, "hunter") {
		t.Error("a default that is not used is shown")
	}
	for _, plain := range []string{"debug", "application/json", "llm.example.com", "postgres://"} {
		if got := r.Redact(plain); got != plain {
			t.Errorf("%s is redacted", plain)
		}
	}
	a, b := s.MCP.Servers[0], s.MCP.Servers[1]
	var args []string
	for _, arg := range a.Args {
		args = append(args, arg.String())
	}
	if diff := cmp.Diff([]string{
		"•••", "--token", "•••", "--api-key=•••", "-H", "Authorization: •••", "postgres://•••@db/x?sslkey=•••", "${VAR}",
		"--header=X-Api-Key: •••", "--password", "${NOPE:-•••}",
		"--token=•••${VAR}", "--secret", "•••${VAR:-•••}", "https://•••@h/?a=${VAR}&key=•••", "${URL}?key=•••", "https://${VAR}:${VAR}@h/?k=${VAR}&port=${PORT:-80}",
	}, args); diff != "" {
		t.Error(diff)
	}
	for got, want := range map[string]string{
		b.URL.String():                    "https://•••@mcp.example.com/mcp?key=•••&v=${VAR}&page=",
		b.Headers[0].Value.String():       "Bearer •••",
		b.Headers[1].Value.String():       "${VAR}",
		a.Env[1].Value.String():           "•••",
		a.Env[2].Value.String():           "•••${VAR}•••",
		a.Env[3].Value.String():           "${NOPE:-•••}",
		a.Command.String():                "run-${VAR}",
		s.LLM.BaseURL.String():            "https://•••@llm.example.com/v1?key=•••&v=${VAR}",
		s.LLM.APIKey.String():             "literal",
		s.LLM.Profiles[0].APIKey.String(): "env:VAR",
	} {
		if got != want {
			t.Errorf("shown as %s, want %s", got, want)
		}
	}
	if b.URL.Reveal() != "https://u:"+s2+"@mcp.example.com/mcp?key="+s1+"&v="+s3+"&page=" || b.Headers[0].Value.Reveal() != "Bearer "+s1 {
		t.Error("what is meant has changed")
	}
	if len(s.Warnings) != 1 || !strings.HasSuffix(s.Warnings[0], "crewhost.yaml:5:12: llm.api_key is written out; name a variable that holds it: ${NAME}") {
		t.Errorf("%q", s.Warnings)
	}
}

// TestPublicVariables: a log in which the home folder is masked says little.
func TestPublicVariables(t *testing.T) {
	s := load(t, `mcp: {servers: {a: {command: x, args: ["${HOME}/data"], env: {D: "${HOME}", E: "${HOME:-x}/d"}}}}`, "HOME=/home/me")
	for _, v := range s.Secrets() {
		t.Errorf("secret: %s", v.Reveal())
	}
}

// TestIssuesShowNoSecret: what is wrong with a value is said without the value.
func TestIssuesShowNoSecret(t *testing.T) {
	got := faults(t, `
llm: {model: m, api_key: {env: sk-test-123}, base_url: "hunter-1://x"}
mcp:
  servers:
    a: {url: "https://u:hunter-2@[x/", headers: {A: "hunter-3\n", B: "hunter-4${A:?hunter-5}"}}
    b: {url: "hunter-6", headers: {A: [hunter-7], B: {k: hunter-8}}}
    c: {command: x, env: {A: "hunter-9 ${NOPE}", B: ["hunter-10"]}}
`, "CREWHOST_LLM__API_KEY__ENV=")
	if strings.Contains(got, "hunter") || strings.Contains(got, "sk-test") || strings.Count(got, "\n") < 8 {
		t.Error(got)
	}
}

func TestModelKeys(t *testing.T) {
	// Nothing is looked up: that a variable is unset is no fault (O10).
	for text, want := range map[string]secret.Ref{
		`"${KEY}"`:                             {Source: "env", Name: "KEY"},
		`"${env:KEY}"`:                         {Source: "env", Name: "KEY"},
		`"${KEY:-d}"`:                          {Source: "env", Name: "KEY", Value: secret.New("d")},
		`{env: KEY}`:                           {Source: "env", Name: "KEY"},
		`{file: /run/key}`:                     {Source: "file", Name: "/run/key"},
		`{command: [op, read, "op://a/b", 5]}`: {Source: "command", Name: "op", Args: []string{"read", "op://a/b", "5"}},
		`ab$Q9x$`:                              {Source: "literal", Value: secret.New("ab$Q9x$")},
		``:                                     {},
	} {
		if s := load(t, "llm: {model: m, api_key: "+text+"}"); !cmp.Equal(s.LLM.APIKey, want) {
			t.Errorf("%s: %+v", text, s.LLM.APIKey)
		}
	}
	for text, want := range map[string]string{
		`{}`:                   "llm.api_key is empty (${NAME}, or a mapping with env, file or command) [missing]",
		`""`:                   "llm.api_key is empty (${NAME}, or a mapping with env, file or command) [missing]",
		`{env: A, file: b}`:    "llm.api_key has more than one of env, file and command (keep one) [bad-value]",
		`{env: "a b"}`:         "llm.api_key.env is not the name of a variable (env: OPENAI_API_KEY) [bad-value]",
		`{vault: x}`:           `unknown key "vault" in llm.api_key (known: command, env, file) [unknown-key]`,
		`"${input:k}"`:         "llm.api_key: ${input:…} is asked for by an editor (known are ${NAME}, ${NAME:-default} and ${env:NAME}) [variable]",
		`"Bearer ${KEY}"`:      "llm.api_key must be one variable and nothing else (${NAME}) [variable]",
		`5`:                    "llm.api_key must be a text or a mapping with env, file or command, not an integer [wrong-type]",
		`{command: op read x}`: "llm.api_key.command must be a list, not a string (write a list: [op read x]) [wrong-type]",
	} {
		if got := faults(t, "llm: {model: m, api_key: "+text+"}"); !strings.HasSuffix(got, ": "+want) || strings.Contains(got, "\n") {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// A password in a URL is known as it is sent, with its user before it; the user alone
// is no secret.
func TestBasicIsKnown(t *testing.T) {
	s := load(t, "mcp: {servers: {a: {url: \"https://some%40body:pass%2Fword-1@example.com/mcp\"}}}\n")
	var r secret.Redactor
	r.Add(s.Secrets()...)
	// "some@body:pass/word-1"
	for text, want := range map[string]string{
		"Basic c29tZUBib2R5OnBhc3Mvd29yZC0x": "Basic •••", "pass/word-1 pass%2Fword-1": "••• •••", "some@body": "some@body",
	} {
		if got := r.Redact(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
