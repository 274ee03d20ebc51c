// Package approvals keeps what a person has allowed always, in a file of the user.
//
// An [Entry] is bound to all that the person could see when it was asked: the settings
// and the crew, the rule that asked, the tool, where its server is, and the tool's
// definition. Whatever is different is another question. Only a definition that has
// changed since is told apart from none at all, so that the next question can say so.
//
//	store := approvals.Store{Path: filepath.Join(state, "approvals.json")}
//	standing, err := store.Standing(entry)
//	err = store.Keep(ctx, entry)
//
// The file is read anew each time: what is revoked in another process is revoked at
// once. It is replaced whole, under a lock, and never where it can't be read: a damaged
// file is an error that names it, and what it held is still there.
package approvals

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"crewhost/config/secret/sealed"
	"crewhost/tools/permission"
)

const (
	maxBytes   = 4 << 20 // of the file
	maxEntries = 10_000
	version    = 1
)

// Entry is one approval.
type Entry struct {
	Settings string `json:"settings,omitempty"` // the file, absolute
	Crew     string `json:"crew,omitempty"`     // the file or folder, absolute; empty: a call from outside any
	// Agent is whose toolset asked; empty: the settings did, for every agent.
	Agent string `json:"agent,omitempty"`
	Asked string `json:"asked,omitempty"` // the pattern of the rule; empty: the default
	// Server is the tool's MCP server, and Endpoint where it is, as it was written;
	// Identity is a digest of what that means. All are empty of a tool of the host.
	Server     string    `json:"server,omitempty"`
	Endpoint   string    `json:"endpoint,omitempty"`
	Identity   string    `json:"identity,omitempty"`
	Tool       string    `json:"tool"`
	Definition string    `json:"definition"`
	At         time.Time `json:"at"`
}

// bound is what the approval is about: all but what the tool was like, and when it was
// given.
func (e Entry) bound() Entry {
	e.Definition, e.At = "", time.Time{}
	return e
}

// ID is a short name of what the approval is about, for a person to type.
func (e Entry) ID() string {
	data, err := json.Marshal(e.bound())
	if err != nil {
		panic(err) // plain texts
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:4])
}

// Store is the file. It is safe for concurrent use, by several processes, too.
type Store struct{ Path string }

// file is what the file holds.
type file struct {
	Version   int     `json:"version"`
	Approvals []Entry `json:"approvals"`
}

// DamagedError says that a file of approvals can't be relied on. Nothing of it counts,
// and nothing of it is lost.
type DamagedError struct {
	Path string
	Err  error
}

// Error names the file and says what can be done.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("the approvals in %s can't be read, and none of them counts: %v (mend the file, or move it away)", e.Path, e.Err)
}

// Unwrap returns what is wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// List returns all approvals, sorted by settings, crew, server, tool, and what asked.
// Where there is no file, there are none.
func (s Store) List() ([]Entry, error) {
	entries, err := s.read()
	if err != nil {
		return nil, &DamagedError{s.Path, err}
	}
	return entries, nil
}

func (s Store) read() ([]Entry, error) {
	f, err := os.Open(s.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("others than its owner may write it (its mode is %#o)", info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxBytes:
		return nil, fmt.Errorf("it has more than %d bytes", maxBytes)
	}
	return parse(data)
}

// parse reads the file strictly: what is not understood is not passed over.
func parse(data []byte) ([]Entry, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var f file
	if err := dec.Decode(&f); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after its end")
	}
	switch {
	case f.Version != version:
		return nil, fmt.Errorf("its version is %d, and this program knows %d", f.Version, version)
	case len(f.Approvals) > maxEntries:
		return nil, fmt.Errorf("it has more than %d approvals", maxEntries)
	}
	seen := map[Entry]bool{}
	for i, e := range f.Approvals {
		switch {
		case e.Tool == "":
			return nil, fmt.Errorf("approval %d names no tool", i+1)
		case e.Settings == "" && e.Crew == "":
			return nil, fmt.Errorf("approval %d is under no settings and no crew", i+1)
		case !strings.HasPrefix(e.Definition, "sha256:"):
			return nil, fmt.Errorf("approval %d is of no definition", i+1)
		case (e.Server == "") != (e.Identity == ""):
			return nil, fmt.Errorf("approval %d has a server without an identity, or the other way round", i+1)
		case seen[e.bound()]:
			return nil, fmt.Errorf("approval %d is there twice", i+1)
		}
		seen[e.bound()] = true
	}
	slices.SortFunc(f.Approvals, compare)
	return f.Approvals, nil
}

func compare(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(a.Settings, b.Settings), cmp.Compare(a.Crew, b.Crew), cmp.Compare(a.Server, b.Server),
		cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Asked, b.Asked),
		cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Identity, b.Identity),
	)
}

// Standing says whether an approval stands, whenever it was given.
func (s Store) Standing(e Entry) (permission.Standing, error) {
	entries, err := s.List()
	if err != nil {
		return permission.Unknown, err
	}
	for _, kept := range entries {
		switch {
		case kept.bound() != e.bound():
		case kept.Definition == e.Definition:
			return permission.Approved, nil
		default:
			return permission.Changed, nil
		}
	}
	return permission.Unknown, nil
}

// Keep adds an approval, in place of one for another definition of the tool.
func (s Store) Keep(ctx context.Context, e Entry) error {
	if _, err := parse(written([]Entry{e})); err != nil {
		return fmt.Errorf("keeping an approval: %w", err)
	}
	return s.change(ctx, func(entries []Entry) []Entry {
		entries = slices.DeleteFunc(entries, func(kept Entry) bool { return kept.bound() == e.bound() })
		return append(entries, e)
	})
}

// Revoke removes the approvals of these ids, and returns those that it removed.
func (s Store) Revoke(ctx context.Context, ids ...string) ([]Entry, error) {
	var revoked []Entry
	err := s.change(ctx, func(entries []Entry) []Entry {
		revoked = nil
		return slices.DeleteFunc(entries, func(e Entry) bool {
			gone := slices.Contains(ids, e.ID())
			if gone {
				revoked = append(revoked, e)
			}
			return gone
		})
	})
	return revoked, err
}

// change replaces what the file holds, while nobody else does.
func (s Store) change(ctx context.Context, make func([]Entry) []Entry) error {
	unlock, err := sealed.Lock(ctx, s.Path)
	if err != nil {
		return fmt.Errorf("changing approvals: %w", err)
	}
	defer unlock()
	entries, err := s.List()
	if err != nil {
		return err
	}
	before := written(entries)
	entries = make(entries)
	slices.SortFunc(entries, compare)
	after := written(entries)
	switch {
	case bytes.Equal(before, after):
		return nil
	case len(entries) > maxEntries || len(after) > maxBytes:
		return fmt.Errorf("changing approvals: %s would have more than %d of them, or %d bytes; revoke some", s.Path, maxEntries, maxBytes)
	}
	if err := sealed.Replace(s.Path, after); err != nil {
		return fmt.Errorf("writing approvals: %w", err)
	}
	return nil
}

func written(entries []Entry) []byte {
	data, err := json.MarshalIndent(file{version, append([]Entry{}, entries...)}, "", "  ")
	if err != nil {
		panic(err) // plain texts and times
	}
	return append(data, '\n')
}
