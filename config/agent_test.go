package config

import (
	"strings"
	"testing"

	"crewhost/config/secret"
)

// What is secret in a server that stands elsewhere is hidden as in the settings.
func TestHidden(t *testing.T) {
	text := func(s string) secret.Text { return secret.NewText(s, s) }
	was := Server{
		Name: "s", Command: text("notes"), URL: text("https://u:canary-1@a.example.com?x=canary-2"),
		Args: []secret.Text{text("--port"), text("8080"), text("--token"), text("canary-3")},
		Env:  []Variable{{"API_KEY", text("canary-4")}, {"MODE", text("strict")}},
	}
	s := was.Hidden()
	var shown, secrets []string
	for _, x := range append([]secret.Text{s.Command, s.URL, s.Env[0].Value, s.Env[1].Value}, s.Args...) {
		shown = append(shown, x.String())
		for _, v := range x.Secrets() {
			secrets = append(secrets, v.Reveal())
		}
	}
	if line := strings.Join(shown, " "); strings.Contains(line, "canary") || !strings.Contains(line, "notes") || !strings.Contains(line, "--port 8080 --token") {
		t.Error(line)
	}
	for _, want := range []string{"canary-1", "canary-2", "canary-3", "canary-4"} {
		if !strings.Contains(strings.Join(secrets, " "), want) {
			t.Errorf("%s is no secret: %v", want, secrets)
		}
	}
	if s.Env[1].Value.Reveal() != "strict" || s.URL.Reveal() != was.URL.Reveal() || s.Args[3].Reveal() != "canary-3" {
		t.Error("a value was changed")
	}
	if was.Args[3].String() != "canary-3" {
		t.Error("the server that was given was changed")
	}
}
