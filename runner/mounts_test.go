package runner_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner"
	"crewhost/tools"
	"crewhost/tools/permission"
)

const (
	idA = "01ARZ3NDEKTSV4RRFFQ69G5FAA"
	idB = "01ARZ3NDEKTSV4RRFFQ69G5FAB"
	idC = "01ARZ3NDEKTSV4RRFFQ69G5FAC"
)

// Mounts of one root are told apart by ids: the command line chooses, or the crews
// do, or nothing is opened.
func TestPlacement(t *testing.T) {
	both := []string{idA + "|a:/x:ro", idB + "|b:/x:rw"}
	for _, tt := range []struct {
		name     string
		settings []string
		mounts   []string
		ids      []string
		crews    [][]string // the mounts of each
		want     []string   // root, rights and id of what is mounted
		notes    []string   // parts of what is noted, a line each
		issues   []string   // parts of what is refused, in order
	}{
		{name: "of the settings", settings: []string{"a:/a:ro", idA + "|b:/b:rw"}, want: []string{"/a ro ", "/b rw " + idA}},
		{name: "the command line stands in", settings: []string{"a:/x:ro", "b:/b:ro"}, mounts: []string{"c:/x:rw"}, want: []string{"/b ro ", "/x rw "}},
		{name: "the command line stands in for several", settings: both, mounts: []string{"c:/x:rwnd"}, want: []string{"/x rwnd "}},
		{name: "twice on the command line", mounts: []string{"a:/x:ro", "b:/x:ro"}, issues: []string{"/x is mounted twice on the command line: a:/x:ro and b:/x:ro. Keep one."}},
		{
			name: "twice without ids", settings: []string{"a:/x:ro", idA + "|b:/x:ro"},
			issues: []string{`/x is mounted several times, and not each of them has an id: write "<id>|`},
		},
		{name: "nothing chooses", settings: both, issues: []string{"nothing chooses one: give --mount-id with one of " + idA + ", " + idB}},
		{name: "the command line chooses", settings: both, ids: []string{strings.ToLower(idB)}, want: []string{"/x rw " + idB}},
		{name: "the command line chooses before the crew", settings: both, ids: []string{idB}, crews: [][]string{{idA + "|/x"}}, want: []string{"/x rw " + idB}},
		{name: "the command line chooses the only one", settings: both[:1], ids: []string{idA}, want: []string{"/x ro " + idA}},
		{name: "the crew chooses", settings: both, crews: [][]string{{strings.ToLower(idA) + "|/x"}}, want: []string{"/x ro " + idA}},
		{name: "crews choose alike", settings: both, crews: [][]string{{idA + "|/x"}, {"/x"}, {idA + "|/x"}}, want: []string{"/x ro " + idA}},
		{name: "crews choose differently", settings: both, crews: [][]string{{idA + "|/x"}, {idB + "|/x"}}, issues: []string{"another crew chooses " + idA}},
		{name: "the crew names the root alone", settings: both, crews: [][]string{{"/x"}}, issues: []string{"nothing chooses one"}},
		{name: "the crew chooses what is not there", settings: both, crews: [][]string{{idC + "|/x"}}, issues: []string{"chooses the mount " + idC + " at /x, which the settings don't have; they have " + idA + ", " + idB}},
		{name: "an id is no id", settings: both, ids: []string{"x"}, issues: []string{`"x" is no id of a mount`, "nothing chooses"}},
		{name: "an id is unknown", settings: both, mounts: []string{"c:/x:ro"}, ids: []string{idC}, issues: []string{"no mount of the settings has the id " + idC + "; there are " + idA + " at /x, " + idB + " at /x"}},
		{name: "an id is unknown where none are", ids: []string{idC}, issues: []string{"no mount of the settings has the id " + idC + ", or any other"}},
		{name: "an id is that of two", settings: []string{idA + "|a:/x:ro", idA + "|b:/y:ro"}, issues: []string{"is that of another mount, too"}},
		{name: "two ids for a root", settings: both, ids: []string{idA, idB}, issues: []string{"/x is chosen twice"}},
		{name: "one id twice", settings: both, ids: []string{idA, idA}, want: []string{"/x ro " + idA}},
		{name: "an id and a mount", settings: both, mounts: []string{"c:/x:ro"}, ids: []string{idA}, want: []string{"/x ro "}, notes: []string{"/x is what --mount mounts there; --mount-id " + idA + " makes no difference"}},
		{name: "a folder is made", settings: []string{"new:/x:rw"}, want: []string{"/x rw "}},
		{name: "a folder to read is not", settings: []string{"new:/x:ro"}, issues: []string{"does not exist"}},
		{name: "folders in it are not", settings: []string{"new/er:/x:rw"}, issues: []string{"does not exist"}},
		{name: "a file", settings: []string{"file:/x:rw"}, issues: []string{"is not a folder"}},
		{name: "a device", mounts: []string{"/dev/null:/x:rw"}, issues: []string{"is not a folder"}},
		{name: "reserved", settings: []string{"a:/crew:ro"}, mounts: []string{"a:/sandbox/x:ro"}, issues: []string{"/sandbox is reserved", "/crew is reserved"}},
		{
			name: "one in the other", settings: []string{".:/all:rw", "a:/a:ro"}, want: []string{"/a ro ", "/all rw "},
			notes: []string{"what is ro at /a is rw at /all/a"},
		},
		{name: "the root of the machine", mounts: []string{"/:/all:ro"}, want: []string{"/all ro "}, notes: []string{"/all is all of this machine"}},
		{name: "the crew itself", mounts: []string{"crews:/c:rw"}, crews: [][]string{{}}, want: []string{"/c rw "}, notes: []string{`the crew "crew 0" itself changed, at /c/0.yaml`}},
		{name: "the crew itself, to read", mounts: []string{"crews:/c:ro"}, crews: [][]string{{}}, want: []string{"/c ro "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, d := range []string{"a", "b", "c", "crews"} {
				if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
			cfg := runner.Config{Settings: &config.Settings{}, Mounts: tt.mounts, MountIDs: tt.ids, Dir: dir}
			for _, spec := range tt.settings {
				cfg.Settings.Mounts = append(cfg.Settings.Mounts, config.Mount{Spec: spec, Base: dir})
			}
			for i, wants := range tt.crews {
				c := &crew.Crew{Name: crew.Text{V: "crew " + string(rune('0'+i))}, Path: filepath.Join(dir, "crews", string(rune('0'+i))+".yaml")}
				for _, w := range wants {
					c.Mounts = append(c.Mounts, crew.Text{V: w})
				}
				cfg.Crews = append(cfg.Crews, c)
			}
			host, err := runner.Open(t.Context(), cfg)
			var issues crew.Issues
			if err != nil && !errors.As(err, &issues) {
				t.Fatal(err)
			}
			if len(issues) != len(tt.issues) {
				t.Fatalf("issues: %v, want %q", issues, tt.issues)
			}
			for i, want := range tt.issues {
				if issues[i].Code != runner.CodeBadMount || !strings.Contains(issues[i].Message, want) {
					t.Errorf("issue %d: %v, want one with %q", i, issues[i], want)
				}
			}
			if err != nil {
				return
			}
			defer host.Close()
			var got []string
			for _, m := range host.Mounts() {
				got = append(got, m.Virtual+" "+string(m.Rights)+" "+m.ID)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			notes := host.MountNotes()
			if len(notes) != len(tt.notes) {
				t.Fatalf("notes: %q, want %q", notes, tt.notes)
			}
			for i, want := range tt.notes {
				if !strings.Contains(notes[i], want) {
					t.Errorf("note %d: %q, want one with %q", i, notes[i], want)
				}
			}
		})
	}
}

// The choice of a crew that has faults counts, too: it is judged on its mounts.
func TestFaultyCrewChooses(t *testing.T) {
	r := open(t, map[string]string{"x/.keep": "", "y/.keep": "", "crewhost.yaml": "mounts: [\"" + idA + "|x:/x:ro\", \"" + idB + "|y:/x:ro\"]\n"}, func(c *runner.Config) {
		c.Faulty = []*crew.Crew{{Mounts: []crew.Text{{V: idB + "|/x"}}}}
	})
	if ms := r.host.Mounts(); len(ms) != 1 || ms[0].ID != idB {
		t.Errorf("got %+v", ms)
	}
}

// A crew that the host was not opened for must do with what is mounted.
func TestJudgeMountIDs(t *testing.T) {
	text := strings.Replace(oneTask, ", tools: [echo]", "", 1) + "mounts: [\"" + idA + "|/x\"]\n"
	for name, tt := range map[string]struct {
		settings         string
		mounts, ids      []string
		issues, warnings []string
	}{
		"the one":              {settings: idA + "|x:/x:rw"},
		"another":              {settings: idB + "|x:/x:rw", issues: []string{"requires the mount " + idA + " at /x, and another is there"}},
		"one without an id":    {settings: "x:/x:rw", issues: []string{"and another is there"}},
		"of the command line":  {settings: idA + "|x:/x:rw", mounts: []string{"x:/x:rw"}, warnings: []string{"chooses the mount " + idA + " at /x, and --mount another"}},
		"chosen there":         {settings: idB + "|x:/x:rw", ids: []string{idB}, warnings: []string{"and --mount-id another"}},
		"the one by its flags": {settings: "x:/x:rw", mounts: []string{idA + "|x:/x:rw"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, map[string]string{"x/.keep": "", "crewhost.yaml": "mounts: [\"" + tt.settings + "\"]\n", "crew.yaml": text}, func(c *runner.Config) {
				c.Mounts, c.MountIDs, c.Dir = tt.mounts, tt.ids, filepath.Dir(c.Settings.Path)
			})
			c, err := crew.Load(filepath.Join(r.dir, "crew.yaml"))
			v := r.host.Judge(c, err, crew.Inputs{"word": "tide"})
			for what, lists := range map[string][2]any{"issues": {v.Issues, tt.issues}, "warnings": {v.Warnings, tt.warnings}} {
				got, want := lists[0].(crew.Issues), lists[1].([]string)
				if len(got) != len(want) {
					t.Fatalf("%s: %v, want %q", what, got, want)
				}
				for i := range want {
					if got[i].Code != runner.CodeNoMount || !strings.Contains(got[i].Message, want[i]) {
						t.Errorf("%s: %v, want %q", what, got[i], want[i])
					}
				}
			}
		})
	}
}

// The setting tools.files.hard_links reaches the mounts.
func TestHardLinksOfTheSettings(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644), os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g"))); err != nil {
			t.Fatal(err)
		}
		settings := &config.Settings{
			Mounts:      []config.Mount{{Spec: ".:/x:ro", Base: dir}},
			Permissions: config.Permissions{Default: string(permission.Allow)},
		}
		settings.Tools.Files.HardLinks = allowed
		host, err := runner.Open(t.Context(), runner.Config{Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		defer host.Close()
		res, err := host.Call(t.Context(), tools.Call{Name: "file_read", Arguments: json.RawMessage(`{"path": "/x/f"}`)})
		if err != nil || res.IsError == allowed {
			t.Errorf("allowed %t: %+v, %v", allowed, res, err)
		}
	}
}
