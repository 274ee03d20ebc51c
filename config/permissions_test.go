package config

import (
	"os"
	"path/filepath"
	"testing"
)

// What is allowed always is kept with the user's state, unless the settings say
// that nothing is, or nothing says where that state is.
func TestApprovalsAndCrewGrants(t *testing.T) {
	for name, tt := range map[string]struct {
		file, state string
		approvals   bool
		grants      bool
	}{
		"unsaid":       {"llm: {model: m}", "state", true, true},
		"off":          {"permissions: {approvals: false, crew_grants: false}", "state", false, false},
		"on":           {"permissions: {approvals: true, crew_grants: true}", "state", true, true},
		"no state dir": {"permissions: {approvals: true}", "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "crewhost.yaml"), []byte(tt.file), 0o600); err != nil {
				t.Fatal(err)
			}
			source := Source{CrewDir: dir}
			want := ""
			if tt.state != "" {
				source.UserStateDir = filepath.Join(dir, tt.state)
			}
			if tt.approvals {
				want = filepath.Join(dir, tt.state, "crewhost", "approvals.json")
			}
			s, err := Load(source)
			if err != nil {
				t.Fatal(err)
			}
			if p := s.Permissions; p.Approvals != want || p.CrewGrants != tt.grants {
				t.Errorf("%+v, want the file %q", p, want)
			}
		})
	}
}
