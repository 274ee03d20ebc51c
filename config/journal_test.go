package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// journalOf reads settings of one file, for a user whose state is kept in /state.
func journalOf(t *testing.T, text string) (Journal, error) {
	t.Helper()
	s, err := Load(Source{CrewDir: files(t, map[string]string{"crewhost.yaml": text + "\nmounts: []\n"}), UserStateDir: "/state"})
	if err != nil {
		return Journal{}, err
	}
	return s.Journal, nil
}

func TestJournal(t *testing.T) {
	for text, want := range map[string]Journal{
		"":                           {Enabled: true, Dir: "/state/crewhost/runs", Runs: 100},
		"journal: {enabled: false}":  {Dir: "/state/crewhost/runs", Runs: 100},
		"journal: {keep: {runs: 0}}": {Enabled: true, Dir: "/state/crewhost/runs"},
		"journal: {dir: /j, keep: {age: 48h}}": {
			Enabled: true, Named: true, Dir: "/j", Runs: 100, Age: 48 * time.Hour,
		},
	} {
		got, err := journalOf(t, text)
		want.Dir = filepath.FromSlash(want.Dir)
		if err != nil || got.Enabled != want.Enabled || got.Named != want.Named || got.Dir != want.Dir || got.Runs != want.Runs || got.Age != want.Age {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	got, err := journalOf(t, "journal: {repeatable: [mcp__a__*], read_only: ['mcp__b__get_*', mcp__b__list]}")
	if err != nil || len(got.Repeatable) != 1 || len(got.ReadOnly) != 2 || got.ReadOnly[1].Pattern != "mcp__b__list" {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"journal: {repeat: [x]}":       `"repeat"`,
		"journal: {keep: {age: -1h}}":  "not a duration above zero",
		"journal: {keep: {runs: -1}}":  "runs",
		"journal: {repeatable: ['']}":  "journal.repeatable.0 is empty",
		"journal: {enabled: perhaps}":  "enabled",
		"journal: {keep: {runs: many}": "yaml",
	} {
		if _, err := journalOf(t, text); err == nil || !strings.Contains(strings.ToLower(err.Error()), want) && want != "yaml" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s := load(t, "journal: {enabled: true}"); s.Journal.Enabled {
		t.Errorf("without a place for it: %+v", s.Journal)
	}
}
