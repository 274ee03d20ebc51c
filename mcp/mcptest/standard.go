package mcptest

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// StandardTools are the tools of a Standard server, unless its flag -tools says
// otherwise:
//
//   - echo: its arguments, digit for digit, as text and as structured content
//   - env: the server's arguments and environment as JSON, {"argv":[…],"env":[…]}
//   - sleep: waits {"seconds":n}, or until the call is cancelled
//   - cancelled: how many sleeping calls were cancelled
//   - count: how many calls of any tool came before this one
//   - big: {"bytes":n,"unit":"é"}: text of about n bytes
//   - fail: a failure with two text blocks
//   - blocks: one block of every type of content
//   - exit: ends the process with status 7, after a word on stderr
//
// Any other name in -tools is a tool which answers with its name, but for add: with
// {"name":n}, it makes the server offer such a tool from now on; and those that begin
// with parrot_, which repeat the headers of the request.
var StandardTools = []string{"blocks", "big", "cancelled", "count", "echo", "env", "exit", "fail", "sleep"}

// options are the flags of a standard server.
type options struct {
	name   string
	tools  []string
	delay  time.Duration
	stderr string
	legacy bool
	sse    bool

	contents bool
}

func parseStandard(flags []string) (options, error) {
	var o options
	var names string
	fs := flag.NewFlagSet(string(Standard), flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.name, "name", "standard", "name of the server")
	fs.StringVar(&names, "tools", strings.Join(StandardTools, ","), "tools to offer, separated by commas")
	fs.DurationVar(&o.delay, "delay", 0, "time to wait before the first message is read")
	fs.BoolVar(&o.sse, "sse", false, "over HTTP: speak the transport before Streamable HTTP")
	fs.BoolVar(&o.legacy, "legacy", false, "speak the legacy era alone")
	fs.BoolVar(&o.contents, "contents", false, "offer resources and prompts")
	fs.StringVar(&o.stderr, "stderr", "", "text for stderr at the start")
	if err := fs.Parse(flags); err != nil {
		return o, err
	}
	if names != "" {
		o.tools = strings.Split(names, ",")
	}
	return o, nil
}

func runStandard(flags []string) error {
	o, err := parseStandard(flags)
	if err != nil {
		return err
	}
	if o.stderr != "" {
		fmt.Fprintln(os.Stderr, o.stderr)
	}
	<-time.After(o.delay)
	return newStandard(o).Run(context.Background(), &mcp.StdioTransport{})
}

// modern is the first version of the modern era.
const modern = "2026-07-28"

// Handler returns a Standard server behind Streamable HTTP, with the flags of
// the kind. It speaks both eras, unless -legacy is among them; with -sse it is behind
// the legacy transport.
func Handler(flags ...string) (http.Handler, error) {
	o, err := parseStandard(flags)
	if err != nil {
		return nil, err
	}
	server := newStandard(o)
	get := func(*http.Request) *mcp.Server { return server }
	if o.sse {
		return mcp.NewSSEHandler(get, nil), nil
	}
	stateless := mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	stateful := mcp.NewStreamableHTTPHandler(get, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= modern {
			stateless.ServeHTTP(w, r)
			return
		}
		stateful.ServeHTTP(w, r)
	}), nil
}

// HTTP starts a Standard server behind Streamable HTTP for the time of the test
// and returns its URL.
func HTTP(t testing.TB, flags ...string) string {
	t.Helper()
	h, err := Handler(flags...)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// state is what the tools of one server remember.
type state struct {
	calls, cancelled atomic.Int64
}

func newStandard(o options) *mcp.Server {
	opts := &mcp.ServerOptions{Instructions: "A server for tests."}
	if o.legacy {
		opts.SupportedProtocolVersions = slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v >= modern })
	}
	if o.contents {
		opts.CompletionHandler = complete
	}
	server := mcp.NewServer(&mcp.Implementation{Name: o.name, Version: "1.0.0"}, opts)
	if o.contents {
		addContents(server)
	}
	st := new(state)
	var offer func(name string)
	offer = func(name string) {
		handle, ok := handlers[name]
		switch {
		case name == "add":
			handle = func(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
				var in struct{ Name, Kind string }
				if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
					return failure(err.Error())
				}
				switch in.Kind {
				case "resource":
					server.AddResource(&mcp.Resource{URI: "notes:///" + in.Name, Name: in.Name}, nil)
				case "prompt":
					server.AddPrompt(&mcp.Prompt{Name: in.Name}, nil)
				default:
					offer(in.Name)
				}
				return text("added")
			}
		case strings.HasPrefix(name, parrotTools):
			handle = parrotTool
		case !ok:
			handle = func(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
				return text(req.Params.Name)
			}
		}
		server.AddTool(&mcp.Tool{
			Name:        name,
			Description: "The tool " + name + " of " + o.name + ".",
			InputSchema: json.RawMessage(`{"type":"object"}`),
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			defer st.calls.Add(1)
			return handle(st, ctx, req), nil
		})
	}
	for _, name := range o.tools {
		offer(name)
	}
	return server
}

type handler func(*state, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult

var handlers = map[string]handler{
	"ask":          askTool,
	"ask_model":    askModelTool,
	"ask_roots":    askRootsTool,
	"busy":         busyTool,
	"capabilities": capabilitiesTool,
	"echo": func(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
		r := text(string(req.Params.Arguments))
		r.StructuredContent = req.Params.Arguments
		return r
	},
	"env": func(*state, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		data, err := json.Marshal(map[string][]string{"argv": os.Args, "env": environ()})
		if err != nil {
			return failure(err.Error())
		}
		return text(string(data))
	},
	"sleep": func(st *state, ctx context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
		var in struct{ Seconds float64 }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return failure(err.Error())
		}
		select {
		case <-ctx.Done():
			st.cancelled.Add(1)
			return failure("cancelled")
		case <-time.After(time.Duration(in.Seconds * float64(time.Second))):
			return text("slept")
		}
	},
	"cancelled": func(st *state, _ context.Context, _ *mcp.CallToolRequest) *mcp.CallToolResult {
		return text(fmt.Sprint(st.cancelled.Load()))
	},
	"count": func(st *state, _ context.Context, _ *mcp.CallToolRequest) *mcp.CallToolResult {
		return text(fmt.Sprint(st.calls.Load()))
	},
	"big": func(_ *state, _ context.Context, req *mcp.CallToolRequest) *mcp.CallToolResult {
		var in struct {
			Bytes int
			Unit  string
		}
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil || in.Unit == "" {
			return failure("want {\"bytes\":n,\"unit\":\"…\"}")
		}
		return text(strings.Repeat(in.Unit, in.Bytes/len(in.Unit)))
	},
	"fail": func(*state, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		r := failure("no such note")
		r.Content = append(r.Content, &mcp.TextContent{Text: "try another"})
		return r
	},
	"blocks": func(*state, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{
			&mcp.TextContent{Text: "a text"},
			&mcp.ImageContent{Data: []byte("an image"), MIMEType: "image/png"},
			&mcp.AudioContent{Data: []byte("a sound"), MIMEType: "audio/wav"},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///a", MIMEType: "text/plain", Text: "a file"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "file:///b", Blob: []byte("bytes")}},
			&mcp.ResourceLink{URI: "https://example.com/c", Name: "c"},
		}}
	},
	"exit": func(*state, context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
		fmt.Fprintln(os.Stderr, "standard: leaving in the middle of a call")
		os.Exit(7)
		return nil
	},
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func failure(s string) *mcp.CallToolResult {
	r := text(s)
	r.IsError = true
	return r
}
