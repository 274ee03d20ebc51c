// Package mcp is the client side of the Model Context Protocol: it connects the
// servers that the settings declare, registers their tools beside the built-in
// ones, and carries calls to them.
//
// All of it happens in one explicit step (O10). [Startup] starts every server at
// once, each within its own time, and returns when the last is connected or has
// failed. A server that failed costs a line in its [ServerReport] and nothing
// else, unless the settings require it (O11).
//
//	var reg tools.Registry
//	sessions, err := mcp.Startup(ctx, settings.MCP, &reg, mcp.Options{Name: "crewhost", Version: "1.0.0"})
//	defer sessions.Close()
//	for _, r := range sessions.Reports() {
//		fmt.Println(r.Name, r.State, r.Tools)
//	}
//	if err != nil { … } // errors.As(err, *mcp.RequiredError): a required server failed
//	t, ok := reg.Lookup("search_notes")
//
// # A connection
//
// A session goes through the stages of W5: start, negotiate, ping, list; then
// it is connected, and only then are its tools registered. Negotiation tries the
// modern era first, with a short limit of its own, and falls back to initialize
// (O5). Where a server dies on the first question it is started again and asked
// in the old way.
//
// # Transports
//
// A link is what the SDK speaks over. A pipe is a process's stdin and stdout. What
// goes by HTTP goes through a reach, which ends at one origin (W4); on it stand an
// endpoint, which is Streamable HTTP with a mender between the SDK and the server,
// and a duplex, which is the transport before that. Where the settings say auto, the
// server's first answers tell which it is (W3). The HTTP session of an endpoint is a
// lease, and is renewed when the server has forgotten it (K41); its streams break
// off and go on without the SDK's noticing (K45).
//
// # A session
//
// A session outlives its connections. One goroutine looks after it once Startup is
// done: it refreshes the list of tools when that has changed (O17), asks for signs
// of life, and connects a server again that is gone, with pauses that double. Its
// state goes from connecting to connected, to faulted and back, and at last to
// closed; [Options].OnChange is told. What waits for a server waits no longer than
// its own context, and what is left of a server at a deadline is killed and not
// asked, so that every operation returns within its time.
//
// A call is sent once. Where the connection breaks before anything of it went out,
// the next one carries it; afterwards it fails, since nobody knows what it did.
//
// Requests over HTTP are authorized by package oauth where a server asks for tokens.
// Nobody is sent to a browser unless [Options] say how: a server that needs a login
// fails with a line that says what to do, and [LogIn] is that login (O20).
//
// # Foreign input
//
// Everything that a server sends is bounded by the settings and suspected. What is
// wrong with one answer fails one call; what is wrong with one tool loses that
// tool; only what leaves the stream without meaning ends the session. Texts of a
// server are masked and cut before they get into an error, and freed of what can't
// be seen before they get anywhere (R4). Structured content is held against the
// output schema where that is safe, and results are made to fit (W10).
//
// # What servers ask
//
// In the middle of a call, a read or a prompt a server may ask for input, for an
// answer of the model, or for folders. In the modern era its answer is the
// question, and the request is sent again with what came back; in the legacy era it
// sends a request of its own. Both end in the same place: what the settings declare,
// then the [Respondent], the [Sampler] and the roots of the [Options], and for all
// else a failure that says what was asked (O19). While this host thinks, the time of
// the call stands still. What would not be served is not announced.
//
// Resources and prompts are read when they are asked for, and not kept.
//
// # Where things are
//
// The package is large because one state runs through it: a session, its
// connection, and what is known of each request on the wire. Its files keep the
// ideas apart:
//
//   - on the wire: transport_stdio.go, frame.go, and package wire; reach.go,
//     transport_http.go, mender.go, sse.go, streams.go, lease.go, transport_sse.go
//   - a connection: negotiate.go, connection.go, renegotiate.go, exchange.go, calls.go
//   - a session: startup.go, session.go, state.go, upkeep.go, names.go, report.go
//   - tools: list.go, catalog.go, refresh.go, tool.go, content.go, fit.go, promise.go
//   - what servers ask: ask.go, question.go, field.go, sample.go, roots.go
//   - what they let be read: resource.go, prompt.go, complete.go,
//     resource_tools.go
//   - in every text: masks.go, hidden.go, errors.go
//
// The SDK is used here and below, and no type of it shows in what others use (W1).
package mcp
