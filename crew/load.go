package crew

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"crewhost/config/strict"
)

// What a crew's files may hold, so that a hostile one is cheap to refuse (K67).
const (
	maxFile   = 1 << 20 // bytes of a file, also with its anchors applied
	maxBytes  = 8 << 20 // bytes of all files
	maxNodes  = 100_000 // values of all files, those that aliases stand for included
	maxFiles  = 2_000   // files of a folder
	maxIssues = 500     // problems listed
)

// Load reads the crew at path: a file, or a folder in any of the layouts
//
//	crew.yaml                                       everything in one file, of any name, .yaml or .yml;
//	                                                one of this name also by its folder
//	crew.yaml agents.yaml tasks.yaml                the crew's own keys; agents by id; tasks by id
//	config.yaml|crew.yaml agents/*.yaml tasks/*.yaml    one file each, whose name is the id
//	crew/…                                          one of the two above, a step down
//	agents.yaml tasks.yaml [crew.yaml]              CrewAI's pair; also in config/ and in src/*/config/
//
// The error is [Issues], all problems at once and sorted; their places name
// files as path does. Beside an error the crew may still be there, for
// [Crew.Validate] to judge what could be read of it; it is not fit to run.
func Load(path string) (*Crew, error) {
	l, issues, warnings := findLayout(path)
	if len(issues) > 0 {
		issues.Sort()
		return nil, issues
	}
	r := &reader{}
	root, crewai := r.tree(l)
	var c *Crew
	if root != nil {
		b := &builder{pairWithout: l.crewai && l.settings == "", unread: r.unread}
		c = b.build(root, crewai)
		c.Path = absolute(l.root)
		r.issues = append(r.issues, b.issues...)
		warnings = append(warnings, b.warnings...)
		warnings.Sort()
		c.Warnings = warnings
	}
	r.issues.Sort()
	return c, r.issues.Err()
}

// loadBytes reads a crew of one file from its content.
func loadBytes(file string, data []byte) (*Crew, Issues) {
	r := &reader{}
	n := r.parse(file, data)
	if len(r.issues) > 0 && n == nil {
		return nil, r.issues
	}
	root, crewai := r.whole(n, layout{settings: file, single: true, name: strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))})
	b := &builder{}
	c := b.build(root, crewai)
	c.Warnings = b.warnings
	issues := append(r.issues, b.issues...)
	issues.Sort()
	return c, issues
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// reader turns files into one tree, within a budget for all of them.
type reader struct {
	bytes, nodes int // of all files so far
	issues       Issues
	// unread is set where the agents or the tasks have a part that could not be
	// read: what names them can't be judged then.
	unread struct{ agents, tasks bool }
}

func (r *reader) fail(pos Pos, code, message, hint string) {
	r.issues = append(r.issues, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
}

// tree reads the files of a layout. It returns the tree, nil where nothing
// could be read, and whether its agents and tasks have CrewAI's keys.
func (r *reader) tree(l layout) (*strict.Node, bool) {
	root, ok := &strict.Node{Pos: Pos{File: l.root}, Kind: strict.Map}, true
	if l.settings != "" {
		var n *strict.Node
		if n, ok = r.file(l.settings); n != nil {
			root = n
		} else {
			root.Pos.File = l.settings
		}
	}
	if l.single && !ok {
		return nil, false
	}
	if l.single {
		if dir := filepath.Dir(l.settings); isPair(dir) && root.Get("agents") == nil && root.Get("tasks") == nil && root.Kind == strict.Map {
			r.fail(Pos{File: l.settings}, CodeLayout, "the agents and the tasks are in files of their own", "give the folder: "+dir)
			return nil, false
		}
		return r.whole(root, l)
	}
	if root.Kind != strict.Map {
		r.fail(root.Pos, strict.CodeWrongType, "the crew's own keys must be a mapping, not "+root.Kind.String(), "")
		root = &strict.Node{Pos: root.Pos, Kind: strict.Map}
	}
	var agents, tasks *strict.Node
	agents, r.unread.agents = r.part(l.agents, l.root)
	tasks, r.unread.tasks = r.part(l.tasks, l.root)
	switch {
	case !ok: // without the crew's own keys nobody knows what the others mean
		return nil, false
	case l.crewai && !isFormat(root, Orkeon), isFormat(root, CrewAI):
		return r.overlay(root, agents, tasks, l), true
	}
	r.join(root, "agents", agents)
	r.join(root, "tasks", tasks)
	return root, false
}

// whole prepares the tree of a crew that is one file.
func (r *reader) whole(root *strict.Node, l layout) (*strict.Node, bool) {
	if root == nil || root.Kind == strict.Null {
		root = &strict.Node{Pos: Pos{File: l.settings}, Kind: strict.Map}
	}
	if inner := root.Get("crew"); inner != nil && inner.Kind == strict.Map && root.Get("agents") == nil {
		r.fail(root.Pos, strict.CodeUnknownKey, `the crew's keys are wrapped in "crew:"`, "write them at the top level")
		root = inner
	}
	crewai := isFormat(root, CrewAI)
	if crewai {
		setDefault(root, "name", l.name)
	}
	return root, crewai
}

// isFormat reports whether the crew's own keys say that the format is the one.
func isFormat(root *strict.Node, format string) bool {
	n := root.Get("format")
	return n != nil && n.Kind == strict.String && fold(n.Text) == format
}

func setDefault(root *strict.Node, key, value string) {
	if value == "" || root.Kind != strict.Map || root.Get(key) != nil {
		return
	}
	root.Entries = append(root.Entries, strict.Entry{
		Key: key, KeyPos: root.Pos, Value: &strict.Node{Pos: root.Pos, Kind: strict.String, Text: value},
	})
}

// join puts the entities of other files into the crew's own keys.
func (r *reader) join(root *strict.Node, key string, entities *strict.Node) {
	for i, e := range root.Entries {
		if e.Key == key {
			r.fail(e.KeyPos, CodeLayout, fmt.Sprintf("%q is given twice: here and in %s", key, entities.File), "keep one")
			root.Entries[i].Value = entities
			return
		}
	}
	root.Entries = append(root.Entries, strict.Entry{Key: key, KeyPos: entities.Pos, Value: entities})
}

// part reads the agents or the tasks of a folder into one mapping. broken says
// that some of them could not be read.
func (r *reader) part(p part, dir string) (n *strict.Node, broken bool) {
	if p.folder == "" && p.file != "" {
		n, ok := r.file(p.file)
		if n == nil {
			n = &strict.Node{Pos: Pos{File: p.file}, Kind: strict.Map}
		}
		return n, !ok
	}
	all := &strict.Node{Pos: Pos{File: dir}, Kind: strict.Map}
	if p.folder != "" {
		all.File = p.folder
	}
	for _, file := range p.files {
		n, ok := r.file(file)
		broken = broken || !ok
		if !ok {
			continue
		}
		pos := Pos{File: file}
		if n == nil {
			n = &strict.Node{Pos: pos}
		}
		id := strings.TrimSuffix(filepath.Base(file), ".yaml")
		all.Entries = append(all.Entries, strict.Entry{Key: id, KeyPos: pos, Value: n})
	}
	return all, broken
}

// file reads one file. The node is nil where the file is empty; ok is false
// where it could not be read or parsed, and an issue says so.
func (r *reader) file(path string) (n *strict.Node, ok bool) {
	before := len(r.issues)
	data, err := readFile(path, maxFile)
	if err != nil {
		var issue Issue
		if errors.As(err, &issue) {
			r.issues = append(r.issues, issue)
		} else {
			r.fail(Pos{File: path}, CodeUnreadable, reason(err), "")
		}
		return nil, false
	}
	if r.bytes += len(data); r.bytes > maxBytes {
		r.fail(Pos{File: path}, strict.CodeTooLarge, fmt.Sprintf("with this file the crew has more than %d bytes", maxBytes), "")
		return nil, false
	}
	n = r.parse(path, data)
	return n, n != nil || len(r.issues) == before
}

// readFile reads a regular file of at most limit bytes.
func readFile(path string, limit int) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, Issue{Pos: Pos{File: path}, Code: CodeUnreadable, Message: "not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(data) > limit {
		return nil, Issue{
			Pos: Pos{File: path}, Code: strict.CodeTooLarge,
			Message: "the file is larger than " + strconv.Itoa(limit) + " bytes, the limit",
		}
	}
	return data, nil
}

// parse turns the content of a file into a tree, its anchors applied. It
// returns nil for an empty file, and where an issue says why.
func (r *reader) parse(file string, data []byte) *strict.Node {
	x := expandAnchors(file, data, maxFile)
	r.issues = append(r.issues, x.issues...)
	if x.refused {
		return nil
	}
	n, issues := strict.Parse(file, x.text, strict.Limits{Bytes: maxFile, Nodes: maxNodes})
	x.restore(n, issues)
	r.issues = append(r.issues, issues...)
	if r.nodes += count(n); r.nodes > maxNodes {
		r.fail(Pos{File: file}, strict.CodeTooLarge, fmt.Sprintf("with this file the crew has more than %d values", maxNodes), "")
		return nil
	}
	if x.block && n != nil {
		n.Entries = slices.DeleteFunc(n.Entries, func(e strict.Entry) bool { return e.Key == "anchors" })
	}
	return n
}

func count(n *strict.Node) int {
	if n == nil {
		return 0
	}
	total := 1
	for _, item := range n.Items {
		total += count(item)
	}
	for _, e := range n.Entries {
		total += count(e.Value)
	}
	return total
}
