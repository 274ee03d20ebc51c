package mount_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/mount"
)

// TestNames are the spellings by which a path might lead where it must not. Each is
// refused, or is merely the name of another file in the mount.
func TestNames(t *testing.T) {
	deep := strings.Repeat(strings.Repeat("d", 29)+"/", 130)
	for _, tt := range []struct {
		name string
		path string
		want error // nil: the file can be written, and is in the mount
	}{
		{"dots", "/out/../../outside.txt", fs.ErrNotExist},
		{"dots at the end", "/out/x/../../..", fs.ErrPermission},
		{"dots behind a file", "/out/old.txt/../old.txt", nil}, // cleaned first
		{"three dots", "/out/.../x", fs.ErrNotExist},
		{"four dots", "/out/..../outside.txt", fs.ErrNotExist},
		{"dots with a backslash", `/out/..\outside.txt`, fs.ErrInvalid},
		{"dots by their numbers", "/out/%2e%2e/outside.txt", fs.ErrNotExist},
		{"a slash by its number", "/out/..%2foutside.txt", nil},
		{"dots with a parameter", "/out/..;/outside.txt", fs.ErrNotExist},
		{"fullwidth dots", "/out/．．/outside.txt", fs.ErrNotExist},
		{"one-dot leaders", "/out/․․/outside.txt", fs.ErrNotExist},
		{"fullwidth slash", "/out/..／outside.txt", nil},
		{"division slash", "/out/..∕outside.txt", nil},
		{"overlong dot", "/out/\xc0\xae\xc0\xae/outside.txt", fs.ErrInvalid},
		{"overlong slash", "/out/..\xc0\xafoutside.txt", fs.ErrInvalid},
		{"a surrogate", "/out/\xed\xa0\x80", fs.ErrInvalid},
		{"trailing slash", "/out/new.txt/", nil},
		{"trailing dot", "/out/private/.", fs.ErrPermission},
		{"a dot behind a name", "/out/privat./p.txt", fs.ErrNotExist},
		{"slashes before", "////outside.txt", fs.ErrNotExist},
		{"a URL", "file:///etc/passwd", fs.ErrNotExist}, // relative, and no folder file:
		{"a home", "~/x", fs.ErrNotExist},
		{"NUL", "/out/a\x00b", fs.ErrInvalid},
		{"NUL at the end", "/out/a\x00", fs.ErrInvalid},
		{"a line feed", "/out/a\nb", fs.ErrInvalid},
		{"an escape", "/out/a\x1b[31m", fs.ErrInvalid},
		{"a control character of the upper half", "/out/a\u009bb", fs.ErrInvalid},
		{"delete", "/out/a\x7f", fs.ErrInvalid},
		{"a line separator", "/out/a\u2028b", fs.ErrInvalid},
		{"text turned around", "/out/\u202etxt.exe", fs.ErrInvalid},
		{"an isolate", "/out/\u2066a", fs.ErrInvalid},
		{"a mark of direction", "/out/a\u200e", fs.ErrInvalid},
		{"a zero-width space", "/out/pri\u200bvate/p.txt", fs.ErrInvalid},
		{"a byte order mark", "/out/\ufeffa", fs.ErrInvalid},
		{"a soft hyphen", "/out/pri\u00advate/p.txt", fs.ErrInvalid},
		{"a tag", "/out/a\U000e0041", fs.ErrInvalid},
		{"joiners, which scripts need", "/out/می\u200cخواهم \U0001f468\u200d\U0001f469.txt", nil},
		{"a Cyrillic letter", "/out/оld.txt", nil},
		{"an accent composed", "/out/\u00e9.txt", nil},
		{"an accent apart", "/out/e\u0301.txt", nil},
		{"a name of 255 bytes", "/out/" + strings.Repeat("x", 255), nil},
		{"a name of 256 bytes", "/out/" + strings.Repeat("x", 256), fs.ErrInvalid},
		{"a name of 256 bytes in the middle", "/out/" + strings.Repeat("ä", 128) + "/x", fs.ErrInvalid},
		{"a path of 4096 bytes", "/out/" + strings.Repeat("./", 2042) + "new.txt", nil},
		{"a path of 4097 bytes", "/out/" + strings.Repeat("./", 2042) + "newt.txt", fs.ErrInvalid},
		{"a path of a megabyte", "/out/" + strings.Repeat("a/", 1<<19), fs.ErrInvalid},
		{"a deep path that is not there", "/out/" + deep + "x", fs.ErrNotExist},
		{"upwards from deep", "/out/" + deep + strings.Repeat("../", 30) + "x", fs.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fsys, root := world(t)
			for act, do := range map[string]func() error{
				"write":  func() error { return fsys.WriteFile(tt.path, []byte("mine")) },
				"append": func() error { return fsys.Append(tt.path, []byte("mine")) },
				"read": func() error {
					data, err := fsys.ReadFile(tt.path, 1000)
					if strings.Contains(string(data), "secret") {
						t.Error("read what lies outside")
					}
					return err
				},
			} {
				err := do()
				checkError(t, root, err)
				switch {
				case act == "read" && errors.Is(tt.want, fs.ErrPermission): // such as a folder, or no mount
					if err == nil {
						t.Error("it was read")
					}
				case act == "read" && tt.want == nil && errors.Is(err, fs.ErrNotExist): // before it was written
				case !errors.Is(err, tt.want) || err != nil && tt.want == nil:
					t.Errorf("%s: %v, want %v", act, err, tt.want)
				}
				if err != nil && (strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x202e }) || len(err.Error()) > 600) {
					t.Errorf("%s: the error is no short line: %.700q", act, err)
				}
			}
			untouched(t, root)
		})
	}
}

// untouched fails the test where anything outside of the mounts of the world has
// changed, or what is read-only in them.
func untouched(t *testing.T, root string) {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*", "in/*", "in/*/*", "out/private/*", "out/private/open/*", "out/logs/*", "logs/*"} {
		names, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil { // a folder
				data = []byte("/")
			}
			found = append(found, strings.TrimPrefix(name, root)+" "+string(data))
		}
	}
	got := strings.Join(found, "\n")
	want := strings.ReplaceAll(`/in /
/logs /
/out /
/outside.txt secret
/in/a.txt alpha
/in/sub /
/in/sub/b.txt beta
/out/private/open /
/out/private/p.txt private
/out/private/open/o.txt open
/out/logs/hidden.txt hidden
/logs/l.txt log`, "/", string(filepath.Separator))
	if got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}

// A path that is longer than what the system takes at once is gone step by step.
func TestDeepFolders(t *testing.T) {
	fsys, root := world(t)
	name := strings.Repeat("d", 29)
	deep := "/out/" + strings.Repeat(name+"/", 136)
	if len(root)+len(deep) < 4100 {
		t.Fatalf("the path of %d bytes is too short to tell", len(root)+len(deep))
	}
	if err := fsys.MkdirAll(deep); err != nil {
		t.Fatal(err)
	}
	if err := fsys.WriteFile(deep+"f", []byte("down here")); err != nil {
		t.Fatal(err)
	}
	if got, err := read(t, fsys, root, deep+"f"); err != nil || got != "down here" {
		t.Errorf("got %q, %v", got, err)
	}
	visited, failed := 0, 0
	err := fsys.Walk("/out/"+name, func(_ string, _ mount.Entry, err error) error {
		visited++
		if errors.Is(err, mount.ErrTooLarge) {
			failed++
		}
		return nil
	})
	if err != nil || visited != 130 || failed != 1 { // the last one twice
		t.Errorf("visited %d, of which %d failed, %v", visited, failed, err)
	}
	if err := fsys.Remove(deep + "f"); err != nil {
		t.Error(err)
	}
}

// A file of a size that no memory has, and one that grows while it is read.
func TestBoundedReads(t *testing.T) {
	fsys, root := world(t)
	huge := filepath.Join(root, "in/huge")
	if err := errors.Join(os.WriteFile(huge, []byte("x"), 0o644), os.Truncate(huge, 1<<40)); err != nil {
		t.Skipf("no sparse files here: %v", err)
	}
	if data, err := fsys.ReadFile("/in/huge", 1<<20); !errors.Is(err, mount.ErrTooLarge) || data != nil {
		t.Errorf("a huge file: %d bytes, %v", len(data), err)
	}
	f, err := fsys.Open("/in/huge")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 2)
	if n, err := f.ReadAt(b, 1<<39); n != 2 || err != nil {
		t.Errorf("in the middle: %d, %v", n, err)
	}
	if n, err := f.ReadAt(b, 1<<40-1); n != 1 || err != io.EOF { //nolint:errorlint // readers compare it so
		t.Errorf("at the end: %d, %v", n, err)
	}
	if _, err := f.ReadAt(b, -1); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("before the beginning: %v", err)
	}
	fsys.Trap(func(step string) {
		if strings.HasPrefix(step, "read ") {
			if err := os.WriteFile(filepath.Join(root, "in/a.txt"), bytes.Repeat([]byte("a"), 5000), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	if data, err := fsys.ReadFile("/in/a.txt", 1000); !errors.Is(err, mount.ErrTooLarge) || data != nil {
		t.Errorf("a file that grew: %d bytes, %v", len(data), err)
	}
}

// The folder that was mounted is the mount, whatever comes to bear its name.
func TestMountedFolderReplaced(t *testing.T) {
	fsys, root := world(t)
	out, away := filepath.Join(root, "out"), filepath.Join(root, "away")
	if err := os.Rename(out, away); err != nil {
		t.Skipf("an open folder can't be renamed here: %v", err)
	}
	link(t, root, "in", "out")
	if err := fsys.WriteFile("/out/a.txt", []byte("mine")); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(away, "a.txt")); err != nil || string(got) != "mine" {
		t.Errorf("in the mounted folder: %q, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(root, "in/a.txt")); err != nil || string(got) != "alpha" {
		t.Errorf("in the other: %q, %v", got, err)
	}
	if err := os.RemoveAll(away); err != nil {
		t.Fatal(err)
	}
	err := fsys.WriteFile("/out/a.txt", []byte("mine"))
	checkError(t, root, err)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that is gone: %v", err)
	}
	if _, err := fsys.ReadDir("/out/keep"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("listing below a folder that is gone: %v", err)
	}
}

// Where nothing is yet, a name that some file system might take for one with
// rights of its own has no more of them.
func TestLookalikesOfSubPaths(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	fsys := open(t, root, "d:/d:rw;private:ro;é/x:ro;open:rw", "d:/e:ro;open:rw")
	for name, ok := range map[string]bool{
		"/d/private/n": false, "/d/PRIVATE/n": false, "/d/Private": false, "/d/ｐrivate/n": false,
		"/d/pri\u200cvate/n": false, "/d/\u00e9/x": false, "/d/e\u0301/X": false, "/d/é/y": true,
		"/d/privates": true, "/d/prıvate": true, "/e/OPEN/n": false, "/e/open/n": true,
	} {
		err := fsys.MkdirAll(name)
		checkError(t, root, err)
		if (err == nil) != ok {
			t.Errorf("mkdir %+q: %v, want it to work: %t", name, err, ok)
		}
		err = fsys.CanWrite(name + "/f")
		if (err == nil) != ok {
			t.Errorf("write below %+q: %v, want it to work: %t", name, err, ok)
		}
	}
}

func FuzzPaths(f *testing.F) {
	for _, s := range []string{
		"/in/a.txt", "../x", "/in/../../outside.txt", "a\x00", "//", ".", "/in/link/../../x", "/out/private/new", "/out/link/x",
		"/out/up/outside.txt", "/out/self/self/self/x", "/out/LINK", "/out/new/", "/out/logs/../logs", "/out/\u202e", "/out/a／b",
	} {
		f.Add(s)
	}
	root := f.TempDir()
	for _, d := range []string{"in", "out/private", "logs", "out/logs"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out/link": "private", "out/up": "..", "out/self": ".", "out/away": "/"} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			f.Skipf("no symbolic links here: %v", err)
		}
	}
	var ms []mount.Mount
	for _, spec := range []string{"in:/in:ro", "out:/out:rw;private:ro", "logs:/out/logs:ro"} {
		m, err := mount.Parse(spec)
		if err != nil {
			f.Fatal(err)
		}
		ms = append(ms, m.In(root))
	}
	fsys, err := mount.Open(ms)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = fsys.Close() })
	f.Fuzz(func(t *testing.T, name string) {
		_, serr := fsys.Stat(name)
		_, rerr := fsys.ReadDir(name)
		merr := fsys.MkdirAll(name + "-d")
		werr := fsys.WriteFile(name, []byte("x"))
		for _, err := range []error{serr, rerr, merr, werr} {
			if err != nil && !strings.Contains(name, filepath.Base(root)) && strings.Contains(err.Error(), filepath.Base(root)) {
				t.Errorf("%q: the error tells a physical path: %v", name, err)
			}
		}
		if werr == nil {
			if err := fsys.Remove(name); err != nil && !strings.Contains(name, "/") {
				t.Errorf("%q was written and can't be removed: %v", name, err)
			}
		}
		for dir, n := range map[string]int{".": 3, "in": 0, "logs": 0, "out/private": 0, "out/logs": 0} {
			if left, err := os.ReadDir(filepath.Join(root, dir)); err != nil || len(left) != n {
				t.Fatalf("%q was written where it must not be: %v, %v", name, left, err)
			}
		}
		for _, left := range must(os.ReadDir(filepath.Join(root, "out"))) {
			if name := left.Name(); left.Type()&fs.ModeSymlink == 0 && name != "private" && name != "logs" {
				if err := os.RemoveAll(filepath.Join(root, "out", name)); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
