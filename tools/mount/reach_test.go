package mount_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools/mount"
)

func TestReachAndOverlaps(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"src/vendor/x", "src/out", "other"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link(t, root, "src", "alias")
	all := func(specs ...string) []mount.Mount {
		var ms []mount.Mount
		for _, spec := range specs {
			m, err := mount.Parse(spec)
			if err != nil {
				t.Fatal(err)
			}
			ms = append(ms, m.In(root))
		}
		return ms
	}
	for host, want := range map[string]string{
		"src": "/src rw", "src/vendor/x": "/src/vendor/x ro", "alias/out/none/yet": "/src/out/none/yet rw", "srcs": " ", "other": " ", ".": " ",
	} {
		virtual, rights, ok := all("alias:/src:rw;vendor:ro")[0].Reach(filepath.Join(root, host))
		if got := virtual + " " + string(rights); got != want || ok != (want != " ") {
			t.Errorf("%s is at %q, %t, want %q", host, got, ok, want)
		}
	}
	for _, tt := range []struct{ specs, want []string }{
		{[]string{"src:/src:ro", "src/out:/out:rw"}, nil},
		{[]string{"src:/src:rw", "src/vendor:/vendor:ro"}, []string{"what is ro at /vendor is rw at /src/vendor, which shows the same files"}},
		{[]string{"alias:/src:rwnd", "src/vendor:/vendor:ro"}, []string{"what is ro at /vendor is rwnd at /src/vendor, which shows the same files"}},
		{[]string{"src:/src:rw;vendor:ro", "src/vendor:/vendor:ro"}, nil},
		{[]string{"src:/a:ro", "src:/b:rw"}, []string{"what is ro at /a is rw at /b, which shows the same files"}},
		{[]string{"src:/src:rw;vendor:rwnd", "src/vendor:/vendor:rw"}, []string{"what is rwnd at /src/vendor is rw at /vendor, which shows the same files"}},
		{[]string{"src:/src:rw", "src/vendor:/src/vendor:ro"}, nil}, // which covers it
		{[]string{"src:/src:rw", "other:/other:ro"}, nil},
	} {
		if diff := cmp.Diff(tt.want, mount.Overlaps(all(tt.specs...))); diff != "" {
			t.Errorf("%v: %s", tt.specs, diff)
		}
	}
}
