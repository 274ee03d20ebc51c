package main

import (
	"bytes"
	"strings"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
)

// Whatever provider a settings file begins with, it is good, and says which
// variable holds the key.
func TestInitForEveryProvider(t *testing.T) {
	for _, name := range startingPoints() {
		dir := t.TempDir()
		var stdout, stderr bytes.Buffer
		c := &console{in: strings.NewReader(""), out: &stdout, err: &stderr, redactor: &secret.Redactor{}}
		if code := start(c, []string{"init", dir, "--provider", name}); code != exitOK {
			t.Errorf("%s: exit code %d: %s", name, code, &stderr)
			continue
		}
		s, err := config.Load(config.Source{CrewDir: dir})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if s.LLM.Provider != name || s.LLM.Vendor() && s.LLM.Model == "" || len(s.Warnings) > 0 {
			t.Errorf("%s: %+v, %v", name, s.LLM.Profile, s.Warnings)
		}
	}
}
