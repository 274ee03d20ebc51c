package sealed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"
)

// maxBytes is the most that a file may hold, sealed or not.
const maxBytes = 4 << 20

// A File is a sealed file. It is safe for concurrent use.
type File struct {
	// Path is where the file is. Its folder is made when it is first written.
	Path string
	// Key opens it.
	Key Key
}

// Read returns what the file holds, and nil where there is no file.
func (f File) Read(ctx context.Context) ([]byte, error) {
	file, err := os.Open(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxBytes:
		return nil, fmt.Errorf("reading %s: it has more than %d bytes", f.Path, maxBytes)
	}
	id, err := f.Key.Identity(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Path, err)
	}
	// Why it can't be decrypted is age's to say and of no use to anybody; damage
	// and a wrong key are not told apart.
	opened, err := age.Decrypt(bytes.NewReader(data), id)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Path, ErrDamaged)
	}
	plain, err := io.ReadAll(opened)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.Path, ErrDamaged)
	}
	return plain, nil
}

// ErrDamaged says that a file can't be decrypted: it is damaged, or was sealed with
// another key.
var ErrDamaged = errors.New("it can't be decrypted with this key")

// Write replaces the file, or makes it. Two who write at once write over each
// other; see [File.Update].
func (f File) Write(ctx context.Context, plain []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	id, err := f.Key.Identity(ctx, true)
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	var data bytes.Buffer
	w, err := age.Encrypt(&data, id.Recipient())
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	if _, err := w.Write(plain); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", f.Path, err)
	}
	if data.Len() > maxBytes {
		return fmt.Errorf("writing %s: it would have more than %d bytes", f.Path, maxBytes)
	}
	return replace(f.Path, data.Bytes())
}

// Update replaces what the file holds by what change makes of it, while nobody else
// does so; old is nil where there is no file. Where change returns nil, nothing is
// written. A file that can't be read is left as it is.
func (f File) Update(ctx context.Context, change func(old []byte) ([]byte, error)) error {
	unlock, err := f.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := f.Read(ctx)
	if err != nil {
		return err
	}
	changed, err := change(old)
	if err != nil || changed == nil {
		return err
	}
	return f.Write(ctx, changed)
}

// Remove removes the file; ok is false where there was none.
func (f File) Remove() (ok bool, err error) {
	err = os.Remove(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
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
