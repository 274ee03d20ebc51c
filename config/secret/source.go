package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// ErrNotFound is the error of [Resolve] where no source has the secret.
var ErrNotFound = errors.New("the secret is not there")

// maxSecret bounds what a file or a program may give.
const maxSecret = 64 << 10

// Resolve returns the secret that ref names, asking the sources in turn. A ref
// to a literal needs none, and the zero Ref is the empty secret. What the ref
// itself holds stands in where no source has the secret; else the error is
// [ErrNotFound]. No error holds a secret.
//
//	key, err := secret.Resolve(ctx, profile.APIKey, secret.Env(os.Environ()), secret.File{}, secret.Command{})
func Resolve(ctx context.Context, ref Ref, sources ...Source) (Value, error) {
	if ref.IsZero() || ref.Source == FromLiteral {
		return ref.Value, nil
	}
	for _, s := range sources {
		v, ok, err := s.Lookup(ctx, ref)
		if err != nil {
			return Value{}, fmt.Errorf("resolving %s: %w", ref, err)
		}
		if ok && !v.IsZero() {
			return v, nil
		}
	}
	if !ref.Value.IsZero() {
		return ref.Value, nil
	}
	return Value{}, fmt.Errorf("resolving %s: %w", ref, ErrNotFound)
}

// Env finds secrets among NAME=value lines, as [os.Environ] gives them. An empty
// variable is none.
type Env []string

// Lookup implements [Source].
func (e Env) Lookup(_ context.Context, ref Ref) (v Value, ok bool, err error) {
	if ref.Source != FromEnv {
		return Value{}, false, nil
	}
	for _, line := range e { // the last of several counts
		if name, value, _ := strings.Cut(line, "="); name == ref.Name {
			v = New(value)
		}
	}
	return v, !v.IsZero(), nil
}

// File finds secrets in files that hold nothing else, of at most 64 KiB. The
// line breaks at the end are not part of the secret.
type File struct {
	// Logger, if any, is told of a file that others than its owner may read.
	Logger *slog.Logger
}

// Lookup implements [Source]. A missing file is not an error.
func (f File) Lookup(_ context.Context, ref Ref) (v Value, ok bool, err error) {
	if ref.Source != FromFile {
		return Value{}, false, nil
	}
	file, err := os.Open(ref.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return Value{}, false, nil
	}
	if err != nil {
		return Value{}, false, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return Value{}, false, err
	}
	if f.Logger != nil && runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		f.Logger.Warn("others may read the file of a secret", "file", ref.Name, "mode", info.Mode().Perm().String(), "hint", "chmod 600")
	}
	data, err := io.ReadAll(io.LimitReader(file, maxSecret+1))
	if err != nil {
		return Value{}, false, err
	}
	if len(data) > maxSecret {
		return Value{}, false, fmt.Errorf("the file has more than %d bytes", maxSecret)
	}
	v = New(strings.TrimRight(string(data), "\r\n"))
	return v, !v.IsZero(), nil
}

// Command finds secrets in what programs print, at most 64 KiB. No shell sees
// the arguments; stdin is empty and stderr is dropped, since programs for
// secrets are not careful with it. The line breaks at the end are not part of
// the secret.
type Command struct {
	// Timeout bounds a run; 30 s where zero.
	Timeout time.Duration
	// Environ is the environment of the programs; that of this process where nil.
	Environ []string
}

// Lookup implements [Source].
func (c Command) Lookup(ctx context.Context, ref Ref) (v Value, ok bool, err error) {
	if ref.Source != FromCommand {
		return Value{}, false, nil
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, ref.Name, ref.Args...)
	cmd.Env = c.Environ
	cmd.WaitDelay = time.Second // a grandchild may hold the pipe
	ownGroup(cmd)
	out := bounded{stop: cancel}
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		switch {
		case out.full:
			return Value{}, false, fmt.Errorf("the program printed more than %d bytes", maxSecret)
		case ctx.Err() != nil:
			return Value{}, false, fmt.Errorf("the program was stopped: %w", ctx.Err())
		}
		return Value{}, false, fmt.Errorf("running the program: %w", err)
	}
	v = New(strings.TrimRight(out.text.String(), "\r\n"))
	return v, !v.IsZero(), nil
}

// bounded is a buffer that refuses more than maxSecret bytes. It does not embed
// its buffer, whose ReadFrom has no bound.
type bounded struct {
	text bytes.Buffer
	full bool
	stop func() // ends the program, which nobody reads any more
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxSecret {
		b.full = true
		b.stop()
		return 0, errors.New("too much output")
	}
	return b.text.Write(p)
}
