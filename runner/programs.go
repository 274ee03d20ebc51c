package runner

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/mcp/child"
	"crewhost/tools/builtin/shell"
)

// programGrace is how long what a program left behind has to end when the program has.
const programGrace = 200 * time.Millisecond

// programs are those that agents run by shell_command: as servers are run, each in a tree
// of its own, of which nothing is left when its call ends, nor when the host is killed.
// The zero value has no guard.
type programs struct {
	argv []string // of the guard

	mu    sync.Mutex
	guard *child.Guard
}

// shellConfig is what the settings say of shell_command.
func (h *Host) shellConfig() *shell.Config {
	settings := h.cfg.Settings.Tools.Shell
	cfg := &shell.Config{
		Timeout: settings.Timeout, Bytes: settings.Bytes, Interpreters: settings.Interpreters, Network: settings.Network,
		Host: h.cfg.Environ, Run: h.programs.run, Required: settings.Confine == config.ConfineRequire,
	}
	for _, p := range settings.Allow {
		cfg.Allow = append(cfg.Allow, p.Pattern)
	}
	for _, e := range settings.Environ {
		h.cfg.Redactor.Add(e.Secrets()...)
		cfg.Environ = append(cfg.Environ, e.Reveal())
	}
	if settings.Confine != config.ConfineOff && len(h.cfg.Confine) > 0 && shell.CanConfine() == nil {
		cfg.Confine = h.cfg.Confine
	}
	return cfg
}

// warnUnconfined says once what it means that programs can't be confined.
func (h *Host) warnUnconfined() {
	settings := h.cfg.Settings.Tools.Shell
	if !settings.Enabled || settings.Confine == config.ConfineOff || h.replays() {
		return
	}
	err := shell.CanConfine()
	if err == nil && len(h.cfg.Confine) == 0 {
		err = errors.New("the host was started without a helper for it")
	}
	switch {
	case err == nil:
	case settings.Confine == config.ConfineRequire:
		h.log.Warn("shell_command runs nothing: programs can't be confined on this system, and tools.shell.confine: auto, which would run them all the same, is not set", "err", err)
	default:
		h.log.Warn("programs that agents run by shell_command are not confined: they can read what you can", "err", err)
	}
}

// run runs a program until it and all that came of it is gone. What it wrote is there when
// this returns.
func (ps *programs) run(ctx context.Context, p shell.Program) (shell.Outcome, error) {
	guard, err := ps.guarded()
	if err != nil {
		return shell.Outcome{}, err
	}
	process, err := child.Start(ctx, child.Config{
		Command: p.Path, Args: p.Args, Dir: p.Dir, Env: p.Environ,
		Label:           "the program", // its arguments hold folders of the host
		ShutdownTimeout: programGrace,
		Guard:           guard,
		Stderr:          func(line string) { _, _ = io.WriteString(p.Stderr, line+"\n") },
	})
	if err != nil {
		return shell.Outcome{}, err
	}
	defer context.AfterFunc(ctx, process.Kill)()
	var streams sync.WaitGroup
	streams.Go(func() {
		_, _ = io.Copy(process.Stdin(), strings.NewReader(p.Stdin)) // it need not read all
		process.Stdin().Close()
	})
	read := make(chan struct{})
	streams.Go(func() {
		defer close(read)
		_, _ = io.Copy(p.Stdout, process.Stdout()) // to the end, or until Close
	})
	<-process.Done()
	// What it wrote is in the pipe; one of its children may hold that open.
	settle := time.NewTimer(programGrace)
	defer settle.Stop()
	select {
	case <-read:
	case <-settle.C:
	}
	err = process.Close()
	streams.Wait()
	if ctx.Err() != nil {
		return shell.Outcome{}, context.Cause(ctx)
	}
	exit, _ := process.Exit()
	if exit.Signal != "" {
		exit.Code = 0
	}
	return shell.Outcome{Code: exit.Code, Signal: exit.Signal}, err
}

// guarded is the guard, which is started for the first program.
func (ps *programs) guarded() (*child.Guard, error) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.guard != nil || len(ps.argv) == 0 {
		return ps.guard, nil
	}
	guard, err := child.StartGuard(ps.argv)
	if err == nil {
		ps.guard = guard
	}
	return guard, err
}

// close ends the guard, when no program runs any more.
func (ps *programs) close() error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.guard.Close()
}
