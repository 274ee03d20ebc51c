package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"crewhost/runner/llm"
	"crewhost/tools"
)

// Crew begins the span of a run: invoke_workflow and the crew's name. It is a part of
// the trace that ctx is in, or else of the one that the program was started in. The
// run is in the context; end is called once, with why the run failed or nil.
func (t *Telemetry) Crew(ctx context.Context, name, conversation string) (_ context.Context, end func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	if !trace.SpanContextFromContext(ctx).IsValid() && t.parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, t.parent)
	}
	attrs := []attribute.KeyValue{attrOperation.String(opCrew), attrAgent.String(name)}
	if conversation != "" {
		attrs = append(attrs, attrConversation.String(conversation))
	}
	ctx, span := t.tracer.Start(ctx, opCrew+" "+name, trace.WithAttributes(attrs...))
	t.mu.Lock()
	t.runs = append(t.runs, span.SpanContext())
	t.mu.Unlock()
	return ctx, func(err error) {
		t.mu.Lock()
		if i := slices.IndexFunc(t.runs, span.SpanContext().Equal); i >= 0 {
			t.runs = slices.Delete(t.runs, i, i+1)
		}
		t.mu.Unlock()
		t.end(span, err)
	}
}

// Agent begins the span of work that one agent does: invoke_agent and its key. The
// task is empty for a question of the process.
func (t *Telemetry) Agent(ctx context.Context, agent, task string) (_ context.Context, end func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	attrs := []attribute.KeyValue{attrOperation.String(opAgent), attrAgent.String(agent)}
	if task != "" {
		attrs = append(attrs, attrTask.String(task))
	}
	ctx, span := t.tracer.Start(ctx, strings.TrimSpace(opAgent+" "+agent), trace.WithAttributes(attrs...))
	return ctx, func(err error) { t.end(span, err) }
}

// Call is a call of a tool, as far as it is told. The id of an MCP session is not: who
// has it can take the session over.
type Call struct {
	Tool, ID  string
	Arguments json.RawMessage

	// Of a tool of an MCP server: which, and how it is spoken to.
	Server, Protocol string
	Remote           bool // over HTTP, else through pipes
}

// Tool begins the span of a call: execute_tool and the tool's name. A call of an MCP
// server's tool is no span of its own beside it.
func (t *Telemetry) Tool(ctx context.Context, c Call) (_ context.Context, end func(tools.Result, error)) {
	if t == nil {
		return ctx, func(tools.Result, error) {}
	}
	attrs := []attribute.KeyValue{attrOperation.String(opTool), attrTool.String(c.Tool)}
	if c.ID != "" {
		attrs = append(attrs, attrToolCall.String(c.ID))
	}
	of := c.mcp(methodCallTool)
	attrs = append(attrs, of...)
	if t.content {
		attrs = append(attrs, attrArguments.String(t.redact(string(c.Arguments))))
	}
	ctx, span := t.tracer.Start(ctx, opTool+" "+c.Tool, trace.WithAttributes(attrs...))
	began := time.Now()
	return ctx, func(res tools.Result, err error) {
		kind := t.result(span, res, err)
		if c.Server != "" {
			record(ctx, t.client, began, kind, append([]attribute.KeyValue{attrTool.String(c.Tool)}, of...))
		}
	}
}

// mcp are the attributes of a request that goes to a server, or of the connection with
// it where there is no method.
func (c Call) mcp(method string) []attribute.KeyValue {
	if c.Server == "" {
		return nil
	}
	attrs := []attribute.KeyValue{transportOf(c.Remote), attrServer.String(c.Server)}
	if method != "" {
		attrs = append(attrs, attrMethod.String(method))
	}
	if c.Protocol != "" {
		attrs = append(attrs, attrProtocol.String(c.Protocol))
	}
	return attrs
}

func transportOf(remote bool) attribute.KeyValue {
	if remote {
		return attrTransport.String("tcp")
	}
	return attrTransport.String("pipe")
}

// Request is told of a request that goes to a server, and returns what is told how it
// ended: the id that it had, the code of the error that the server answered with, and
// why there is no result. A call of a tool is measured with its span, which gets the id;
// all other requests are measured here.
func (t *Telemetry) Request(ctx context.Context, c Call, method string) (ended func(id string, code int, err error)) {
	if t == nil {
		return func(string, int, error) {}
	}
	began := time.Now()
	return func(id string, code int, err error) {
		if method == methodCallTool {
			span := trace.SpanFromContext(ctx)
			if id != "" {
				span.SetAttributes(attrRequest.String(id))
			}
			if code != 0 {
				span.SetAttributes(attrCode.String(strconv.Itoa(code)))
			}
			return
		}
		attrs, kind := c.mcp(method), ""
		switch {
		case code != 0:
			kind = strconv.Itoa(code)
			attrs = append(attrs, attrCode.String(kind))
		case err != nil:
			kind = kindOf(err)
		}
		record(ctx, t.client, began, kind, attrs)
	}
}

// Served begins the span of a call that an MCP client makes of this host: tools/call
// and the tool's name. Its parent is in the context, where the client said so.
func (t *Telemetry) Served(ctx context.Context, tool, protocol string) (_ context.Context, end func(tools.Result, error)) {
	if t == nil {
		return ctx, func(tools.Result, error) {}
	}
	attrs := []attribute.KeyValue{attrMethod.String(methodCallTool), attrTool.String(tool)}
	if protocol != "" {
		attrs = append(attrs, attrProtocol.String(protocol))
	}
	ctx, span := t.tracer.Start(ctx, methodCallTool+" "+tool, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(attrs...))
	began := time.Now()
	return ctx, func(res tools.Result, err error) {
		record(ctx, t.server, began, t.result(span, res, err), attrs)
	}
}

// Connected is told how long a server was connected, when it no longer is.
func (t *Telemetry) Connected(ctx context.Context, c Call, took time.Duration, err error) {
	if t == nil {
		return
	}
	attrs := c.mcp("")
	if err != nil {
		attrs = append(attrs, attrErrorType.String(kindOf(err)))
	}
	t.clientSession.Record(ctx, took.Seconds(), metric.WithAttributes(attrs...))
}

// ServedSession is told that a session with an MCP client of this host begins, and
// returns what is told of its end.
func (t *Telemetry) ServedSession(ctx context.Context, remote bool) (ended func()) {
	if t == nil {
		return func() {}
	}
	began := time.Now()
	return func() { record(ctx, t.serverSession, began, "", []attribute.KeyValue{transportOf(remote)}) }
}

// Model is m with a span for each answer: chat and the model's name. Where t is off it
// is m itself.
func (t *Telemetry) Model(m llm.Model, provider, model string) llm.Model {
	if t == nil {
		return m
	}
	return &traced{m, t, providerName(provider), model}
}

// traced is a model whose answers are told of.
type traced struct {
	model    llm.Model
	to       *Telemetry
	provider string
	name     string // of requests that name none
}

// SchemaDialect implements [llm.Dialectal].
func (m *traced) SchemaDialect() llm.SchemaDialect { return llm.DialectOf(m.model) }

// Capabilities implements [llm.Capable].
func (m *traced) Capabilities() llm.Capabilities { return llm.CapabilitiesOf(m.model) }

// Generate implements [llm.Model].
func (m *traced) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	t, name := m.to, req.Model
	if name == "" {
		name = m.name
	}
	attrs := []attribute.KeyValue{attrOperation.String(opChat), attrProvider.String(m.provider)}
	if name != "" {
		attrs = append(attrs, attrRequestModel.String(name))
	}
	ctx, span := t.tracer.Start(ctx, strings.TrimSpace(opChat+" "+name), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	if t.content && span.IsRecording() {
		span.SetAttributes(attrInstructions.String(t.redact(req.System)), t.messages(attrInput, req.Messages))
	}
	began := time.Now()
	res, err := m.model.Generate(ctx, req)
	kind := ""
	if err != nil {
		kind = kindOf(err)
	}
	if res != nil {
		if res.Model != "" {
			span.SetAttributes(attrResponseModel.String(res.Model))
			attrs = append(attrs, attrResponseModel.String(res.Model))
		}
		span.SetAttributes(attrFinish.StringSlice([]string{string(res.Stop)}))
		if res.Usage.Measured {
			span.SetAttributes(attrInputTokens.Int(res.Usage.Input), attrOutputTokens.Int(res.Usage.Output))
			for _, n := range []struct {
				kind  string
				count int
			}{{"input", res.Usage.Input}, {"output", res.Usage.Output}} {
				t.tokens.Record(ctx, int64(n.count), metric.WithAttributes(append(slices.Clone(attrs), attrTokenType.String(n.kind))...))
			}
		}
		if t.content && span.IsRecording() {
			span.SetAttributes(t.messages(attrOutput, []llm.Message{res.Message}))
		}
	}
	record(ctx, t.model, began, kind, attrs)
	t.end(span, err)
	return res, err
}

// messages is a conversation as an attribute. Data such as images is left out.
func (t *Telemetry) messages(key attribute.Key, messages []llm.Message) attribute.KeyValue {
	type part struct {
		Type      string          `json:"type"`
		Content   string          `json:"content,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Response  string          `json:"response,omitempty"`
	}
	type message struct {
		Role  llm.Role `json:"role"`
		Parts []part   `json:"parts"`
	}
	all := make([]message, 0, len(messages))
	for _, m := range messages {
		out := message{Role: m.Role, Parts: []part{}}
		if m.Role == llm.RoleTool {
			out.Parts = append(out.Parts, part{Type: "tool_call_response", ID: m.CallID, Response: m.Text()})
		} else if text := m.Text(); text != "" {
			out.Parts = append(out.Parts, part{Type: "text", Content: text})
		}
		for _, c := range m.Calls {
			out.Parts = append(out.Parts, part{Type: "tool_call", ID: c.ID, Name: c.Name, Arguments: c.Object()})
		}
		all = append(all, out)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return key.String("")
	}
	return key.String(t.redact(string(text)))
}

// result ends the span of a call, and returns what kind of error it came to.
func (t *Telemetry) result(span trace.Span, res tools.Result, err error) (kind string) {
	if t.content && span.IsRecording() && err == nil {
		var b strings.Builder
		for _, c := range res.Content {
			b.WriteString(c.Text)
		}
		span.SetAttributes(attrResult.String(t.redact(b.String())))
	}
	if err == nil && res.IsError {
		span.SetAttributes(attrErrorType.String(errorTool))
		span.SetStatus(codes.Error, "")
		span.End()
		return errorTool
	}
	if err != nil {
		kind = kindOf(err)
	}
	t.end(span, err)
	return kind
}

// end ends a span, with why what it is of failed.
func (t *Telemetry) end(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetAttributes(attrErrorType.String(kindOf(err)))
		text := []rune(t.redact(strings.Join(strings.Fields(err.Error()), " ")))
		span.SetStatus(codes.Error, string(text[:min(len(text), maxReason)]))
	}
	span.End()
}

// maxReason is how long the reason of a failure may be, in characters.
const maxReason = 500

// kindOf is what an error is, of a few that can be counted.
func kindOf(err error) string {
	var api *llm.APIError
	switch code := tools.CodeOf(err); {
	case code != "":
		return string(code)
	case errors.As(err, &api) && api.Status > 0:
		return strconv.Itoa(api.Status)
	case errors.Is(err, context.DeadlineExceeded):
		return errorTimeout
	case errors.Is(err, context.Canceled):
		return errorCanceled
	}
	return errorOther
}

func record(ctx context.Context, h metric.Float64Histogram, began time.Time, kind string, attrs []attribute.KeyValue) {
	if kind != "" {
		attrs = append(slices.Clone(attrs), attrErrorType.String(kind))
	}
	h.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attrs...))
}

// cutScheme splits "Bearer TOKEN".
func cutScheme(header string) (scheme, credential string, ok bool) { return strings.Cut(header, " ") }

// credentialsIn are the secrets in a URL: its password, and the values of its query.
func credentialsIn(text string) []string {
	u, err := url.Parse(text)
	if err != nil || text == "" {
		return nil
	}
	var secrets []string
	if password, ok := u.User.Password(); ok {
		secrets = append(secrets, password)
	}
	for _, values := range u.Query() {
		secrets = append(secrets, values...)
	}
	return secrets
}
