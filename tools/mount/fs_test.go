package mount_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools/mount"
)

// world is a host folder with some content, and mounts of it:
//
//	/in   ro    in/a.txt, in/sub/b.txt
//	/out  rw    out/private is ro, out/private/open is rw, out/keep is rwnd
//	/out/logs ro   another folder, over out/logs
//
// outside.txt lies beside the mounted folders.
func world(t *testing.T) (fsys *mount.FS, root string) {
	t.Helper()
	root = t.TempDir()
	for name, content := range map[string]string{
		"outside.txt": "secret", "in/a.txt": "alpha", "in/sub/b.txt": "beta", "out/old.txt": "old",
		"out/private/p.txt": "private", "out/private/open/o.txt": "open", "out/keep/k.txt": "keep",
		"out/logs/hidden.txt": "hidden", "logs/l.txt": "log",
	} {
		p := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, root, "in:/in:ro", "out:/out:rw;private:ro;private/open:rw;keep:rwnd", "logs:/out/logs:ro"), root
}

func open(t *testing.T, root string, specs ...string) *mount.FS {
	t.Helper()
	var ms []mount.Mount
	for _, s := range specs {
		m, err := mount.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, m.In(root))
	}
	fsys, err := mount.Open(ms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(fsys.Close(), fsys.Close()); err != nil {
			t.Errorf("closing twice: %v", err)
		}
	})
	return fsys
}

func link(t *testing.T, root, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
}

// read reads a file and holds the error, if any, to its contract.
func read(t *testing.T, fsys *mount.FS, root, name string) (string, error) {
	t.Helper()
	data, err := fsys.ReadFile(name, 1<<20)
	checkError(t, root, err)
	return string(data), err
}

func checkError(t *testing.T, root string, err error) {
	t.Helper()
	if err == nil {
		return
	}
	var pe *fs.PathError
	if !errors.As(err, &pe) {
		t.Errorf("%v is a %T, want a *fs.PathError", err, err)
	}
	if strings.Contains(err.Error(), root) || strings.Contains(err.Error(), filepath.Base(filepath.Dir(root))+string(filepath.Separator)) {
		t.Errorf("the error tells a physical path: %v", err)
	}
}

func TestReadThroughMounts(t *testing.T) {
	fsys, root := world(t)
	for name, want := range map[string]string{
		"/in/a.txt":                  "alpha",
		"/in//sub/./b.txt":           "beta",
		"/in/sub/../a.txt":           "alpha",
		"/out/../in/a.txt":           "alpha", // cleaned first
		"/out/logs/l.txt":            "log",   // the longest mount
		"/out/private/p.txt":         "private",
		"old.txt":                    "old", // the only mount that can be written to
		"private/../old.txt":         "old",
		"../in/a.txt":                "alpha",
		"/../../in/a.txt":            "alpha",
		"/out/nothing/../keep/k.txt": "keep",
	} {
		if got, err := read(t, fsys, root, name); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	fsys, root := world(t)
	for name, want := range map[string]error{
		"/in/none.txt":                    fs.ErrNotExist,
		"/in/a.txt/x":                     fs.ErrNotExist,
		"/outside.txt":                    fs.ErrNotExist,
		"/in/../outside.txt":              fs.ErrNotExist,
		"/in/../../outside.txt":           fs.ErrNotExist,
		"/in2/a.txt":                      fs.ErrNotExist,
		"/out/logs/hidden.txt":            fs.ErrNotExist, // covered by a mount
		"/etc/passwd":                     fs.ErrNotExist,
		root + "/in/a.txt":                fs.ErrNotExist,
		"":                                fs.ErrInvalid,
		"/in/a\x00.txt":                   fs.ErrInvalid,
		`/in\a.txt`:                       fs.ErrInvalid,
		`..\outside.txt`:                  fs.ErrInvalid,
		"/in/\xff":                        fs.ErrInvalid,
		"/in/" + strings.Repeat("x", 300): fs.ErrInvalid,
		"/in/" + strings.Repeat("x/", 3000) + "y": fs.ErrInvalid,
		"/in":     mount.ErrNotRegular,
		"/in/sub": mount.ErrNotRegular,
		"/":       mount.ErrNotRegular,
	} {
		_, err := fsys.ReadFile(name, 1<<20)
		if !errors.Is(err, want) {
			t.Errorf("%.60q: got %v, want %v", name, err, want)
		}
		if !strings.Contains(name, root) {
			checkError(t, root, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\x00\n") || len(err.Error()) > 500) {
			t.Errorf("%.60q: the error is no short line: %.600q", name, err)
		}
	}
}

func TestReadLimit(t *testing.T) {
	fsys, _ := world(t)
	if got, err := fsys.ReadFile("/in/a.txt", 5); err != nil || string(got) != "alpha" {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	if got, err := fsys.ReadFile("/in/a.txt", 4); !errors.Is(err, mount.ErrTooLarge) || got != nil {
		t.Errorf("beyond the limit: %q, %v", got, err)
	}
}

func TestRights(t *testing.T) {
	fsys, root := world(t)
	for _, tt := range []struct {
		name          string
		write, remove bool
	}{
		{"/out/new.txt", true, true},
		{"/out/old.txt", true, true},
		{"/out/private/p.txt", false, false},
		{"/out/private/new.txt", false, false},
		{"/out/private/../private/p.txt", false, false},
		{"/out/private/open/o.txt", true, true},
		{"/out/privateer.txt", true, true}, // not below private
		{"/out/keep/k.txt", true, false},
		{"/out/keep/new.txt", true, false},
		{"/out/logs/l.txt", false, false},
		{"/in/a.txt", false, false},
		{"relative.txt", true, true},
		{"/nowhere/x.txt", false, false},
	} {
		for op, act := range map[string]func(string, []byte) error{"write": fsys.WriteFile, "append": fsys.Append} {
			err := act(tt.name, []byte("new"))
			checkError(t, root, err)
			if (err == nil) != tt.write {
				t.Errorf("%s %s: %v, want it to work: %t", op, tt.name, err, tt.write)
			}
			if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s %s: %v", op, tt.name, err)
			}
		}
		if tt.write {
			if got, _ := read(t, fsys, root, tt.name); got != "newnew" && got != "new" {
				t.Errorf("%s holds %q", tt.name, got)
			}
		}
		err := fsys.Remove(tt.name)
		checkError(t, root, err)
		if (err == nil) != tt.remove {
			t.Errorf("remove %s: %v, want it to work: %t", tt.name, err, tt.remove)
		}
	}
	for _, name := range []string{"/out", "/in", "/", "/out/logs"} {
		if err := fsys.Remove(name); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("removing %s: %v", name, err)
		}
	}
}

func TestMkdirAllAsksRightsOfEveryNewFolder(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	fsys := open(t, root, "d:/d:ro;w:rw;a/b:rw")
	for name, ok := range map[string]bool{"/d": true, "/": true, "/d/w/x/y": true, "/d/x": false, "/d/a/b": false, "/e/x": false} {
		err := fsys.MkdirAll(name)
		checkError(t, root, err)
		if (err == nil) != ok {
			t.Errorf("%s: %v, want it to work: %t", name, err, ok)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "d/a")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a folder was created where nothing may be written")
	}
	if err := os.WriteFile(filepath.Join(root, "d/w/f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fsys.MkdirAll("/d/w/f"); err == nil {
		t.Error("a file passed for a folder")
	}
}

func TestWriteFileReplacesAtOnce(t *testing.T) {
	fsys, root := world(t)
	old, fresh := bytes.Repeat([]byte("a"), 1<<16), bytes.Repeat([]byte("b"), 1<<16)
	if err := fsys.WriteFile("/out/x", old); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			data, err := fsys.ReadFile("/out/x", 1<<20)
			if err != nil || !bytes.Equal(data, old) && !bytes.Equal(data, fresh) {
				t.Errorf("a reader saw %d bytes, %v", len(data), err)
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for i := range 20 {
		data := old
		if i%2 == 0 {
			data = fresh
		}
		if err := fsys.WriteFile("/out/x", data); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	left, err := filepath.Glob(filepath.Join(root, "out", ".crewhost-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestWriteFileKeepsModeAndRespectsProtection(t *testing.T) {
	fsys, root := world(t)
	file := filepath.Join(root, "out/old.txt")
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := fsys.WriteFile("/out/old.txt", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o440); err != nil {
		t.Fatal(err)
	}
	for op, act := range map[string]func(string, []byte) error{"write": fsys.WriteFile, "append": fsys.Append} {
		if err := act("/out/old.txt", []byte("y")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s to a protected file: %v", op, err)
		}
	}
	err := fsys.WriteFile("/out/none/x.txt", nil)
	checkError(t, root, err)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("writing into a folder that is missing: %v", err)
	}
}

func TestReadDirAndStat(t *testing.T) {
	fsys, root := world(t)
	link(t, root, "sub", "in/link")
	for name, want := range map[string][]string{
		"/":           {"in/", "out/"},
		"/in":         {"a.txt", "link@", "sub/"},
		"/in/link":    {"b.txt"},
		"/out":        {"keep/", "logs/", "old.txt", "private/"},
		"/out/logs":   {"l.txt"},
		"private":     {"open/", "p.txt"},
		"/in/sub/../": {"a.txt", "link@", "sub/"},
	} {
		entries, err := fsys.ReadDir(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var got []string
		for _, e := range entries {
			switch {
			case e.IsDir():
				got = append(got, e.Name+"/")
			case e.Type&fs.ModeSymlink != 0:
				got = append(got, e.Name+"@")
			default:
				got = append(got, e.Name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, name := range []string{"/in/a.txt", "/none", "/in/none"} {
		_, err := fsys.ReadDir(name)
		checkError(t, root, err)
		if err == nil {
			t.Errorf("%s was listed", name)
		}
	}
	info, err := fsys.Stat("/in/link/b.txt")
	if err != nil || info.Path != "/in/sub/b.txt" || info.Size != 4 || info.IsDir() || info.Rights != mount.ReadOnly {
		t.Errorf("got %+v, %v", info, err)
	}
	if info, err := fsys.Stat("/"); err != nil || !info.IsDir() {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := fsys.Stat("/in/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestBase(t *testing.T) {
	root := t.TempDir()
	for _, d := range []string{"a", "b", "c"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for want, specs := range map[string][]string{
		"/b": {"a:/a:ro", "b:/b:rwnd", "c:/c:ro"},
		"/a": {"a:/a:ro"},
		"":   {"a:/a:rw", "b:/b:rw"},
	} {
		fsys := open(t, root, specs...)
		if got := fsys.Base(); got != want {
			t.Errorf("%v: base %q, want %q", specs, got, want)
		}
		if want != "" {
			continue
		}
		err := fsys.WriteFile("x.txt", nil)
		if !errors.Is(err, fs.ErrInvalid) || !strings.Contains(err.Error(), "/a, /b") {
			t.Errorf("a relative path: %v, want an error that names the mounts", err)
		}
	}
}

func TestNoMounts(t *testing.T) {
	empty, err := mount.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	var none *mount.FS
	for _, fsys := range []*mount.FS{none, empty} {
		for _, name := range []string{"/", "/x", "x", ""} {
			if _, err := fsys.Open(name); err == nil || name != "" && !strings.Contains(err.Error(), "nothing is mounted") {
				t.Errorf("open %q: %v", name, err)
			}
			if _, err := fsys.ReadDir(name); err == nil {
				t.Errorf("readdir %q worked", name)
			}
			for _, err := range []error{fsys.WriteFile(name, nil), fsys.Append(name, nil), fsys.MkdirAll(name), fsys.Remove(name)} {
				if err == nil {
					t.Errorf("changing %q worked", name)
				}
			}
		}
		if fsys.Mounts() != nil || fsys.Base() != "" || fsys.Close() != nil {
			t.Error("an empty file system has something")
		}
	}
}

func TestOpenNamesEveryProblem(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := mount.Open([]mount.Mount{
		{Physical: root, Virtual: "/a", Rights: mount.ReadOnly},
		{Physical: root, Virtual: "/a", Rights: mount.ReadWrite},
		{Physical: filepath.Join(root, "missing"), Virtual: "/b", Rights: mount.ReadOnly},
		{Physical: filepath.Join(root, "file"), Virtual: "/c", Rights: mount.ReadOnly},
		{Physical: root, Virtual: "/crew", Rights: mount.ReadOnly},
		{Physical: root, Virtual: "/d"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"/a is mounted twice", `missing" does not exist`, `file" is not a folder`, "/crew is reserved", "none of ro, rw and rwnd"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
}

func TestMountsTellNoFolder(t *testing.T) {
	fsys, _ := world(t)
	want := []mount.Mount{
		{Virtual: "/in", Rights: mount.ReadOnly},
		{Virtual: "/out", Rights: mount.ReadWrite, Subs: []mount.Sub{
			{Path: "private", Rights: mount.ReadOnly}, {Path: "private/open", Rights: mount.ReadWrite}, {Path: "keep", Rights: mount.NoDelete}}},
		{Virtual: "/out/logs", Rights: mount.ReadOnly},
	}
	if diff := cmp.Diff(want, fsys.Mounts()); diff != "" {
		t.Error(diff)
	}
}

func TestOpenFileReads(t *testing.T) {
	fsys, root := world(t)
	f, err := fsys.Open("sub/../old.txt")
	if err != nil {
		t.Fatal(err)
	}
	if f.Info().Path != "/out/old.txt" || f.Info().Size != 3 {
		t.Errorf("got %+v", f.Info())
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "old" {
		t.Errorf("got %q, %v", data, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	_, err = f.Read(make([]byte, 1))
	checkError(t, root, err)
	if !errors.Is(err, fs.ErrClosed) {
		t.Errorf("reading a closed file: %v", err)
	}
}

// CanWrite says beforehand what WriteFile would say, and leaves nothing behind.
func TestCanWrite(t *testing.T) {
	dir := t.TempDir()
	fsys, err := mount.Open([]mount.Mount{
		{Physical: dir, Virtual: "/out", Rights: mount.ReadWrite, Subs: []mount.Sub{{Path: "kept", Rights: mount.ReadOnly}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for name, ok := range map[string]bool{
		"/out/a/b/c.md": true, "c.md": true, "/out/kept/c.md": false, "/elsewhere/c.md": false, "/out": false,
	} {
		if err := fsys.CanWrite(name); (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
