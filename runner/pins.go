package runner

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/event"
	"crewhost/runner/lock"
	"crewhost/tools"
	"crewhost/tools/audit"
	"crewhost/tools/permission"
)

// A host may hold its servers to a lock file (R4): what they offer is compared when a
// crew is judged, and a tool that is not as it was locked, be it from the start or
// since its server has changed it, is neither shown to a model nor called.

// LockPath is the lock file of settings: the one that they name, or that beside them, or
// in the folder of the crew where they are in no file.
func LockPath(settings *config.Settings, folder string) string {
	switch {
	case settings.MCP.LockFile != "":
		return settings.MCP.LockFile
	case settings.Path != "":
		return filepath.Join(filepath.Dir(settings.Path), lock.Name)
	default:
		return filepath.Join(folder, lock.Name)
	}
}

// pins are the tools that servers are held to. Nil pins hold nobody to anything.
type pins struct {
	file  *lock.File
	tools map[string]map[string]lock.Tool // by server, and by the server's own name of the tool
	tell  func(tools.Definition, string)

	mu   sync.Mutex
	told map[string]bool // definitions that were told of
}

// openPins reads the lock file, if the settings hold servers to one.
func openPins(h *Host) (*pins, error) {
	if !h.cfg.Settings.MCP.Locked || !h.cfg.Settings.MCP.Enabled {
		return nil, nil //nolint:nilnil // nothing is pinned, and no error
	}
	folder := h.cfg.Dir
	if len(h.cfg.Crews) > 0 {
		folder = h.cfg.Crews[0].Path
		if info, err := os.Stat(folder); err == nil && !info.IsDir() {
			folder = filepath.Dir(folder)
		}
	}
	file, err := lock.Read(LockPath(h.cfg.Settings, folder))
	if err != nil {
		return nil, err
	}
	p := &pins{file: file, tools: map[string]map[string]lock.Tool{}, told: map[string]bool{}, tell: h.tellUnlocked}
	pin := func(servers []lock.Server, ours func(name string) bool) {
		for _, s := range servers {
			if _, before := p.tools[s.Name]; before || !ours(s.Name) {
				continue
			}
			p.tools[s.Name] = make(map[string]lock.Tool, len(s.Tools))
			for _, t := range s.Tools {
				p.tools[s.Name][t.Name] = t
			}
		}
	}
	// A name is one server: of the settings, or else of agents.
	pin(file.Servers, func(name string) bool { _, agents := h.brought[name]; return !agents })
	for _, c := range h.cfg.Crews {
		pin(file.Crew(crewIn(file, c)), func(name string) bool { return slices.Contains(serversOf(c), name) })
	}
	return p, nil
}

// crewIn is the path of a crew as a lock file has it.
func crewIn(file *lock.File, c *crew.Crew) string {
	path := c.Path
	if rel, err := filepath.Rel(filepath.Dir(file.Path), c.Path); err == nil {
		path = rel
	}
	return filepath.ToSlash(path)
}

// serversOf returns the names of the servers that the agents of a crew bring along.
func serversOf(c *crew.Crew) []string {
	var names []string
	for _, a := range c.Agents {
		for _, s := range a.Servers {
			if !slices.Contains(names, s.Name.V) {
				names = append(names, s.Name.V)
			}
		}
	}
	return names
}

// unlocked says in what a tool is not as it is locked; "" is as it should be, and so are
// tools that are of no server.
func (p *pins) unlocked(d tools.Definition) string {
	if p == nil || d.Server == "" {
		return ""
	}
	pinned, there := p.tools[d.Server][d.ServerName()]
	switch {
	case !there:
		return "it is not locked"
	case !pinned.Same(lockedTool(d)):
		return "it is not as it was locked"
	}
	return ""
}

// keep returns the definitions that may be shown to a model. A changed description does
// its harm by being read.
func (p *pins) keep(defs []tools.Definition) []tools.Definition {
	if p == nil {
		return defs
	}
	return slices.DeleteFunc(slices.Clone(defs), func(d tools.Definition) bool { return !p.holds(d) })
}

// holds reports whether a tool is as it is locked, and tells of one that is not, once.
func (p *pins) holds(d tools.Definition) bool {
	why := p.unlocked(d)
	if why == "" {
		return true
	}
	key := d.Server + "\x00" + d.ServerName() + "\x00" + d.Digests().Definition
	p.mu.Lock()
	before := p.told[key] || len(p.told) >= maxTold
	if !before {
		p.told[key] = true
	}
	p.mu.Unlock()
	if !before {
		p.tell(d, why)
	}
	return false
}

// maxTold is how many tools that are not as locked a host tells of: a server may change
// one for ever.
const maxTold = 1000

// tellUnlocked tells of a tool that is not as it is locked.
func (h *Host) tellUnlocked(d tools.Definition, why string) {
	text := fmt.Sprintf("The tool %q of MCP server %q is kept from everybody: %s in %s.", d.Name, d.Server, why, lock.Name)
	h.cfg.Events.Emit(event.Event{Kind: event.Notice, Text: text, Code: lock.CodeToolChanged})
	h.log.Info("a tool is not as it is locked", "tool", d.Name, "server", d.Server, "definition", d.Digests().Definition)
}

// onlyLocked refuses calls of tools that are not as they are locked. The definition is
// that of the very tool that would run, whatever its server has listed since.
func (h *Host) onlyLocked(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
	if h.pins == nil || h.pins.holds(o.Definition) {
		return run(ctx)
	}
	if err := h.trail.unlocked(ctx, o); err != nil {
		return tools.Result{}, err
	}
	return tools.Failure(fmt.Sprintf("The tool %q was not called: %s, and only tools that are may be called. Repeating the call will not help; do without it.",
		o.Request.Tool, h.pins.unlocked(o.Definition))), nil
}

// unlocked puts on record that a call was refused since its tool is not as it is locked.
func (t *trail) unlocked(ctx context.Context, o permission.Observation) error {
	if t == nil {
		return nil
	}
	r := t.callOf(ctx, o)
	r.Kind = audit.Unlocked
	return t.put(ctx, r)
}

// LockFile is the path of the lock file that servers are held to, or empty.
func (h *Host) LockFile() string {
	if h.pins == nil {
		return ""
	}
	return h.pins.file.Path
}

// Drift is what is not as it is locked: of the servers of the settings, and of those
// that the crews bring along which the host is opened for. Servers that could not be
// looked at are unknown: they bring no tool that is not locked, but may have changed.
// Both are empty where the settings don't hold servers to a lock file.
func (h *Host) Drift() (drift, unknown crew.Issues) {
	if h.pins == nil {
		return nil, nil
	}
	return h.DriftFrom(h.pins.file)
}

// DriftFrom is Drift from a lock file, whatever the settings hold servers to.
func (h *Host) DriftFrom(file *lock.File) (drift, unknown crew.Issues) {
	found, brought := h.offered()
	drift, unknown = lock.Compare(file.Path, file.Servers, found)
	for _, c := range h.cfg.Crews {
		more, down := lock.Compare(file.Path, file.Crew(crewIn(file, c)), ofCrew(brought, c))
		drift, unknown = append(drift, more...), append(unknown, down...)
	}
	drift.Sort()
	unknown.Sort()
	return drift, unknown
}

// Relock puts into a lock file what the servers offer now. Of a server that could not be
// looked at, what was locked stays; down has the names of such servers, sorted. Crews
// that the host was not opened for stay as they are.
func (h *Host) Relock(file *lock.File) (down []string) {
	found, brought := h.offered()
	now := func(old, servers []lock.Server) (kept []lock.Server) {
		for _, s := range servers {
			if s.Down == "" {
				kept = append(kept, s)
				continue
			}
			if !slices.Contains(down, s.Name) {
				down = append(down, s.Name)
			}
			if i := slices.IndexFunc(old, func(o lock.Server) bool { return o.Name == s.Name }); i >= 0 {
				kept = append(kept, old[i])
			}
		}
		return kept
	}
	file.Servers = now(file.Servers, found)
	for _, c := range h.cfg.Crews {
		path := crewIn(file, c)
		file.SetCrew(path, now(file.Crew(path), ofCrew(brought, c)))
	}
	slices.Sort(down)
	return down
}

// ofCrew are the servers that the agents of a crew bring along.
func ofCrew(brought []lock.Server, c *crew.Crew) []lock.Server {
	names := serversOf(c)
	return slices.DeleteFunc(slices.Clone(brought), func(s lock.Server) bool { return !slices.Contains(names, s.Name) })
}

// offered is what the servers offer now: those of the settings, and those that agents
// bring along.
func (h *Host) offered() (own, brought []lock.Server) {
	reports := map[string]mcp.ServerReport{}
	for _, r := range h.Servers() {
		reports[r.Name] = r
	}
	defs := map[string][]tools.Definition{}
	for _, d := range h.Tools() {
		defs[d.Server] = append(defs[d.Server], d)
	}
	for _, s := range h.everyServer() {
		found := h.lockedServer(s, reports[s.Name], defs[s.Name])
		if _, agents := h.brought[s.Name]; agents {
			brought = append(brought, found)
		} else {
			own = append(own, found)
		}
	}
	return own, brought
}

// lockedServer is a server as a lock file has it.
func (h *Host) lockedServer(s config.Server, r mcp.ServerReport, defs []tools.Definition) lock.Server {
	shown := func(t secret.Text) string { return secret.MaskTokens(h.cfg.Redactor.Redact(t.String())) }
	out := lock.Server{Name: s.Name, Transport: string(s.Transport), Command: shown(s.Command), Reported: r.ServerName, Version: r.ServerVersion}
	for _, a := range s.Args {
		out.Args = append(out.Args, shown(a))
	}
	if s.Transport.Remote() {
		out.URL = shown(s.URL)
		if bound, err := secret.Binding(out.URL); err == nil { // not where a variable stands for a host
			out.URL = bound
		}
	}
	if r.State != mcp.StateConnected {
		out.Down = "it is not connected"
		if r.Err != nil {
			out.Down = strings.Join(strings.Fields(r.Err.Error()), " ")
		}
		return out
	}
	out.Instructions = r.InstructionsDigest
	for _, d := range defs {
		out.Tools = append(out.Tools, lockedTool(d))
	}
	return out
}

// lockedTool is a tool as a lock file has it.
func lockedTool(d tools.Definition) lock.Tool {
	digests := d.Digests()
	return lock.Tool{Name: d.ServerName(), Text: d.Description, Definition: digests.Definition, Description: digests.Description, Schema: digests.Schema}
}
