package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/runner"
	"crewhost/tools/permission"
)

// approveByClient is the value of --approve that has the client's person asked.
const approveByClient = "client"

// serves reports whether a command has stdout for messages of the protocol alone.
func serves(command *cli.Command) bool {
	return slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return f.Names()[0] == "http" })
}

// serveFlags are the host's flags for a host that serves: there is one more who
// can be asked.
func serveFlags() []cli.Flag {
	flags := hostFlags()
	for i, f := range flags {
		if f.Names()[0] == approveFlag {
			flags[i] = &cli.StringFlag{Name: approveFlag, Usage: "answer for calls that the policy asks about: `ask|allow|deny|client`", Value: "ask"}
		}
	}
	return append(flags, &cli.StringFlag{Name: profileFlag, Usage: "use the model profile `ID`"})
}

func startCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "start",
		Usage:     "serve a surface of the settings to an MCP client, on stdio until stdin closes",
		ArgsUsage: "HANDLE",
		Flags: append(serveFlags(),
			&cli.BoolFlag{Name: "http", Usage: "serve it over HTTP, as the settings say, and not on stdio"}),
		Action: func(ctx *cli.Context) error {
			if ctx.NArg() > 1 && ctx.Bool("http") {
				return usagef("mcp start: one handle, not %s; where it listens over HTTP its http.listen says", strings.Join(ctx.Args().Slice(), " "))
			}
			if ctx.NArg() != 1 {
				return usagef("mcp start: name one handle; crewhost mcp list prints them")
			}
			handle := ctx.Args().First()
			return serve(ctx, c, !ctx.Bool("http"), func(s *config.Settings) (config.Served, error) {
				served, err := surfaceOf(s, handle)
				if err == nil && ctx.Bool("http") && served.HTTP == nil {
					err = usagef("mcp start: mcp.served.%s has no http: it is served on stdio alone", handle)
				}
				return served, err
			})
		},
	}
}

// surfaceOf returns the surface of a handle, whose case counts (I1, I2).
func surfaceOf(s *config.Settings, handle string) (config.Served, error) {
	var known []string
	for _, served := range s.MCP.Served {
		if served.Handle == handle {
			return served, nil
		}
		known = append(known, served.Handle)
	}
	if len(known) == 0 {
		return config.Served{}, usagef("the settings serve nothing, so there is no handle %q (mcp.served)", handle)
	}
	return config.Served{}, usagef("the settings have no handle %q; known: %s", handle, strings.Join(known, ", "))
}

func serveCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "serve",
		Usage: "serve the tools of this host to an MCP client, on stdio until stdin closes, or over HTTP",
		Flags: append(serveFlags(),
			&cli.StringFlag{Name: "tools", Usage: "serve these tools only: names or patterns `A,B`"},
			&cli.StringFlag{Name: "http", Usage: "listen on `HOST:PORT` instead of stdio"},
			&cli.StringSliceFlag{Name: "token-env", Usage: "over HTTP, take the bearer token in the variable `NAME`; may repeat"},
			&cli.StringSliceFlag{Name: "token-file", Usage: "over HTTP, take the bearer token in `FILE`; may repeat"},
			&cli.StringSliceFlag{Name: "allowed-origin", Usage: "over HTTP, let scripts of `ORIGIN` in; may repeat"},
			&cli.BoolFlag{Name: "allow-unauthenticated", Usage: "over HTTP, serve who has no token, also beyond this machine"}),
		Action: func(ctx *cli.Context) error {
			if err := atMost(ctx, 0); err != nil {
				return err
			}
			served, err := adHoc(ctx)
			if err != nil {
				return err
			}
			return serve(ctx, c, served.HTTP == nil, func(*config.Settings) (config.Served, error) { return served, nil })
		},
	}
}

// toolsFlag is where the patterns of --tools are written.
const toolsFlag = "--tools"

// adHoc is the surface that flags describe: all tools, or those named.
func adHoc(ctx *cli.Context) (config.Served, error) {
	served := config.Served{Tools: []config.Rule{{Pattern: "*", Pos: strict.Pos{File: toolsFlag}}}}
	if ctx.IsSet("tools") {
		served.Tools = nil
		for pattern := range strings.SplitSeq(ctx.String("tools"), ",") {
			if pattern = strings.TrimSpace(pattern); pattern == "" {
				return served, usagef("mcp serve: --tools %q names an empty tool", ctx.String("tools"))
			}
			served.Tools = append(served.Tools, config.Rule{Pattern: pattern, Pos: strict.Pos{File: toolsFlag}})
		}
	}
	if !ctx.IsSet("http") {
		for _, name := range []string{"token-env", "token-file", "allowed-origin", "allow-unauthenticated"} {
			if ctx.IsSet(name) {
				return served, usagef("mcp serve: --%s is for --http", name)
			}
		}
		return served, nil
	}
	h := &config.ServedHTTP{
		Listen: ctx.String("http"), Path: config.DefaultServedPath,
		AllowedOrigins: ctx.StringSlice("allowed-origin"), AllowUnauthenticated: ctx.Bool("allow-unauthenticated"),
	}
	if config.CheckListen(h.Listen) != nil {
		return served, usagef("mcp serve: --http %q is not HOST:PORT, such as 127.0.0.1:8931", h.Listen)
	}
	for _, name := range ctx.StringSlice("token-env") {
		h.Tokens = append(h.Tokens, config.NamedToken{Name: tokenName(name), Token: secret.Ref{Source: secret.FromEnv, Name: name}})
	}
	for _, file := range ctx.StringSlice("token-file") {
		path, err := filepath.Abs(file)
		if err != nil {
			return served, usagef("mcp serve: --token-file %q: %v", file, err)
		}
		h.Tokens = append(h.Tokens, config.NamedToken{Name: tokenName(filepath.Base(path)), Token: secret.Ref{Source: secret.FromFile, Name: path}})
	}
	served.HTTP = h
	return served, nil
}

var notOfName = regexp.MustCompile(`^[^A-Za-z0-9]+|[^A-Za-z0-9_.-]+`)

// tokenName is what logs call the bearer of a token that a flag gives.
func tokenName(text string) string {
	if name := notOfName.ReplaceAllString(text, ""); name != "" {
		return name
	}
	return "token"
}

// serve serves a surface: on stdio, or where its HTTP says. All that is no message
// of the protocol goes to stderr, whoever prints it (I7).
func serve(ctx *cli.Context, c *console, stdio bool, pick func(*config.Settings) (config.Served, error)) (err error) {
	aside := *c
	aside.out = c.err
	var out io.Writer
	if stdio {
		// Stdin is the protocol's too: nobody at a terminal can be asked by it (R3).
		aside.terminal = false
		claimed, err := c.claim()
		if err != nil {
			return fmt.Errorf("taking stdout for the protocol: %w", err)
		}
		defer claimed.Close()
		out = claimed
	}
	anchor, err := anchorOf("")
	if err != nil {
		return err
	}
	s, err := newSession(ctx, &aside, anchor)
	if err != nil {
		return err
	}
	c.err = aside.err // as the session has it
	served, err := pick(s.settings)
	if err != nil {
		return err
	}
	if !stdio {
		issues := faultsOfHTTP(ctx.Context, served, c.environ) // before servers start
		switch {
		case len(issues) == 1 && served.Handle == "":
			return usagef("%s", issues[0].Message)
		case len(issues) > 0:
			return issues
		}
	}
	host, err := s.openToServe(ctx, served, stdio)
	if err != nil {
		return err
	}
	defer closeHost(host, &err)
	if err := named(host, served); err != nil {
		return err
	}
	surface, err := host.Surface(ctx.Context, runner.ServeConfig{Served: served, OnEvent: s.progress.event})
	if err != nil {
		return err
	}
	for _, w := range surface.Warnings() {
		s.progress.warn(w)
	}
	if refused := surface.Refused(); len(refused) > 0 {
		s.progress.warn("the policy refuses every call of these served tools: " + strings.Join(refused, ", ") + "; permissions.allow, or --approve, says otherwise")
	}
	name := "the tools of this host"
	if served.Handle != "" {
		name = fmt.Sprintf("%q", served.Handle)
	}
	tools := count(len(surface.Tools()), "tool")
	if stdio {
		s.progress.line(green, fmt.Sprintf("serving %s on stdio: %s", name, tools))
		return stopped(ctx.Context, surface.ServeStdio(ctx.Context, c.in, out))
	}
	listening, err := surface.ListenHTTP(ctx.Context, *served.HTTP)
	if err != nil {
		return err
	}
	s.progress.line(green, fmt.Sprintf("serving %s at %s: %s", name, listening.URL(), tools))
	return stopped(ctx.Context, listening.Serve(ctx.Context))
}

// faultsOfHTTP is what is wrong with how a surface is served over HTTP, where it is.
func faultsOfHTTP(ctx context.Context, served config.Served, environ []string) strict.Issues {
	if served.HTTP == nil {
		return nil
	}
	where := "mcp serve: --http"
	if served.Handle != "" {
		where = "mcp.served." + served.Handle + ".http"
	}
	var issues strict.Issues
	var add func(err error)
	add = func(err error) {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range several.Unwrap() {
				add(err)
			}
		} else if err != nil {
			issues = append(issues, strict.Issue{Pos: served.HTTP.Pos, Code: codeServedHTTP, Message: where + ": " + err.Error()})
		}
	}
	add(runner.CheckHTTP(ctx, *served.HTTP, environ))
	return issues
}

// codeServedHTTP is the code of what is wrong with serving over HTTP.
const codeServedHTTP = "served-http"

// named refuses names of --tools that no tool has: who writes them means those.
func named(host *runner.Host, served config.Served) error {
	defs := host.Tools()
	for _, t := range served.Tools {
		if t.Pos.File != toolsFlag || strings.ContainsAny(t.Pattern, `*?\:`) || strings.HasPrefix(t.Pattern, "mcp__") {
			continue
		}
		known := make([]string, len(defs))
		for i, d := range defs {
			known[i] = d.Name
		}
		if !slices.Contains(known, t.Pattern) {
			hint := ""
			if near := strict.Nearest(t.Pattern, known); near != "" {
				hint = fmt.Sprintf(" (did you mean %q?)", near)
			}
			return usagef("mcp serve: --tools: there is no tool %q%s", t.Pattern, hint)
		}
	}
	return nil
}

// openToServe opens the host for clients. The policy's questions go to them where
// --approve says so, and what a crew asks where they can be asked; else everything
// is as where nobody is there.
func (s *session) openToServe(ctx *cli.Context, served config.Served, stdio bool) (*runner.Host, error) {
	s.serving = true
	return s.open(ctx, func(cfg *runner.Config) {
		cfg.Crews = runner.ServedCrews(served)
		client := runner.ClientPerson{Headless: permission.Verdict(s.settings.Permissions.Headless), Asker: cfg.Asker}
		if ctx.String(approveFlag) != "deny" {
			cfg.Asker = client
		}
		if ctx.String(approveFlag) == approveByClient {
			cfg.Approver, cfg.Respondent = client, client
		}
		if !stdio {
			cfg.Listen = served.HTTP.Listen
		}
	})
}

// errStopped is the end of a server that was told to end and did.
var errStopped = errors.New("stopped")

// stopped is the outcome of a server: SIGTERM is how servers are told to end, so an
// orderly end by it is success.
func stopped(ctx context.Context, err error) error {
	var by *signalError
	if errors.As(context.Cause(ctx), &by) && by.signal == syscall.SIGTERM && (err == nil || errors.Is(err, context.Canceled)) {
		return errStopped
	}
	if err != nil && ctx.Err() == nil {
		return &runner.RunError{Err: err}
	}
	return err
}
