package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/runner"
)

const (
	openFlag    = "open"
	timeoutFlag = "timeout"
)

func loginCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "login",
		Usage:     "log in to a server that wants OAuth, and keep its tokens",
		ArgsUsage: "SERVER",
		Flags: append(settingsFlags(),
			&cli.BoolFlag{Name: openFlag, Usage: "open the browser, rather than say where to go"},
			&cli.DurationFlag{Name: timeoutFlag, Usage: "wait this `LONG` for the login", Value: 5 * time.Minute}),
		Action: func(ctx *cli.Context) error { return mcpLogin(ctx, c) },
	}
}

func logoutCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "logout",
		Usage:     "forget the tokens of a server",
		ArgsUsage: "SERVER",
		Flags:     settingsFlags(),
		Action:    func(ctx *cli.Context) error { return mcpLogout(ctx, c) },
	}
}

// loginSession reads the settings for the one server that is named, which must be
// called over HTTP.
func loginSession(ctx *cli.Context, c *console, command string) (*session, string, error) {
	if ctx.NArg() != 1 {
		return nil, "", usagef("mcp %s: name one server: crewhost mcp %s SERVER", command, command)
	}
	anchor, err := anchorOf("")
	if err != nil {
		return nil, "", err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return nil, "", err
	}
	name := ctx.Args().First()
	i := slices.IndexFunc(s.settings.MCP.Servers, func(server config.Server) bool { return server.Name == name })
	switch {
	case i < 0:
		return nil, "", usagef("the settings have no MCP server %q", name)
	case !s.settings.MCP.Servers[i].Transport.Remote():
		return nil, "", usagef("MCP server %q is started, not called: it has no login", name)
	}
	return s, name, nil
}

func (s *session) loginOptions() (mcp.Options, error) {
	route, err := runner.LoginRoute(s.settings)
	return mcp.Options{
		Name: "crewhost", Version: version().Version,
		Environ: s.console.environ, Logger: s.log, Redactor: s.console.redactor, Route: route,
	}, err
}

// mcpLogin logs in to a server, and says what that gave.
func mcpLogin(ctx *cli.Context, c *console) error {
	wait := ctx.Duration(timeoutFlag)
	if wait <= 0 {
		return usagef("--timeout %v: it takes a duration above zero", wait)
	}
	s, name, err := loginSession(ctx, c, "login")
	if err != nil {
		return err
	}
	login, err := s.logIn(ctx.Context, name, wait, ctx.Bool(openFlag))
	if errors.Is(err, mcp.ErrOpen) {
		_, err = fmt.Fprintf(c.out, "%q takes requests without a login; nothing was stored.\n", name)
		return err
	}
	if err != nil {
		return &runner.RunError{Err: err}
	}
	renewal := "renewed without another login"
	if !login.Renews {
		renewal = "not renewed: log in again when it has expired"
	}
	scopes := "no scopes"
	if len(login.Scopes) > 0 {
		scopes = "scopes " + strings.Join(login.Scopes, " ")
	}
	_, err = fmt.Fprintf(c.out, "Logged in to %q by %s (%s).\nThe token is in %s, and is %s.\n", name, login.Issuer, scopes, login.Store, renewal)
	return err
}

// logIn sends a person to where they log in, and waits for them a while.
func (s *session) logIn(ctx context.Context, name string, wait time.Duration, open bool) (mcp.Login, error) {
	opts, err := s.loginOptions()
	if err != nil {
		return mcp.Login{}, err
	}
	opts.Browse = func(ctx context.Context, url string) error {
		if _, err := fmt.Fprintf(s.console.err, "To log in to %q, open this in a browser on this machine, within %v:\n\n  %s\n\n", name, wait, url); err != nil {
			return err
		}
		if open {
			if err := openBrowser(ctx, url); err != nil {
				s.log.Warn("the browser was not opened", "error", err)
			}
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	login, err := mcp.LogIn(ctx, s.settings.MCP, name, opts)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return login, fmt.Errorf("logging in to %q: nobody came back within %v", name, wait)
	case err != nil:
		return login, fmt.Errorf("logging in: %w", err)
	}
	return login, nil
}

// mcpLogout forgets what is stored, which may be nothing.
func mcpLogout(ctx *cli.Context, c *console) error {
	s, name, err := loginSession(ctx, c, "logout")
	if err != nil {
		return err
	}
	opts, err := s.loginOptions()
	if err != nil {
		return err
	}
	ok, err := mcp.LogOut(ctx.Context, s.settings.MCP, name, opts)
	if err != nil {
		return &runner.RunError{Err: fmt.Errorf("logging out: %w", err)}
	}
	text := "Forgot the tokens of %q.\n"
	if !ok {
		text = "No tokens of %q are stored.\n"
	}
	_, err = fmt.Fprintf(c.out, text, name)
	return err
}

// openBrowser opens a URL as this system does. No shell sees it.
func openBrowser(ctx context.Context, url string) error {
	argv := []string{"xdg-open", url}
	switch runtime.GOOS {
	case "darwin":
		argv = []string{"open", url}
	case "windows":
		argv = []string{"rundll32", "url.dll,FileProtocolHandler", url}
	}
	return exec.CommandContext(ctx, argv[0], argv[1:]...).Run()
}
