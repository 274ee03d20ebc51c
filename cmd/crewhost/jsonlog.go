package main

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// jsonLines makes a JSON record of each line that is none yet: with --log-format
// json, stderr is a log from its first line to its last.
type jsonLines struct {
	out io.Writer
	log *slog.Logger

	mu   sync.Mutex
	rest []byte // of a line that has not ended
}

func newJSONLines(out io.Writer) *jsonLines {
	return &jsonLines{out: out, log: slog.New(slog.NewJSONHandler(out, nil))}
}

// Write implements [io.Writer].
func (j *jsonLines) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.rest = append(j.rest, p...)
	for {
		line, rest, ended := bytes.Cut(j.rest, []byte("\n"))
		if !ended {
			j.rest = bytes.Clone(line)
			return len(p), nil
		}
		j.rest = rest
		if bytes.HasPrefix(line, []byte("{")) && json.Valid(line) {
			if _, err := j.out.Write(append(bytes.Clone(line), '\n')); err != nil {
				return len(p), err
			}
			continue
		}
		text := strings.TrimSpace(string(line))
		switch {
		case strings.HasPrefix(text, "ERROR: "):
			j.log.Error(strings.TrimPrefix(text, "ERROR: "))
		case strings.HasPrefix(text, "WARNING: "):
			j.log.Warn(strings.TrimPrefix(text, "WARNING: "))
		case text != "":
			j.log.Info(text)
		}
	}
}

// record writes a text of several lines that belong together.
func (j *jsonLines) record(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log.Info(text)
}
