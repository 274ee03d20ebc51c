package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"

	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// output writes results: on stdout in the format asked for, and nothing else
// there.
type output struct {
	out     io.Writer
	console *console            // its err, which --log-format changes, has all else
	format  string              // what --format says
	json    bool                // that it says json
	verbose bool                // a table of the report goes to stderr, where stdout has text
	show    bool                // out is a terminal
	mask    func(string) string // hides the secrets of the settings
}

// outputOf is the output that --format asks for: text, JSON, or one of the further
// formats that the command has.
func outputOf(ctx *cli.Context, c *console, further ...string) (*output, error) {
	format, err := oneOf(ctx, formatFlag, append([]string{formatText, formatJSON}, further...)...)
	if err != nil {
		return nil, err
	}
	return &output{
		out: c.out, console: c, format: format, json: format == formatJSON, mask: c.redactor.Redact, show: c.show,
		verbose: ctx.Int(verbosityFlag) > 0,
	}, nil
}

// reason is an error on stdout, which nobody else masks.
func (o *output) reason(err error) string { return o.mask(oneLine(err.Error())) }

// foreign is a text that a model or a server wrote. A terminal gets it without
// the control characters that it would obey; a file or a pipe gets it as it is.
func (o *output) foreign(s string) string {
	if !o.show {
		return s
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, s)
}

func (o *output) encode(v any) error {
	enc := json.NewEncoder(o.out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func (o *output) text(format string, args ...any) error {
	if _, err := fmt.Fprintf(o.out, format, args...); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// jsonTool is a tool in a manifest.
type jsonTool struct {
	Name        string          `json:"name"`
	Server      string          `json:"server,omitempty"`
	Original    string          `json:"original,omitempty"` // the server's own name, where it differs
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	Digests     jsonDigests     `json:"digests"`
}

// jsonDigests are what a definition is told apart by.
type jsonDigests struct {
	Description string `json:"description"`
	Schema      string `json:"schema"`
	Definition  string `json:"definition"`
}

// jsonServer is a server in a report.
type jsonServer struct {
	Name      string     `json:"name"`
	State     string     `json:"state"`
	Required  bool       `json:"required"`
	Agents    []string   `json:"agents,omitempty"` // of the crew, which bring it
	Transport string     `json:"transport"`
	Era       string     `json:"era,omitempty"`
	Protocol  string     `json:"protocol,omitempty"`
	Server    string     `json:"server,omitempty"` // what it calls itself
	Version   string     `json:"version,omitempty"`
	Tools     []string   `json:"tools"`
	Skipped   []jsonSkip `json:"skipped"`
	Warnings  []string   `json:"warnings"`
	Error     string     `json:"error,omitempty"`
	Code      string     `json:"code,omitempty"`
	Millis    int64      `json:"tookMs"`
}

type jsonSkip struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
	Holder string `json:"holder,omitempty"`
}

func (o *output) servers(reports []mcp.ServerReport) []jsonServer {
	list := []jsonServer{}
	for _, r := range reports {
		s := jsonServer{
			Name: r.Name, State: string(r.State), Required: r.Required, Agents: r.Agents, Transport: string(r.Transport),
			Era: string(r.Era), Protocol: r.Protocol, Server: o.mask(r.ServerName), Version: o.mask(r.ServerVersion),
			Tools: append([]string{}, r.Tools...), Skipped: []jsonSkip{}, Warnings: []string{},
			Millis: r.Took.Milliseconds(),
		}
		for _, skip := range r.Skipped {
			s.Skipped = append(s.Skipped, jsonSkip{Tool: o.mask(skip.Tool), Reason: string(skip.Reason), Holder: o.mask(skip.Holder)})
		}
		for _, w := range r.Warnings {
			s.Warnings = append(s.Warnings, o.mask(w))
		}
		if r.Err != nil {
			s.Error, s.Code = o.reason(r.Err), string(tools.CodeOf(r.Err))
		}
		list = append(list, s)
	}
	return list
}

// tools prints the manifest: names in text, and with schemas in JSON. The
// servers' reports stay out of it, since a manifest is the same from run to run.
func (o *output) tools(defs []tools.Definition) error {
	if !o.json {
		for _, d := range defs {
			if err := o.text("%s\n", oneLine(d.Name)); err != nil {
				return err
			}
		}
		return nil
	}
	list := make([]jsonTool, 0, len(defs))
	for _, d := range defs {
		list = append(list, jsonTool{d.Name, d.Server, d.Original, d.Title, d.Description, d.InputSchema, jsonDigests(d.Digests())})
	}
	return o.encode(map[string]any{"tools": list})
}

// jsonIssue is a problem with its place.
type jsonIssue struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (o *output) jsonIssues(issues crew.Issues) []jsonIssue {
	list := []jsonIssue{}
	for _, i := range issues {
		list = append(list, jsonIssue{i.File, i.Line, i.Column, i.Code, o.mask(i.Message), o.mask(i.Hint)})
	}
	return list
}

// verdict prints what the host thinks of a crew, and returns an error where
// that is not good. The text forms of the first lines, for who asked for a verdict
// (judging) and not for a run, are Orkeon's. Stdout has the report where --format is
// not text, and with -v stderr has a table of it where it is.
func (o *output) verdict(r report, judging bool) error {
	if err := o.report(r); err != nil {
		return err
	}
	v := r.verdict
	if o.format == formatText {
		for _, w := range v.Warnings {
			fmt.Fprintln(o.console.err, "WARNING: "+w.Error())
		}
		if o.verbose {
			r.table(o.console.err)
		}
	}
	if len(v.Issues) == 0 {
		if o.format != formatText {
			return nil
		}
		return o.text("VALIDATION OK: %s (agents=%d, tasks=%d, tools resolved=%d)\n", r.path, v.Agents, v.Tasks, v.Tools)
	}
	if judging {
		fmt.Fprintf(o.console.err, "VALIDATION FAILED: %s\n", r.path)
	}
	for _, issue := range v.Issues {
		fmt.Fprintln(o.console.err, oneLine(issue.Error()))
	}
	return errReported{count(len(v.Issues), "problem") + " in " + r.path, v.Issues}
}

// report writes a report in the format that was asked for; of text there is none.
func (o *output) report(r report) error {
	switch o.format {
	case formatJSON:
		return o.encode(o.jsonReport(r))
	case formatJUnit:
		return o.junit(r).write(o.out)
	case formatSARIF:
		return o.encode(o.sarif(r))
	}
	return nil
}

// refused is the verdict on a crew that was not judged, since the settings or flags
// won't do, or a server that they require. s is nil where the settings are at fault.
func (o *output) refused(s *session, target string, err error, judging bool) error {
	if !judging && o.format == formatText {
		return err
	}
	var (
		issues   strict.Issues
		required *mcp.RequiredError
	)
	switch {
	case errors.As(err, &issues):
	case errors.As(err, &required):
		for _, failed := range required.Failed {
			issues = append(issues, strict.Issue{Code: codeRequiredServer, Message: o.reason(failed)})
		}
	default:
		return err
	}
	r := report{path: pathOf(target, runner.Verdict{}), verdict: runner.Verdict{Issues: issues}}
	if s != nil {
		r.settings = s.settings
		if required != nil {
			r.verdict.Servers = inOrder(s.progress.reports(), s.settings.MCP.Servers)
		}
	}
	if err := o.verdict(r, judging); !errors.As(err, new(errReported)) {
		return err
	}
	if required != nil {
		return err // which names the servers, in the last line
	}
	return errReported{problems(issues), err}
}

// jsonRun is a finished run.
type jsonRun struct {
	OK    bool       `json:"ok"`
	Error string     `json:"error,omitempty"`
	Final string     `json:"final"`
	Tasks []jsonTask `json:"tasks"`
	Usage jsonUsage  `json:"usage"`
	// Asked is the part of Usage that is no task's, by operation.
	Asked  map[string]jsonUsage `json:"asked,omitempty"`
	Cost   *jsonCost            `json:"cost,omitempty"`
	Millis int64                `json:"tookMs"`
}

type jsonTask struct {
	Task   string    `json:"task"`
	Agent  string    `json:"agent,omitempty"`
	State  string    `json:"state"` // completed, failed, skipped, stopped, not_run
	Error  string    `json:"error,omitempty"`
	Output string    `json:"output,omitempty"`
	File   string    `json:"deliverable,omitempty"`
	Usage  jsonUsage `json:"usage"`
	Millis int64     `json:"tookMs"`
}

type jsonUsage struct {
	Input    int  `json:"inputTokens"`
	Output   int  `json:"outputTokens"`
	Measured bool `json:"measured"`
}

func usageOf(u llm.Usage) jsonUsage { return jsonUsage{u.Input, u.Output, u.Measured} }

// run prints a run's output: the final text alone, or everything in JSON, or its
// tasks as tests. What a failed run had got to is not printed as text, which is for
// success.
func (o *output) run(crewName string, result *runner.Output, failure error) error {
	if result == nil {
		return nil
	}
	if o.format == formatJUnit {
		return o.junitOfRun(crewName, result, failure).write(o.out)
	}
	if !o.json {
		if failure != nil {
			return nil
		}
		return o.text("%s\n", o.foreign(result.Final))
	}
	r := jsonRun{OK: failure == nil, Final: result.Final, Tasks: []jsonTask{}, Usage: usageOf(result.Usage), Asked: map[string]jsonUsage{}, Cost: costOf(result.Cost), Millis: result.Took.Milliseconds()}
	if failure != nil {
		r.Final = "" // what some other task had said is no result
		r.Error = o.reason(failure)
	}
	for operation, usage := range result.Asked {
		r.Asked[operation] = usageOf(usage)
	}
	for _, t := range result.Tasks {
		why := t.Why
		if t.Err != nil {
			why = o.reason(t.Err)
		}
		r.Tasks = append(r.Tasks, jsonTask{
			Task: t.Task, Agent: t.Agent, State: string(t.State), Error: why, Output: t.Text,
			File: t.File, Usage: usageOf(t.Usage), Millis: t.Took.Milliseconds(),
		})
	}
	return o.encode(r)
}

// content prints a tool's result: the text blocks as they are, and a line for
// each block that is no text.
func (o *output) content(res tools.Result) error {
	if o.json {
		return o.encode(map[string]any{"content": res.Content, "structuredContent": res.Structured, "isError": res.IsError})
	}
	for _, c := range res.Content {
		var err error
		switch {
		case c.Text != "":
			err = o.text("%s\n", o.foreign(c.Text))
		case c.URI != "":
			err = o.text("[%s %s]\n", c.Kind, oneLine(c.URI))
		case len(c.Data) > 0:
			err = o.text("[%s %s, %d bytes]\n", c.Kind, oneLine(c.MIME), len(c.Data))
		case len(c.Raw) > 0:
			err = o.text("%s\n", c.Raw)
		}
		if err != nil {
			return err
		}
	}
	if len(res.Content) == 0 && len(res.Structured) > 0 {
		return o.text("%s\n", res.Structured)
	}
	return nil
}

var errToolFailed = errors.New("the tool reported an error")
