package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"crewhost/config/strict"
	"crewhost/runner"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// A call that a person writes on a command line: mcp call and tools call.

const (
	callUsage    = "TOOL [KEY=VALUE…]"
	argsFileFlag = "args-file"
)

// callFlags are those of commands that call a tool.
func callFlags() []cli.Flag {
	return append(hostFlags(), formatFlagOf(formatText, formatJSON),
		&cli.StringFlag{Name: argsFlag, Usage: "the arguments as a `JSON` object"},
		&cli.StringFlag{Name: argsFileFlag, TakesFile: true, Usage: "read the arguments from `FILE`, a JSON object; - is stdin"})
}

// written is a call as the command line has it.
type written struct {
	command string
	tool    string
	object  json.RawMessage // of --args or --args-file; nil: there is none
	pairs   []string        // KEY=VALUE
}

// writtenCall reads what a command line says of a call, before anything is started.
func writtenCall(ctx *cli.Context, c *console) (written, error) {
	w := written{command: strings.TrimPrefix(ctx.Command.HelpName, ctx.App.Name+" "), tool: ctx.Args().First()}
	if w.tool == "" {
		return w, usagef("%s: name one tool: %s TOOL --args '{…}'", w.command, ctx.Command.HelpName)
	}
	w.pairs = ctx.Args().Tail()
	for _, p := range w.pairs {
		if key, _, ok := strings.Cut(p, "="); !ok || key == "" {
			return w, usagef("%s: %q is no KEY=VALUE; name one tool, and its arguments after it", w.command, p)
		}
	}
	given := 0
	for _, is := range []bool{ctx.IsSet(argsFlag), ctx.IsSet(argsFileFlag), len(w.pairs) > 0} {
		if is {
			given++
		}
	}
	if given > 1 {
		return w, usagef("%s: the arguments are given in more than one way; keep one of --%s, --%s and KEY=VALUE", w.command, argsFlag, argsFileFlag)
	}
	switch {
	case ctx.IsSet(argsFlag):
		w.object = json.RawMessage(ctx.String(argsFlag))
		if !json.Valid(w.object) {
			return w, usagef("%s: --%s is not JSON: %s", w.command, argsFlag, w.object)
		}
	case ctx.IsSet(argsFileFlag):
		data, err := readArguments(ctx.String(argsFileFlag), c.in)
		if err != nil {
			return w, usagef("%s: --%s: %v", w.command, argsFileFlag, err)
		}
		if w.object = bytes.TrimSpace(data); !json.Valid(w.object) {
			return w, usagef("%s: --%s: %s is not JSON", w.command, argsFileFlag, ctx.String(argsFileFlag))
		}
	}
	return w, nil
}

func readArguments(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// call is the call of the tool whose definition is def.
func (w written) call(def tools.Definition) (tools.Call, error) {
	call := tools.Call{Name: w.tool, Arguments: w.object}
	if len(w.pairs) == 0 {
		return call, nil
	}
	types := map[string][]string{}
	for _, p := range parametersOf(def.InputSchema) {
		types[p.Name] = p.types
	}
	object := []byte("{")
	for i, pair := range w.pairs {
		key, value, _ := strings.Cut(pair, "=")
		if slices.ContainsFunc(w.pairs[:i], func(p string) bool { return strings.HasPrefix(p, key+"=") }) {
			return call, usagef("%s: %s is given twice", w.command, key)
		}
		if i > 0 {
			object = append(object, ',')
		}
		object = fmt.Appendf(object, "%s:%s", quoted(key), valueOf(value, types[key]))
	}
	call.Arguments = append(object, '}')
	return call, nil
}

// valueOf is a value of a command line as JSON. It is a text where the tool takes texts,
// and where it takes none, what it is as JSON; what is no JSON is a text, which the tool
// has its own word about.
func valueOf(text string, types []string) json.RawMessage {
	if len(types) > 0 && !slices.Contains(types, "string") && json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return quoted(text)
}

// quoted is a text as JSON.
func quoted(text string) json.RawMessage {
	data, _ := json.Marshal(text) // which no text fails
	return data
}

// carryOut makes a call, prints what comes of it, and says why nothing does.
func carryOut(ctx *cli.Context, host *runner.Host, out *output, w written) error {
	var def tools.Definition
	for _, d := range host.Tools() {
		if d.Name == w.tool {
			def = d
		}
	}
	call, err := w.call(def)
	if err != nil {
		return err
	}
	res, came, err := host.CallObserved(ctx.Context, call)
	if err != nil {
		switch tools.CodeOf(err) {
		case tools.CodeToolNotFound:
			return usageError{err.Error() + didYouMean(call.Name, host)}
		case tools.CodeArgumentsInvalid:
			return usageError{err.Error()}
		}
		return &runner.RunError{Err: err}
	}
	if err := out.content(res); err != nil {
		return err
	}
	switch {
	case came.Outcome == permission.Denied:
		return &runner.RunError{Err: refusedCall{call.Name, came}}
	case res.IsError:
		return &runner.RunError{Err: errToolFailed}
	}
	return nil
}

// refusedCall is a call that the policy did not let through, and the way out, if there
// is one.
type refusedCall struct {
	tool string
	came permission.Observation
}

func (r refusedCall) Error() string {
	switch a := r.came.Answer; {
	case a == nil:
		return fmt.Sprintf("the policy denied the call: %s. crewhost policy explain %s says what it allows", r.came.Decision.Reason, r.tool)
	case a.Unasked:
		return fmt.Sprintf("the policy asks about the call (%s), and nobody could be asked: --%s allow answers yes, and so does an allow rule of the permissions", r.came.Decision.Reason, approveFlag)
	}
	return "the call was not approved"
}

// didYouMean names the tool that a name which no tool has was probably meant to be.
func didYouMean(name string, host *runner.Host) string {
	var names []string
	for _, d := range host.Tools() {
		names = append(names, d.Name)
	}
	if near := strict.Nearest(name, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}
