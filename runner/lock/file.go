package lock

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"crewhost/config/strict"
)

// Name is what the file is called where nobody says otherwise.
const Name = "crewhost.lock"

// version is that of the format.
const version = 1

// File is the content of a lock file.
type File struct {
	Path    string
	Servers []Server // of the settings
	Crews   []Crew   // with servers of their own
}

// Crew is a crew whose agents bring servers along.
type Crew struct {
	Path    string // from the folder of the lock file, with slashes
	Servers []Server
}

// Server is a server as it was found, or is locked.
type Server struct {
	Name string
	Pos  strict.Pos // in the file

	Transport string
	Command   string // of stdio, as it is written
	Args      []string
	URL       string // of all else, without credentials

	Reported     string // what the server calls itself
	Version      string
	Instructions string // digest of what it tells models of itself; empty: nothing
	Tools        []Tool

	// Down says why the server could not be looked at, of one that was found: all but
	// how it is reached is not known then.
	Down string
}

// Tool is a tool by the server's own name, with its digests.
type Tool struct {
	Name string
	Pos  strict.Pos

	Definition, Description, Schema string

	// Text is the description, of a tool that was found. It is not written.
	Text string
}

// Crew returns the servers of a crew.
func (f *File) Crew(path string) []Server {
	for _, c := range f.Crews {
		if c.Path == path {
			return c.Servers
		}
	}
	return nil
}

// SetCrew replaces the servers of a crew; of one without any nothing is kept.
func (f *File) SetCrew(path string, servers []Server) {
	f.Crews = slices.DeleteFunc(slices.Clone(f.Crews), func(c Crew) bool { return c.Path == path })
	if len(servers) > 0 {
		f.Crews = append(f.Crews, Crew{path, servers})
	}
}

// header is what a reader of the file is told.
const header = `# What MCP servers offered when somebody looked at it last. Review a change of this file
# as you review code. "crewhost lock" writes it anew; "crewhost lock --check" and
# "crewhost run --locked" fail where a server is not as it says.
`

// Encode returns the file as it is written: the same servers are the same bytes.
func (f *File) Encode() []byte {
	var b bytes.Buffer
	b.WriteString(header)
	fmt.Fprintf(&b, "version: %d\n", version)
	b.WriteString("servers:")
	writeServers(&b, f.Servers, "  ")
	if len(f.Crews) == 0 {
		return b.Bytes()
	}
	b.WriteString("crews:\n")
	for _, c := range sorted(f.Crews, func(c Crew) string { return c.Path }) {
		fmt.Fprintf(&b, "  %s:", word(c.Path))
		writeServers(&b, c.Servers, "    ")
	}
	return b.Bytes()
}

func writeServers(b *bytes.Buffer, servers []Server, indent string) {
	if len(servers) == 0 {
		b.WriteString(" {}\n")
		return
	}
	b.WriteString("\n")
	for _, s := range sorted(servers, func(s Server) string { return s.Name }) {
		fmt.Fprintf(b, "%s%s:\n", indent, word(s.Name))
		in := indent + "  "
		line := func(key, value string) {
			if value != "" {
				fmt.Fprintf(b, "%s%s: %s\n", in, key, word(value))
			}
		}
		line("transport", s.Transport)
		line("command", s.Command)
		if len(s.Args) > 0 {
			fmt.Fprintf(b, "%sargs:\n", in)
			for _, arg := range s.Args {
				fmt.Fprintf(b, "%s  - %s\n", in, word(arg))
			}
		}
		line("url", s.URL)
		line("name", s.Reported)
		line("version", s.Version)
		line("instructions", s.Instructions)
		if len(s.Tools) == 0 {
			fmt.Fprintf(b, "%stools: {}\n", in)
			continue
		}
		fmt.Fprintf(b, "%stools:\n", in)
		for _, t := range sorted(s.Tools, func(t Tool) string { return t.Name }) {
			fmt.Fprintf(b, "%s  %s:\n", in, word(t.Name))
			for _, d := range []struct{ key, digest string }{
				{"definition", t.Definition}, {"description", t.Description}, {"schema", t.Schema},
			} {
				fmt.Fprintf(b, "%s    %s: %s\n", in, d.key, d.digest)
			}
		}
	}
}

func sorted[T any](list []T, key func(T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

var (
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_./@-]*$`)
	digest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// reserved are words that YAML, or a version of it, takes for something else.
	reserved = regexp.MustCompile(`(?i)^(y|yes|n|no|true|false|on|off|null|nan|inf)$`)
)

// word is a text as YAML: bare where that can be no trouble, or else in quotes, with an
// escape for all that is not ASCII, so that nothing looks like what it is not.
func word(s string) string {
	if digest.MatchString(s) || plainWord.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	return strconv.QuoteToASCII(s)
}

// Write replaces the file, whole or not at all.
func (f *File) Write() (err error) {
	temporary, err := os.CreateTemp(filepath.Dir(f.Path), Name+".*.tmp")
	if err != nil {
		return fmt.Errorf("writing the lock file: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temporary.Name())
			err = fmt.Errorf("writing the lock file: %w", err)
		}
	}()
	_, err = temporary.Write(f.Encode())
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), f.Path)
}

// maxBytes is the most that a file may have: some ten thousand tools.
const maxBytes = 16 << 20

// The codes of issues.
const (
	CodeNone     = "lock-missing"  // there is no lock file
	CodeConflict = "lock-conflict" // it holds the marks of a merge
	CodeVersion  = "lock-version"  // it is of another version
	CodeDigest   = "lock-digest"   // a digest is none
)

// Read reads a lock file. The error is [strict.Issues], each with its line.
func Read(path string) (*File, error) {
	data, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, strict.Issues{{Pos: strict.Pos{File: path}, Code: CodeNone, Message: "there is no lock file", Hint: "crewhost lock writes one"}}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the lock file: %w", err)
	}
	return Parse(path, data)
}

func read(path string) (data []byte, err error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would hold us up for ever
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return io.ReadAll(io.LimitReader(f, maxBytes+1)) // the parser refuses the one byte more
}

type document struct {
	Version strict.At[int]                         `key:"version,required"`
	Servers []strict.Named[server]                 `key:"servers"`
	Crews   []strict.Named[[]strict.Named[server]] `key:"crews"`
}

type server struct {
	Transport    strict.At[string]    `key:"transport"`
	Command      string               `key:"command"`
	Args         []string             `key:"args"`
	URL          string               `key:"url"`
	Name         string               `key:"name"`
	Version      string               `key:"version"`
	Instructions strict.At[string]    `key:"instructions"`
	Tools        []strict.Named[tool] `key:"tools"`
}

type tool struct {
	Definition  strict.At[string] `key:"definition"`
	Description strict.At[string] `key:"description"`
	Schema      strict.At[string] `key:"schema"`
}

// Parse reads the text of a lock file; path is for messages.
func Parse(path string, data []byte) (*File, error) {
	if issues := conflicts(path, data); issues != nil {
		return nil, issues
	}
	root, issues := strict.Parse(path+".yaml", data, strict.Limits{Bytes: maxBytes, Nodes: 1 << 20})
	d := &strict.Decoder{}
	var doc document
	if len(issues) == 0 {
		d.Decode(root, &doc, "")
	}
	f := &File{Path: path}
	if doc.Version.Set && doc.Version.V != version {
		d.Fail(doc.Version.Pos, CodeVersion, fmt.Sprintf("it is of version %d, and this program reads version %d", doc.Version.V, version), "")
	}
	f.Servers = servers(d, doc.Servers)
	for _, c := range doc.Crews {
		f.Crews = append(f.Crews, Crew{c.Key, servers(d, c.V)})
	}
	issues = append(issues, d.Issues()...)
	for i := range issues {
		issues[i].File = path
	}
	issues.Sort()
	if err := issues.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

const byHand = "the file is not for editing; crewhost lock writes it"

func servers(d *strict.Decoder, list []strict.Named[server]) []Server {
	var out []Server
	for _, e := range list {
		s := Server{
			Name: e.Key, Pos: e.KeyPos, Transport: e.V.Transport.V, Command: e.V.Command, Args: e.V.Args, URL: e.V.URL,
			Reported: e.V.Name, Version: e.V.Version, Instructions: e.V.Instructions.V,
		}
		if e.V.Transport.V == "" {
			d.Fail(e.KeyPos, strict.CodeMissing, "the server "+strict.Quote(e.Key)+" has no transport", "")
		}
		check := func(at strict.At[string], owner strict.Pos, what string) string {
			switch {
			case !at.Set && what != "":
				d.Fail(owner, strict.CodeMissing, what+" is missing", byHand)
			case at.Set && !digest.MatchString(at.V):
				d.Fail(at.Pos, CodeDigest, strict.Quote(at.V)+" is no digest", byHand)
			}
			return at.V
		}
		check(e.V.Instructions, e.KeyPos, "")
		for _, t := range e.V.Tools {
			s.Tools = append(s.Tools, Tool{
				Name: t.Key, Pos: t.KeyPos,
				Definition:  check(t.V.Definition, t.KeyPos, "the definition of "+strict.Quote(t.Key)),
				Description: check(t.V.Description, t.KeyPos, "the description of "+strict.Quote(t.Key)),
				Schema:      check(t.V.Schema, t.KeyPos, "the schema of "+strict.Quote(t.Key)),
			})
		}
		out = append(out, s)
	}
	return out
}

// conflicts finds the marks that a merge leaves where both sides changed the same.
func conflicts(path string, data []byte) strict.Issues {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if bytes.HasPrefix(line, []byte("<<<<<<< ")) || bytes.HasPrefix(line, []byte(">>>>>>> ")) {
			return strict.Issues{{
				Pos: strict.Pos{File: path, Line: n, Column: 1}, Code: CodeConflict, Message: "it holds a conflict of a merge",
				Hint: "take one of the two files whole, and run crewhost lock",
			}}
		}
	}
	return nil
}
