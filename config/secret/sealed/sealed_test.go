package sealed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	"github.com/zalando/go-keyring"

	"crewhost/config/secret"
)

// writerVariable makes the test binary a process that adds to a file.
const writerVariable = "SEALED_TEST_WRITER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerVariable); dir != "" {
		if err := addTimes(context.Background(), dir, 10); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	keyring.MockInit() // the keyring of nobody
	os.Exit(m.Run())
}

func fileIn(dir string) File {
	return File{Path: filepath.Join(dir, "deep", "f.age"), Key: KeyFile(filepath.Join(dir, "f.key"))}
}

// addTimes adds a byte to a file n times.
func addTimes(ctx context.Context, dir string, n int) error {
	for range n {
		err := fileIn(dir).Update(ctx, func(old []byte) ([]byte, error) { return append(old, '.'), nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// TestFile: what is written is read, by nobody else; nothing is left beside it.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	f := fileIn(dir)
	if data, err := f.Read(t.Context()); data != nil || err != nil {
		t.Fatal(data, err)
	}
	for _, text := range []string{"canary-one", "canary-two"} {
		if err := f.Write(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if data, err := f.Read(t.Context()); string(data) != text || err != nil {
			t.Fatalf("%s, %v", data, err)
		}
	}
	raw, err := os.ReadFile(f.Path)
	if err != nil || strings.Contains(string(raw), "canary") {
		t.Error(err, string(raw))
	}
	for _, path := range []string{f.Path, filepath.Dir(f.Path), filepath.Join(dir, "f.key")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", ".new-*")); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
	for _, want := range []bool{true, false} {
		if ok, err := f.Remove(); ok != want || err != nil {
			t.Error(ok, err)
		}
	}
}

// TestDamage: a file that can't be read is an error that names it and shows nothing
// of it, and an update leaves it as it is.
func TestDamage(t *testing.T) {
	f := fileIn(t.TempDir())
	if err := f.Write(t.Context(), []byte("canary")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	torn := string(whole[:len(whole)-3])
	flipped := string(whole[:len(whole)-1]) + string(whole[len(whole)-1]^1)
	for name, c := range map[string]struct {
		text string
		key  Key
	}{
		"torn": {torn, f.Key}, "flipped": {flipped, f.Key}, "empty": {"", f.Key}, "noise": {"canary-noise", f.Key},
		"large":     {strings.Repeat("x", maxBytes+1), f.Key},
		"other key": {string(whole), Given("K", secret.New(other.String()))},
		"no key":    {string(whole), Given("K", secret.Value{})},
		"key gone":  {string(whole), KeyFile(f.Path + ".gone")},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(f.Path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			g := File{f.Path, c.key}
			_, err := g.Read(t.Context())
			if err == nil || !strings.Contains(err.Error(), f.Path) || strings.Contains(err.Error(), "canary") {
				t.Error(err)
			}
			err = g.Update(t.Context(), func([]byte) ([]byte, error) { return []byte("new"), nil })
			if err == nil {
				t.Error("it was replaced")
			}
			if left, err := os.ReadFile(f.Path); string(left) != c.text || err != nil {
				t.Error("it is not what it was", err)
			}
			if _, err := os.Stat(f.Path + ".gone"); err == nil {
				t.Error("a key was made for a file that it can't open")
			}
		})
	}
	if err := fileIn(t.TempDir()).Write(t.Context(), make([]byte, maxBytes)); err == nil {
		t.Error("more was written than is read")
	}
}

// TestUpdate: where nothing is to be changed, or it fails, nothing is written.
func TestUpdate(t *testing.T) {
	f := fileIn(t.TempDir())
	boom := errors.New("boom")
	for _, want := range []error{nil, boom} {
		err := f.Update(t.Context(), func(old []byte) ([]byte, error) {
			if old != nil {
				t.Error(old)
			}
			return nil, want
		})
		if !errors.Is(err, want) {
			t.Error(err)
		}
	}
	if _, err := os.Stat(f.Path); err == nil {
		t.Error("a file was written")
	}
}

// TestWriters: of many who write at once, here and in other processes, none loses
// what another wrote, and all agree on one key.
func TestWriters(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if err := addTimes(t.Context(), dir, 10); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), writerVariable+"="+dir, "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	all.Wait()
	if data, err := fileIn(dir).Read(t.Context()); len(data) != 60 || err != nil {
		t.Errorf("%d bytes of 60, %v", len(data), err)
	}
}

// TestLockIsGivenUp: who waits for a lock waits no longer than its context.
func TestLockIsGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	unlock, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
	unlock()
	again, err := Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestKeys: where keys come from, and what is said of those that are none.
func TestKeys(t *testing.T) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain": id.String(), "of age-keygen": "# created: now\n# public key: age1…\n" + id.String() + "\n\n",
	} {
		got, err := Given("$K", secret.New(text)).Identity(t.Context(), false)
		if err != nil || got.String() != id.String() {
			t.Error(name, err)
		}
	}
	for name, text := range map[string]string{
		"a password": "canary-Xq9", "two": id.String() + "\n" + id.String(), "a comment": "# canary", "a recipient": id.Recipient().String(),
	} {
		_, err := Given("$K", secret.New(text)).Identity(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), "$K") || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), text) {
			t.Error(name, err)
		}
	}
	var none *NoKeyError
	if _, err := Given("$K", secret.Value{}).Identity(t.Context(), true); !errors.As(err, &none) || !strings.Contains(err.Error(), "age-keygen") {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "k")
	if _, err := KeyFile(path).Identity(t.Context(), false); !errors.As(err, &none) {
		t.Error(err)
	}
	made, err := KeyFile(path).Identity(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := KeyFile(path).Identity(t.Context(), true); err != nil || again.String() != made.String() {
		t.Error("another key", err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o640); err != nil {
			t.Fatal(err)
		}
		if _, err := KeyFile(path).Identity(t.Context(), true); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Error(err)
		}
	}
	if _, err := KeyFile(t.TempDir()).Identity(t.Context(), true); err == nil {
		t.Error("a folder is a key")
	}
}

// TestAuto: the keyring where there is one, else a file; and the key that was made
// first stays the one that is used, though the keyring comes and goes.
func TestAuto(t *testing.T) {
	defer keyring.MockInit()
	key := func(t *testing.T, k Key, create bool) string {
		t.Helper()
		id, err := k.Identity(t.Context(), create)
		if err != nil {
			t.Fatal(err)
		}
		return id.String()
	}
	ring := Ring{"crewhost-test"}
	t.Run("keyring", func(t *testing.T) {
		keyring.MockInit()
		path := filepath.Join(t.TempDir(), "k")
		k := Auto(ring, "vault", path)
		if _, err := k.Identity(t.Context(), false); !errors.As(err, new(*NoKeyError)) {
			t.Error(err)
		}
		made := key(t, k, true)
		if key(t, k, false) != made || key(t, InKeyring(ring, "vault"), false) != made {
			t.Error("not the key in the keyring")
		}
		if _, err := os.Stat(path); err == nil {
			t.Error("a file was made beside the keyring")
		}
		keyring.MockInitWithError(errors.New("locked"))
		if _, err := k.Identity(t.Context(), false); !errors.As(err, new(*RingError)) || !strings.Contains(err.Error(), path) {
			t.Error(err)
		}
	})
	t.Run("file", func(t *testing.T) {
		keyring.MockInitWithError(errors.New("no bus"))
		k := Auto(ring, "vault", filepath.Join(t.TempDir(), "k"))
		made := key(t, k, true)
		keyring.MockInit()
		if key(t, k, true) != made {
			t.Error("another key, now that there is a keyring")
		}
	})
	t.Run("noise", func(t *testing.T) {
		keyring.MockInit()
		if err := ring.Set(t.Context(), "vault", secret.New("canary")); err != nil {
			t.Fatal(err)
		}
		k := Auto(ring, "vault", filepath.Join(t.TempDir(), "k"))
		if _, err := k.Identity(t.Context(), true); err == nil || strings.Contains(err.Error(), "canary") {
			t.Error(err)
		}
	})
}
