package mcp_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// someTools is the list of a server whose tool x does what the row is about.
const someTools = `[{"name":"x","inputSchema":{"type":"object"}},{"name":"log","inputSchema":{"type":"object"}},{"name":"slow","inputSchema":{"type":"object"}}]`

// scripted is a server that misbehaves by these flags.
func scripted(flags ...string) func(*hazard) config.Server {
	return func(*hazard) config.Server {
		return stdio("s", mcptest.Scripted, append([]string{"-list", someTools}, flags...)...)
	}
}

// kind is a server of another kind.
func kind(k mcptest.Kind, flags ...string) func(*hazard) config.Server {
	return func(*hazard) config.Server { return stdio("s", k, flags...) }
}

// calling is an HTTP server that misbehaves when a tool is called.
func calling(call func(w http.ResponseWriter, r *http.Request, m message)) func(*hazard) config.Server {
	return posting(func(w http.ResponseWriter, r *http.Request, m message) {
		if m.Method == "tools/call" {
			call(w, r, m)
			return
		}
		reply(w, m, listing(someTools))
	})
}

// posting is an HTTP server that answers messages in its own way.
func posting(post func(w http.ResponseWriter, r *http.Request, m message)) func(*hazard) config.Server {
	return func(h *hazard) config.Server {
		return remote("s", h.serve(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			post(w, r, received(r))
		}))
	}
}

func (h *hazard) serve(handle http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(handle)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	h.onClose(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// listing are the answers of a legacy server with these tools.
func listing(list string) map[string]string {
	answers := maps.Clone(legacy)
	answers["tools/list"] = `{"result":{"tools":` + list + `}}`
	return answers
}

// forgetful is a server that forgets the session of so many calls.
func forgetful(times int) func(*hazard) config.Server {
	return func(h *hazard) config.Server {
		var sessions, forgotten atomic.Int64
		return posting(func(w http.ResponseWriter, r *http.Request, m message) {
			current := fmt.Sprint("session-", sessions.Load())
			switch {
			case m.Method == "server/discover":
				http.Error(w, "no", http.StatusBadRequest)
				return
			case m.Method == "initialize":
				w.Header().Set("Mcp-Session-Id", fmt.Sprint("session-", sessions.Add(1)))
			case r.Header.Get("Mcp-Session-Id") != current, m.Method == "tools/call" && forgotten.Add(1) <= int64(times):
				http.Error(w, "session not found", http.StatusNotFound)
				return
			}
			reply(w, m, listing(someTools))
		})(h)
	}
}

// events answers with a stream of events.
func events(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

// pour writes unit n times, or until the client has gone.
func pour(w io.Writer, unit string, n int) {
	for range n {
		if _, err := io.WriteString(w, unit); err != nil {
			return
		}
	}
}

const (
	mebibyte = 1 << 20
	soon     = 300 * time.Millisecond
)

var xs = strings.Repeat("x", mebibyte)

func within(limit time.Duration) func(*config.MCP) {
	return func(c *config.MCP) { c.ToolTimeout, c.ConnectTimeout = limit, max(limit, 10*time.Second) }
}

func connectWithin(limit time.Duration) func(*config.MCP) {
	return func(c *config.MCP) { c.ConnectTimeout = limit }
}

func limited(change func(*config.Limits)) func(*config.MCP) {
	return func(c *config.MCP) { change(&c.Limits) }
}

// Rows a to d: the start, the handshake, the lists and the calls of servers on stdio.
var faults = append([]fault{
	{does: "there is no such command", cites: "W2", ends: true,
		server: func(*hazard) config.Server {
			return config.Server{Name: "s", Transport: config.TransportStdio, Command: secret.Literal("no-such-command-anywhere")}
		},
		code: tools.CodeInitializationFailed, says: `server "s": .*no-such-command-anywhere`},
	{does: "the command is a folder", cites: "W2", ends: true,
		server: func(*hazard) config.Server {
			return config.Server{Name: "s", Transport: config.TransportStdio, Command: secret.Literal("/")}
		},
		code: tools.CodeInitializationFailed, says: `server "s": `},
	{does: "exits at once", cites: "sdk bad children, K07", server: kind(mcptest.Exit, "a b"), ends: true,
		code: tools.CodeInitializationFailed, says: `exit status 3 \(command: .*"?a b"?.*\); stderr: giving up`},
	{does: "exits and leaves a process that holds its stdin, stdout and stderr", cites: "sdk bad children", server: kind(mcptest.Orphan), ends: true,
		with: connectWithin(time.Second), code: tools.CodeConnectTimeout, says: `not connected within 1s \(stage: negotiate\)`},
	{does: "never says anything, and ends only when it is killed", cites: "K05, sdk bad children", server: kind(mcptest.Hang), ends: true,
		with: connectWithin(time.Second), code: tools.CodeConnectTimeout, says: `not connected within 1s \(stage: negotiate\)`},
	{does: "needs PATH, and has an environment of its own", cites: "K03",
		server: func(*hazard) config.Server {
			s := stdio("s", mcptest.Standard)
			s.Env = append(s.Env, config.Variable{Name: "TOKEN", Value: secret.Literal("t1")}, config.Variable{Name: "LANG", Value: secret.Literal("C")})
			return s
		},
		tool: "env", says: `"LANG=C",.*"PATH=[^"].*"TOKEN=t1"`},
	{does: "wants its arguments in one piece each", cites: "K07", server: kind(mcptest.Standard, "-name", `a b "c" $HOME`), tool: "env", says: `"a b \\"c\\" \$HOME"`},
	{does: "runs as a grandchild", cites: "sdk bad children", server: kind(mcptest.Wrapper), tool: "echo", args: `{"a":1}`, says: `^\{"a":1\}$`},
	{does: "prints a line before it speaks", cites: "K01", server: scripted("-banner", "Ready v1.2"),
		says: `connected, 3 tools: prints on stdout what is not JSON-RPC: "Ready v1.2"`},
	{does: "prints JSON that is none of its messages", cites: "K01", server: scripted("-stray"), tool: "x", args: `{"a":1}`, says: `^\{"a":1\}$`},
	{does: "prints a thousand lines in the middle of a call", cites: "K01, sdk bad children", server: scripted("-misbehave", "tools/call=garbage"), tool: "x", says: `^\{\}$`},
	{does: "prints 40 MiB without a line end first", cites: "K01", server: scripted("-litter", fmt.Sprint(40*mebibyte)), mib: 128, long: true,
		says: `connected, 3 tools: prints on stdout what is not JSON-RPC: "xxxx`},
	{does: "writes 16 MiB to stderr for each answer", cites: "sdk bad children", server: scripted("-noisy", fmt.Sprint(16*mebibyte)), tool: "x", long: true, says: `^\{\}$`},
	{does: "frames its messages as language servers do", cites: "K17", server: scripted("-frame", "length"), ends: true,
		code: tools.CodeProtocolError, says: `not newline-delimited JSON: it begins with \\?"Content-Length`},
	{does: "writes each message over many lines", cites: "K17", server: scripted("-frame", "pretty"), ends: true,
		code: tools.CodeProtocolError, says: `not newline-delimited JSON`},
	{does: "lets the probe pass in silence", cites: "K09, sdk bad children", server: scripted("-unknown", "silent"), says: `^connected, 3 tools: $`},
	{does: "dies of the probe", cites: "sdk bad children", server: scripted("-unknown", "die"), says: `^connected, 3 tools: $`},
	{does: "takes one version alone", cites: "K13", server: scripted("-only", "2025-06-18"), says: `^connected, 3 tools: $`},
	{does: "speaks a version that nobody knows", cites: "K13", server: scripted("-version", "1999-01-01"), ends: true,
		code: tools.CodeInitializationFailed, says: `it speaks the version "1999-01-01" of the protocol`},
	{does: "asks for a ping before it answers", cites: "K15", server: scripted("-ping"), says: `^connected, 3 tools: $`},
	{does: "answers initialize with null", cites: "W9", server: scripted("-misbehave", "initialize=null"), ends: true,
		code: tools.CodeInitializationFailed, says: `its answer is not what the protocol says`},
	{does: "dies of initialize", cites: "W9", server: scripted("-misbehave", "initialize=die"), ends: true,
		code: tools.CodeInitializationFailed, says: `exit status 1.*dying on initialize`},
	{does: "does not answer the ping", cites: "W6", server: scripted("-misbehave", "ping=silent"), with: connectWithin(time.Second), ends: true,
		code: tools.CodeConnectTimeout, says: `not connected within 1s \(stage: ping\)`},
	{does: "does not answer tools/list", cites: "W9", server: scripted("-misbehave", "tools/list=silent"), with: connectWithin(time.Second), ends: true,
		code: tools.CodeConnectTimeout, says: `not connected within 1s \(stage: list\)`},
	{does: "answers tools/list with what is no list", cites: "W7", server: kind(mcptest.Scripted, "-list", `{"a":1}`), ends: true,
		code: tools.CodeProtocolError, says: `its answer is not what the protocol says`},
	{does: "shuts its stdout and stays", cites: "sdk bad children", server: scripted("-misbehave", "tools/list=shut"), ends: true,
		code: tools.CodeInitializationFailed, says: `closed its stdout`},
	{does: "repeats a cursor for ever", cites: "sdk 1b", server: scripted("-cursor", "repeat"), says: `connected, 3 tools: .*repeats the cursor "again"`},
	{does: "has a page after every page", cites: "sdk 1b", server: scripted("-cursor", "endless"), with: limited(func(l *config.Limits) { l.Pages = 20 }),
		says: `connected, 20 tools: .*on more than 20 pages`},
	{does: "an empty cursor leads to the second page", cites: "K19", server: scripted("-cursor", "empty"), says: `^connected, 4 tools: $`},
	{does: "lists more tools than are taken", cites: "K27, W7", server: scripted(), with: limited(func(l *config.Limits) { l.Tools = 2 }),
		says: `connected, 2 tools: lists more than 2 tools`},
	{does: "tools without a name, twice, and with escapes in it", cites: "K23, W7",
		server: kind(mcptest.Scripted, "-list", `[{"name":""},{"name":"a"},{"name":"a"},{"name":"b\u001b[2J"},{"name":"c\u202e"},7]`),
		says:   `connected, 1 tools: .*empty name.*"a" .*listed twice.*can't be used`},
	{does: "tools of the names of another server", cites: "K21", server: scripted(),
		with: func(c *config.MCP) { c.Servers = append(c.Servers, stdio("t", mcptest.Scripted, "-list", someTools)) },
		says: `connected, 3 tools: The tool "log" of MCP server "t" collides with server "s" and was not registered`},
	{does: "tools of names that models do not take", cites: "K23",
		server: kind(mcptest.Scripted, "-list", `[{"name":"GET:/items/{id}","inputSchema":{"type":"object"}}]`), tool: "GET:/items/{id}", args: `{"id":1}`, says: `^\{"id":1\}$`},
	{does: "schemas that are none", cites: "sdk bad children, W7",
		server: kind(mcptest.Scripted, "-list", `[{"name":"a"},{"name":"b","inputSchema":null},{"name":"c","inputSchema":true},{"name":"d","inputSchema":{"type":"string"}},{"name":"e","inputSchema":{"$ref":"#/nowhere"}}]`),
		says:   `connected, 5 tools: the tool "a" has no input schema.*"c" has an input schema that is not an object`},
	{does: "a schema larger than is taken", cites: "W7", server: scripted(), with: limited(func(l *config.Limits) { l.SchemaBytes = 10 }),
		says: `connected, 0 tools: .*"x".*larger than allowed`},
	{does: "hides instructions in a description", cites: "R4",
		server: kind(mcptest.Scripted, "-list", "[{\"name\":\"a\",\"description\":\"adds\U000e0069\U000e0067\u200b\",\"inputSchema\":{\"type\":\"object\"}}]"),
		says:   `connected, 1 tools: hides 3 characters that can't be seen in the texts of 1 of its tools.*: "a"`},
	{does: "a schema that refers to itself", cites: "K25",
		server: kind(mcptest.Scripted, "-list", `[{"name":"x","inputSchema":{"type":"object","$ref":"#"},"outputSchema":{"type":"object","allOf":[{"$ref":"#"}]}}]`, "-reply", `{"structuredContent":{"a":1}}`),
		tool:   "x", says: `^\{"a":1\}$`},
	{does: "breaks its own output schema", cites: "sdk table 1",
		server: kind(mcptest.Scripted, "-list", `[{"name":"x","outputSchema":{"type":"object","required":["n"]}}]`, "-reply", `{"structuredContent":{"m":1}}`),
		tool:   "x", says: `(?s)\{"m":1\}.*Note of the host: the structured content .*required`},
	{does: "refuses a call without arguments", cites: "K29", server: scripted(), tool: "x", args: "null", says: `^\{\}$`},
	{does: "counts on every digit", cites: "K31", server: scripted(), tool: "x", args: `{"id":725653563933458433,"e":1e400,"f":0.1000000000000000055}`,
		says: `^\{"id":725653563933458433,"e":1e400,"f":0.1000000000000000055\}$`},
	{does: "never answers a call", cites: "K37, W8", server: scripted(), tool: "slow", with: within(soon),
		code: tools.CodeCallTimeout, says: `server "s", tool "slow": no answer within 300ms`},
	{does: "answers with another id", cites: "sdk bad children", server: scripted("-misbehave", "tools/call=wrongid"), tool: "x", with: within(soon),
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "answers twice", cites: "W8", server: scripted("-misbehave", "tools/call=twice"), tool: "x", says: `^first$`},
	{does: "answers in a batch", cites: "W8", server: scripted("-misbehave", "tools/call=batch"), tool: "x", says: `^in a batch$`},
	{does: "answers a call with null", cites: "W9", server: scripted("-misbehave", "tools/call=null"), tool: "x",
		code: tools.CodeProtocolError, says: `server "s", tool "x": its (result is not an object|answer has no result)`},
	{does: "answers a call with a list", cites: "W9", server: scripted("-reply", `[1]`), tool: "x",
		code: tools.CodeProtocolError, says: `its answer is not what the protocol says`},
	{does: "answers a call with 100,000 arrays in each other", cites: "W10", server: scripted("-misbehave", "tools/call=nest"), tool: "x",
		code: tools.CodeProtocolError, says: `not valid JSON-RPC`},
	{does: "structured content that is nested 600 levels deep", cites: "W10", server: scripted("-reply", `{"structuredContent":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`}`), tool: "x",
		code: tools.CodeResultTooLarge, says: `nested 600 levels deep, of 500 at most`},
	{does: "content that is null", cites: "sdk bad children", server: scripted("-reply", `{"content":null}`), tool: "x", says: `^$`},
	{does: "content of an unknown type", cites: "sdk bad children, W10", server: scripted("-reply", `{"content":[{"type":"smell"},{"type":"text","text":"ok"}]}`), tool: "x", says: `ok`},
	{does: "fails without a word", cites: "K33", server: scripted("-reply", `{"isError":true,"content":[]}`), tool: "x", says: `^failure: .*gave no reason`},
	{does: "refuses a call without a message", cites: "K33", server: scripted("-failure", `{"code":-32000}`), tool: "x", says: `^failure: .*no reason given`},
	{does: "lists tools and calls none", cites: "W9", server: scripted("-failure", `{"code":-32601,"message":"no calls"}`), tool: "x",
		code: tools.CodeMethodNotFound, says: `no calls`},
	{does: "dies in a call", cites: "sdk bad children", server: scripted("-misbehave", "tools/call=die"), tool: "x", ends: true,
		code: tools.CodeTransportClosed, says: `exit status 1.*dying on tools/call`},
	{does: "dies in the middle of an answer", cites: "sdk bad children", server: scripted("-misbehave", "tools/call=half"), tool: "x", ends: true,
		code: tools.CodeTransportClosed, says: `exit status 1.*dying in the middle`},
	{does: "stops to read, and gets 1 MiB", cites: "sdk bad children", server: scripted("-deaf"), tool: "x", args: `{"a":"` + xs + `"}`, with: within(soon), ends: true,
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "gets more arguments than are sent", cites: "W8", server: scripted(), tool: "x", args: `{"a":"xxxxxxxxxxxxxxxx"}`, with: limited(func(l *config.Limits) { l.ArgumentsBytes = 16 }),
		code: tools.CodeArgumentsInvalid, says: `the arguments are larger than 16 bytes`},
	{does: "answers with a line of 64 MiB", cites: "K35, sdk bad children", server: kind(mcptest.Scripted), tool: "huge", args: `{"bytes":67108864}`, mib: 128, long: true,
		code: tools.CodeResultTooLarge, says: `the answer is larger than 16 MiB`},
	{does: "answers with a line without end", cites: "K35", server: scripted("-misbehave", "tools/call=endless"), tool: "x", with: within(soon), mib: 128, ends: true,
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "answers with more text than is taken", cites: "K35, W10", server: kind(mcptest.Scripted), tool: "huge", args: `{"bytes":1048576}`, with: limited(func(l *config.Limits) { l.TextChars = 1000 }),
		says: `(?s)^é+\n.*523\d{3} characters left out here.*é$`},
	{does: "answers with more data than is taken", cites: "W10", server: scripted("-reply", `{"content":[{"type":"image","data":"`+strings.Repeat("QUJD", 100)+`","mimeType":"image/png"}]}`), tool: "x",
		with: limited(func(l *config.Limits) { l.ResultBytes = 200 }), code: tools.CodeResultTooLarge, says: `309 bytes that are no text`},
	{does: "only ever makes progress", cites: "W8", server: scripted("-misbehave", "tools/call=progress"), tool: "x", with: within(soon), ends: true,
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "makes progress 5,000 times", cites: "W8", server: scripted("-misbehave", "tools/call=flood"), tool: "x", long: true, mib: 96, says: `^\{\}$`},
	{does: "asks the host a thousand times", cites: "W8", server: scripted("-misbehave", "tools/call=requests"), tool: "x", long: true, says: `^\{\}$`},
	{does: "asks and tells what is malformed", cites: "W8", server: scripted("-misbehave", "tools/call=strange"), tool: "x", says: `^\{\}$`},
}, remoteFaults...)

// Rows e: servers over HTTP.
var remoteFaults = []fault{
	{does: "nobody listens", cites: "K47", ends: true,
		server: func(*hazard) config.Server {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return config.Server{Name: "s"}
			}
			defer l.Close()
			return remote("s", "http://"+l.Addr().String()+"/mcp")
		},
		code: tools.CodeTransportFailed, says: `connection refused`},
	{does: "takes connections and never answers", cites: "K05", server: posting(func(_ http.ResponseWriter, r *http.Request, _ message) { <-r.Context().Done() }),
		with: connectWithin(time.Second), ends: true, code: tools.CodeConnectTimeout, says: `not connected within 1s \(stage: negotiate\)`},
	{does: "is plain HTTP to another host", cites: "W4", ends: true, server: func(*hazard) config.Server { return remote("s", "http://mcp.example.com/mcp") },
		code: tools.CodeInitializationFailed, says: `https is required`},
	{does: "has a certificate that nobody signed", cites: "W4", ends: true,
		server: func(h *hazard) config.Server {
			s := httptest.NewUnstartedServer(http.NotFoundHandler())
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.StartTLS()
			h.onClose(s.Close)
			return remote("s", s.URL)
		},
		code: tools.CodeTransportFailed, says: `certificate`},
	{does: "redirects to another origin", cites: "K39, W4", ends: true,
		server: posting(func(w http.ResponseWriter, r *http.Request, _ message) {
			http.Redirect(w, r, "https://elsewhere.invalid/mcp", http.StatusTemporaryRedirect)
		}),
		code: tools.CodeTransportFailed, says: `another origin, https://elsewhere.invalid:443`},
	{does: "redirects in a circle", cites: "K39", ends: true,
		server: posting(func(w http.ResponseWriter, r *http.Request, _ message) {
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}),
		code: tools.CodeTransportFailed, says: `redirects for ever`},
	{does: "answers everything with a page to log in", cites: "K11, K43", ends: true,
		server: posting(func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>log in</h1>")
		}),
		code: tools.CodeInitializationFailed, says: `not JSON-RPC but "text/html": <h1>log in`},
	{does: "breaks down at the probe", cites: "K11", tool: "x", says: `^noted$`,
		server: posting(func(w http.ResponseWriter, _ *http.Request, m message) {
			if m.Method == "server/discover" {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			reply(w, m, listing(someTools))
		})},
	{does: "refuses a version before one is agreed", cites: "K13", tool: "x", says: `^noted$`,
		server: posting(func(w http.ResponseWriter, r *http.Request, m message) {
			if v := r.Header.Get("Mcp-Protocol-Version"); v >= "2026" || m.Method == "initialize" && v != "" {
				http.Error(w, "unsupported version", http.StatusBadRequest)
				return
			}
			reply(w, m, listing(someTools))
		})},
	{does: "listens on one address of localhost, and the proxy is dead", cites: "K47", tool: "x", says: `^noted$`,
		server: func(h *hazard) config.Server {
			os.Setenv("HTTP_PROXY", "http://127.0.0.1:1") // in the host of this row alone
			s := calling(func(w http.ResponseWriter, _ *http.Request, m message) { reply(w, m, legacy) })(h)
			return remote("s", strings.Replace(s.URL.Reveal(), "127.0.0.1", "localhost", 1))
		}},
	{does: "forgets its sessions, once", cites: "K41", tool: "x", says: `^noted$`, server: forgetful(1)},
	{does: "forgets every session", cites: "K41", tool: "x", server: forgetful(1000), ends: true, code: tools.CodeTransportFailed, says: `404|session`},
	{does: "is down", cites: "W3", ends: true,
		server: posting(func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusServiceUnavailable) }),
		code:   tools.CodeTransportFailed, says: `503 Service Unavailable`},
	{does: "sends a megabyte of headers", cites: "sdk 1b", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) { w.Header().Set("X-Large", xs) }),
		code:   tools.CodeTransportFailed, says: `header`},
	{does: "answers with a body of 64 MiB", cites: "K35, sdk table 1", tool: "x", mib: 192, long: true,
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			pour(w, xs, 64)
		}),
		code: tools.CodeResultTooLarge, says: `the answer is larger than 16 MiB`},
	{does: "answers with 32 MiB packed into kilobytes", cites: "W4", tool: "x", mib: 192, long: true,
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			pour(z, xs, 32)
			z.Close()
		}),
		code: tools.CodeResultTooLarge, says: `the answer is larger than 16 MiB`},
	{does: "answers with an event of 32 MiB", cites: "sdk table 1", tool: "x", mib: 192, long: true,
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			events(w, `data: {"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
			pour(w, xs, 32)
			fmt.Fprint(w, "\"}]}}\n\n")
		}),
		code: tools.CodeResultTooLarge, says: `the answer is larger than 16 MiB`},
	{does: "answers with an event without end", cites: "K45", tool: "x", mib: 192, with: within(soon),
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) {
			events(w, "data: ")
			pour(w, xs, 1<<20)
		}),
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "sends comments for ever", cites: "K45", tool: "x", with: within(soon),
		server: calling(func(w http.ResponseWriter, r *http.Request, _ message) {
			events(w, ": hello\n\n")
			for tick := time.NewTicker(20 * time.Millisecond); r.Context().Err() == nil; <-tick.C {
				events(w, ": still here\n\n")
			}
		}),
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "ends the stream before the answer", cites: "K45", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) { events(w, ": nothing\n\n") }),
		code:   tools.CodeTransportFailed, says: `ended early`},
	{does: "ends the stream, and goes on from there on another", cites: "K45", tool: "x", says: `^noted$`,
		server: func(h *hazard) config.Server {
			ids := make(chan message, 1)
			return remote("s", h.serve(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "7" {
					events(w, "data: %s\n\n", answer(<-ids, legacy["tools/call"]))
					return
				}
				if r.Method != http.MethodPost {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				m := received(r)
				if m.Method == "tools/call" {
					ids <- m
					events(w, "id: 7\nretry: 10\ndata:\n\n")
					return
				}
				reply(w, m, listing(someTools))
			}))
		}},
	{does: "ends the last event without a blank line", cites: "K45", tool: "x", says: `^noted$`,
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			events(w, "data: %s", answer(m, legacy["tools/call"]))
		})},
	{does: "spreads an event over three lines", cites: "K45", tool: "x", says: `^noted$`,
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":%s,\r\ndata: %s\r\n\r\n", m.ID, legacy["tools/call"][1:])
		})},
	{does: "sends events that are no messages", cites: "K45", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			events(w, "event: odd\ndata: 1\n\ndata: {\n\nid\nretry: soon\n\ndata: %s\n\n", answer(m, legacy["tools/call"]))
		}),
		says: `^noted$`},
	{does: "breaks the connection in the middle of a body", cites: "K45", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"jsonrpc":`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}),
		code: tools.CodeTransportFailed, says: `EOF`},
	{does: "drips its answer, a byte at a time", cites: "W8", tool: "x", with: within(soon),
		server: calling(func(w http.ResponseWriter, r *http.Request, _ message) {
			w.Header().Set("Content-Type", "application/json")
			for tick := time.NewTicker(20 * time.Millisecond); r.Context().Err() == nil; <-tick.C {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
			}
		}),
		code: tools.CodeCallTimeout, says: `no answer within 300ms`},
	{does: "answers a call over HTTP with another id", cites: "W9", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":999,"result":{}}`)
		}),
		code: tools.CodeProtocolError, says: `another id`},
	{does: "has something behind the answer", cites: "W9", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, m message) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answer(m, legacy["tools/call"])+"<!-- end -->")
		}),
		says: `^noted$`},
	{does: "gives no answer to a call", cites: "K43", tool: "x",
		server: calling(func(w http.ResponseWriter, _ *http.Request, _ message) { w.WriteHeader(http.StatusAccepted) }),
		code:   tools.CodeProtocolError, says: `it gave no answer \(HTTP status 202\)`},
	{does: "fails a call with a secret in the page", cites: "W10", tool: "x",
		server: func(h *hazard) config.Server {
			s := calling(func(w http.ResponseWriter, r *http.Request, _ message) {
				http.Error(w, "bad key "+r.Header.Get("X-Api-Key")+"\n\x1b[31m", http.StatusBadRequest)
			})(h)
			s.Headers = []config.Variable{{Name: "X-Api-Key", Value: secret.Literal("sk-a-long-secret")}}
			return s
		},
		code: tools.CodeTransportFailed, says: `400 Bad Request: bad key •••`},
	{does: "is modern, and lists for ever", cites: "sdk 1b",
		server: posting(func(w http.ResponseWriter, _ *http.Request, m message) {
			answers := listing(someTools)
			answers["tools/list"] = fmt.Sprintf(`{"result":{"tools":[{"name":"t%s"}],"nextCursor":"c%s"}}`, m.ID, m.ID)
			reply(w, m, answers)
		}),
		with: limited(func(l *config.Limits) { l.Pages = 10 }), says: `connected, 10 tools: .*more than 10 pages`},
}
