// Conformance is the client that the official conformance suite tests: this
// product's package mcp, and so its startup, its registry and its calls, and not
// the SDK alone. The suite starts it for each scenario, with the server's URL as
// the last argument and the scenario in the environment:
//
//	MCP_CONFORMANCE_SCENARIO=tools_call conformance http://localhost:40123/mcp
//
// It does what a host would: connect, list, call. Where somebody has to log in,
// they say yes at once.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/tools"
)

func main() {
	if err := run(context.Background(), os.Args[len(os.Args)-1], os.Getenv("MCP_CONFORMANCE_SCENARIO")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// given is what the suite tells the client of a scenario.
type given struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key_pem"`
	Assertion    string `json:"valid_jwt"`
	ToolCalls    []call `json:"toolCalls"`
}

// A call is a tool and what it is given.
type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// document is a client that is known by a document about it, which the suite
// takes for granted.
const document = "https://conformance-test.local/client-metadata.json"

func run(ctx context.Context, url, scenario string) (err error) {
	var g given
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &g); err != nil {
			return fmt.Errorf("reading the context: %w", err)
		}
	}
	server := config.Server{Name: serverName, Transport: config.TransportHTTP, URL: secret.Literal(url)}
	if strings.HasPrefix(scenario, "auth/") {
		server.OAuth = client(scenario, g)
	}
	var reg tools.Registry
	sessions, err := mcp.Startup(ctx, config.MCP{
		Enabled: true,
		// All scenarios run at once, and none has a server that is silent: one
		// that is slow to answer a probe is not of the old era.
		ProbeTimeout:    25 * time.Second,
		ConnectTimeout:  25 * time.Second,
		ToolTimeout:     20 * time.Second,
		ShutdownTimeout: time.Second,
		Servers:         []config.Server{server},
	}, &reg, mcp.Options{
		Name: "test-client", Version: "1.0.0", Browse: browse, Respondent: agreeable{}, Environ: []string{},
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	defer func() { err = errors.Join(err, sessions.Close()) }()
	if err != nil {
		return err
	}
	for _, r := range sessions.Reports() {
		if r.Err != nil {
			return r.Err
		}
	}
	for _, c := range calls(scenario, g, &reg) {
		tool, ok := reg.Lookup(c.Name)
		if !ok {
			fmt.Fprintf(os.Stderr, "there is no tool %q\n", c.Name)
			continue
		}
		// What a server refuses, the suite judges.
		if _, err := tool.Call(ctx, tools.Call{Name: c.Name, Arguments: c.Arguments}); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if scenario == "http-standard-headers" {
		return readAll(ctx, sessions)
	}
	return nil
}

// readAll asks for what a server has beside tools.
func readAll(ctx context.Context, sessions *mcp.Sessions) error {
	list, err := sessions.Resources(ctx, serverName)
	if err != nil {
		return err
	}
	for _, r := range list.Resources {
		if _, err := sessions.ReadResource(ctx, serverName, r.URI); err != nil {
			return err
		}
	}
	prompts, err := sessions.Prompts(ctx, serverName)
	if err != nil {
		return err
	}
	for _, p := range prompts.Prompts {
		if _, err := sessions.GetPrompt(ctx, serverName, p.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// serverName is what the suite's server is called here.
const serverName = "suite"

// agreeable is somebody who fills in every form: what the server proposes, and else
// yes.
type agreeable struct{}

func (agreeable) Elicit(_ context.Context, q mcp.Question) (mcp.Answer, error) {
	a := mcp.Answer{Action: mcp.Accept, Values: make(map[string]secret.Text)}
	for _, f := range q.Fields {
		switch {
		case f.HasDefault:
			a.Values[f.Name] = secret.Literal(f.Default)
		case f.Kind == mcp.FieldBoolean:
			a.Values[f.Name] = secret.Literal("true")
		}
	}
	return a, nil
}

// client is who the product is in a scenario of authorization.
func client(scenario string, g given) *config.OAuth {
	o := new(config.OAuth)
	switch {
	case g.Assertion != "":
		o.Grant = config.GrantJWTBearer
		o.Assertion = secret.Ref{Source: secret.FromLiteral, Value: secret.New(g.Assertion)}
	case g.PrivateKey != "":
		o.PrivateKey = secret.Ref{Source: secret.FromLiteral, Value: secret.New(g.PrivateKey)}
	case g.ClientSecret != "":
		o.ClientSecret = secret.Ref{Source: secret.FromLiteral, Value: secret.New(g.ClientSecret)}
	}
	o.ClientID = secret.Literal(g.ClientID)
	if g.ClientID == "" {
		o.ClientID = secret.Literal(document)
	}
	if strings.HasPrefix(scenario, "auth/client-credentials-") {
		o.Grant = config.GrantClientCredentials
	}
	return o
}

// calls are the tools that a scenario wants called.
func calls(scenario string, g given, reg *tools.Registry) []call {
	all := func(arguments string) []call {
		var list []call
		for _, name := range reg.Names() {
			list = append(list, call{name, json.RawMessage(arguments)})
		}
		return list
	}
	switch scenario {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil // to connect and to list is all
	case "tools_call":
		return []call{{"add_numbers", json.RawMessage(`{"a":5,"b":3}`)}}
	case "http-custom-headers":
		return g.ToolCalls
	case "http-invalid-tool-headers":
		return all(`{"region":"us-west1"}`)
	case "json-schema-2020-12-preservation":
		tool, ok := reg.Lookup("json_schema_2020_12_tool")
		if !ok {
			return nil
		}
		arguments, err := json.Marshal(map[string]json.RawMessage{"schema": tool.Definition().InputSchema})
		if err != nil {
			return nil
		}
		return []call{{"json_schema_echo", arguments}}
	}
	return all(`{}`)
}

// browse is somebody who agrees to everything: their browser follows the
// redirects, to the listener of the login.
func browse(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}
