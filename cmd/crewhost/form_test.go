package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/secret"
	"crewhost/mcp"
)

// elicit asks a question in the background.
func elicit(ctx context.Context, p *person, q mcp.Question) func() (mcp.Answer, error) {
	var answer mcp.Answer
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, err = p.Elicit(ctx, q)
	}()
	return func() (mcp.Answer, error) { <-done; return answer, err }
}

// plain is an answer that can be compared.
func plain(a mcp.Answer) string {
	var parts []string
	for _, name := range []string{"note", "region", "zones", "count", "share", "sure", "key"} {
		if v, ok := a.Values[name]; ok {
			parts = append(parts, name+"="+v.Reveal())
		}
	}
	return strings.TrimSpace(string(a.Action) + " " + strings.Join(parts, " "))
}

// form is one field of every kind.
func form() mcp.Question {
	return mcp.Question{
		Server: "deployer", Tool: "deploy", Message: "Where to?\nSay it.",
		Fields: []mcp.Field{
			{Name: "note", Title: "A note", Description: "for the log", Kind: mcp.FieldText},
			{Name: "region", Kind: mcp.FieldChoice, Required: true, Choices: []mcp.Choice{{Value: "eu", Title: "Europe"}, {Value: "us"}}},
			{Name: "zones", Kind: mcp.FieldChoices, Choices: []mcp.Choice{{Value: "a"}, {Value: "b"}, {Value: "c"}}},
			{Name: "count", Kind: mcp.FieldInteger, Required: true},
			{Name: "share", Kind: mcp.FieldNumber, HasDefault: true, Default: "0.5"},
			{Name: "sure", Kind: mcp.FieldBoolean, Required: true},
			{Name: "key", Kind: mcp.FieldText, Required: true, Declared: secret.NewText("${KEY}", "hunter2", secret.New("hunter2"))},
		},
	}
}

// O19: a form at the terminal, with what a person may write, what is asked again,
// and the last word before anything is sent.
func TestForm(t *testing.T) {
	for name, tt := range map[string]struct {
		typed []string
		want  string
		shown []string
	}{
		"filled in": {
			[]string{"hello", "eu", "a, 3", "5", "0.25", "y", "k", "y"},
			`accept note=hello region=eu zones=["a","c"] count=5 share=0.25 sure=true key=k`,
			[]string{
				`MCP server "deployer" asks in a call of its tool "deploy":`, "  Where to?\n  Say it.\n", "note – A note – for the log\n",
				"region*\n  1) eu – Europe\n  2) us\n", "some of the choices; separated by commas; Enter alone leaves it out", "a whole number",
				`Enter alone means "0.5"`, "yes or no", "Enter alone means what your settings declare, ${KEY}", "  zones = ",
			},
		},
		"enter alone": {[]string{"", "1", "", "5", "", "no", "", "y"}, "accept region=eu count=5 share=0.5 sure=false key=hunter2", nil},
		"asked again": {
			[]string{"", "", "mars", "Europe", "x", "", "five", "5.0", "", "5", "lots", "", "perhaps", "Yes", "", "y"},
			"accept region=eu count=5 share=0.5 sure=true key=hunter2",
			[]string{"Not taken: it is required. Again:", "Not taken: it must be one of the choices", "Not taken: each must be one of the choices",
				"Not taken: it must be a number", "Not taken: it must be a whole number", "Not taken: it must be true or false"},
		},
		"left out":    {[]string{"/none", "/none", "us", "/none", "1", "/none", "n", "", "y"}, "accept region=us count=1 sure=false key=hunter2", nil},
		"declined":    {[]string{"x", "/decline"}, "decline", nil},
		"cancelled":   {[]string{"x", "us", "/cancel"}, "cancel", nil},
		"not sent":    {[]string{"", "us", "", "1", "", "y", "", "what?", "d"}, "decline", nil},
		"put aside":   {[]string{"", "us", "", "1", "", "y", "", "c"}, "cancel", nil},
		"once more":   {[]string{"", "us", "", "1", "", "y", "", "e", "", "eu", "", "2", "", "n", "", "y"}, "accept region=eu count=2 share=0.5 sure=false key=hunter2", nil},
		"other words": {[]string{"", "EU", "", "1", "", "y", "", "Y"}, "accept region=eu count=1 share=0.5 sure=true key=hunter2", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, keys, screen := sit(t, "ask")
				result := elicit(t.Context(), p, form())
				synctest.Wait()
				for _, line := range tt.typed {
					typeIn(t, keys, line+"\n")
				}
				answer, err := result()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, plain(answer)); diff != "" {
					t.Errorf("%s\n%s", diff, screen)
				}
				for _, want := range tt.shown {
					if !strings.Contains(screen.String(), want) {
						t.Errorf("%q is not on the screen:\n%s", want, screen)
					}
				}
				if strings.Contains(screen.String(), "hunter2") {
					t.Errorf("the screen shows a secret:\n%s", screen)
				}
				_ = keys.Close()
			})
		})
	}
}

// A question without fields is a yes or no; a page is only ever shown.
func TestFormOfNoFields(t *testing.T) {
	for name, tt := range map[string]struct {
		q     mcp.Question
		typed string
		want  mcp.Action
		shown string
	}{
		"yes":     {mcp.Question{Server: "a", Message: "Really?"}, "y", mcp.Accept, `Send this to MCP server "a"? y = send, d = decline`},
		"no":      {mcp.Question{Server: "a", Message: "Really?"}, "d", mcp.Decline, "Really?"},
		"visited": {mcp.Question{Server: "a", URL: "https://pay.example.com/x"}, "y", mcp.Accept, "a page of pay.example.com,"},
		"not":     {mcp.Question{Server: "a", URL: "https://pay.example.com/x"}, "d", mcp.Decline, "  https://pay.example.com/x\n"},
		"later":   {mcp.Question{Server: "a", URL: "https://pay.example.com/x"}, "c", mcp.Cancel, "Open it yourself"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, keys, screen := sit(t, "ask")
				result := elicit(t.Context(), p, tt.q)
				synctest.Wait()
				typeIn(t, keys, "\n") // is no answer
				typeIn(t, keys, tt.typed+"\n")
				if answer, err := result(); err != nil || answer.Action != tt.want {
					t.Errorf("%+v, %v", answer, err)
				}
				if !strings.Contains(screen.String(), tt.shown) {
					t.Errorf("screen: %s", screen)
				}
				_ = keys.Close()
			})
		})
	}
}

// A question ends with its call, or with the terminal, and nothing is made up.
func TestFormEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, keys, _ := sit(t, "ask")
		ctx, cancel := context.WithCancel(t.Context())
		result := elicit(ctx, p, form())
		synctest.Wait()
		cancel()
		if _, err := result(); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of the call: %v", err)
		}

		// One that waits for another question ends, too.
		first := elicit(t.Context(), p, form())
		synctest.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		second := elicit(ctx, p, form())
		synctest.Wait()
		cancel()
		if _, err := second(); !errors.Is(err, context.Canceled) {
			t.Errorf("while another question was open: %v", err)
		}
		typeIn(t, keys, "/decline\n")
		if answer, err := first(); err != nil || answer.Action != mcp.Decline {
			t.Errorf("the question that was open: %+v, %v", answer, err)
		}

		result = elicit(t.Context(), p, form())
		synctest.Wait()
		_ = keys.Close()
		if answer, err := result(); !errors.Is(err, io.EOF) || answer.Action != "" {
			t.Errorf("after the end of the terminal: %+v, %v", answer, err)
		}
	})
}

// Who is asked, by --approve and by whether there is a terminal.
func TestRespondent(t *testing.T) {
	for _, tt := range []struct {
		mode     string
		terminal bool
		want     bool
	}{
		{"ask", true, true}, {"allow", true, true}, {"deny", true, false}, {"ask", false, false}, {"allow", false, false},
	} {
		c := &console{in: strings.NewReader(""), err: io.Discard, terminal: tt.terminal}
		if got := newPerson(c, newProgress(&bytes.Buffer{}, false), tt.mode).respondent() != nil; got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
