// Package builtin holds the tools that every host has: reading and writing files
// in the mounts, listing folders, working on JSON, asking a person, and using what
// a crew remembers and the documents that it has.
//
//	var reg tools.Registry
//	err := builtin.Register(&reg, builtin.Config{FS: fsys, Asker: terminal})
//
// The tools are strict with their arguments and helpful about it: a result that
// is an error names every wrong argument at once, with the nearest known name, so
// that a model can do better in its next try. A number or a boolean that a model
// wrote as a string is taken where nothing is lost by it; nothing else is
// converted. What a tool gives back is bounded, and says so where it was cut.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"crewhost/tools"
	"crewhost/tools/mount"
)

// Bounds of what the tools take and give, in characters (code points) or bytes.
const (
	maxText     = 4_000    // characters of a result where nothing else is said
	maxFileText = 32_000   // characters that file_read gives by default
	maxFile     = 16 << 20 // bytes of a file that is read whole
	maxWrite    = 4 << 20  // bytes that file_write writes
	maxJSON     = 4 << 20  // bytes of a document for json_tool
)

// Config is what the tools work with. The zero value is useful for listing them:
// each says, when called, what it lacks.
type Config struct {
	// FS is the file system of the file tools; nil holds no mount.
	FS *mount.FS
	// Asker asks a person for human_input; nil means that nobody can be asked.
	Asker Asker
	// Memory and Documents return what the crew has that makes a call, by the
	// context of the call: nil where it has none, or no crew makes it. A nil
	// function is one that returns nil.
	Memory    func(context.Context) Memory
	Documents func(context.Context) Documents
}

// Register adds the built-in tools to reg. The error joins the refusals of reg.
func Register(reg *tools.Registry, cfg Config) error {
	var errs []error
	for _, t := range []tool{
		fileRead(cfg.FS), fileWrite(cfg.FS), directoryRead(cfg.FS), jsonTool(), humanInput(cfg.Asker),
		memoryStore(cfg.Memory), semanticSearch(cfg.Memory), ragSearch(cfg.Documents),
	} {
		errs = append(errs, reg.Add(t))
	}
	return errors.Join(errs...)
}

// tool is a built-in: a definition, and a function over its decoded arguments.
type tool struct {
	def    tools.Definition
	params []string // the names in the schema, required ones first
	run    func(ctx context.Context, call tools.Call, args *arguments) (tools.Result, error)
}

// Definition implements [tools.Tool].
func (t tool) Definition() tools.Definition { return t.def }

// Call implements [tools.Tool].
func (t tool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{}, ended(ctx, t.def.Name)
	}
	args, err := decode(call.Arguments, t.params)
	if err != nil {
		return tools.Result{}, &tools.Error{Code: tools.CodeArgumentsInvalid, Tool: t.def.Name, Detail: err.Error(), Err: err}
	}
	args.tool = t.def.Name
	return t.run(ctx, call, args)
}

// define makes a definition with a hand-written schema.
func define(name, title, description, schema string, readOnly bool) tools.Definition {
	closed := false
	return tools.Definition{
		Name: name, Title: title, Description: description,
		InputSchema: json.RawMessage(schema),
		Annotations: tools.Annotations{ReadOnly: &readOnly, OpenWorld: &closed},
	}
}

// ended is the error of a call whose context ended.
func ended(ctx context.Context, tool string) error {
	e := &tools.Error{Code: tools.CodeCancelled, Tool: tool, Detail: "the call was cancelled", Err: context.Cause(ctx)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code, e.Detail = tools.CodeCallTimeout, "the call took too long"
	}
	return e
}

// failuref is [tools.Failure] with a format.
func failuref(format string, args ...any) tools.Result {
	return tools.Failure(fmt.Sprintf(format, args...))
}
