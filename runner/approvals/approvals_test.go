package approvals_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/runner/approvals"
	"crewhost/tools/permission"
)

var at = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func entry() approvals.Entry {
	return approvals.Entry{
		Settings: "/w/crewhost.yaml", Crew: "/w/crew.yaml", Asked: "mcp__files__*",
		Server: "files", Endpoint: "files-server", Identity: "sha256:1", Tool: "write", Definition: "sha256:a", At: at,
	}
}

func storeIn(t *testing.T) approvals.Store {
	return approvals.Store{Path: filepath.Join(t.TempDir(), "state", "approvals.json")}
}

func standing(t *testing.T, s approvals.Store, e approvals.Entry) permission.Standing {
	t.Helper()
	got, err := s.Standing(e)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// An approval is for what was asked about, and for nothing that differs in anything.
func TestAnApprovalIsBoundToAllThatWasSeen(t *testing.T) {
	s := storeIn(t)
	if got := standing(t, s, entry()); got != permission.Unknown {
		t.Fatalf("before: %s", got)
	}
	if err := s.Keep(t.Context(), entry()); err != nil {
		t.Fatal(err)
	}
	later := entry()
	later.At = at.Add(time.Hour)
	if got := standing(t, s, later); got != permission.Approved {
		t.Errorf("after: %q", got)
	}
	for name, change := range map[string]func(*approvals.Entry){
		"settings": func(e *approvals.Entry) { e.Settings += "x" },
		"crew":     func(e *approvals.Entry) { e.Crew = "" },
		"agent":    func(e *approvals.Entry) { e.Agent = "a" },
		"rule":     func(e *approvals.Entry) { e.Asked = "mcp__files__write" },
		"server":   func(e *approvals.Entry) { e.Server = "file" },
		"endpoint": func(e *approvals.Entry) { e.Endpoint = "evil-server" },
		"identity": func(e *approvals.Entry) { e.Identity = "sha256:2" },
		"tool":     func(e *approvals.Entry) { e.Tool = "delete" },
	} {
		e := entry()
		change(&e)
		if got := standing(t, s, e); got != permission.Unknown {
			t.Errorf("another %s: %q", name, got)
		}
	}
	changed := entry()
	changed.Definition = "sha256:b"
	if got := standing(t, s, changed); got != permission.Changed {
		t.Errorf("another definition: %q", got)
	}
	if err := s.Keep(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if got := standing(t, s, entry()); got != permission.Changed {
		t.Errorf("the old definition: %q", got)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	revoked, err := s.Revoke(t.Context(), "nothing", list[0].ID())
	if err != nil || len(revoked) != 1 || revoked[0] != changed {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	if got := standing(t, s, changed); got != permission.Unknown {
		t.Errorf("revoked: %q", got)
	}
}

func TestTheFileIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	s := storeIn(t)
	if err := s.Keep(t.Context(), entry()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(s.Path, 0o620); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Standing(entry()); err == nil || !strings.Contains(err.Error(), s.Path) || !strings.Contains(err.Error(), "0620") {
		t.Errorf("a file that others may write: %v", err)
	}
}

// A file that can't be read is an error that names it; it is left as it is.
func TestADamagedFileCountsForNothingAndIsKept(t *testing.T) {
	s := storeIn(t)
	if err := s.Keep(t.Context(), entry()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(s.Path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cut off":      string(good[:len(good)/2]),
		"empty":        "",
		"more":         string(good) + "{}",
		"unknown key":  strings.Replace(string(good), `"tool"`, `"tools"`, 1),
		"version":      strings.Replace(string(good), `"version": 1`, `"version": 2`, 1),
		"no tool":      strings.Replace(string(good), `"write"`, `""`, 1),
		"unbound":      strings.NewReplacer("/w/crewhost.yaml", "", "/w/crew.yaml", "").Replace(string(good)),
		"no identity":  strings.Replace(string(good), `"sha256:1"`, `""`, 1),
		"no digest":    strings.Replace(string(good), `"sha256:a"`, `"a"`, 1),
		"no list":      `{"version":1,"approvals":{}}`,
		"another time": strings.Replace(string(good), `"2026-`, `"26-`, 1),
	} {
		if err := os.WriteFile(s.Path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := s.Standing(entry())
		if err == nil || got != permission.Unknown || !strings.Contains(err.Error(), s.Path) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err := s.Keep(t.Context(), entry()); err == nil {
			t.Errorf("%s: it was written over", name)
		}
		if _, err := s.Revoke(t.Context(), entry().ID()); err == nil {
			t.Errorf("%s: revoked", name)
		}
		if left, err := os.ReadFile(s.Path); err != nil || string(left) != text {
			t.Errorf("%s: what it held is gone: %q, %v", name, left, err)
		}
	}
}

// Nothing that was kept by one is lost by another's keeping something at the same
// time.
func TestSeveralAtOnce(t *testing.T) {
	s := storeIn(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			e := entry()
			e.Tool = fmt.Sprintf("tool%02d", i)
			if err := (approvals.Store{Path: s.Path}).Keep(t.Context(), e); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	list, err := s.List()
	if err != nil || len(list) != 16 || list[3].Tool != "tool03" {
		t.Errorf("%d, %v", len(list), err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":1,"approvals":[]}`))
	f.Add([]byte(`{"version":1,"approvals":[{"settings":"a","tool":"t","definition":"sha256:1","at":"2026-11-30T09:00:00Z"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := approvals.Store{Path: filepath.Join(t.TempDir(), "approvals.json")}
		if err := os.WriteFile(s.Path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := s.List()
		if err != nil {
			return
		}
		for _, e := range list {
			if got, err := s.Standing(e); err != nil || got != permission.Approved {
				t.Errorf("%+v: %q, %v", e, got, err)
			}
		}
	})
}
