package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/event"
	"crewhost/runner/journal"
	"crewhost/runner/llm"
	"crewhost/runner/tape"
	"crewhost/runner/telemetry"
	"crewhost/tools"
	"crewhost/tools/builtin"
	"crewhost/tools/builtin/people"
	"crewhost/tools/mount"
	"crewhost/tools/permission"
)

// Config is what a host is made of. Only Settings must be set.
type Config struct {
	Settings *config.Settings

	// Crews are the crews that the host is opened for: the MCP servers of their
	// agents are connected with those of the settings, in one step (A1). Their shape
	// is all that is looked at; nil ones are left out. A crew that has faults has no
	// business among them, since what its agents bring along would be started. One that
	// is not among them can be run if its agents bring no servers.
	Crews []*crew.Crew
	// Faulty are crews with faults, to be judged only. Their mounts are looked at.
	Faulty []*crew.Crew

	// Mounts are further mount specifications. Each replaces the mounts of
	// the settings at its virtual root. Relative folders in them are relative
	// to Dir.
	Mounts []string
	Dir    string
	// MountIDs choose among the mounts that the settings have at one root, before
	// what the crews choose.
	MountIDs []string

	// Profile is the id of the model profile that stands in for the default
	// one; empty means no other.
	Profile string
	// Models makes a model of a profile; nil means [NewModel].
	Models func(context.Context, config.Profile, Credentials) (llm.Model, error)

	// Approver answers calls that the policy asks about, and Asker questions
	// of agents. Nil means that nobody can be asked.
	Approver permission.Approver
	Asker    people.Asker
	// ConcurrentApprovals has the Approver be asked about several calls at once.
	ConcurrentApprovals bool
	// Respondent answers what servers ask; nil: what the settings declare is
	// answered, and everything else declined (O19).
	Respondent mcp.Respondent

	// Environ is the environment that secrets are looked up in and that
	// children inherit a part of. Nil means that there are no variables for
	// secrets, and this process's own for children.
	Environ []string
	// Guard is the command line of a process that runs GuardMain of package
	// mcp/child; empty means that no guard outlives a killed host.
	Guard []string
	// Confine is the command line of a program that runs ConfineMain of package
	// tools/builtin/shell with the argument that is added to it; empty means that
	// programs of agents are not confined.
	Confine []string

	// Listen is the address that the host is going to serve on, if it is: no server
	// of the settings may be found there.
	Listen string

	// Telemetry is told of runs, agents, answers of models and calls; nil: nobody is.
	// Who made it closes it, after the host.
	Telemetry *telemetry.Telemetry

	// Steps, where set, is what the steps of runs are carried out by: it is given what
	// would carry them out otherwise, once for each run. See package journal.
	Steps func(journal.Steps) journal.Steps

	// Record, where set, gets the tape of the host's one run. Replay, where set, is what
	// that run is held against; unless it goes on live, nothing is behind the host then:
	// servers, models and answers are those of the tape. See package tape.
	Record *tape.Recorder
	Replay *tape.Replay

	// WriteJournal writes a line of a run's journal to the end of its file; nil: as files
	// are written. Tests stop there.
	WriteJournal func(*os.File, []byte) error

	Version  string           // of the host, told to servers
	Logger   *slog.Logger     // nil: discard
	Redactor *secret.Redactor // nil: one of the host's own

	OnServer func(mcp.ServerReport) // told of each server as it is done, one at a time
	// Events is told what happens, of the host and of its runs. That a program's
	// run begins and ends is for who made the stream to tell: it does so before
	// the settings are read, and with its exit code. Nil: nobody is told.
	Events *event.Stream
	// Stream has models asked for streams, and what comes told piece by piece.
	Stream bool
}

// Host holds open what runs need: mounts, servers, the registry of tools and the
// guard in front of it.
type Host struct {
	cfg      Config
	log      *slog.Logger
	fs       *mount.FS
	placed   *placement // what is mounted there
	registry *tools.Registry
	policy   *permission.Policy
	guard    *permission.Guard
	servers  *mcp.Sessions
	models   *models
	brought  brought             // servers of agents
	gate     *gate               // what stands between the host and its servers over HTTP
	trail    *trail              // what calls are put on record by; nil: they aren't
	pins     *pins               // what servers are held to; nil: nothing
	own      account             // of what servers ask that is no run's
	offers   bell                // of servers, which may have changed
	person   permission.Approver // who can be asked, whatever was answered before
	twice    declared            // tools that may be called twice
	builtins []string
	native   []builtin.Offer // the host's own tools, on or off
	taped    *tapedHost      // nil: the host is no replay
	programs *programs       // of agents
}

// Open checks the settings as far as that needs no server, then opens the mounts,
// registers the built-in tools, and connects every server, those that agents of the
// crews bring along among them. A server that can't be connected costs its tools and a line in the report (O11); where it is required,
// the error is an [*mcp.RequiredError]. A host that would be its own
// server is a [*LoopError]. An error leaves nothing open.
func Open(ctx context.Context, cfg Config) (_ *Host, err error) {
	if cfg.Settings == nil {
		return nil, errors.New("opening a host: no settings")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Redactor == nil {
		cfg.Redactor = &secret.Redactor{}
	}
	cfg.Events.Mask(cfg.Redactor)
	cfg, taped, err := cued(cfg)
	if err != nil {
		return nil, err
	}
	_, client := cfg.Approver.(ClientPerson) // behind each call stands a client of its own
	who := standsBehind(cfg.Approver)
	person := cfg.Approver
	if cfg.Asker != nil {
		cfg.Asker = askerSteps{cfg.Asker}
	}
	if cfg.Respondent != nil {
		cfg.Respondent = respondentSteps{cfg.Respondent}
	}
	cfg.Crews = slices.DeleteFunc(slices.Clone(cfg.Crews), func(c *crew.Crew) bool { return c == nil })
	cfg.Environ = append([]string{}, cfg.Environ...) // further in, nil would mean this process's own
	h := &Host{cfg: cfg, log: cfg.Logger, registry: &tools.Registry{}, taped: taped, person: person, programs: &programs{argv: cfg.Guard}}

	var settings *config.Settings
	settings, h.brought = joined(cfg.Settings, cfg.Crews)

	// Everything that the settings get wrong is found before anything starts.
	var issues strict.Issues
	h.placed = place(cfg)
	h.fs, err = openMounts(h.placed.mounts, cfg.Settings.Tools.Files)
	issues = append(issues, append(h.placed.issues, issuesOf(CodeBadMount, err)...)...)
	h.policy, err = policyOf(settings.Permissions, h.fs.Base(), settings.MCP.Servers)
	issues = append(issues, issuesOf(CodeBadRule, err)...)
	h.twice, err = declaredOf(cfg.Settings.Journal, h.fs.Base())
	issues = append(issues, issuesOf(CodeBadRule, err)...)
	issues = append(issues, checkDisabled(cfg.Settings.Tools)...)
	h.models, err = newModels(cfg)
	issues = append(issues, issuesOf(CodeUnknownProfile, err)...)
	h.own = account{newLedger(cfg.Settings.LLM, func(error) {}), cfg.Events}
	h.own.book.of = "the budget of what servers ask outside of runs"
	defer func() {
		if err != nil {
			err = errors.Join(err, h.Close())
		}
	}()
	if err := issues.Err(); err != nil {
		return nil, err
	}
	if err := checkApprovals(cfg.Settings); err != nil {
		return nil, err
	}
	if h.pins, err = openPins(h); err != nil {
		return nil, err
	}
	if h.trail, err = openTrail(ctx, h.cfg, who); err != nil {
		return nil, err
	}
	if h.gate, err = openGate(h.cfg, h.trail); err != nil {
		return nil, err
	}
	if err := h.registerBuiltins(); err != nil {
		return nil, err
	}
	if err := h.cue(settings); err != nil {
		return nil, err
	}
	told, connected := &teller{events: cfg.Events, began: time.Now()}, &connections{host: h}
	if err := apartFrom(settings, cfg.Listen); err != nil {
		return nil, err
	}
	environ, err := underHosts(settings, cfg.Environ)
	if err != nil {
		return nil, err
	}
	h.servers, err = mcp.Startup(ctx, h.gate.entered(settings.MCP, cfg.Redactor), h.registry, mcp.Options{
		Name: "crewhost", Version: cfg.Version,
		Environ: environ, Guard: cfg.Guard, Logger: cfg.Logger, Redactor: cfg.Redactor, Route: h.gate.route,
		OnReport: func(r mcp.ServerReport) {
			told.report(r)
			if cfg.OnServer != nil {
				cfg.OnServer(r)
			}
		},
		OnChange: connected.change(ctx, told.change), OnRequest: connected.request(), OnOffers: h.onOffers(),
		Respondent: cfg.Respondent, Sampler: sampler{h}, Roots: rootsOf(h.placed.mounts),
	})
	var required *mcp.RequiredError
	switch {
	case errors.As(err, &required):
		told.started(nil)
		return nil, err
	case err != nil:
		return nil, err
	}
	told.started(h.servers)
	h.guard = permission.NewGuard(h.registry, h.policy, cfg.Approver)
	h.guard.Observe = h.observe
	if h.trail != nil {
		h.guard.Attest = h.trail.attest
	}
	h.guard.Around = h.around()
	h.guard.Approvals, h.guard.Answers = h.approvals(""), stepOfAnswer
	h.guard.Concurrent = client || cfg.ConcurrentApprovals
	return h, nil
}

// observe logs each call and what decided about it, and loudly a tool that broke
// down: the model is told nothing of the host's insides.
func (h *Host) observe(o permission.Observation) {
	attrs := []any{"tool", o.Call.Name, "outcome", o.Outcome, "decision", o.Decision.Reason, "took", o.Took}
	if o.Request.Server != "" {
		attrs = append(attrs, "server", o.Request.Server)
	}
	if o.Call.Agent != "" {
		attrs = append(attrs, "agent", o.Call.Agent, "task", o.Call.Task)
	}
	if o.Err != nil {
		attrs = append(attrs, "err", o.Err)
	}
	if o.Err != nil && o.Outcome == permission.ToolError {
		h.log.Error("a tool broke down", attrs...)
		return
	}
	h.log.Info("tool called", attrs...)
}

// Close ends the servers, all at once, and closes the mounts. It is idempotent.
func (h *Host) Close() error {
	var errs []error
	if h.servers != nil {
		errs = append(errs, h.servers.Close())
	}
	h.gate.close()
	if h.fs != nil {
		errs = append(errs, h.fs.Close())
	}
	errs = append(errs, h.programs.close())
	errs = append(errs, h.trail.close())
	return errors.Join(errs...)
}

// Servers returns the report of each server, in the order of the settings; those of
// agents follow in that of the crews.
func (h *Host) Servers() []mcp.ServerReport {
	if h.replays() {
		return h.taped.reports()
	}
	return h.servers.Reports()
}

// Tools returns the definitions of all tools, sorted by name.
func (h *Host) Tools() []tools.Definition { return h.registry.Definitions() }

// Call calls a tool behind the policy, as an agent's call is.
func (h *Host) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	return h.guard.Call(ctx, call)
}

// CallObserved is [Host.Call], and says how the call ended: whether the policy let it
// through, and who was asked.
func (h *Host) CallObserved(ctx context.Context, call tools.Call) (res tools.Result, came permission.Observation, err error) {
	guard := h.guard.With(h.guard.Policy())
	guard.Observe = func(o permission.Observation) {
		came = o
		h.observe(o)
	}
	res, err = guard.Call(ctx, call)
	return res, came, err
}

// Ping measures how long a server takes to answer.
func (h *Host) Ping(ctx context.Context, server string) (time.Duration, error) {
	return h.servers.Ping(ctx, server)
}

// catalog is the host as a crew is judged against it.
type catalog struct {
	host     *Host
	defs     []tools.Definition
	names    []string // of the tools that any agent may name
	profiles []string
	servers  []mcp.ServerReport
}

func (h *Host) catalog() catalog {
	c := catalog{host: h, defs: h.Tools(), profiles: h.models.ids(), servers: h.Servers()}
	for _, d := range c.defs {
		if !h.isOfAgents(d) {
			c.names = append(c.names, d.Name)
		}
	}
	return c
}

// Tools returns the names of the tools that are there for any agent.
func (c catalog) Tools() []string { return c.names }

// Profiles returns the ids of the model profiles.
func (c catalog) Profiles() []string { return c.profiles }

// Off says what keeps a tool of the host's own off.
func (c catalog) Off(tool string) string { return c.host.whyOff(tool) }

// Missing says why a server's tool is not there: its server skipped it, or some
// server failed and may have been the one to bring it.
func (c catalog) Missing(tool string) string {
	var failed []string
	for _, d := range c.defs {
		if d.Name == tool && c.host.isOfAgents(d) {
			return fmt.Sprintf("MCP server %q is an agent's own, and a toolset of that agent brings its tools: {type: mcp_toolset, mcp_server_name: %s}", d.Server, d.Server)
		}
	}
	for _, r := range c.servers {
		for _, s := range r.Skipped {
			if s.Tool == tool || r.Agents != nil && crew.ToolName(r.Name, s.Tool) == tool {
				return fmt.Sprintf("MCP server %q offers it, but it was not registered: %s", r.Name, s.Reason)
			}
		}
		if r.Err != nil && r.Agents == nil {
			failed = append(failed, fmt.Sprintf("%q", r.Name))
		}
	}
	switch len(failed) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("MCP server %s, which could not be connected, may be the one that offers it", failed[0])
	default:
		slices.Sort(failed)
		return fmt.Sprintf("one of the MCP servers that could not be connected may offer it: %s", join(failed))
	}
}
