package oauth

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"filippo.io/age"

	"crewhost/config/secret"
)

// keyFile is the key of a folder of tokens whose owner gave none.
const keyFile = "tokens.key"

// files keeps each record in an encrypted file of its own, so that two processes
// never write over each other's servers. Files are replaced whole.
type files struct {
	dir string
	key secret.Value // as given; else the folder's own

	mu sync.Mutex // held while the folder's own key is made
}

func newFiles(dir string, key secret.Value) *files { return &files{dir: dir, key: key} }

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

func (f *files) Load(_ context.Context, url string) (Record, bool, error) {
	if err := f.ready(); err != nil {
		return Record{}, false, err
	}
	sealed, err := os.ReadFile(f.path(url))
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, err
	}
	r, err := f.open(sealed, url)
	if err != nil {
		return Record{}, false, fmt.Errorf("reading %s: %w", f.path(url), err)
	}
	return r, true, nil
}

func (f *files) open(sealed []byte, url string) (Record, error) {
	id, err := f.identity(false)
	if err != nil {
		return Record{}, err
	}
	plain, err := age.Decrypt(bytes.NewReader(sealed), id)
	if err != nil {
		return Record{}, errors.New("it can't be decrypted with this key")
	}
	data, err := io.ReadAll(io.LimitReader(plain, maxAnswer))
	if err != nil {
		return Record{}, errors.New("it can't be decrypted with this key")
	}
	return decode(data, url)
}

func (f *files) Save(_ context.Context, r Record) error {
	if err := f.ready(); err != nil {
		return err
	}
	data, err := encode(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(f.dir, "tokens"), 0o700); err != nil {
		return err
	}
	id, err := f.identity(true)
	if err != nil {
		return err
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, id.Recipient())
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return replace(f.path(r.URL), sealed.Bytes())
}

func (f *files) Delete(_ context.Context, url string) (bool, error) {
	if err := f.ready(); err != nil {
		return false, err
	}
	err := os.Remove(f.path(url))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// identity is the key: the one given, or the folder's own, which is made where
// there is none and one is needed.
func (f *files) identity(create bool) (*age.X25519Identity, error) {
	if !f.key.IsZero() {
		id, err := age.ParseX25519Identity(strings.TrimSpace(f.key.Reveal()))
		if err != nil {
			return nil, errors.New("the key given is no age identity (AGE-SECRET-KEY-1…)")
		}
		return id, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := filepath.Join(f.dir, keyFile)
	id, err := readKey(path)
	if !errors.Is(err, fs.ErrNotExist) || !create {
		return id, err
	}
	id, err = age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	// Made whole under another name first: of two processes, one wins, and
	// both use its key.
	temp, err := scratch(path, []byte(id.String()+"\n"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(temp) }() // the link keeps what it held
	if err := os.Link(temp, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the key of the token files: %w", err)
	}
	return readKey(path)
}

// readKey reads a key that nobody but its owner may read.
func readKey(path string) (*age.X25519Identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read the key %s: chmod 600", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	id, err := age.ParseX25519Identity(strings.TrimSpace(string(data)))
	if err != nil {
		return nil, fmt.Errorf("%s holds no age identity", path)
	}
	return id, nil
}

// replace writes a file whole, or not at all.
func replace(path string, data []byte) error {
	temp, err := scratch(path, data)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return nil
}

// scratch writes data to a new file beside path, for its owner only.
func scratch(path string, data []byte) (string, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".new-*") // with mode 0600
	if err != nil {
		return "", err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}
