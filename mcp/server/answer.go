package server

import (
	"bytes"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/tools"
)

// What lists say of how long they hold. A client that listens hears of changes
// before; another one asks again in a minute. What is offered may depend on who
// asks, so that nobody keeps it for others.
const (
	listTTL    = time.Minute
	cacheScope = "private"
)

// An answer is a result that is written already. The SDK adds to its _meta, and
// nothing else.
type answer struct {
	mcp.ResultBase
	kind string // resultType; empty before the modern era
	body []byte // a JSON object
}

// The kinds of answers in the modern era.
const (
	complete      = "complete"
	inputRequired = "input_required"
)

// MarshalJSON writes the body with what every result of its era has.
func (a *answer) MarshalJSON() ([]byte, error) {
	head := newObject()
	if a.kind != "" {
		head.text("resultType", a.kind)
	}
	if len(a.Meta) > 0 {
		head.value("_meta", a.Meta)
	}
	if len(head.b) == 1 {
		return a.body, nil
	}
	rest := a.body[1:] // after the brace
	if len(rest) > 1 {
		head.b = append(head.b, ',')
	}
	return append(head.b, rest...), nil
}

// answer is the result of a request, or the error that stands for one that is too
// large: half an answer is none (I9).
func (s *Server) answer(x exchange, body []byte) (*answer, error) {
	if !utf8.Valid(body) { // what tools give as JSON may hold anything in its texts
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	if len(body) > s.budgets.ResponseBytes {
		return nil, s.tooLarge(len(body))
	}
	a := &answer{body: body}
	if x.modern {
		a.kind = complete
	}
	return a, nil
}

func (s *Server) tooLarge(size int) error {
	return rpcError(CodeResponseTooLarge, fmt.Sprintf("the answer has %d bytes, and at most %d are sent", size, s.budgets.ResponseBytes))
}

// renderResult is a tool's result as MCP writes it.
func renderResult(x exchange, res tools.Result) []byte {
	blocks := make([][]byte, 0, len(res.Content))
	for _, c := range res.Content {
		blocks = append(blocks, renderContent(x, c))
	}
	o := newObject()
	structured := bytes.TrimSpace(res.Structured)
	// Before the modern era structured content is an object or nothing at all.
	if !isFit(structured) || !x.modern && structured[0] != '{' {
		structured = nil
	}
	if len(blocks) == 0 && len(res.Structured) > 0 {
		blocks = append(blocks, renderContent(x, tools.Content{Kind: tools.KindText, Text: string(res.Structured)}))
	}
	o.list("content", blocks)
	if structured != nil {
		o.raw("structuredContent", structured)
	}
	if res.IsError {
		o.raw("isError", []byte("true"))
	}
	return o.end()
}

// The revisions that brought a kind of content.
const (
	audioSince = "2025-03-26"
	linksSince = "2025-06-18"
)

// renderContent is a block as MCP writes it. What the client's revision doesn't
// know, and what nobody here knows, is told as text, since a client may refuse a
// whole result for one strange block.
func renderContent(x exchange, c tools.Content) []byte {
	o := newObject()
	switch {
	case c.Kind == tools.KindImage, c.Kind == tools.KindAudio && x.version >= audioSince:
		o.text("type", string(c.Kind))
		o.value("data", bytesOf(c.Data))
		o.text("mimeType", orElse(c.MIME, "application/octet-stream"))
	case c.Kind == tools.KindResource:
		o.text("type", "resource")
		o.raw("resource", renderResource(c))
	case c.Kind == tools.KindLink && x.version >= linksSince:
		o.text("type", "resource_link")
		o.text("uri", c.URI)
		o.text("name", orElse(c.Name, c.URI))
		o.textIf("description", c.Text)
		o.textIf("mimeType", c.MIME)
	default:
		o.text("type", "text")
		o.text("text", inWords(c))
	}
	return o.end()
}

// inWords is a block as text.
func inWords(c tools.Content) string {
	switch c.Kind {
	case tools.KindText:
		return c.Text
	case tools.KindAudio:
		return fmt.Sprintf("[audio, %s, %d bytes]", orElse(c.MIME, "of an unknown type"), len(c.Data))
	case tools.KindLink:
		return fmt.Sprintf("[resource %s: %s]", orElse(c.Name, "link"), c.URI)
	}
	if len(c.Raw) > 0 {
		return string(c.Raw)
	}
	return c.Text
}

// renderResource is what was read of a resource.
func renderResource(c tools.Content) []byte {
	o := newObject()
	o.text("uri", c.URI)
	o.textIf("mimeType", c.MIME)
	if c.Data != nil {
		o.value("blob", bytesOf(c.Data))
	} else {
		o.text("text", c.Text)
	}
	return o.end()
}

// bytesOf is data that encodes to a string, even where there is none.
func bytesOf(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// invalid is the refusal of parameters that can't be meant. They are not said in full:
// they may be long.
func invalid(format string, args ...any) error {
	return rpcError(jsonrpc.CodeInvalidParams, cut(fmt.Sprintf(format, args...), maxMessage))
}
