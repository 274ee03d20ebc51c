package sealed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"filippo.io/age"

	"crewhost/config/secret"
)

// A Key says where the age identity is that seals files. Implementations are safe
// for concurrent use; their errors hold no secret.
type Key interface {
	// Identity returns the key. Where there is none, it is made if create is set;
	// else, or where none can be made, the error is an [*NoKeyError].
	Identity(ctx context.Context, create bool) (*age.X25519Identity, error)
	// String says where the key is: "the keyring".
	String() string
}

// NoKeyError says that there is no key.
type NoKeyError struct {
	Where string // it was looked for
	Hint  string // what to do, or empty
}

// Error is one line.
func (e *NoKeyError) Error() string {
	s := "there is no key in " + e.Where
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Given is a key that somebody has put somewhere, such as a variable; where says
// what that is. It is never made.
func Given(where string, value secret.Value) Key { return given{where, value} }

type given struct {
	where string
	value secret.Value
}

func (g given) String() string { return g.where }

func (g given) Identity(context.Context, bool) (*age.X25519Identity, error) {
	if g.value.IsZero() {
		return nil, &NoKeyError{g.where, "set it to an age identity (AGE-SECRET-KEY-1…), as age-keygen makes them"}
	}
	return parse(g.value.Reveal(), g.where)
}

// KeyFile is a key in a file of its own, which nobody but its owner may read.
func KeyFile(path string) Key { return keyFile(path) }

type keyFile string

func (k keyFile) String() string { return string(k) }

func (k keyFile) Identity(_ context.Context, create bool) (*age.X25519Identity, error) {
	path := string(k)
	id, err := k.read()
	switch {
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return id, err
	case !create:
		return nil, &NoKeyError{Where: path}
	}
	id, err = age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
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
		return nil, fmt.Errorf("making the key %s: %w", path, err)
	}
	return k.read()
}

// maxKey is the most that a file of a key is read of; age-keygen writes comments.
const maxKey = 16 << 10

func (k keyFile) read() (*age.X25519Identity, error) {
	info, err := os.Stat(string(k))
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular(), info.Size() > maxKey:
		return nil, fmt.Errorf("%s holds no age identity", string(k))
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may read the key %s: chmod 600", string(k))
	}
	data, err := os.ReadFile(string(k))
	if err != nil {
		return nil, err
	}
	return parse(string(data), string(k))
}

// parse reads an age identity, as age-keygen writes it: comments may be around it.
func parse(text, where string) (*age.X25519Identity, error) {
	var found *age.X25519Identity
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, err := age.ParseX25519Identity(line)
		if err != nil || found != nil {
			// Which of them would be meant is anybody's guess.
			return nil, fmt.Errorf("%s holds no age identity (one line, AGE-SECRET-KEY-1…)", where)
		}
		found = id
	}
	if found == nil {
		return nil, fmt.Errorf("%s holds no age identity (one line, AGE-SECRET-KEY-1…)", where)
	}
	return found, nil
}

// InKeyring is a key in the keyring, under a name.
func InKeyring(ring Ring, name string) Key { return ringKey{ring, name} }

type ringKey struct {
	ring Ring
	name string
}

func (k ringKey) String() string { return "the keyring" }

func (k ringKey) Identity(ctx context.Context, create bool) (*age.X25519Identity, error) {
	v, ok, err := k.ring.Get(ctx, k.name)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return parse(v.Reveal(), k.String())
	case !create:
		return nil, &NoKeyError{Where: k.String()}
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, err
	}
	if err := k.ring.Set(ctx, k.name, secret.New(id.String())); err != nil {
		return nil, err
	}
	// A keyring that says yes and keeps nothing would lose all that is sealed.
	if v, ok, err = k.ring.Get(ctx, k.name); err != nil || !ok {
		return nil, errors.Join(errors.New("the keyring does not keep the key that was put there"), err)
	}
	return parse(v.Reveal(), k.String())
}

// Auto is the key of a file if it is there, else the one in the keyring. Where
// there is neither, one is made in the keyring, or in the file if the keyring is of
// no use. So the key that a file was sealed with stays the one that is found,
// though the keyring comes and goes.
func Auto(ring Ring, name, path string) Key {
	return auto{file: keyFile(path), ring: ringKey{ring, name}}
}

type auto struct {
	file keyFile
	ring ringKey
}

func (a auto) String() string { return a.ring.String() + " or " + a.file.String() }

func (a auto) Identity(ctx context.Context, create bool) (*age.X25519Identity, error) {
	id, err := a.file.Identity(ctx, false)
	if !errors.As(err, new(*NoKeyError)) {
		return id, err
	}
	id, err = a.ring.Identity(ctx, create)
	switch {
	case errors.As(err, new(*RingError)) && create:
		return a.file.Identity(ctx, true)
	case errors.As(err, new(*NoKeyError)):
		return nil, &NoKeyError{Where: a.String()}
	case errors.As(err, new(*RingError)):
		return nil, fmt.Errorf("%w, and there is no key in %s", err, a.file)
	}
	return id, err
}
