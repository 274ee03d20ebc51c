package runner

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"crewhost/config"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/process"
	"crewhost/tools"
)

// crewTool is a crew as a tool: its variables are the arguments, and its final
// output is the result. Each call is a run of its own.
//
// It is registered with a surface and not with the host, so that no agent gets to
// see it: a crew can't call itself.
type crewTool struct {
	host      *Host
	crew      *crew.Crew
	variables []crew.Variable
	def       tools.Definition
	onEvent   event.Sink // may be nil
}

// addCrews loads and judges the crews that are to be served, and registers them.
func (s *Surface) addCrews(ctx context.Context, fail func(pos strict.Pos, code, message, hint string)) {
	for _, served := range s.cfg.Served.Crews {
		t, issues := s.crewTool(ctx, served)
		for _, i := range issues {
			fail(i.Pos, i.Code, i.Message, i.Hint)
		}
		if t == nil || len(issues) > 0 {
			continue
		}
		if holder, taken := s.host.registry.Lookup(t.def.Name); taken {
			by := "a tool of this host"
			if server := holder.Definition().Server; server != "" {
				by = fmt.Sprintf("a tool of MCP server %q", server)
			}
			fail(served.Pos, CodeCollision, fmt.Sprintf("the crew %s would be served as %q, which is the name of %s", served.Path, t.def.Name, by), "give it another: {path: …, name: …}")
		} else if s.registry.Add(t) != nil {
			holder, _ := s.registry.Lookup(t.def.Name)
			fail(served.Pos, CodeCollision, fmt.Sprintf("the crews %s and %s would both be served as %q", holder.(*crewTool).crew.Path, served.Path, t.def.Name), "give one another: {path: …, name: …}")
		}
	}
}

func (s *Surface) crewTool(ctx context.Context, served config.ServedCrew) (*crewTool, strict.Issues) {
	loaded, err := crew.Load(served.Path)
	if loaded == nil {
		issues := s.host.Judge(nil, err, nil).Issues
		if len(issues) == 1 && issues[0].Code == crew.CodeNotFound { // the fault is where it is named
			issues[0].Pos, issues[0].Message = served.Pos, "there is no crew "+served.Path
		}
		return nil, placed(issues, served.Pos)
	}
	variables := loaded.Variables()
	v := s.host.Judge(loaded, err, placeholders(variables))
	if len(v.Issues) > 0 {
		return nil, placed(v.Issues, served.Pos)
	}
	for _, w := range v.Warnings {
		s.warnings = append(s.warnings, w.Error())
	}
	if err := s.host.models.prepare(ctx, profilesOf(loaded)...); err != nil {
		return nil, strict.Issues{{Pos: served.Pos, Code: CodeLoad, Message: fmt.Sprintf("the crew %s can't be run: %v", served.Path, err)}}
	}
	name := served.Name
	if name == "" {
		name = crewName(loaded)
	}
	if name == "" {
		return nil, strict.Issues{{
			Pos: served.Pos, Code: CodeNotServed, Message: fmt.Sprintf("no name of a tool can be made of the crew %q", loaded.Name.V),
			Hint: "give it one: {path: …, name: …}",
		}}
	}
	return &crewTool{host: s.host, crew: loaded, variables: variables, onEvent: s.cfg.OnEvent, def: tools.Definition{
		Name: name, Title: loaded.Name.V, Description: loaded.Goal.V,
		InputSchema: inputSchema(variables), OutputSchema: json.RawMessage(crewOutputSchema),
	}}, nil
}

// placed gives issues without a place that of the settings which name the crew.
func placed(issues strict.Issues, pos strict.Pos) strict.Issues {
	for i := range issues {
		if issues[i].File == "" {
			issues[i].Pos = pos
		}
	}
	return issues
}

// placeholders are inputs to judge a crew with whose inputs are yet to come.
func placeholders(variables []crew.Variable) crew.Inputs {
	in := crew.Inputs{}
	for _, v := range variables {
		if !v.Given {
			in[v.Name] = v.Name
		}
	}
	return in
}

// maxToolName is the length of the longest name of a tool that models take.
const maxToolName = 64

// crewName is the name of a crew's tool: that of the crew in lower case, with "_"
// for whatever can't stand in a tool's name, or else that of its file or folder.
// Empty: neither will do.
func crewName(c *crew.Crew) string {
	file := strings.TrimSuffix(filepath.Base(c.Path), filepath.Ext(c.Path))
	if file == "crew" {
		file = filepath.Base(filepath.Dir(c.Path))
	}
	for _, text := range []string{c.Name.V, file} {
		var b strings.Builder
		for _, r := range strings.ToLower(text) {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
				b.WriteRune(r)
			case !strings.HasSuffix(b.String(), "_"):
				b.WriteByte('_')
			}
		}
		name := strings.Trim(b.String(), "_")
		if name = strings.Trim(name[:min(len(name), maxToolName)], "_"); name != "" {
			return name
		}
	}
	return ""
}

// servedCrews are the names of the tools that the crews of surfaces are, as far as
// the crews can be read.
func servedCrews(surfaces []config.Served) []string {
	var names []string
	for _, s := range surfaces {
		for _, served := range s.Crews {
			names = append(names, CrewTool(served))
		}
	}
	return names
}

// ServedCrews loads the crews of surfaces, for a host to be opened for (see
// [Config.Crews]). One that can't be loaded is left out: [Host.Surface] says why.
func ServedCrews(surfaces ...config.Served) []*crew.Crew {
	var crews []*crew.Crew
	for _, s := range surfaces {
		for _, served := range s.Crews {
			if c, err := crew.Load(served.Path); err == nil {
				crews = append(crews, c)
			}
		}
	}
	return crews
}

// CrewTool is the name of the tool that a served crew is: the one that it is given, or
// its own, in the form of a tool's name. Empty: it has none, or can't be read.
func CrewTool(served config.ServedCrew) string {
	if served.Name != "" {
		return served.Name
	}
	if c, _ := crew.Load(served.Path); c != nil {
		return crewName(c)
	}
	return ""
}

// CrewServers are the names of the MCP servers that the agents of a served crew bring
// along, in the order of its files; none where it can't be read.
func CrewServers(served config.ServedCrew) []string {
	if c, _ := crew.Load(served.Path); c != nil {
		return serversOf(c)
	}
	return nil
}

// inputSchema is the schema of a crew's variables. Each is a text, and must be
// given where the crew has no value of its own; initial_context may be.
func inputSchema(variables []crew.Variable) json.RawMessage {
	type property struct {
		Type        string  `json:"type"`
		Description string  `json:"description,omitempty"`
		Default     *string `json:"default,omitempty"`
	}
	schema := struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"` // encoded in the order of their names
		Required   []string            `json:"required,omitempty"`
		Additional bool                `json:"additionalProperties"`
	}{Type: "object", Properties: map[string]property{
		crew.InitialContext: {Type: "string", Description: "What the run begins with, for all agents to read."},
	}}
	for _, v := range variables {
		p := property{Type: "string"}
		if v.Given {
			p.Default = &v.Default
		} else {
			schema.Required = append(schema.Required, v.Name)
		}
		if v.Name == crew.InitialContext {
			p.Description = schema.Properties[v.Name].Description
		}
		schema.Properties[v.Name] = p
	}
	data, err := json.Marshal(schema)
	if err != nil {
		panic(err) // texts alone
	}
	return data
}

const crewOutputSchema = `{
  "type": "object",
  "properties": {
    "ok": {"type": "boolean"},
    "final": {"type": "string", "description": "The output of the last task that was completed."},
    "error": {"type": "string"},
    "tasks": {
      "type": "array",
      "items": {
        "type": "object",
        "properties": {
          "task": {"type": "string"}, "agent": {"type": "string"},
          "state": {"type": "string", "enum": ["completed", "failed", "skipped", "stopped", "not_run"]},
          "error": {"type": "string"}, "deliverable": {"type": "string"},
          "inputTokens": {"type": "integer"}, "outputTokens": {"type": "integer"}, "tookMs": {"type": "integer"}
        },
        "required": ["task", "state"]
      }
    },
    "inputTokens": {"type": "integer"}, "outputTokens": {"type": "integer"}, "tookMs": {"type": "integer"}
  },
  "required": ["ok", "final", "tasks"]
}`

type crewResult struct {
	OK           bool       `json:"ok"`
	Final        string     `json:"final"`
	Error        string     `json:"error,omitempty"`
	Tasks        []crewTask `json:"tasks"`
	InputTokens  int        `json:"inputTokens"`
	OutputTokens int        `json:"outputTokens"`
	Millis       int64      `json:"tookMs"`
}

type crewTask struct {
	Task         string `json:"task"`
	Agent        string `json:"agent,omitempty"`
	State        string `json:"state"`
	Error        string `json:"error,omitempty"`
	File         string `json:"deliverable,omitempty"`
	InputTokens  int    `json:"inputTokens"`
	OutputTokens int    `json:"outputTokens"`
	Millis       int64  `json:"tookMs"`
}

// Definition implements [tools.Tool].
func (t *crewTool) Definition() tools.Definition { return t.def }

// Call implements [tools.Tool]. A run that failed is a result that says of every
// task what became of it, with the output that there is.
func (t *crewTool) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	inputs, problem := t.inputs(call.Arguments)
	if problem != "" {
		return tools.Failure(problem), nil
	}
	if v := t.host.Judge(t.crew, nil, inputs); len(v.Issues) > 0 { // what depends on the arguments
		return tools.Failure("The crew can't be run with these arguments:\n" + t.host.cfg.Redactor.Redact(v.Issues.Error())), nil
	}
	var sinks []event.Sink
	if call.Progress != nil {
		sinks = append(sinks, (&crewProgress{total: len(t.crew.Tasks), tell: call.Progress, seen: map[string]float64{}}).event)
	}
	if t.onEvent != nil {
		sinks = append(sinks, t.onEvent)
	}
	events := event.NewStream(rand.Text(), time.Now, sinks...)
	events.Mask(t.host.cfg.Redactor)
	out, err := t.host.run(ctx, t.crew, inputs, events, nil)
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, &tools.Error{Code: tools.CodeCancelled, Tool: t.def.Name, Detail: "the run was stopped", Err: context.Cause(ctx)}
	case out == nil && err != nil:
		return tools.Result{}, fmt.Errorf("running the crew of tool %q: %w", t.def.Name, err)
	}
	return t.result(out, err), nil
}

// inputs takes the arguments, or says what is wrong with them.
func (t *crewTool) inputs(arguments json.RawMessage) (crew.Inputs, string) {
	var given map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &given); err != nil {
		return nil, "The arguments are not a JSON object."
	}
	inputs := crew.Inputs{}
	known := []string{crew.InitialContext}
	var problems []string
	for _, v := range t.variables {
		known = append(known, v.Name)
		if _, ok := given[v.Name]; !ok && !v.Given {
			problems = append(problems, fmt.Sprintf("The argument %q is missing.", v.Name))
		}
	}
	for name, raw := range given {
		var value *string
		switch {
		case !slices.Contains(known, name):
			line := fmt.Sprintf("There is no argument %s.", strict.Quote(name))
			if near := strict.Nearest(name, known); near != "" {
				line = fmt.Sprintf("There is no argument %s; did you mean %q?", strict.Quote(name), near)
			}
			problems = append(problems, line)
		case json.Unmarshal(raw, &value) != nil || value == nil:
			problems = append(problems, fmt.Sprintf("The argument %q is not a text.", name))
		default:
			inputs[name] = *value
		}
	}
	slices.Sort(problems)
	return inputs, strings.Join(problems, "\n")
}

func (t *crewTool) result(out *Output, failure error) tools.Result {
	r := crewResult{OK: failure == nil, Final: out.Final, Tasks: []crewTask{}, InputTokens: out.Usage.Input, OutputTokens: out.Usage.Output, Millis: out.Took.Milliseconds()}
	var lines []string
	for _, task := range out.Tasks {
		why := task.Why
		if task.Err != nil {
			why = t.line(task.Err)
		}
		r.Tasks = append(r.Tasks, crewTask{
			Task: task.Task, Agent: task.Agent, State: string(task.State), Error: why, File: task.File,
			InputTokens: task.Usage.Input, OutputTokens: task.Usage.Output, Millis: task.Took.Milliseconds(),
		})
		line := fmt.Sprintf("- %s: %s", task.Task, strings.ReplaceAll(string(task.State), "_", " "))
		if task.State != process.Completed && why != "" {
			line += ": " + why
		}
		lines = append(lines, line)
	}
	res := tools.Text(out.Final)
	if failure != nil {
		r.Error = t.line(failure)
		text := fmt.Sprintf("The crew %q failed: %s\n%s", t.crew.Name.V, r.Error, strings.Join(lines, "\n"))
		if out.Final != "" {
			text += "\n\nWhat the last completed task had said:\n" + out.Final
		}
		res = tools.Failure(text)
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // plain fields
	}
	res.Structured = data
	return res
}

// line is an error for somebody else's model: on one line, and without secrets.
func (t *crewTool) line(err error) string {
	var failed *RunError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return strings.Join(strings.Fields(t.host.cfg.Redactor.Redact(err.Error())), " ")
}

// crewProgress counts the tasks of a run: half for one that began, and whole for
// one that is over. Each report is above the one before, whatever is tried again.
type crewProgress struct {
	total int
	tell  func(tools.Progress)

	mu   sync.Mutex
	seen map[string]float64
	done float64
}

func (p *crewProgress) event(e event.Event) {
	var reached float64
	var what string
	switch e.Kind {
	case event.TaskStarted:
		reached, what = 0.5, "began"
	case event.TaskCompleted:
		reached, what = 1, "done"
		if e.Success != nil && !*e.Success {
			return // why, another event says
		}
	case event.TaskFailed:
		reached, what = 1, "failed"
	case event.TaskSkipped:
		reached, what = 1, "skipped"
	default:
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.seen[e.Task]
	if reached <= before {
		return
	}
	p.seen[e.Task] = reached
	p.done += reached - before
	p.tell(tools.Progress{Done: p.done, Total: float64(p.total), Message: fmt.Sprintf("task %s (%d of %d): %s", e.Task, len(p.seen), p.total, what)})
}
