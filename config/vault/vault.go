package vault

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
)

// Config is what a [Vault] is made of.
type Config struct {
	// File is where the vault is; there may be none yet.
	File string
	// Key opens it.
	Key sealed.Key
	// Redactor gets to know every value that is read or written. Nil: none does.
	Redactor *secret.Redactor
	// Now tells the time; nil is [time.Now].
	Now func() time.Time
}

// A Vault keeps credentials in a sealed file. It is safe for concurrent use, also
// by several processes. A nil Vault is empty.
type Vault struct {
	file     sealed.File
	redactor *secret.Redactor
	now      func() time.Time

	mu   sync.Mutex // held while reading, and over what follows
	seen fs.FileInfo
	read []Credential // of the file as it was seen
}

// New makes a vault. Nothing is read or written yet.
func New(cfg Config) *Vault {
	v := &Vault{file: sealed.File{Path: cfg.File, Key: cfg.Key}, redactor: cfg.Redactor, now: cfg.Now}
	if v.now == nil {
		v.now = time.Now
	}
	return v
}

// ErrNowhere says that a vault has no file.
var ErrNowhere = errors.New("there is no place for a vault: set vault.file in the settings, or HOME")

// Path is the file of the vault.
func (v *Vault) Path() string {
	if v == nil {
		return ""
	}
	return v.file.Path
}

// An Entry is what may be seen of a credential.
type Entry struct {
	Name    string
	Kind    string
	URL     string
	Header  string    // of the kind header: its name
	Set     time.Time // when it was put there
	Expiry  time.Time // of an access token; zero where nobody knows
	Renews  bool      // whether it can be renewed
	Missing bool      // the access token, until it is renewed
}

// List returns what may be seen, sorted by URL.
func (v *Vault) List(ctx context.Context) ([]Entry, error) {
	all, err := v.all(ctx)
	entries := make([]Entry, len(all))
	for i, c := range all {
		entries[i] = Entry{
			Name: c.Name, Kind: c.Kind, URL: c.URL, Header: c.Header, Set: c.Set, Expiry: c.Expiry,
			Renews: c.Refresh != nil, Missing: c.Secret.IsZero(),
		}
	}
	return entries, err
}

// Lookup returns the credential for a server; ok is false where there is none.
func (v *Vault) Lookup(ctx context.Context, url string) (c Credential, ok bool, err error) {
	bound, err := Bind(url)
	if err != nil {
		return Credential{}, false, err
	}
	return v.find(ctx, func(c Credential) bool { return c.URL == bound })
}

// Named returns the credential of a name; ok is false where there is none.
func (v *Vault) Named(ctx context.Context, name string) (c Credential, ok bool, err error) {
	return v.find(ctx, func(c Credential) bool { return c.Name == name && name != "" })
}

func (v *Vault) find(ctx context.Context, is func(Credential) bool) (Credential, bool, error) {
	all, err := v.all(ctx)
	if err != nil {
		return Credential{}, false, err
	}
	i := slices.IndexFunc(all, is)
	if i < 0 {
		return Credential{}, false, nil
	}
	return all[i], true, nil
}

func (v *Vault) all(ctx context.Context) ([]Credential, error) {
	if v == nil || v.file.Path == "" {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	// Each request to a server looks here, and files are replaced, never changed.
	now, err := os.Stat(v.file.Path)
	if err == nil && v.seen != nil && os.SameFile(now, v.seen) && now.ModTime().Equal(v.seen.ModTime()) && now.Size() == v.seen.Size() {
		return v.read, nil
	}
	v.seen, v.read = nil, nil
	data, err := v.file.Read(ctx)
	if err != nil || data == nil {
		return nil, err
	}
	all, err := v.decode(data)
	if err == nil && now != nil {
		v.seen, v.read = now, all // older than what was read, at worst: then it is read once more
	}
	return all, err
}

// Set puts a credential in, in place of one for the same server; replaced says
// whether there was one. Its URL is normalised, and the time is now.
func (v *Vault) Set(ctx context.Context, c Credential) (replaced bool, err error) {
	v.know(c)
	bound, err := Bind(c.URL)
	if err != nil {
		return false, err
	}
	if err := checkURL(c.URL); err != nil { // a user is no part of what it is bound to
		return false, fmt.Errorf("the url of the server %w", err)
	}
	c.URL, c.Set = bound, v.now().UTC().Truncate(time.Millisecond)
	if err := c.check(); err != nil {
		return false, err
	}
	err = v.change(ctx, func(all []Credential) ([]Credential, error) {
		for _, other := range all {
			if other.Name == c.Name && c.Name != "" && other.URL != c.URL {
				return nil, fmt.Errorf("the name %q is that of the credential for %s", c.Name, other.URL)
			}
		}
		if i := slices.IndexFunc(all, func(o Credential) bool { return o.URL == c.URL }); i >= 0 {
			replaced = true
			if c.Name == "" {
				c.Name = all[i].Name
			}
			all[i] = c
			return all, nil
		}
		return append(all, c), nil
	})
	return replaced && err == nil, err
}

// Delete forgets the credential for a server, or of a name; ok is false where there
// is none.
func (v *Vault) Delete(ctx context.Context, urlOrName string) (ok bool, err error) {
	bound, err := Bind(urlOrName)
	if err != nil {
		bound = ""
	}
	err = v.change(ctx, func(all []Credential) ([]Credential, error) {
		kept := slices.DeleteFunc(slices.Clone(all), func(c Credential) bool {
			return c.URL == bound || c.Name == urlOrName && c.Name != ""
		})
		if ok = len(kept) < len(all); !ok {
			return nil, nil
		}
		return kept, nil
	})
	return ok && err == nil, err
}

// ErrGone says that a credential that was to be renewed is no longer there, or is
// another.
var ErrGone = errors.New("the vault has no such credential any more")

// Renew keeps what the renewal of an mcp_oauth credential gave: its tokens, expiry
// and scopes. All else stays, the time that it was set included, by which it is told
// apart from another that somebody has put in its place meanwhile.
func (v *Vault) Renew(ctx context.Context, c Credential) error {
	v.know(c)
	bound, err := Bind(c.URL)
	if err != nil {
		return err
	}
	return v.change(ctx, func(all []Credential) ([]Credential, error) {
		i := slices.IndexFunc(all, func(o Credential) bool {
			return o.URL == bound && o.Kind == OAuth && o.Refresh != nil && o.Set.Equal(c.Set)
		})
		if i < 0 || c.Refresh == nil {
			return nil, ErrGone
		}
		now := &all[i]
		refresh := *now.Refresh
		refresh.Token, refresh.Scopes = c.Refresh.Token, c.Refresh.Scopes
		now.Secret, now.Expiry, now.Refresh = c.Secret, c.Expiry, &refresh
		if err := now.check(); err != nil {
			return nil, err
		}
		return all, nil
	})
}

// Lock waits for the right to renew the credential for a server, of which there is
// one for all processes.
func (v *Vault) Lock(ctx context.Context, url string) (unlock func(), err error) {
	bound, err := Bind(url)
	if err != nil {
		return nil, err
	}
	if v == nil || v.file.Path == "" {
		return nil, ErrNowhere
	}
	sum := sha256.Sum256([]byte(bound))
	return sealed.Lock(ctx, v.file.Path+"-"+hex.EncodeToString(sum[:4]))
}

// change replaces the credentials by what f makes of them; nil leaves them.
func (v *Vault) change(ctx context.Context, f func([]Credential) ([]Credential, error)) error {
	if v == nil || v.file.Path == "" {
		return ErrNowhere
	}
	return v.file.Update(ctx, func(old []byte) ([]byte, error) {
		var all []Credential
		if old != nil {
			var err error
			if all, err = v.decode(old); err != nil {
				return nil, err
			}
		}
		changed, err := f(all)
		if err != nil || changed == nil {
			return nil, err
		}
		slices.SortFunc(changed, func(a, b Credential) int { return cmp.Compare(a.URL, b.URL) })
		return encode(changed)
	})
}

func (v *Vault) know(c Credential) {
	if v != nil && v.redactor != nil {
		v.redactor.Add(c.Secrets()...)
	}
}
