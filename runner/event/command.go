package event

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The commands that a watching program may send, a line of JSON each.
const (
	// CommandInput answers an [InputNeeded]: {"kind":"input.given",
	// "correlationId":…, "value":…}. Without a correlationId it answers the
	// oldest question that is open. A value that is absent, or empty, means the
	// question's default. To a form or a visit, "action" may say accept (which
	// goes without saying), decline or cancel.
	CommandInput = "input.given"
	// CommandApproval answers an [ApprovalNeeded]: {"kind":"approval.given",
	// "correlationId":…, "allow":…, "reason":…, "scope":"once" or "run"}.
	CommandApproval = "approval.given"
	// CommandCancel ends the run as an interrupt does.
	CommandCancel = "cancel"
)

// Command is what a watching program says.
type Command struct {
	Kind        string
	Correlation string
	Action      string          // accept, decline or cancel; of a CommandInput
	Value       json.RawMessage // of a CommandInput; may be empty
	Allow       bool            // of a CommandApproval
	Reason      string
	Scope       string // once, run or always
}

// MaxCommand is how long a line may be, in bytes.
const MaxCommand = 1 << 20

// The codes of a [CommandError].
const (
	CodeBadCommand     = "bad_command"
	CodeUnknownCommand = "unknown_command"
	CodeNoHub          = "no_hub"
)

// CommandError is why a line is no command. Its text is one sentence.
type CommandError struct{ Code, Detail string }

// Error says what is wrong with the line.
func (e *CommandError) Error() string { return e.Detail }

func bad(format string, args ...any) *CommandError {
	return &CommandError{CodeBadCommand, fmt.Sprintf(format, args...)}
}

// ParseCommand reads one line. Members that it does not know are passed over; the
// names of the others are taken as they are written here, whatever their case
// elsewhere. The error is a [*CommandError].
func ParseCommand(line []byte) (Command, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil || members == nil {
		return Command{}, bad("a line on stdin is not a JSON object, and was passed over")
	}
	var c Command
	var err error
	text := func(name string) (s string) {
		if raw, ok := members[name]; ok && string(raw) != "null" && json.Unmarshal(raw, &s) != nil && err == nil {
			err = bad("a command on stdin has a %s that is not a text, and was passed over", name)
		}
		return s
	}
	c.Kind, c.Correlation, c.Reason = text("kind"), text("correlationId"), text("reason")
	c.Action, c.Scope = text("action"), text("scope")
	if err != nil {
		return Command{}, err
	}
	switch c.Kind {
	case CommandInput:
		c.Value = members["value"]
		if c.Action == "" {
			c.Action = "accept"
		}
		if !slices.Contains([]string{"accept", "decline", "cancel"}, c.Action) {
			return Command{}, bad("input.given has the action %q; it takes accept, decline and cancel", short(c.Action))
		}
	case CommandApproval:
		if c.Scope == "" {
			c.Scope = "once"
		}
		switch {
		case c.Correlation == "":
			return Command{}, bad("approval.given needs the correlationId of what it answers")
		case json.Unmarshal(members["allow"], &c.Allow) != nil || string(members["allow"]) == "null":
			return Command{}, bad("approval.given needs allow, which is true or false")
		case !slices.Contains([]string{"once", "run", "always"}, c.Scope):
			return Command{}, bad("approval.given has the scope %q; it takes once, run and always", short(c.Scope))
		}
	case CommandCancel:
	case "":
		return Command{}, bad("a command on stdin has no kind, and was passed over")
	case "post", "send", "publish", "reply", "subscribe", "unsubscribe":
		return Command{}, &CommandError{CodeNoHub, fmt.Sprintf("the command %s is for a hub between crews, and this host has none", c.Kind)}
	default:
		return Command{}, &CommandError{CodeUnknownCommand, fmt.Sprintf("the command %q is not known, and was passed over", short(c.Kind))}
	}
	return c, nil
}

// short is the beginning of a foreign text, for an error.
func short(s string) string {
	const longest = 64
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strings.ToValidUTF8(s, "")
}

// Commands reads lines from r until it ends, and hands each to take, or why it is
// no command to refuse, a [*CommandError]. Blank lines are passed over. It returns
// nil at the end of r, and else r's error.
func Commands(r io.Reader, take func(Command), refuse func(error)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, tooLong, err := nextLine(in)
		switch {
		case tooLong:
			refuse(bad("a line on stdin is longer than %d bytes, and was passed over", MaxCommand))
		case len(bytes.TrimSpace(line)) > 0:
			if c, err := ParseCommand(line); err != nil {
				refuse(err)
			} else {
				take(c)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// nextLine reads a line, of which it keeps no more than may be.
func nextLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > MaxCommand+1 {
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}
