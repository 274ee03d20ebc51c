package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"crewhost/tools/builtin/people"
	"crewhost/tools/permission"
)

// sit puts a person at a terminal whose stdin is what type writes.
func sit(t *testing.T, mode string) (p *person, keys *io.PipeWriter, screen *bytes.Buffer) {
	t.Helper()
	in, keys := io.Pipe()
	t.Cleanup(func() { _ = keys.Close() })
	screen = &bytes.Buffer{}
	c := &console{in: in, err: screen, terminal: true}
	return newPerson(c, newProgress(screen, false), mode), keys, screen
}

// ask asks about a call of a tool in the background.
func ask(ctx context.Context, p *person, tool string, scopes ...permission.Scope) func() (permission.Answer, error) {
	var answer permission.Answer
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err = p.Approve(ctx, permission.Question{
			Request: permission.Request{Tool: tool, Agent: "one"}, Decision: permission.Decision{Reason: "it is the default"}, Scopes: scopes,
		})
	}()
	return func() (permission.Answer, error) { <-done; return answer, err }
}

func typeIn(t *testing.T, keys io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(keys, text); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// The four answers at a terminal.
func TestApprove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, keys, screen := sit(t, "ask")
		for _, tt := range []struct {
			typed string
			want  permission.Answer
		}{
			{"\nY\n", permission.Answer{Allow: true, Scope: permission.Once}}, // an empty line is no answer
			{"n\n", permission.Answer{}},
			{"use the other one\n", permission.Answer{Reason: "use the other one"}},
			{"a\n", permission.Answer{Allow: true, Scope: permission.Run}},
			{"always\ny\n", permission.Answer{Allow: true, Scope: permission.Once}}, // it is not to be had
		} {
			result := ask(t.Context(), p, "shell")
			synctest.Wait()
			for line := range strings.Lines(tt.typed) {
				typeIn(t, keys, line)
			}
			if got, err := result(); err != nil || got != tt.want {
				t.Errorf("%q: %+v, %v", tt.typed, got, err)
			}
		}
		result := ask(t.Context(), p, "shell", permission.Once, permission.Run, permission.Always)
		synctest.Wait()
		typeIn(t, keys, "Always\n")
		if got, err := result(); err != nil || got != (permission.Answer{Allow: true, Scope: permission.Always}) {
			t.Errorf("always: %+v, %v", got, err)
		}
		if !strings.Contains(screen.String(), "Agent one wants to call shell") {
			t.Errorf("screen: %s", screen)
		}
		result = ask(t.Context(), p, "other")
		synctest.Wait()
		_ = keys.Close()
		gone := permission.Answer{Unasked: true, Reason: "nobody can be asked: stdin is closed"}
		if got, err := result(); err != nil || got != gone {
			t.Errorf("after the end: %+v, %v", got, err)
		}
		if got, err := ask(t.Context(), p, "other")(); err != nil || got != gone {
			t.Errorf("after the end, again: %+v, %v", got, err)
		}
	})
}

// What is typed when a question is over answers no other question.
func TestALateAnswerIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, keys, _ := sit(t, "ask")
		ctx, cancel := context.WithCancel(t.Context())
		first := ask(ctx, p, "harmless")
		synctest.Wait()
		cancel()
		if _, err := first(); !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
		typeIn(t, keys, "y\n") // too late
		second := ask(t.Context(), p, "dangerous")
		synctest.Wait()
		typeIn(t, keys, "n\n")
		if got, err := second(); err != nil || got.Allow {
			t.Errorf("the second: %+v, %v", got, err)
		}
		_ = keys.Close()
		synctest.Wait()
	})
}

// Arguments are a model's: they can't flood the screen, nor look like others.
func TestWhatAPersonIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, keys, screen := sit(t, "ask")
		done := make(chan struct{})
		go func() {
			defer close(done)
			arguments := `{"x":"` + strings.Repeat("long ", 100_000) + "\u202e\u009b2J" + `"}`
			_, _ = p.Approve(t.Context(), permission.Question{Changed: true, Request: permission.Request{Tool: "shell", Arguments: []byte(arguments)}})
		}()
		synctest.Wait()
		typeIn(t, keys, "n\n")
		<-done
		_ = keys.Close()
		synctest.Wait()
		if s := screen.String(); len(s) > 6_000 || strings.ContainsAny(s, "\u202e\u009b") || !strings.Contains(s, "characters left out") || !strings.Contains(s, "its server has changed what the tool says of itself since") {
			t.Errorf("%d bytes: %.6000q", len(s), s)
		}
	})
}

// human_input where nobody is: an answer is given by --approve alone, and never
// made up.
func TestAskUnattended(t *testing.T) {
	for _, tt := range []struct {
		mode string
		q    people.Question
		want string
		err  error
	}{
		{"ask", people.Question{Kind: people.KindApproval}, "", errNobody},
		{"ask", people.Question{Kind: people.KindText, Default: "x"}, "", errNobody},
		{"allow", people.Question{Kind: people.KindApproval}, "yes", nil},
		{"allow", people.Question{Kind: people.KindText, Default: "x"}, "x", nil},
		{"allow", people.Question{Kind: people.KindText}, "", errNobody},
		{"deny", people.Question{Kind: people.KindApproval}, "no", nil},
		{"deny", people.Question{Kind: people.KindText, Default: "x"}, "", errNobody},
	} {
		p, _, _ := sit(t, tt.mode)
		p.console.terminal = false
		if got, err := p.Ask(t.Context(), tt.q); got.Text != tt.want || got.Unasked != (got.Text == "no") || !errors.Is(err, tt.err) {
			t.Errorf("%s, %+v: %+v, %v", tt.mode, tt.q, got, err)
		}
	}
}
