package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test binary a program that prints a secret.
func TestMain(m *testing.M) {
	switch os.Getenv("SECRET_TEST_PROGRAM") {
	case "print":
		fmt.Fprintln(os.Stderr, "noise "+hunter)
		fmt.Println(strings.Join(os.Args[1:], "|"))
	case "fail":
		fmt.Println(hunter)
		fmt.Fprintln(os.Stderr, hunter)
		os.Exit(3)
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat(hunter, 1000)); err != nil {
				os.Exit(1)
			}
		}
	case "hang":
		interrupt := make(chan os.Signal, 1)
		signal.Notify(interrupt, os.Interrupt)
		<-interrupt
	default:
		os.Exit(m.Run())
	}
}

func program(t *testing.T, what string, args ...string) (Ref, Command) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Ref{Source: FromCommand, Name: self, Args: args}, Command{Environ: []string{"SECRET_TEST_PROGRAM=" + what}}
}

func TestResolve(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	if err := os.WriteFile(path, []byte(hunter+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, bytes.Repeat([]byte("x"), maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, command := program(t, "print", "a b", "", "$HOME")
	sources := []Source{Env{"KEY=first", "KEY=" + hunter, "EMPTY=", "broken"}, File{}, command}
	for _, c := range []struct {
		name string
		ref  Ref
		want string
		err  string
	}{
		{"none", Ref{}, "", ""},
		{"a literal", Ref{Source: FromLiteral, Value: New("x")}, "x", ""},
		{"a variable", Ref{Source: FromEnv, Name: "KEY", Value: New("default")}, hunter, ""},
		{"an empty variable with a default", Ref{Source: FromEnv, Name: "EMPTY", Value: New("default")}, "default", ""},
		{"an unset variable", Ref{Source: FromEnv, Name: "NOPE"}, "", "resolving env:NOPE: the secret is not there"},
		{"a line that is no variable", Ref{Source: FromEnv, Name: "broken"}, "", "resolving env:broken: the secret is not there"},
		{"a file", Ref{Source: FromFile, Name: path}, hunter, ""},
		{"no file", Ref{Source: FromFile, Name: path + "x"}, "", "resolving file:" + path + "x: the secret is not there"},
		{"a large file", Ref{Source: FromFile, Name: big}, "", "resolving file:" + big + ": the file has more than 65536 bytes"},
		{"a program", printed, "a b||$HOME", ""},
		{"another source", Ref{Source: "vault", Name: "x"}, "", "resolving vault:x: the secret is not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, err := Resolve(t.Context(), c.ref, sources...)
			if v.Reveal() != c.want {
				t.Errorf("got %q, want %q", v.Reveal(), c.want)
			}
			if got := fmt.Sprint(err); err != nil && got != c.err || err == nil && c.err != "" {
				t.Errorf("error %v, want %s", err, c.err)
			}
			if c.err != "" && strings.HasSuffix(c.err, "not there") && !errors.Is(err, ErrNotFound) {
				t.Error("not ErrNotFound")
			}
		})
	}
}

// TestCommandIsBounded: a program that fails, floods or hangs costs an error that
// shows nothing of what it printed.
func TestCommandIsBounded(t *testing.T) {
	for what, want := range map[string]string{
		"fail":  "running the program: exit status 3",
		"flood": "the program printed more than 65536 bytes",
	} {
		ref, command := program(t, what)
		_, err := Resolve(t.Context(), ref, command)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), hunter) {
			t.Errorf("%s: %v", what, err)
		}
	}
	ref, command := program(t, "hang")
	command.Timeout = 50 * time.Millisecond
	if _, err := Resolve(t.Context(), ref, command); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("hang: %v", err)
	}
	ref.Name = filepath.Join(t.TempDir(), "nope")
	if _, err := Resolve(t.Context(), ref, command); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no program: %v", err)
	}
}

func TestFileThatOthersMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such bits")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(hunter), 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	v, err := Resolve(t.Context(), Ref{Source: FromFile, Name: path}, File{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || v.Reveal() != hunter {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "others may read") || strings.Contains(log.String(), hunter) {
		t.Error(log.String())
	}
}

func ExampleResolve() {
	ref := Ref{Source: FromEnv, Name: "MODEL_KEY"}
	key, err := Resolve(context.Background(), ref, Env{"MODEL_KEY=hunter2"})
	fmt.Println(ref, key, err)
	// Output: env:MODEL_KEY ••• <nil>
}
