package oauth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zalando/go-keyring"

	"crewhost/config"
	"crewhost/config/secret"
)

var revealed = cmp.Comparer(func(a, b secret.Value) bool { return a.Equal(b) })

func example(url string) Record {
	return Record{
		URL: url, Resource: url, Issuer: "https://login", TokenEndpoint: "https://login/token", ClientID: "c",
		ClientSecret: secret.New("s3cret-of-client"), Auth: "post", Access: secret.New("access-of-" + url), Refresh: secret.New("refresh-of-" + url),
		Expiry: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Scopes: []string{"a", "b"},
	}
}

// TestStores: every store keeps a record as it is, by its URL, and forgets it.
func TestStores(t *testing.T) {
	keyring.MockInit() // the keyring of nobody
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	open := func(kind, dir string, key secret.Value) Store {
		s, err := Open(kind, dir, key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, s := range map[string]Store{
		"memory":                 open("", "", secret.Value{}),
		"keyring":                open(StoreKeyring, "", secret.Value{}),
		"files":                  open(StoreFile, t.TempDir(), secret.Value{}),
		"files with a key given": open(StoreFile, t.TempDir(), secret.New(id.String()+"\n")),
		"either":                 open(StoreAuto, t.TempDir(), secret.Value{}),
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if _, ok, err := s.Load(ctx, "https://a"); ok || err != nil {
				t.Fatal(ok, err)
			}
			a, b := example("https://a"), example("https://b")
			for _, r := range []Record{a, b, a} {
				if err := s.Save(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			got, ok, err := s.Load(ctx, "https://a")
			if diff := cmp.Diff(a, got, revealed); !ok || err != nil || diff != "" {
				t.Error(ok, err, diff)
			}
			if ok, err := s.Delete(ctx, "https://a"); !ok || err != nil {
				t.Error(ok, err)
			}
			if ok, err := s.Delete(ctx, "https://a"); ok || err != nil {
				t.Error(ok, err)
			}
			if _, ok, err := s.Load(ctx, "https://b"); !ok || err != nil {
				t.Error(ok, err)
			}
			if _, err := s.Delete(ctx, "https://b"); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := Open("vault", "", secret.Value{}); err == nil {
		t.Error("a store of no kind")
	}
}

// TestFiles: nothing can be read in them, by nobody else, and a file that was
// moved to another server's name is that server's no more.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	f := newFiles(dir, secret.Value{})
	a := example("https://a")
	if err := f.Save(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{f.path("https://a"), filepath.Join(dir, keyFile), filepath.Dir(f.path("https://a"))} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
	}
	sealed, err := os.ReadFile(f.path("https://a"))
	if err != nil || strings.Contains(string(sealed), "access") || strings.Contains(f.path("https://a"), "https") {
		t.Error(err, string(sealed))
	}
	if err := os.WriteFile(f.path("https://b"), sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := f.Load(t.Context(), "https://b"); ok || err == nil || !strings.Contains(err.Error(), "belongs to another server") {
		t.Error(ok, err)
	}
	for name, text := range map[string]string{"torn": string(sealed[:len(sealed)-5]), "empty": "", "noise": "noise"} {
		if err := os.WriteFile(f.path("https://b"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := f.Load(t.Context(), "https://b"); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*", ".new-*")); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(filepath.Join(dir, keyFile), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := f.Load(t.Context(), "https://a"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Error(err)
		}
	}
	if err := newFiles(dir, secret.New("hunter2-Xq9")).Save(t.Context(), a); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
	if err := newFiles("", secret.Value{}).Save(t.Context(), a); err == nil {
		t.Error("files nowhere")
	}
}

// TestOneKey: processes that log in at once for the first time agree on a key.
func TestOneKey(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	for _, url := range []string{"https://a", "https://b", "https://c", "https://d"} {
		all.Go(func() {
			if err := newFiles(dir, secret.Value{}).Save(t.Context(), example(url)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, url := range []string{"https://a", "https://b", "https://c", "https://d"} {
		if _, ok, err := newFiles(dir, secret.Value{}).Load(t.Context(), url); !ok || err != nil {
			t.Error(url, ok, err)
		}
	}
}

// TestNoKeyring: where there is no keyring, files take its place; and with nothing
// but a keyring, that is an error.
func TestNoKeyring(t *testing.T) {
	keyring.MockInitWithError(errors.New("no bus"))
	defer keyring.MockInit()
	s, err := Open(StoreAuto, t.TempDir(), secret.Value{})
	if err != nil {
		t.Fatal(err)
	}
	a := example("https://a")
	if err := s.Save(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	got, ok, err := s.Load(t.Context(), "https://a")
	if diff := cmp.Diff(a, got, revealed, cmpopts.EquateEmpty()); !ok || err != nil || diff != "" {
		t.Error(ok, err, diff)
	}
	if ok, err := s.Delete(t.Context(), "https://a"); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := (keyringStore{nil}).Save(t.Context(), a); err == nil || strings.Contains(err.Error(), a.Access.Reveal()) {
		t.Error(err)
	}
	// A token that the keyring finds too long goes to a file.
	keyring.MockInitWithError(keyring.ErrSetDataTooBig)
	if err := (keyringStore{nil}).Save(t.Context(), a); err == nil || !strings.Contains(err.Error(), "token_store: file") {
		t.Error(err)
	}
	if err := s.Save(t.Context(), a); err != nil {
		t.Error(err)
	}
}

// TestStoreThatFails: a run goes on with tokens that can't be kept, and says so; a
// login does not call itself done.
func TestStoreThatFails(t *testing.T) {
	w := newWorld(t)
	var warned []string
	broken := newFiles("", secret.Value{})
	_, err := w.authorizer(func(c *Config) {
		c.Store, c.Browse, c.Warn = broken, w.browse, func(line string) { warned = append(warned, line) }
	}).Login(t.Context())
	if err == nil || !strings.Contains(err.Error(), "keeping the tokens in") || len(warned) != 1 {
		t.Error(err, warned)
	}
	w.expires = 10
	good := new(Memory)
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = good, w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.expires = 3600
	run := w.authorizer(func(c *Config) {
		c.Store, c.Warn = readOnly{good}, func(line string) { warned = append(warned, line) }
	})
	if got, err := w.post(run); got != "200 hello" || len(warned) != 2 {
		t.Error(got, err, warned)
	}
}

type readOnly struct{ Store }

func (readOnly) Save(context.Context, Record) error { return errors.New("the disk is full") }

// TestTwoProcesses: of two processes whose token has expired, one renews it, and
// the other takes what that gave, though each refresh token is good for one use.
func TestTwoProcesses(t *testing.T) {
	w := newWorld(t)
	w.rotate, w.expires = true, 10 // renewed at each use
	dir := t.TempDir()
	open := func() Store { return newFiles(dir, secret.Value{}) }
	if _, err := w.authorizer(func(c *Config) { c.Store, c.Browse = open(), w.browse }).Login(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.expires = 3600
	var both sync.WaitGroup
	for range 4 {
		a := w.authorizer(func(c *Config) { c.Store, c.Settings = open(), &config.OAuth{} })
		both.Go(func() {
			if got, err := w.post(a); got != "200 hello" {
				t.Error(got, err)
			}
		})
	}
	both.Wait()
	refreshed := 0
	for _, form := range w.tokens {
		if form.Get("grant_type") == "refresh_token" {
			refreshed++
		}
	}
	if refreshed != 1 {
		t.Errorf("renewed %d times", refreshed)
	}
}
