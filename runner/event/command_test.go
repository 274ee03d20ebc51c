package event_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"crewhost/runner/event"
)

func TestParseCommand(t *testing.T) {
	schema := commandSchema(t)
	for _, tt := range []struct {
		line string
		want event.Command
		code string // of the error
		says string
	}{
		{line: `{"kind":"input.given","value":"yes"}`, want: event.Command{Kind: "input.given", Action: "accept", Value: json.RawMessage(`"yes"`)}},
		{line: `{"kind":"input.given","correlationId":"7","value":{"n":12345678901234567890},"v":2}`,
			want: event.Command{Kind: "input.given", Correlation: "7", Action: "accept", Value: json.RawMessage(`{"n":12345678901234567890}`)}},
		{line: `{"kind":"input.given","action":"decline"}`, want: event.Command{Kind: "input.given", Action: "decline"}},
		{line: `{"kind":"input.given","action":"maybe"}`, code: event.CodeBadCommand, says: `action "maybe"`},
		{line: `{"kind":"approval.given","correlationId":"7","allow":true}`, want: event.Command{Kind: "approval.given", Correlation: "7", Allow: true, Scope: "once"}},
		{line: `{"kind":"approval.given","correlationId":"7","allow":false,"reason":"no","scope":"run"}`,
			want: event.Command{Kind: "approval.given", Correlation: "7", Reason: "no", Scope: "run"}},
		{line: `{"kind":"approval.given","allow":true}`, code: event.CodeBadCommand, says: "needs the correlationId"},
		{line: `{"kind":"approval.given","correlationId":"7"}`, code: event.CodeBadCommand, says: "needs allow"},
		{line: `{"kind":"approval.given","correlationId":"7","allow":null}`, code: event.CodeBadCommand, says: "needs allow"},
		{line: `{"kind":"approval.given","correlationId":"7","Allow":true}`, code: event.CodeBadCommand, says: "needs allow"},
		{line: `{"kind":"approval.given","correlationId":"7","allow":"true"}`, code: event.CodeBadCommand, says: "needs allow"},
		{line: `{"kind":"approval.given","correlationId":"7","allow":true,"scope":"ever"}`, code: event.CodeBadCommand, says: `scope "ever"`},
		{line: `{"kind":"approval.given","correlationId":7,"allow":true}`, code: event.CodeBadCommand, says: "correlationId that is not a text"},
		{line: `{"kind":"cancel"}`, want: event.Command{Kind: "cancel"}},
		{line: `{"kind":"publish","topic":"t"}`, code: event.CodeNoHub, says: "publish is for a hub"},
		{line: `{"kind":"dance"}`, code: event.CodeUnknownCommand, says: `"dance" is not known`},
		{line: `{"kind":"` + strings.Repeat("x", 100) + `"}`, code: event.CodeUnknownCommand, says: "xxx…"},
		{line: `{"kind":["cancel"]}`, code: event.CodeBadCommand, says: "kind that is not a text"},
		{line: `{"value":"yes"}`, code: event.CodeBadCommand, says: "no kind"},
		{line: `yes`, code: event.CodeBadCommand, says: "not a JSON object"},
		{line: `null`, code: event.CodeBadCommand, says: "not a JSON object"},
		{line: `{"kind":"cancel"} {"kind":"cancel"}`, code: event.CodeBadCommand, says: "not a JSON object"},
	} {
		got, err := event.ParseCommand([]byte(tt.line))
		var e *event.CommandError
		switch {
		case tt.code == "" && err != nil:
			t.Errorf("%s: %v", tt.line, err)
		case tt.code != "" && (!errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Error(), tt.says)):
			t.Errorf("%s: %v", tt.line, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.line, diff)
		}
		// What the schema calls a command is one, and nothing else.
		var value any
		if json.Unmarshal([]byte(tt.line), &value) != nil {
			continue
		}
		if err := schema.Validate(value); (err == nil) != (tt.code == "") {
			t.Errorf("%s: by the schema: %v", tt.line, err)
		}
	}
}

// commandSchema is the definition of commands in the schema of events.
func commandSchema(t *testing.T) *jsonschema.Resolved {
	t.Helper()
	var all struct {
		Defs map[string]*jsonschema.Schema `json:"$defs"`
	}
	if err := json.Unmarshal(event.Schema(), &all); err != nil {
		t.Fatal(err)
	}
	schema, err := all.Defs["command"].Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestCommandsReadsLines(t *testing.T) {
	long := `{"kind":"input.given","value":"` + strings.Repeat("x", event.MaxCommand) + `"}`
	most := `{"kind":"input.given","value":"` + strings.Repeat("y", event.MaxCommand-33) + `"}`
	if len(most) != event.MaxCommand {
		t.Fatal(len(most))
	}
	text := "\n \n" + long + "\nnonsense\r\n{\"kind\":\"cancel\"}\r\n" + most + "\n{\"kind\":\"input.given\"}"
	var kinds, refused []string
	take := func(c event.Command) { kinds = append(kinds, c.Kind) }
	refuse := func(err error) { refused = append(refused, err.Error()) }
	if err := event.Commands(iotest.HalfReader(strings.NewReader(text)), take, refuse); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"cancel", "input.given", "input.given"}, kinds); diff != "" {
		t.Error(diff)
	}
	if len(refused) != 2 || !strings.Contains(refused[0], "longer than") || !strings.Contains(refused[1], "not a JSON object") {
		t.Errorf("%q", refused)
	}
	if err := event.Commands(iotest.ErrReader(errFull), take, refuse); !errors.Is(err, errFull) {
		t.Error(err)
	}
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{
		`{"kind":"input.given","correlationId":"1","value":"x"}`, `{"kind":"approval.given","correlationId":"1","allow":true}`,
		"{\"kind\":\"cancel\"}\n\n[]\nnull\n{", `{"kind":"send","to":"x"}`, "\xff{\x00}", `{"kind":"input.given","value":` + strings.Repeat("[", 1000),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		lines := 0
		err := event.Commands(io.LimitReader(strings.NewReader(s), 1<<16),
			func(c event.Command) {
				lines++
				switch c.Kind {
				case event.CommandInput, event.CommandCancel:
				case event.CommandApproval:
					if c.Correlation == "" || c.Scope == "" {
						t.Errorf("%+v", c)
					}
				default:
					t.Errorf("%+v", c)
				}
			},
			func(err error) {
				lines++
				var e *event.CommandError
				if !errors.As(err, &e) || e.Code == "" || strings.Contains(err.Error(), "\n") {
					t.Errorf("%v", err)
				}
			})
		if err != nil || lines > strings.Count(s, "\n")+1 {
			t.Errorf("%v, %d lines", err, lines)
		}
	})
}
