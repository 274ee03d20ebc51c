package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"crewhost/config"
	"crewhost/runner"
)

func listCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "list",
		Usage: "list what the settings serve to MCP clients; starts nothing",
		Flags: append(settingsFlags(), formatFlagOf("text", "json")),
		Action: func(ctx *cli.Context) error {
			if err := atMost(ctx, 0); err != nil {
				return err
			}
			out, err := outputOf(ctx, c)
			if err != nil {
				return err
			}
			anchor, err := anchorOf("")
			if err != nil {
				return err
			}
			s, err := newSession(ctx, c, anchor)
			if err != nil {
				return err
			}
			for _, w := range s.settings.Warnings {
				s.progress.warn(w)
			}
			for _, served := range s.settings.MCP.Served {
				for _, issue := range faultsOfHTTP(ctx.Context, served, c.environ) {
					s.progress.warn(issue.Error())
				}
			}
			return out.served(s.settings.MCP.Served)
		},
	}
}

// jsonServed is a surface of the settings (I2).
type jsonServed struct {
	Handle     string          `json:"handle"`
	Title      string          `json:"title,omitempty"`
	Transports []jsonTransport `json:"transports"`
	Tools      []string        `json:"tools"`
	Crews      []string        `json:"crews"`
	CrewTools  []string        `json:"crewTools"` // of each, the tool that it is; "" where it can't be read
	// CrewServers are, of each crew, the MCP servers that its agents bring along.
	CrewServers [][]string `json:"crewServers"`
	Resources   []string   `json:"resources"`
	Prompts     []string   `json:"prompts"`
}

type jsonTransport struct {
	Transport string `json:"transport"`
	// Endpoint is a URL, or for stdio the command line.
	Endpoint string `json:"endpoint"`
}

func (o *output) served(surfaces []config.Served) error {
	list := []jsonServed{}
	for _, s := range surfaces {
		j := jsonServed{
			Handle: s.Handle, Title: s.Title, Transports: []jsonTransport{{"stdio", "crewhost mcp start " + s.Handle}},
			Tools: []string{}, Crews: []string{}, CrewTools: []string{}, CrewServers: [][]string{}, Resources: []string{}, Prompts: []string{},
		}
		if h := s.HTTP; h != nil {
			scheme := "http"
			if h.Cert != "" {
				scheme = "https"
			}
			j.Transports = append(j.Transports, jsonTransport{"http", scheme + "://" + h.Listen + h.Path})
		}
		for _, t := range s.Tools {
			j.Tools = append(j.Tools, t.Pattern)
		}
		for _, crew := range s.Crews {
			j.Crews = append(j.Crews, crew.Path)
			j.CrewTools = append(j.CrewTools, runner.CrewTool(crew))
			j.CrewServers = append(j.CrewServers, append([]string{}, runner.CrewServers(crew)...))
		}
		for _, r := range s.Resources {
			j.Resources = append(j.Resources, r.String())
		}
		for _, p := range s.Prompts {
			j.Prompts = append(j.Prompts, p.String())
		}
		list = append(list, j)
	}
	if o.json {
		return o.encode(map[string]any{"served": list})
	}
	table := tabwriter.NewWriter(o.out, 0, 4, 2, ' ', 0)
	for _, j := range list {
		var serves, crews []string
		for i, path := range j.Crews {
			if name := j.CrewTools[i]; name != "" {
				path += " as " + name
			}
			if own := j.CrewServers[i]; len(own) > 0 {
				path += " with MCP server " + strings.Join(own, " and ")
			}
			crews = append(crews, path)
		}
		for _, part := range []struct {
			what  string
			names []string
		}{{"tools", j.Tools}, {"crews", crews}, {"resources", j.Resources}, {"prompts", j.Prompts}} {
			if len(part.names) > 0 {
				serves = append(serves, part.what+" "+strings.Join(part.names, ", "))
			}
		}
		for _, t := range j.Transports {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", j.Handle, t.Transport, oneLine(t.Endpoint), oneLine(strings.Join(serves, "; ")))
		}
	}
	return table.Flush()
}
