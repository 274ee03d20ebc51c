package mount_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools/mount"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]mount.Mount{
		"./out:/output:rw":  {Physical: "./out", Virtual: "/output", Rights: mount.ReadWrite},
		"/srv/data:/d/e:ro": {Physical: "/srv/data", Virtual: "/d/e", Rights: mount.ReadOnly},
		".:/src:rwnd":       {Physical: ".", Virtual: "/src", Rights: mount.NoDelete},
		`C:\Data:/data:ro`:  {Physical: `C:\Data`, Virtual: "/data", Rights: mount.ReadOnly},
		"C:/Data:/data:ro":  {Physical: "C:/Data", Virtual: "/data", Rights: mount.ReadOnly},
		`"/a:b;c":/data:ro`: {Physical: "/a:b;c", Virtual: "/data", Rights: mount.ReadOnly},
		`'C:\a "b"\':/d:ro`: {Physical: `C:\a "b"\`, Virtual: "/d", Rights: mount.ReadOnly},
		"My Data (2):/d:ro": {Physical: "My Data (2)", Virtual: "/d", Rights: mount.ReadOnly},
		"/x:/größe:rw":      {Physical: "/x", Virtual: "/größe", Rights: mount.ReadWrite},
		"/x:/crewmates:rw":  {Physical: "/x", Virtual: "/crewmates", Rights: mount.ReadWrite},
		"01ARZ3NDEKTSV4RRFFQ69G5FAV|./out:/output:rw": {ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Physical: "./out", Virtual: "/output", Rights: mount.ReadWrite},
		`01arz3ndektsv4rrffq69g5fav|C:\Data:/data:ro`: {ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Physical: `C:\Data`, Virtual: "/data", Rights: mount.ReadOnly},
		`01ARZ3NDEKTSV4RRFFQ69G5FAV|"/a|b":/d:ro;x:rw`: {ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV", Physical: "/a|b", Virtual: "/d", Rights: mount.ReadOnly,
			Subs: []mount.Sub{{Path: "x", Rights: mount.ReadWrite}}},
		`"/a|b":/data:ro`: {Physical: "/a|b", Virtual: "/data", Rights: mount.ReadOnly},
		"o:/o:ro;a/b:rw;c:rwnd": {Physical: "o", Virtual: "/o", Rights: mount.ReadOnly,
			Subs: []mount.Sub{{Path: "a/b", Rights: mount.ReadWrite}, {Path: "c", Rights: mount.NoDelete}}},
	} {
		got, err := mount.Parse(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", spec, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"":                                    "physical:virtual:rights",
		"./out":                               "physical:virtual:rights",
		"./out:/output":                       "physical:virtual:rights",
		"/a:b:/output:rw":                     "quote",
		"./out:/output:rw:x":                  "quote",
		":/output:rw":                         "no folder",
		`"":/output:rw`:                       "no folder",
		`"./out:/output:rw`:                   "not closed",
		`"./out"/output:rw`:                   "colon must follow",
		"./out:output:rw":                     `does not start with "/"`,
		"./out:/:rw":                          "can't be mounted",
		"./out:/output/:rw":                   "not clean",
		"./out:/a/../b:rw":                    "not clean",
		"./out:/output:RW":                    "none of ro, rw and rwnd",
		"./out:/output:":                      "none of ro, rw and rwnd",
		`./out:/a\b:rw`:                       "backslash",
		"./out:/crew:rw":                      "/crew is reserved",
		"./out:/credentials:ro":               "/credentials is reserved",
		"./out:/sandbox/x:ro":                 "/sandbox is reserved",
		"./out:/llm-logs:ro":                  "/llm-logs is reserved",
		"./out:/script:ro":                    "/script is reserved",
		"./out:/o:rw;":                        "sub:rights",
		"./out:/o:rw;x":                       "sub:rights",
		"./out:/o:rw;:ro":                     "clean path below",
		"./out:/o:rw;/x:ro":                   "clean path below",
		"./out:/o:rw;../x:ro":                 "clean path below",
		"./out:/o:rw;a/../x:ro":               "clean path below",
		"./out:/o:rw;x:no":                    "none of ro, rw and rwnd",
		"./out:/o:rw;x:ro;x:rw":               "twice",
		"a|b:/o:rw":                           "is no id of a mount",
		"|b:/o:rw":                            "is no id of a mount",
		"81ARZ3NDEKTSV4RRFFQ69G5FAV|b:/o:rw":  "is no id of a mount", // beyond 128 bits
		"01ARZ3NDEKTSV4RRFFQ69G5FAU|b:/o:rw":  "is no id of a mount", // a U
		"01ARZ3NDEKTSV4RRFFQ69G5FA|b:/o:rw":   "quote a physical path",
		"01ARZ3NDEKTSV4RRFFQ69G5FAVV|b:/o:rw": "is no id of a mount",
		"01ARZ3NDEKTSV4RRFFQ69G5FAV|":         "physical:virtual:rights",
		"./o\x00ut:/o:rw":                     "control",
		"./out:/a\u202eb:rw":                  "can't be seen",
		"./out:/o\n:rw":                       "control",
		"./out:/\xff:rw":                      "UTF-8",
		"./out:/" + strings.Repeat("x", 256) + ":rw": "longer than 255",
		strings.Repeat("x", 20_000):                  "longer than",
	} {
		_, err := mount.Parse(spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, want an error with %q", spec, err, want)
		}
	}
}

func TestInResolvesRelativeFoldersOnly(t *testing.T) {
	dir := t.TempDir()
	for in, want := range map[string]string{"out": filepath.Join(dir, "out"), "../x": filepath.Join(filepath.Dir(dir), "x"), dir: dir} {
		if got := (mount.Mount{Physical: in}).In(dir).Physical; got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"./out:/output:rw", `"/a:b;c":/d:ro;x:rw`, `C:\x:/d:ro`, `'a"b':/d:rwnd;a/b:ro`, "a:/b:/c:ro", "::;:;", "01ARZ3NDEKTSV4RRFFQ69G5FAV|a:/b:ro", "a|b:/c:ro"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		m, err := mount.Parse(spec)
		if err != nil {
			return
		}
		again, err := mount.Parse(m.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", spec, m.String(), err)
		}
		if diff := cmp.Diff(m, again); diff != "" {
			t.Errorf("%q became %q: %s", spec, m.String(), diff)
		}
		if !strings.HasPrefix(m.Virtual, "/") || strings.Contains(m.Virtual, "..") && strings.Contains(m.Virtual, "/../") {
			t.Errorf("%q gave the virtual path %q", spec, m.Virtual)
		}
	})
}
