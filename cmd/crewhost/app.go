package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lmittmann/tint"
	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/mcp"
	"crewhost/mcp/child"
	"crewhost/runner"
	"crewhost/runner/event"
)

// runApp parses a command line and carries it out.
func runApp(ctx context.Context, c *console, args []string) error {
	app := newApp(c)
	args = arrange(app, args)
	if command, _ := find(app.Commands, args); command != nil && serves(command) && !slices.Contains(args, completionFlag) {
		app.Writer = c.err // stdout is for the protocol, help or not (I7)
	}
	defer c.closeTelemetry(ctx)
	return app.RunContext(ctx, append([]string{app.Name}, args...))
}

func newApp(c *console) *cli.App {
	app := &cli.App{
		Name:                      "crewhost",
		Usage:                     "hosts crews of LLM agents and the MCP servers that they use",
		UsageText:                 "crewhost [run] CREW [options]\ncrewhost COMMAND [options]",
		Reader:                    c.in,
		Writer:                    c.out,
		ErrWriter:                 c.err,
		DisableSliceFlagSeparator: true, // a value may hold a comma
		HideVersion:               true, // the command says it; -v is for verbosity
		HideHelpCommand:           true,
		EnableBashCompletion:      true,
		ExitErrHandler:            func(*cli.Context, error) {}, // main exits, once
		OnUsageError:              onUsageError,
		Commands: []*cli.Command{
			runCommand(c),
			mcpCommand(c),
			toolsCommand(c),
			policyCommand(c),
			lockCommand(c),
			memoryCommand(c),
			runsCommand(c),
			auditCommand(c),
			vaultCommand(c),
			replayCommand(c),
			doctorCommand(c),
			eventsCommand(c),
			initCommand(c),
			completionCommand(c),
			versionCommand(c),
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "crewhost --help lists the commands")
			}
			return cli.ShowAppHelp(ctx)
		},
	}
	quietUsage(app.Commands)
	return app
}

// unknownCommand is what is said of a word that is none of the commands.
func unknownCommand(ctx *cli.Context, word, known string) error {
	of, near := "", ""
	if ctx.Command.Name != ctx.App.Name {
		of = ctx.Command.Name + ": "
	}
	var names []string
	for _, c := range ctx.Command.Subcommands {
		names = append(names, c.Name)
	}
	if n := strict.Nearest(word, names); n != "" {
		near = fmt.Sprintf(" (did you mean %q?)", n)
	}
	return usagef("%sunknown command %q%s; %s", of, word, near, known)
}

// quietUsage makes a wrong flag one line instead of a page of help.
func quietUsage(commands []*cli.Command) {
	for _, command := range commands {
		command.OnUsageError = onUsageError
		command.HideHelpCommand = true
		quietUsage(command.Subcommands)
	}
}

func onUsageError(ctx *cli.Context, err error, _ bool) error {
	name := "crewhost"
	if ctx != nil && ctx.Command != nil && ctx.Command.Name != "" {
		name = ctx.Command.HelpName
	}
	return usagef("%s: %v; %s --help lists the flags", name, err, name)
}

// Flags that several commands share.
const (
	settingsFlag  = "settings"
	mountFlag     = "mount"
	mountIDFlag   = "mount-id"
	profileFlag   = "llm-profile"
	approveFlag   = "approve"
	formatFlag    = "format"
	verbosityFlag = "v"
	logFormatFlag = "log-format"
)

// settingsFlags are of all commands that read the settings.
func settingsFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: settingsFlag, Aliases: []string{"s"}, Usage: "read settings from `FILE` only"},
		&cli.IntFlag{Name: verbosityFlag, Usage: "log `LEVEL`: 0 warnings, 1 what happens, 2 everything"},
		&cli.StringFlag{Name: logFormatFlag, Usage: "write what goes to stderr as `text|json`", Value: "text"},
	}
}

func hostFlags() []cli.Flag {
	return append(append(settingsFlags(), mountFlags()...),
		&cli.StringFlag{Name: approveFlag, Usage: "answer for calls that the policy asks about: `ask|allow|deny`", Value: "ask"},
	)
}

// mountFlags say what is mounted beside the settings, or of them.
func mountFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: mountFlag, Aliases: []string{"m"}, Usage: "mount `DIR:/ROOT:RIGHTS` (ro, rw or rwnd); may repeat"},
		&cli.StringSliceFlag{Name: mountIDFlag, Usage: "of the mounts of the settings at one root, take that with the id `ULID`; may repeat"},
	}
}

func formatFlagOf(formats ...string) cli.Flag {
	return &cli.StringFlag{Name: formatFlag, Usage: "write results as `" + strings.Join(formats, "|") + "`", Value: formats[0]}
}

// oneOf checks a flag whose values are few.
func oneOf(ctx *cli.Context, name string, values ...string) (string, error) {
	got := ctx.String(name)
	for _, v := range values {
		if got == v {
			return got, nil
		}
	}
	return "", usagef("--%s %q: it takes %s", name, got, strings.Join(values, ", "))
}

// session is what the commands that open a host share.
type session struct {
	console  *console
	settings *config.Settings
	log      *slog.Logger
	progress *progress
	events   *event.Stream // of what happens; progress shows it
	serving  bool          // to MCP clients, who may be asked
	alone    bool          // no server of the settings is there, whose tools rules may be about
}

// newSession reads the settings for a crew at anchor (a folder). Their secrets
// are masked on stderr from then on.
func newSession(ctx *cli.Context, c *console, anchor string) (*session, error) {
	s := &session{console: c}
	if ctx.IsSet(settingsFlag) && ctx.String(settingsFlag) == "" {
		return nil, usagef("--settings is empty: name a file")
	}
	levels := []slog.Level{slog.LevelWarn, slog.LevelInfo, slog.LevelDebug}
	verbosity := ctx.Int(verbosityFlag)
	if verbosity < 0 || verbosity >= len(levels) {
		return nil, usagef("-v %d: it takes 0, 1, 2", verbosity)
	}
	level := levels[verbosity]
	format, err := oneOf(ctx, logFormatFlag, "text", "json")
	if err != nil {
		return nil, err
	}
	colour := c.colour() && format == "text"
	s.log = slog.New(tint.NewTextHandler(c.err, &tint.Options{Level: level, NoColor: !colour, TimeFormat: "15:04:05.000"}))
	if format == "json" {
		s.log = slog.New(slog.NewJSONHandler(c.err, &slog.HandlerOptions{Level: level}))
		c.err = newJSONLines(c.err)
	}
	s.progress = newProgress(c.err, colour)
	s.events = event.NewStream("", time.Now, s.progress.event)
	s.openTelemetry(ctx)

	unset := ""
	if replays(ctx) { // nobody is asked by what the settings name
		unset = "http://unset.invalid"
	}
	settings, err := config.Load(config.Source{
		Unset:         unset,
		Explicit:      ctx.String(settingsFlag),
		CrewDir:       anchor,
		UserConfigDir: userConfigDir(c.environ),
		UserStateDir:  userStateDir(c.environ),
		Environ:       c.environ,
		Reserved: []string{
			child.TreeVariable, // of a crewhost that started this one
			mcp.KeyVariable,
			mcp.HostsVariable,
			runner.VaultKeyVariable,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	if ctx.Bool(lockedFlag) {
		settings.MCP.Locked = true
	}
	if err := lockFileOf(ctx, settings); err != nil {
		return nil, err
	}
	s.settings = settings
	c.redactor.Add(settings.Secrets()...)
	if settings.Path != "" {
		s.log.Info("using settings", "file", settings.Path)
	}
	return s, nil
}

// open opens the host: from here on children run, and close ends them.
func (s *session) open(ctx *cli.Context, changes ...func(*runner.Config)) (*runner.Host, error) {
	modes := []string{"ask", "allow", "deny"}
	if s.serving {
		modes = append(modes, approveByClient)
	}
	mode, err := oneOf(ctx, approveFlag, modes...)
	if err != nil {
		return nil, err
	}
	return s.openAs(ctx, mode, changes...)
}

// openAs is open where the flag --approve would say mode.
func (s *session) openAs(ctx *cli.Context, mode string, changes ...func(*runner.Config)) (*runner.Host, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the working directory: %w", err)
	}
	for _, w := range s.settings.Warnings {
		s.warn(w)
	}
	person := newPerson(s.console, s.progress, mode)
	cfg := runner.Config{
		Settings:   s.settings,
		Mounts:     ctx.StringSlice(mountFlag),
		MountIDs:   ctx.StringSlice(mountIDFlag),
		Dir:        dir,
		Profile:    ctx.String(profileFlag),
		Approver:   person.approver(),
		Asker:      person,
		Respondent: person.respondent(),
		Telemetry:  s.console.telemetry,
		Environ:    s.console.environ,
		Logger:     s.log,
		Redactor:   s.console.redactor,
		Guard:      []string{self, guardArgument},
		Confine:    []string{self, confineArgument},
		Version:    version().Version,
		OnServer:   s.progress.server,
		Events:     s.events,

		WriteJournal: s.console.writeJournal,
	}
	for _, change := range changes {
		change(&cfg)
	}
	host, err := runner.Open(ctx.Context, cfg)
	if err != nil {
		return nil, err
	}
	for _, r := range host.Servers() {
		for _, skip := range r.Skipped { // each tool that could not be registered (O12)
			s.events.Emit(event.Event{Kind: event.Notice, Text: skip.String(), Code: codeToolSkipped})
		}
	}
	for _, w := range host.MountNotes() {
		s.warn(w)
	}
	if s.alone {
		return host, nil
	}
	for _, w := range host.IdleRules() {
		s.warn(w)
	}
	return host, nil
}

// codeToolSkipped is the code of a notice of a tool that was not registered.
const codeToolSkipped = "tool_skipped"

// warn says something that a person should know before the run.
func (s *session) warn(text string) { s.events.Emit(event.Event{Kind: event.Notice, Text: text}) }

func (c *console) colour() bool {
	return c.terminal && c.getenv("NO_COLOR") == "" && c.getenv("TERM") != "dumb"
}

func (c *console) getenv(name string) string {
	for _, kv := range c.environ {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

// userConfigDir is where a user's settings live, or "" where nobody says.
func userConfigDir(environ []string) string {
	c := console{environ: environ}
	if dir := c.getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := c.getenv("APPDATA"); filepath.IsAbs(dir) {
		return dir
	}
	if home := c.getenv("HOME"); home != "" {
		return filepath.Join(home, ".config")
	}
	return ""
}

// userStateDir is where a user's programs keep what they have come to, or "" where
// nobody says.
func userStateDir(environ []string) string {
	c := console{environ: environ}
	if dir := c.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if dir := c.getenv("LOCALAPPDATA"); filepath.IsAbs(dir) {
		return dir
	}
	if home := c.getenv("HOME"); home != "" {
		return filepath.Join(home, ".local", "state")
	}
	return ""
}
