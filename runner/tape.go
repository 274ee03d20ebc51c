package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner/llm"
	"crewhost/runner/process"
	"crewhost/runner/tape"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// A tape holds, beside what a run did, what there was besides its crew: servers and
// their tools, models, who could be asked. A host that replays has all of that from the
// tape, and none of it can be reached: models that no one is behind, tools that no one
// calls. What it has of its own is what the run is judged by: the crew, the policy, the
// mounts, and its own tools.

// tapedHost is what a tape says of a host.
type tapedHost struct {
	Servers []tapedServer `json:"servers"`
	Tools   []tapedTool   `json:"tools"` // that are not this program's own
	LLM     tapedLLM      `json:"llm"`

	// Approver is who could be asked to approve calls: nobody where it is empty.
	Approver  string             `json:"approver,omitempty"`  // constant or person
	Constant  *permission.Answer `json:"constant,omitempty"`  // what is always said
	Approvals bool               `json:"approvals,omitempty"` // what is allowed always is kept
}

const (
	approverConstant = "constant"
	approverPerson   = "person"
)

type tapedServer struct {
	Name         string           `json:"name"`
	State        mcp.State        `json:"state"`
	Required     bool             `json:"required,omitempty"`
	Agents       []string         `json:"agents,omitempty"` // that bring it along
	Transport    config.Transport `json:"transport"`
	Era          mcp.Era          `json:"era,omitempty"`
	Protocol     string           `json:"protocol,omitempty"`
	Server       string           `json:"server,omitempty"` // what it calls itself
	Version      string           `json:"version,omitempty"`
	Instructions string           `json:"instructions,omitempty"`
	Given        string           `json:"instructionsDigest,omitempty"`
	Tools        []string         `json:"tools,omitempty"`
	Skipped      []tapedSkip      `json:"skipped,omitempty"`
	Warnings     []string         `json:"warnings,omitempty"`
	Bytes        int              `json:"definitionBytes,omitempty"`
	Error        string           `json:"error,omitempty"`
	Code         tools.Code       `json:"code,omitempty"`
	Millis       int64            `json:"tookMs"`
}

type tapedSkip struct {
	Tool   string     `json:"tool"`
	Reason mcp.Reason `json:"reason"`
	Holder string     `json:"holder,omitempty"`
}

// tapedTool is a tool's definition.
type tapedTool struct {
	Name         string            `json:"name"`
	Title        string            `json:"title,omitempty"`
	Description  string            `json:"description,omitempty"`
	InputSchema  json.RawMessage   `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage   `json:"outputSchema,omitempty"`
	Annotations  tools.Annotations `json:"annotations,omitzero"`
	Server       string            `json:"server,omitempty"`
	Original     string            `json:"original,omitempty"`
	Given        *tools.Digests    `json:"given,omitempty"`
	// Scoped: each call concerns the server that its arguments name.
	Scoped bool `json:"scoped,omitempty"`
}

// tapedLLM are the models that there were, without their addresses and keys.
type tapedLLM struct {
	Elected    string           `json:"elected,omitempty"` // the profile that was the default one
	Default    tapedProfile     `json:"default"`
	Profiles   []tapedProfile   `json:"profiles,omitempty"`
	Currency   string           `json:"currency,omitempty"`
	Prices     []config.Price   `json:"prices,omitempty"`
	Cost       *int64           `json:"costBudget,omitempty"`
	Tokens     int              `json:"tokenBudget,omitempty"`
	Embeddings *tapedEmbeddings `json:"embeddings,omitempty"`
	Models     []tapedModel     `json:"models,omitempty"` // that were made
}

type tapedProfile struct {
	ID              string              `json:"id,omitempty"`
	Provider        string              `json:"provider,omitempty"`
	Model           string              `json:"model,omitempty"`
	Temperature     *float64            `json:"temperature,omitempty"`
	TopP            *float64            `json:"topP,omitempty"`
	MaxTokens       int                 `json:"maxTokens,omitempty"`
	ContextTokens   int                 `json:"contextTokens,omitempty"`
	ToolSchemas     string              `json:"toolSchemas,omitempty"`
	ToolCalls       string              `json:"toolCalls,omitempty"`
	Thinking        *config.Thinking    `json:"thinking,omitempty"`
	Cache           *config.Cache       `json:"cache,omitempty"`
	AvailableModels []string            `json:"availableModels,omitempty"`
	Capabilities    config.Capabilities `json:"capabilities,omitzero"`
}

type tapedEmbeddings struct {
	tapedProfile
	Dimensions int `json:"dimensions,omitempty"`
}

// tapedModel is what is known of a model beside its profile.
type tapedModel struct {
	Profile      string            `json:"profile"`
	Dialect      llm.SchemaDialect `json:"dialect"`
	Capabilities llm.Capabilities  `json:"capabilities"`
}

// tapeHost is what a tape is to say of this host.
func (h *Host) tapeHost() (json.RawMessage, error) {
	t := tapedHost{Servers: []tapedServer{}, Tools: []tapedTool{}, LLM: h.models.tape(), Approvals: h.cfg.Settings.Permissions.Approvals != ""}
	switch a := h.cfg.Approver.(type) {
	case nil:
	case permission.Constant:
		answer := a.Always()
		t.Approver, t.Constant = approverConstant, &answer
	default:
		t.Approver = approverPerson
	}
	for _, r := range h.Servers() {
		s := tapedServer{
			Name: r.Name, State: r.State, Required: r.Required, Agents: r.Agents, Transport: r.Transport, Era: r.Era, Protocol: r.Protocol,
			Server: r.ServerName, Version: r.ServerVersion, Instructions: r.Instructions, Given: r.InstructionsDigest,
			Tools: r.Tools, Warnings: r.Warnings, Bytes: r.DefinitionBytes, Millis: r.Took.Milliseconds(),
		}
		for _, skip := range r.Skipped {
			s.Skipped = append(s.Skipped, tapedSkip{skip.Tool, skip.Reason, skip.Holder})
		}
		if r.Err != nil {
			s.Error, s.Code = r.Err.Error(), tools.CodeOf(r.Err)
		}
		t.Servers = append(t.Servers, s)
	}
	for _, name := range h.registry.Names() {
		tool, ok := h.registry.Lookup(name)
		if !ok || slices.Contains(h.builtins, name) {
			continue
		}
		def := tool.Definition()
		_, scoped := tool.(permission.Scoped)
		t.Tools = append(t.Tools, tapedTool{
			Name: def.Name, Title: def.Title, Description: def.Description, InputSchema: def.InputSchema, OutputSchema: def.OutputSchema,
			Annotations: def.Annotations, Server: def.Server, Original: def.Original, Given: def.Given, Scoped: scoped,
		})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(t); err != nil {
		return nil, fmt.Errorf("recording what the host has: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// tape is what a tape is to say of the models.
func (m *models) tape() tapedLLM {
	t := tapedLLM{
		Elected: m.elected, Default: tapeProfile("", m.llm.Profile), Currency: m.llm.Currency, Prices: m.llm.Prices,
		Cost: m.llm.Budget.Cost, Tokens: m.llm.Budget.Tokens,
	}
	for _, p := range m.llm.Profiles {
		t.Profiles = append(t.Profiles, tapeProfile(p.ID, p.Profile))
	}
	if e := m.llm.Embeddings; e != nil {
		t.Embeddings = &tapedEmbeddings{tapeProfile("", e.Profile), e.Dimensions}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, made := range m.made {
		t.Models = append(t.Models, tapedModel{id, llm.DialectOf(made), llm.CapabilitiesOf(made)})
	}
	slices.SortFunc(t.Models, func(a, b tapedModel) int { return strings.Compare(a.Profile, b.Profile) })
	return t
}

func tapeProfile(id string, p config.Profile) tapedProfile {
	return tapedProfile{
		ID: id, Provider: p.Provider, Model: p.Model, Temperature: p.Temperature, TopP: p.TopP, MaxTokens: p.MaxTokens,
		ContextTokens: p.ContextTokens, ToolSchemas: p.ToolSchemas, ToolCalls: p.ToolCalls, Thinking: p.Thinking, Cache: p.Cache,
		AvailableModels: p.AvailableModels, Capabilities: p.Capabilities,
	}
}

func (p tapedProfile) profile() config.Profile {
	return config.Profile{
		Provider: p.Provider, Model: p.Model, Temperature: p.Temperature, TopP: p.TopP, MaxTokens: p.MaxTokens,
		ContextTokens: p.ContextTokens, ToolSchemas: p.ToolSchemas, ToolCalls: p.ToolCalls, Thinking: p.Thinking, Cache: p.Cache,
		AvailableModels: p.AvailableModels, Capabilities: p.Capabilities,
	}
}

// llm are the settings of models as they were.
func (t tapedLLM) llm() config.LLM {
	l := config.LLM{
		Profile: t.Default.profile(), Currency: t.Currency, Prices: t.Prices,
		Budget: config.RunBudget{Cost: t.Cost, Tokens: t.Tokens},
	}
	for _, p := range t.Profiles {
		l.Profiles = append(l.Profiles, config.NamedProfile{ID: p.ID, Profile: p.profile()})
	}
	if e := t.Embeddings; e != nil {
		l.Embeddings = &config.Embeddings{Profile: e.profile(), Dimensions: e.Dimensions}
	}
	return l
}

// readTapedHost reads what a tape says of a host.
func readTapedHost(t *tape.Tape) (*tapedHost, error) {
	dec := json.NewDecoder(bytes.NewReader(t.Host))
	dec.DisallowUnknownFields()
	host := &tapedHost{}
	if err := dec.Decode(host); err != nil {
		return nil, fmt.Errorf("%s: what it says of the host: %w", t.Name, err)
	}
	return host, nil
}

// reports are those of the servers as they were.
func (t *tapedHost) reports() []mcp.ServerReport {
	var all []mcp.ServerReport
	for _, s := range t.Servers {
		r := mcp.ServerReport{
			Name: s.Name, State: s.State, Required: s.Required, Agents: slices.Clone(s.Agents), Transport: s.Transport, Era: s.Era, Protocol: s.Protocol,
			ServerName: s.Server, ServerVersion: s.Version, Instructions: s.Instructions, InstructionsDigest: s.Given,
			Tools: slices.Clone(s.Tools), Warnings: slices.Clone(s.Warnings), DefinitionBytes: s.Bytes,
			Took: time.Duration(s.Millis) * time.Millisecond,
		}
		for _, skip := range s.Skipped {
			r.Skipped = append(r.Skipped, mcp.Skip{Server: s.Name, Tool: skip.Tool, Reason: skip.Reason, Holder: skip.Holder})
		}
		if s.Error != "" {
			r.Err = &tapedError{s.Error, &tools.Error{Code: s.Code, Server: s.Name}}
		}
		all = append(all, r)
	}
	return all
}

// tapedError is an error as it was, with its code.
type tapedError struct {
	text string
	code *tools.Error
}

func (e *tapedError) Error() string { return e.text }
func (e *tapedError) Unwrap() error { return e.code }

// onTape is a tool that stands on a tape: what its calls come to does, too.
type onTape struct{ def tools.Definition }

// Definition implements [tools.Tool].
func (t onTape) Definition() tools.Definition { return t.def }

// Call implements [tools.Tool].
func (t onTape) Call(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{}, &tools.Error{Code: tools.CodeTransportFailed, Server: t.def.Server, Tool: t.def.Name, Detail: "on a replay no tool of a server is called"}
}

// scopedOnTape is one whose calls each concern a server.
type scopedOnTape struct{ onTape }

// Server implements [permission.Scoped].
func (scopedOnTape) Server(arguments json.RawMessage) string {
	var args struct{ Server string }
	if json.Unmarshal(arguments, &args) != nil {
		return ""
	}
	return args.Server
}

// register has the registry offer the tools as they were.
func (t *tapedHost) register(reg *tools.Registry) error {
	for _, one := range t.Tools {
		stub := onTape{tools.Definition{
			Name: one.Name, Title: one.Title, Description: one.Description, InputSchema: one.InputSchema, OutputSchema: one.OutputSchema,
			Annotations: one.Annotations, Server: one.Server, Original: one.Original, Given: one.Given,
		}}
		var tool tools.Tool = stub
		if one.Scoped {
			tool = scopedOnTape{stub}
		}
		if err := reg.Add(tool); err != nil {
			return fmt.Errorf("the tool %q of the tape: %w", one.Name, err)
		}
	}
	return nil
}

// mute is a model of a tape: it is what it was, and can't be asked.
type mute struct{ is tapedModel }

var errMute = errors.New("on a replay no model is asked")

// Generate implements [llm.Model].
func (mute) Generate(context.Context, llm.Request) (*llm.Response, error) { return nil, errMute }

// SchemaDialect implements [llm.Dialectal].
func (m mute) SchemaDialect() llm.SchemaDialect { return m.is.Dialect }

// Capabilities implements [llm.Capable].
func (m mute) Capabilities() llm.Capabilities { return m.is.Capabilities }

// Embed implements [llm.Embedder].
func (mute) Embed(context.Context, string, []string) ([][]float32, llm.Usage, error) {
	return nil, llm.Usage{}, errMute
}

// nobody is who is asked on a replay: the answers are on the tape.
type nobody struct{}

var errNobodyAsked = errors.New("on a replay nobody is asked")

// Approve implements [permission.Approver].
func (nobody) Approve(context.Context, permission.Question) (permission.Answer, error) {
	return permission.Answer{}, errNobodyAsked
}

// Foresee implements [permission.Approvals].
func (nobody) Foresee(permission.Approval) permission.Standing { return permission.Unknown }

// Standing implements [permission.Approvals].
func (nobody) Standing(context.Context, permission.Approval) (permission.Standing, error) {
	return permission.Unknown, errNobodyAsked
}

// Keep implements [permission.Approvals].
func (nobody) Keep(context.Context, permission.Approval) error { return errNobodyAsked }

// constantly is who always said the same.
type constantly struct {
	nobody
	answer permission.Answer
}

// Always implements [permission.Constant].
func (c constantly) Always() permission.Answer { return c.answer }

// approver is who could be asked.
func (t *tapedHost) approver() permission.Approver {
	switch {
	case t.Approver == approverConstant && t.Constant != nil:
		return constantly{answer: *t.Constant}
	case t.Approver != "":
		return nobody{}
	default:
		return nil
	}
}

// approvals are those that were kept, or nil.
func (t *tapedHost) approvals() permission.Approvals {
	if !t.Approvals {
		return nil
	}
	return nobody{}
}

// replays reports whether the host is one of a tape, with nothing behind it.
func (h *Host) replays() bool { return h.taped != nil }

// cued is a configuration for a host that replays: what the tape has takes the place
// of what would reach out of this process.
func cued(cfg Config) (Config, *tapedHost, error) {
	if cfg.Replay == nil || cfg.Replay.From() > 0 {
		return cfg, nil, nil
	}
	host, err := readTapedHost(cfg.Replay.Tape())
	if err != nil {
		return cfg, nil, err
	}
	settings := *cfg.Settings
	settings.LLM = host.LLM.llm()
	settings.Permissions.Approvals = ""
	settings.Audit = config.Audit{} // nothing is done that could be put on record
	cfg.Settings = &settings
	cfg.Profile = ""
	cfg.Stream = cfg.Replay.Tape().Start.Stream
	cfg.Approver, cfg.ConcurrentApprovals = host.approver(), true
	cfg.Respondent = nil
	return cfg, host, nil
}

// cue has a host that replays be as the tape has it: its servers are not connected, and
// their tools are there.
func (h *Host) cue(settings *config.Settings) error {
	if !h.replays() {
		return nil
	}
	settings.MCP.Enabled = false
	h.models.taped, h.models.elected = &h.taped.LLM, h.taped.LLM.Elected
	if err := h.taped.register(h.registry); err != nil {
		return err
	}
	for _, r := range h.taped.reports() {
		if h.cfg.OnServer != nil {
			h.cfg.OnServer(r)
		}
	}
	return nil
}

// model is the model of a profile as it was.
func (t tapedLLM) model(id string) llm.Model {
	for _, m := range t.Models {
		if strings.EqualFold(m.Profile, id) {
			return mute{m}
		}
	}
	return mute{}
}

// unhurried has a crew not wait between its requests: no one is there to be spared.
func unhurried(c *crew.Crew) {
	c.MaxRPM.V = 0
	for _, a := range c.Agents {
		a.MaxRPM.V = 0
	}
}

// recordRun writes down that a run begins, or has the replay begin.
func (h *Host) recordRun(c *crew.Crew, inputs crew.Inputs) error {
	if h.cfg.Record == nil && h.cfg.Replay == nil {
		return nil
	}
	digest, err := crewDigest(c)
	if err != nil {
		return err
	}
	if h.cfg.Record != nil {
		host, err := h.tapeHost()
		if err != nil {
			return err
		}
		h.cfg.Record.Host(host)
		h.cfg.Record.Run(tape.Run{Crew: c.Path, Digest: digest, Name: c.Name.V, Process: string(c.Process), Inputs: inputs})
		if err := h.cfg.Record.Err(); err != nil {
			return err
		}
	}
	if h.cfg.Replay != nil {
		h.cfg.Replay.Crew(digest)
		h.cfg.Replay.Begin()
	}
	return nil
}

// tapedOutput is what a run came to, as a tape has it.
type tapedOutput struct {
	Final  string               `json:"final"`
	Tasks  []tapedTask          `json:"tasks"`
	Usage  llm.Usage            `json:"usage"`
	Asked  map[string]llm.Usage `json:"asked,omitempty"`
	Cost   Cost                 `json:"cost"`
	Took   time.Duration        `json:"tookNs"`
	Error  string               `json:"error,omitempty"`
	NoTask bool                 `json:"noTask,omitempty"` // it failed before the first
}

type tapedTask struct {
	Task      string        `json:"task"`
	Agent     string        `json:"agent,omitempty"`
	State     process.State `json:"state"`
	Why       string        `json:"why,omitempty"`
	Error     string        `json:"error,omitempty"`
	Text      string        `json:"text,omitempty"`
	File      string        `json:"file,omitempty"`
	Usage     llm.Usage     `json:"usage"`
	Turns     int           `json:"turns,omitempty"`
	ToolCalls int           `json:"toolCalls,omitempty"`
	Took      time.Duration `json:"tookNs"`
}

func tapeOutput(out *Output, failure error) tapedOutput {
	t := tapedOutput{Tasks: []tapedTask{}, NoTask: out == nil}
	if failure != nil {
		t.Error = failure.Error()
	}
	if out == nil {
		return t
	}
	t.Final, t.Usage, t.Asked, t.Cost, t.Took = out.Final, out.Usage, out.Asked, out.Cost, out.Took
	for _, task := range out.Tasks {
		one := tapedTask{
			Task: task.Task, Agent: task.Agent, State: task.State, Why: task.Why, Text: task.Text, File: task.File,
			Usage: task.Usage, Turns: task.Turns, ToolCalls: task.ToolCalls, Took: task.Took,
		}
		if task.Err != nil {
			one.Error = task.Err.Error()
		}
		t.Tasks = append(t.Tasks, one)
	}
	return t
}

// timeless is an output without the time that it took.
func (t tapedOutput) timeless() tapedOutput {
	t.Took, t.Tasks = 0, slices.Clone(t.Tasks)
	for i := range t.Tasks {
		t.Tasks[i].Took = 0
	}
	return t
}

// settle writes down what a run came to, or holds it against the tape, whose times it
// then has.
func (h *Host) settle(out *Output, failure error) (*Output, error) {
	if rec := h.cfg.Record; rec != nil {
		result, err := json.Marshal(tapeOutput(out, failure))
		if err != nil {
			return out, errors.Join(failure, &RunError{fmt.Errorf("recording what the run came to: %w", err)})
		}
		rec.Result(result)
		if err := rec.Err(); err != nil && failure == nil {
			failure = &RunError{err}
		}
	}
	replay := h.cfg.Replay
	if replay == nil {
		return out, failure
	}
	if err := replay.Finish(); err != nil {
		return out, &RunError{err}
	}
	raw := replay.Tape().Result
	if !h.replays() || raw == nil {
		return out, failure
	}
	var was tapedOutput
	if err := json.Unmarshal(raw, &was); err != nil {
		return out, &RunError{fmt.Errorf("%s: what the run came to: %w", replay.Tape().Name, err)}
	}
	want, wantErr := json.Marshal(was.timeless())
	got, gotErr := json.Marshal(tapeOutput(out, failure).timeless())
	if err := errors.Join(wantErr, gotErr); err != nil {
		return out, &RunError{err}
	}
	if err := replay.Result(want, got); err != nil {
		return out, &RunError{err}
	}
	if out != nil {
		out.Took = was.Took
		for i := range out.Tasks {
			out.Tasks[i].Took = was.Tasks[i].Took
		}
	}
	return out, failure
}
