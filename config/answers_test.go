package config

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// O19: what a server may be told, and may use, is declared server by server.
func TestAnswersSamplingRoots(t *testing.T) {
	s := load(t, `
mcp:
  resource_tools: true
  servers:
    a:
      command: x
      answers: { region: eu-west, count: 3, sure: true, key: "${DEPLOY_KEY}" }
      sampling: true
      roots: true
    b: { command: x, sampling: { max_calls: 2 } }
    c: { command: x, sampling: { max_tokens: 9 } }
    d: { command: x, sampling: false }
`, "DEPLOY_KEY=k-725653563933458433")
	if !s.MCP.ResourceTools {
		t.Error("resource_tools is not read")
	}
	a := s.MCP.Servers[0]
	var shown, meant []string
	for _, v := range a.Answers {
		shown = append(shown, fmt.Sprintf("%s=%v", v.Name, v.Value))
		meant = append(meant, v.Name+"="+v.Value.Reveal())
	}
	if diff := cmp.Diff([]string{"region=•••", "count=•••", "sure=•••", "key=${DEPLOY_KEY}"}, shown); diff != "" {
		t.Errorf("shown: %s", diff)
	}
	if diff := cmp.Diff([]string{"region=eu-west", "count=3", "sure=true", "key=k-725653563933458433"}, meant); diff != "" {
		t.Errorf("meant: %s", diff)
	}
	found := false
	for _, v := range s.Secrets() {
		found = found || v.Reveal() == "k-725653563933458433"
	}
	if !found {
		t.Error("the value of a variable in an answer is no secret")
	}
	if !a.Roots || s.MCP.Servers[1].Roots {
		t.Error("roots are not as written")
	}
	var sampling []*Sampling
	for _, server := range s.MCP.Servers {
		sampling = append(sampling, server.Sampling)
	}
	if diff := cmp.Diff([]*Sampling{{1024, 20}, {1024, 2}, {9, 20}, nil}, sampling); diff != "" {
		t.Errorf("sampling: %s", diff)
	}
}

func TestAnswersWrong(t *testing.T) {
	got := faults(t, `
mcp:
  servers:
    a: { command: x, answers: { region: , key: "${UNSET}" }, sampling: { max_tokens: 0, calls: 2 } }
    b: { command: x, answers: [eu], sampling: maybe, roots: 1 }
`)
	want := `crewhost.yaml:4:41: the server "a": answers.region has no value (write "" for an empty one) [missing]
crewhost.yaml:4:48: the server "a": answers.key: the variable UNSET is not set (set it, or give a default: ${UNSET:-…}) [variable]
crewhost.yaml:4:86: mcp.servers.a.sampling.max_tokens must be at least 1, not 0 [bad-value]
crewhost.yaml:4:89: unknown key "calls" in mcp.servers.a.sampling (known: max_calls, max_tokens) [unknown-key]
crewhost.yaml:5:31: mcp.servers.b.answers must be a mapping, not a list (write keys with values, not a list with dashes) [wrong-type]
crewhost.yaml:5:47: mcp.servers.b.sampling must be a boolean, not a string (write true or false) [wrong-type]
crewhost.yaml:5:61: mcp.servers.b.roots must be a boolean, not an integer [wrong-type]`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
