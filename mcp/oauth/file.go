package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
)

// keyFile is the key of a folder of tokens whose owner gave none.
const keyFile = "tokens.key"

// files keeps each record in a sealed file of its own, so that two processes never
// write over each other's servers.
type files struct {
	dir string
	key sealed.Key
}

// newFiles is the store in a folder; an empty key is the folder's own.
func newFiles(dir string, key secret.Value) *files {
	if key.IsZero() {
		return &files{dir, sealed.KeyFile(filepath.Join(dir, keyFile))}
	}
	return &files{dir, sealed.Given("the key given", key)}
}

func (f *files) String() string { return "encrypted files in " + filepath.Join(f.dir, "tokens") }

// ready reports why there can be no files.
func (f *files) ready() error {
	if f.dir == "" {
		return errors.New("there is no folder for it: neither XDG_CONFIG_HOME nor HOME is set")
	}
	return nil
}

func (f *files) path(url string) string {
	sum := sha256.Sum256([]byte(url))
	return filepath.Join(f.dir, "tokens", hex.EncodeToString(sum[:16])+".age")
}

func (f *files) file(url string) sealed.File { return sealed.File{Path: f.path(url), Key: f.key} }

func (f *files) Load(ctx context.Context, url string) (Record, bool, error) {
	if err := f.ready(); err != nil {
		return Record{}, false, err
	}
	data, err := f.file(url).Read(ctx)
	if err != nil || data == nil {
		return Record{}, false, err
	}
	r, err := decode(data, url)
	if err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w", f.path(url), err)
	}
	return r, true, nil
}

// Save implements [Store]. A file that can't be read any more is replaced: a login
// is what mends it.
func (f *files) Save(ctx context.Context, r Record) error {
	if err := f.ready(); err != nil {
		return err
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	return f.file(r.URL).Write(ctx, data)
}

func (f *files) Delete(_ context.Context, url string) (bool, error) {
	if err := f.ready(); err != nil {
		return false, err
	}
	return f.file(url).Remove()
}

// Lock implements [Locker].
func (f *files) Lock(ctx context.Context, url string) (unlock func(), err error) {
	if err := f.ready(); err != nil {
		return nil, err
	}
	return f.file(url).Lock(ctx)
}
