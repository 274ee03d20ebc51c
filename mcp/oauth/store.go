package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"crewhost/config/secret"
)

// A Record is what a login gave: the tokens for one server, and what renews them.
type Record struct {
	URL      string // of the server, normalised: what the tokens are for (A8)
	Resource string // the resource indicator (RFC 8707)

	Issuer        string
	TokenEndpoint string
	ClientID      string
	ClientSecret  secret.Value // of a client that registered itself
	Auth          string       // how the client authenticates itself at the token endpoint

	Access  secret.Value
	Refresh secret.Value
	Expiry  time.Time // zero where the server did not say
	Scopes  []string  // granted, or else asked for
}

// margin is how long before its expiry a token is renewed.
const margin = 30 * time.Second

// fresh reports whether the access token can be used at a time.
func (r Record) fresh(now time.Time) bool {
	return !r.Access.IsZero() && (r.Expiry.IsZero() || now.Add(margin).Before(r.Expiry))
}

// secrets are what a [secret.Redactor] has to know.
func (r Record) secrets() []secret.Value {
	return []secret.Value{r.Access, r.Refresh, r.ClientSecret}
}

// A Store keeps records by the URL of their server. Implementations are safe for
// concurrent use; their errors hold no secret.
type Store interface {
	// Load returns the record of a normalised URL; ok is false where there is none.
	Load(ctx context.Context, url string) (r Record, ok bool, err error)
	// Save keeps a record in place of the one with the same URL.
	Save(ctx context.Context, r Record) error
	// Delete forgets a record; ok is false where there was none.
	Delete(ctx context.Context, url string) (ok bool, err error)
	// String says where the records are: "the keyring".
	String() string
}

// A Locker is a [Store] that other processes use too. While somebody renews the
// record of a server, nobody else does: where each refresh token is good for one
// use, a second process would spend what the first has spent.
type Locker interface {
	// Lock waits for the right to renew the record of a normalised URL.
	Lock(ctx context.Context, url string) (unlock func(), err error)
}

// The kinds of store, as the settings name them.
const (
	StoreAuto    = "auto"    // the keyring, and files where it can't be used
	StoreKeyring = "keyring" // of the operating system
	StoreFile    = "file"    // encrypted files in the user's configuration folder
	StoreMemory  = "memory"  // as long as the process lives
)

// Open returns the store of a kind; an empty kind is memory. Nothing is read or
// written before it is used. Dir is the folder of the encrypted files, and key what
// encrypts them, an age identity ("AGE-SECRET-KEY-1…"); where it is empty, the
// first record makes a key and keeps it in the folder, readable by its owner only.
func Open(kind, dir string, key secret.Value) (Store, error) {
	switch kind {
	case "", StoreMemory:
		return new(Memory), nil
	case StoreKeyring:
		return keyringStore{newFiles(dir, key)}, nil
	case StoreFile:
		return newFiles(dir, key), nil
	case StoreAuto:
		files := newFiles(dir, key)
		return either{keyringStore{files}, files}, nil
	}
	return nil, fmt.Errorf("the token store %q is not known: auto, keyring, file or memory", kind)
}

// Memory is a [Store] that lives as long as the process. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	records map[string]Record
}

// Load implements [Store].
func (m *Memory) Load(_ context.Context, url string) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.records[url]
	return r, ok, nil
}

// Save implements [Store].
func (m *Memory) Save(_ context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.records == nil {
		m.records = make(map[string]Record)
	}
	m.records[r.URL] = r
	return nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, url string) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.records[url]
	delete(m.records, url)
	return ok, nil
}

func (m *Memory) String() string { return "the memory of this process" }

// either keeps records in the first store that takes them.
type either struct{ first, second Store }

func (e either) Load(ctx context.Context, url string) (Record, bool, error) {
	r, ok, err := e.first.Load(ctx, url)
	if err == nil && ok {
		return r, true, nil
	}
	return e.second.Load(ctx, url)
}

func (e either) Save(ctx context.Context, r Record) error {
	err := e.first.Save(ctx, r)
	if err == nil {
		// What the second has of this server is older, and would come back
		// if the first could not be read.
		_, err = e.second.Delete(ctx, r.URL)
		return err
	}
	if err2 := e.second.Save(ctx, r); err2 != nil {
		return errors.Join(err, err2)
	}
	_, _ = e.first.Delete(ctx, r.URL) // older, and it did not take the new one
	return nil
}

func (e either) Delete(ctx context.Context, url string) (bool, error) {
	ok1, err1 := e.first.Delete(ctx, url)
	ok2, err2 := e.second.Delete(ctx, url)
	if err2 == nil {
		err1 = nil // where there is no keyring, it has nothing
	}
	return ok1 || ok2, errors.Join(err1, err2)
}

// Lock implements [Locker]: all processes have to take the same lock.
func (e either) Lock(ctx context.Context, url string) (unlock func(), err error) {
	if l, ok := e.second.(Locker); ok {
		return l.Lock(ctx, url)
	}
	return func() {}, nil
}

func (e either) String() string { return e.first.String() + " or " + e.second.String() }

// stored is a record as it is written.
type stored struct {
	Version       int       `json:"version"`
	URL           string    `json:"url"`
	Resource      string    `json:"resource,omitempty"`
	Issuer        string    `json:"issuer"`
	TokenEndpoint string    `json:"token_endpoint"`
	ClientID      string    `json:"client_id"`
	ClientSecret  string    `json:"client_secret,omitempty"`
	Auth          string    `json:"auth,omitempty"`
	Access        string    `json:"access_token"`
	Refresh       string    `json:"refresh_token,omitempty"`
	Expiry        time.Time `json:"expiry,omitzero"`
	Scopes        []string  `json:"scopes,omitempty"`
}

const storedVersion = 1

// encode writes a record with its secrets, for a store.
func encode(r Record) ([]byte, error) {
	return json.Marshal(stored{
		Version: storedVersion, URL: r.URL, Resource: r.Resource, Issuer: r.Issuer, TokenEndpoint: r.TokenEndpoint,
		ClientID: r.ClientID, ClientSecret: r.ClientSecret.Reveal(), Auth: r.Auth,
		Access: r.Access.Reveal(), Refresh: r.Refresh.Reveal(), Expiry: r.Expiry, Scopes: r.Scopes,
	})
}

// decode reads the record of a URL. One of another URL, as of a file that was
// moved, is refused.
func decode(data []byte, url string) (Record, error) {
	var s stored
	switch {
	case json.Unmarshal(data, &s) != nil:
		return Record{}, errors.New("what is stored is no record of tokens")
	case s.Version != storedVersion:
		return Record{}, fmt.Errorf("what is stored has the version %d, not %d", s.Version, storedVersion)
	case s.URL != url:
		return Record{}, errors.New("what is stored belongs to another server")
	}
	return Record{
		URL: s.URL, Resource: s.Resource, Issuer: s.Issuer, TokenEndpoint: s.TokenEndpoint,
		ClientID: s.ClientID, ClientSecret: secret.New(s.ClientSecret), Auth: s.Auth,
		Access: secret.New(s.Access), Refresh: secret.New(s.Refresh), Expiry: s.Expiry, Scopes: s.Scopes,
	}, nil
}

// scopeList are the scopes of a text, in their order, each once.
func scopeList(texts ...string) []string {
	var all []string
	seen := make(map[string]bool)
	for _, text := range texts {
		for _, s := range strings.Fields(text) {
			if !seen[s] {
				seen[s] = true
				all = append(all, s)
			}
		}
	}
	return all
}
