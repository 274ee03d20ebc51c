package main

import (
	"context"
	"log/slog"
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/config/secret"
	"crewhost/runner/telemetry"
)

// openTelemetry has what happens be told to a collector, where the OTEL_* variables
// ask for it; the log names traces from then on. The collector's key is masked like
// the secrets of the settings. A replay is told to nobody: it needs no network.
func (s *session) openTelemetry(ctx *cli.Context) {
	c := s.console
	for _, text := range telemetry.Secrets(c.environ) {
		c.redactor.Add(secret.New(text))
	}
	if replays(ctx) || c.telemetry != nil {
		return
	}
	log := s.log
	to, warnings := telemetry.Open(ctx.Context, telemetry.Config{
		Environ: c.environ, Version: version().Version, Redact: c.redactor.Redact, Console: c.err,
		Warn: func(line string) { log.Warn(line) },
	})
	for _, w := range warnings {
		s.progress.warn(w)
	}
	c.telemetry = to
	if to != nil {
		s.log = slog.New(to.Logs(log.Handler()))
		if lines, ok := c.err.(*jsonLines); ok {
			lines.log = slog.New(to.Logs(lines.log.Handler()))
		}
	}
}

// closeTelemetry exports what there is left. That it can't is worth a line for traces
// and one for metrics, and no other exit code.
func (c *console) closeTelemetry(ctx context.Context) {
	if err := c.telemetry.Close(ctx); err != nil {
		for line := range strings.SplitSeq(c.redactor.Redact(err.Error()), "\n") { // as errors.Join writes them
			newProgress(c.err, false).warn("telemetry: " + line)
		}
	}
	c.telemetry = nil
}
