package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"crewhost/config/secret"
)

const (
	// maxHidden is the most that is read as one secret from stdin.
	maxHidden = 256 << 10
	// maxTyped is the longest line that is taken from a terminal; of a longer one the
	// end would be missing.
	maxTyped = 4096
)

// asks reports whether a person can be asked for a secret: stdin is a terminal.
func (c *console) asks() (*os.File, bool) {
	file, ok := c.in.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// hidden asks a person at the terminal for a secret. The terminal shows nothing from
// before the question is there, and is as it was when this is over, though a signal
// ends it.
func (c *console) hidden(ctx context.Context, what string) (secret.Value, error) {
	file, ok := c.asks()
	if !ok {
		return secret.Value{}, errors.New("stdin is no terminal")
	}
	before, err := term.MakeRaw(int(file.Fd()))
	if err != nil {
		return secret.Value{}, fmt.Errorf("asking for %s: %w", what, err)
	}
	defer func() { _ = term.Restore(int(file.Fd()), before) }() // there is nobody to tell
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	fmt.Fprintf(c.err, "%s (not shown as you type; Enter ends it):\r\n", what)
	line := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{file, io.Discard}, "")
	// A read from a terminal can't be interrupted: this one ends with the program.
	go func() {
		text, err := line.ReadPassword("")
		got <- answer{text, err}
	}()
	select {
	case a := <-got:
		switch {
		case errors.Is(a.err, io.EOF): // Ctrl-C or Ctrl-D
			c.interrupt(&signalError{os.Interrupt})
			return secret.Value{}, context.Canceled
		case a.err != nil:
			return secret.Value{}, fmt.Errorf("reading %s: %w", what, a.err)
		case len(a.text) >= maxTyped:
			return secret.Value{}, usagef("%s is too long for a terminal; write it to stdin: < FILE", what)
		}
		return c.keep(strings.TrimSpace(a.text)), nil
	case <-ctx.Done():
		return secret.Value{}, context.Cause(ctx)
	}
}

// piped reads a secret from stdin to its end. The line breaks at the end are no part
// of it.
func (c *console) piped(what string) (secret.Value, error) {
	data, err := io.ReadAll(io.LimitReader(c.in, maxHidden+1))
	switch {
	case err != nil:
		return secret.Value{}, fmt.Errorf("reading %s from stdin: %w", what, err)
	case len(data) > maxHidden:
		return secret.Value{}, usagef("%s on stdin has more than %d bytes", what, maxHidden)
	}
	text := strings.TrimRight(string(data), "\r\n")
	if text == "" {
		return secret.Value{}, usagef("there is nothing on stdin, where %s is read from", what)
	}
	return c.keep(text), nil
}

// keep makes a secret of a text, which nothing that is printed repeats.
func (c *console) keep(text string) secret.Value {
	v := secret.New(text)
	c.redactor.Add(v)
	return v
}
