package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/tools"
)

func resourcesCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "resources",
		Usage:     "list what the servers let be read, or read one resource",
		ArgsUsage: "[SERVER…]",
		Flags: append(hostFlags(), formatFlagOf("text", "json"),
			&cli.StringFlag{Name: "read", Usage: "print the resource `URI` of the one SERVER named"}),
		Action: func(ctx *cli.Context) error {
			if !ctx.IsSet("read") {
				return withHostOf(ctx, c, "", known(ctx), listResources)
			}
			if ctx.NArg() != 1 || ctx.String("read") == "" {
				return usagef("mcp resources: --read takes one server and a URI: crewhost mcp resources SERVER --read URI")
			}
			return withHostOf(ctx, c, "", known(ctx), readResource)
		},
	}
}

func promptsCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:      "prompts",
		Usage:     "list the prompts of the servers, or fill one in",
		ArgsUsage: "[SERVER…]",
		Flags: append(hostFlags(), formatFlagOf("text", "json"),
			&cli.StringFlag{Name: "get", Usage: "fill in the prompt `NAME` of the one SERVER named"},
			&cli.StringFlag{Name: "args", Usage: "the arguments for --get as a `JSON` object of texts"}),
		Action: func(ctx *cli.Context) error {
			if !ctx.IsSet("get") {
				if ctx.IsSet("args") {
					return usagef("mcp prompts: --args is for --get")
				}
				return withHostOf(ctx, c, "", known(ctx), listPrompts)
			}
			if ctx.NArg() != 1 || ctx.String("get") == "" {
				return usagef("mcp prompts: --get takes one server and a name: crewhost mcp prompts SERVER --get NAME")
			}
			var arguments map[string]string // read before anything is started
			if text := ctx.String("args"); text != "" && json.Unmarshal([]byte(text), &arguments) != nil {
				return usagef("mcp prompts: --args is not a JSON object of texts: %s", text)
			}
			return withHostOf(ctx, c, "", known(ctx), func(ctx *cli.Context, host *runner.Host, out *output) error {
				return getPrompt(ctx, host, out, arguments)
			})
		},
	}
}

// jsonResources is what one server lets be read.
type jsonResources struct {
	Server    string         `json:"server"`
	Resources []jsonResource `json:"resources"`
	Templates []jsonResource `json:"templates"`
	Warnings  []string       `json:"warnings"`
	Error     string         `json:"error,omitempty"`
}

type jsonResource struct {
	URI         string `json:"uri,omitempty"`
	URITemplate string `json:"uriTemplate,omitempty"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIME        string `json:"mimeType,omitempty"`
	Size        *int64 `json:"size,omitempty"`
}

func listResources(ctx *cli.Context, host *runner.Host, out *output) error {
	var lists []jsonResources
	failed, err := eachServer(ctx, host, func(server string) error {
		list, err := host.Resources(ctx.Context, server)
		j := jsonResources{Server: server, Resources: []jsonResource{}, Templates: []jsonResource{}, Warnings: append([]string{}, list.Warnings...)}
		for _, r := range list.Resources {
			entry := jsonResource{URI: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME}
			if r.Size >= 0 {
				entry.Size = &r.Size
			}
			j.Resources = append(j.Resources, entry)
		}
		for _, r := range list.Templates {
			j.Templates = append(j.Templates, jsonResource{URITemplate: r.URITemplate, Name: r.Name, Title: r.Title, Description: r.Description, MIME: r.MIME})
		}
		if err != nil {
			j.Error = oneLine(err.Error())
		}
		lists = append(lists, j)
		return err
	})
	if err != nil {
		return err
	}
	if out.json {
		return errors.Join(out.encode(map[string]any{"servers": nonNil(lists)}), failed)
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	for _, list := range lists {
		for _, r := range append(list.Resources, list.Templates...) {
			fmt.Fprintf(table, "%s\t%s\t%s\n", oneLine(r.URI+r.URITemplate), list.Server, summary(described(r.Name, r.Title, r.Description)))
		}
		out.warnings(list.Server, list.Warnings)
	}
	return errors.Join(table.Flush(), failed)
}

// described is what there is to say of a thing, for a table.
func described(name, title, description string) string {
	if title != "" {
		name = title
	}
	if name == "" || description == "" {
		return name + description
	}
	return name + ": " + description
}

func nonNil[T any](list []T) []T { return append([]T{}, list...) }

// warnings prints what is to be known of a server's list.
func (o *output) warnings(server string, lines []string) {
	for _, w := range lines {
		fmt.Fprintf(o.console.err, "WARNING: MCP server %q: %s\n", server, oneLine(w))
	}
}

// eachServer does something for each server that is named, or else for all that
// are connected, in the settings' order. Failed joins what went wrong with single ones.
func eachServer(ctx *cli.Context, host *runner.Host, do func(server string) error) (failed, err error) {
	names := ctx.Args().Slice()
	if err := connected(host, names); err != nil {
		return nil, err
	}
	for _, r := range host.Servers() {
		if len(names) > 0 && !slices.Contains(names, r.Name) || r.State != mcp.StateConnected {
			continue
		}
		if err := do(r.Name); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if ctx.Context.Err() != nil {
		return nil, context.Cause(ctx.Context)
	}
	if failed != nil {
		failed = &runner.RunError{Err: failed}
	}
	return failed, nil
}

// jsonContents is a resource that was read.
type jsonContents struct {
	URI  string  `json:"uri"`
	MIME string  `json:"mimeType,omitempty"`
	Text *string `json:"text,omitempty"`
	Data []byte  `json:"blob,omitempty"`
}

func readResource(ctx *cli.Context, host *runner.Host, out *output) error {
	if err := connected(host, ctx.Args().Slice()); err != nil {
		return err
	}
	contents, err := host.ReadResource(ctx.Context, ctx.Args().First(), ctx.String("read"))
	if err != nil {
		return failedAt(err)
	}
	if !out.json {
		res := tools.Result{}
		for _, c := range contents {
			res.Content = append(res.Content, tools.Content{Kind: tools.KindResource, URI: c.URI, MIME: c.MIME, Text: c.Text, Data: c.Data})
		}
		return out.content(res)
	}
	list := []jsonContents{}
	for _, c := range contents {
		entry := jsonContents{URI: c.URI, MIME: c.MIME, Data: c.Data}
		if c.Data == nil {
			entry.Text = &c.Text
		}
		list = append(list, entry)
	}
	return out.encode(map[string]any{"contents": list})
}

// failedAt is the error of something that was asked of a server: wrong usage
// where it could not even be asked.
func failedAt(err error) error {
	switch tools.CodeOf(err) {
	case tools.CodeArgumentsInvalid, tools.CodeMethodNotFound:
		return usageError{err.Error()}
	}
	return &runner.RunError{Err: err}
}

// jsonPrompts is the prompts of one server.
type jsonPrompts struct {
	Server   string       `json:"server"`
	Prompts  []jsonPrompt `json:"prompts"`
	Warnings []string     `json:"warnings"`
	Error    string       `json:"error,omitempty"`
}

type jsonPrompt struct {
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description,omitempty"`
	Arguments   []jsonArgument `json:"arguments"`
}

type jsonArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
}

func listPrompts(ctx *cli.Context, host *runner.Host, out *output) error {
	var lists []jsonPrompts
	failed, err := eachServer(ctx, host, func(server string) error {
		list, err := host.Prompts(ctx.Context, server)
		j := jsonPrompts{Server: server, Prompts: []jsonPrompt{}, Warnings: append([]string{}, list.Warnings...)}
		for _, p := range list.Prompts {
			entry := jsonPrompt{Name: p.Name, Title: p.Title, Description: p.Description, Arguments: []jsonArgument{}}
			for _, a := range p.Arguments {
				entry.Arguments = append(entry.Arguments, jsonArgument{a.Name, a.Title, a.Description, a.Required})
			}
			j.Prompts = append(j.Prompts, entry)
		}
		if err != nil {
			j.Error = oneLine(err.Error())
		}
		lists = append(lists, j)
		return err
	})
	if err != nil {
		return err
	}
	if out.json {
		return errors.Join(out.encode(map[string]any{"servers": nonNil(lists)}), failed)
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	for _, list := range lists {
		for _, p := range list.Prompts {
			var arguments []string
			for _, a := range p.Arguments {
				name := a.Name
				if a.Required {
					name += "*"
				}
				arguments = append(arguments, name)
			}
			fmt.Fprintf(table, "%s(%s)\t%s\t%s\n", oneLine(p.Name), oneLine(strings.Join(arguments, ", ")), list.Server, summary(described("", p.Title, p.Description)))
		}
		out.warnings(list.Server, list.Warnings)
	}
	return errors.Join(table.Flush(), failed)
}

func getPrompt(ctx *cli.Context, host *runner.Host, out *output, arguments map[string]string) error {
	if err := connected(host, ctx.Args().Slice()); err != nil {
		return err
	}
	p, err := host.GetPrompt(ctx.Context, ctx.Args().First(), ctx.String("get"), arguments)
	if err != nil {
		return failedAt(err)
	}
	if out.json {
		type message struct {
			Role    string        `json:"role"`
			Content tools.Content `json:"content"`
		}
		messages := []message{}
		for _, m := range p.Messages {
			messages = append(messages, message{m.Role, m.Content})
		}
		return out.encode(map[string]any{"description": p.Description, "messages": messages})
	}
	for _, m := range p.Messages {
		if err := out.text("%s:\n", oneLine(m.Role)); err != nil {
			return err
		}
		if err := out.content(tools.Result{Content: []tools.Content{m.Content}}); err != nil {
			return err
		}
	}
	return nil
}
