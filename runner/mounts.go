package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/tools/mount"
)

// The codes of issues of mounts.
const (
	CodeBadMount = "bad-mount"
	CodeNoMount  = "no-mount" // the crew requires a mount that is not there
)

const (
	flagMount   = "--mount"
	flagMountID = "--mount-id"
)

// placement is what is mounted where, of the mounts that there are.
//
// A mount of the command line stands in for those of the settings at its root.
// Several of the settings at one root need ids, and one of them is chosen: by
// --mount-id, or else by the crews that the host is opened for. A host has one
// mount at a root, so crews that choose differently can't share it, and are
// refused. A crew that comes later must do with what is mounted.
type placement struct {
	cfg    Config
	mounts []mount.Mount
	by     map[string]string // root: the flag that decided what is there
	issues strict.Issues
	notes  []string // what the operator should know, a line each
}

// candidate is a mount of the settings.
type candidate struct {
	mount.Mount
	pos strict.Pos
}

func (p *placement) fail(pos strict.Pos, format string, args ...any) {
	p.issues = append(p.issues, strict.Issue{Pos: pos, Code: CodeBadMount, Message: fmt.Sprintf(format, args...)})
}

func (p *placement) note(format string, args ...any) {
	p.notes = append(p.notes, fmt.Sprintf(format, args...))
}

// place reads the specifications and decides.
func place(cfg Config) *placement {
	p := &placement{cfg: cfg, by: map[string]string{}}
	p.commandLine()
	roots, at := p.settings()
	ids := p.chosen(at)
	for _, root := range roots {
		if _, replaced := p.by[root]; !replaced {
			p.one(root, at[root], ids[root])
		}
	}
	p.caution()
	return p
}

// commandLine takes the mounts that were given for this host alone.
func (p *placement) commandLine() {
	specs := map[string]string{}
	pos := strict.Pos{File: flagMount}
	for _, spec := range p.cfg.Mounts {
		m, err := mount.Parse(spec)
		if err != nil {
			p.fail(pos, "%v", err)
			continue
		}
		if first, twice := specs[m.Virtual]; twice {
			p.fail(pos, "%s is mounted twice on the command line: %s and %s. Keep one.", m.Virtual, first, spec)
			continue
		}
		specs[m.Virtual], p.by[m.Virtual] = spec, flagMount
		p.take(candidate{m.In(p.cfg.Dir), pos})
	}
}

// settings returns the mounts of the settings by root, and the roots in their order.
func (p *placement) settings() (roots []string, at map[string][]candidate) {
	at = map[string][]candidate{}
	ids := map[string]strict.Pos{}
	for _, s := range p.cfg.Settings.Mounts {
		m, err := mount.Parse(s.Spec)
		if err != nil {
			p.fail(s.Pos, "%v", err)
			continue
		}
		if first, twice := ids[m.ID]; twice && m.ID != "" {
			p.fail(s.Pos, "the id %s is that of another mount, too: %s", m.ID, first)
			continue
		}
		ids[m.ID] = s.Pos
		if at[m.Virtual] == nil {
			roots = append(roots, m.Virtual)
		}
		at[m.Virtual] = append(at[m.Virtual], candidate{m.In(s.Base), s.Pos})
	}
	return roots, at
}

// chosen are the ids that the command line chooses, by root.
func (p *placement) chosen(at map[string][]candidate) map[string]string {
	ids := map[string]string{}
	pos := strict.Pos{File: flagMountID}
	for _, given := range p.cfg.MountIDs {
		id, err := mount.ParseID(given)
		if err != nil {
			p.fail(pos, "%v", err)
			continue
		}
		root, known := "", []string{}
		for _, candidates := range at {
			for _, c := range candidates {
				if c.ID == id {
					root = c.Virtual
				} else if c.ID != "" {
					known = append(known, c.ID+" at "+c.Virtual)
				}
			}
		}
		slices.Sort(known)
		before, twice := ids[root]
		switch {
		case root == "" && len(known) == 0:
			p.fail(pos, "no mount of the settings has the id %s, or any other", id)
		case root == "":
			p.fail(pos, "no mount of the settings has the id %s; there are %s", id, join(known))
		case twice && before != id:
			p.fail(pos, "%s is chosen twice: %s and %s. Keep one.", root, before, id)
		case p.by[root] == flagMount:
			p.note("%s is what %s mounts there; %s %s makes no difference", root, flagMount, flagMountID, id)
		default:
			ids[root] = id
		}
	}
	return ids
}

// one takes one of the mounts of the settings at a root.
func (p *placement) one(root string, candidates []candidate, id string) {
	if len(candidates) > 1 {
		for _, c := range candidates {
			if c.ID == "" {
				p.fail(c.pos, `%s is mounted several times, and not each of them has an id: write "<id>|%s", and choose one by %s or in the mounts of the crew`, root, c.String(), flagMountID)
				return
			}
		}
	}
	switch {
	case id != "":
		p.by[root] = flagMountID
	case len(candidates) > 1:
		if id = p.byCrews(root, candidates); id == "" {
			return
		}
	default:
		p.take(candidates[0])
		return
	}
	for _, c := range candidates {
		if c.ID == id {
			p.take(c)
		}
	}
}

// byCrews is the id that the crews choose at a root, or "" where that fails.
func (p *placement) byCrews(root string, candidates []candidate) string {
	var known []string
	for _, c := range candidates {
		known = append(known, c.ID)
	}
	choice, by := "", crew.Text{}
	for _, c := range slices.Concat(p.cfg.Crews, p.cfg.Faulty) {
		for _, m := range c.Mounts {
			id, at := crewMount(m)
			switch {
			case at != root || id == "":
			case !slices.Contains(known, id):
				p.fail(m.Pos, "the crew chooses the mount %s at %s, which the settings don't have; they have %s", id, root, join(known))
				return ""
			case choice != "" && choice != id:
				p.fail(m.Pos, "the crew chooses the mount %s at %s, and another crew chooses %s (%s); run them apart, or choose one for both by %s", id, root, choice, by.Pos, flagMountID)
				return ""
			case choice == "":
				choice, by = id, m
			}
		}
	}
	if choice == "" {
		p.fail(candidates[0].pos, "%s is mounted several times, and nothing chooses one: give %s with one of %s, or write \"<id>|%s\" in the mounts of the crew", root, flagMountID, join(known), root)
	}
	return choice
}

// take mounts. The folder of a mount that can be written to is made where only the
// last part of its path is missing, so that a fresh checkout needs no empty folders.
func (p *placement) take(c candidate) {
	if c.Rights.CanWrite() {
		_ = os.Mkdir(c.Physical, 0o755) // what is wrong is reported below
	}
	if info, err := os.Stat(c.Physical); err != nil || !info.IsDir() {
		what := "is not a folder"
		if errors.Is(err, fs.ErrNotExist) {
			what = "does not exist"
		}
		p.fail(c.pos, "mount %q: the folder %s %s", c.String(), c.Physical, what)
		return
	}
	p.mounts = append(p.mounts, c.Mount)
}

// caution notes what mounts give away that was hardly meant.
func (p *placement) caution() {
	mounts := slices.SortedFunc(slices.Values(p.mounts), func(a, b mount.Mount) int { return cmp.Compare(a.Virtual, b.Virtual) })
	for _, line := range mount.Overlaps(mounts) {
		p.note("mounts: %s", line)
	}
	for _, m := range mounts {
		if filepath.Dir(m.Physical) == m.Physical {
			p.note("mounts: %s is all of this machine", m.Virtual)
		}
		for _, own := range ownFiles(p.cfg) {
			at, rights, ok := m.Reach(own.path)
			if ok && (own.read || rights.CanWrite()) {
				verb := "changed"
				if own.read {
					verb = "read"
				}
				p.note("mounts: agents can have %s %s, at %s", own.what, verb, at)
			}
		}
	}
}

// ownFile is a file of the host's own.
type ownFile struct {
	what, path string
	read       bool // to read it does harm already
}

func ownFiles(cfg Config) []ownFile {
	var files []ownFile
	add := func(what, path string, read bool) {
		if _, err := os.Lstat(path); path != "" && (err == nil || !read) {
			files = append(files, ownFile{what, path, read})
		}
	}
	for _, c := range cfg.Crews {
		add(fmt.Sprintf("the crew %q itself", c.Name.V), c.Path, false)
	}
	add("the settings", cfg.Settings.Path, false)
	add("the journals of runs", cfg.Settings.Journal.Dir, false)
	add("the audit log", cfg.Settings.Audit.File, false)
	add("the key of the vault", cfg.Settings.Vault.KeyFile, true)
	return files
}

// crewMount is what an entry of a crew's mounts asks for.
func crewMount(m crew.Text) (id, root string) {
	id, root, ok := strings.Cut(m.V, "|")
	if !ok {
		return "", m.V
	}
	return strings.ToUpper(id), root
}

// Mounts returns the mounts, sorted by virtual path.
func (h *Host) Mounts() []mount.Mount { return h.fs.Mounts() }

// MountNotes is what an operator should know of the mounts, a line each.
func (h *Host) MountNotes() []string { return h.placed.notes }

// unmounted finds the mounts that a crew requires and the host has not.
func (h *Host) unmounted(c *crew.Crew) (issues, warnings crew.Issues) {
	for _, want := range c.Mounts {
		id, root := crewMount(want)
		at := slices.IndexFunc(h.Mounts(), func(m mount.Mount) bool { return m.Virtual == root })
		switch by := h.placed.by[root]; {
		case at < 0:
			issues = append(issues, crew.Issue{
				Pos: want.Pos, Code: CodeNoMount, Message: fmt.Sprintf("the crew requires %s, and nothing is mounted there", root),
				Hint: fmt.Sprintf("pass --mount DIR:%s:rw, or name it in the mounts of the settings", root),
			})
		case id == "" || h.Mounts()[at].ID == id:
		case by != "":
			warnings = append(warnings, crew.Issue{
				Pos: want.Pos, Code: CodeNoMount, Message: fmt.Sprintf("the crew chooses the mount %s at %s, and %s another", id, root, by),
			})
		default:
			issues = append(issues, crew.Issue{
				Pos: want.Pos, Code: CodeNoMount, Message: fmt.Sprintf("the crew requires the mount %s at %s, and another is there", id, root),
				Hint: fmt.Sprintf("give the mount of the settings that is meant this id, pass --mount DIR:%s:rw, or leave out the id", root),
			})
		}
	}
	return issues, warnings
}

// openMounts opens what was placed.
func openMounts(mounts []mount.Mount, files config.FileTools) (*mount.FS, error) {
	if files.HardLinks {
		return mount.Open(mounts, mount.HardLinks)
	}
	return mount.Open(mounts)
}
