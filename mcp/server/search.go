package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// The tools that stand in for a list of more than SearchThreshold (I11): a client
// finds with one what it calls with the other. They are no way around anything:
// what is called is judged, logged and found under its own name, and can be called
// by it directly too. A served tool that has one of these names is found and called
// like all others, through them.
const (
	searchName = "tool_search"
	callName   = "tool_call"
)

// isStandIn reports whether a name is one of those two, where they stand in.
func (s *shelf) isStandIn(name string) bool {
	return s.stoodFor && (name == searchName || name == callName)
}

// standIns are what is listed in place of n tools.
func (s *Server) standIns(n int) []item {
	yes := true
	var items []item
	for _, def := range []tools.Definition{
		{
			Name: callName, Title: "Call a tool",
			Description: "Calls a tool that " + searchName + " found, with arguments that fit its inputSchema.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"name":{"type":"string","description":"The tool's name."},` +
				`"arguments":{"type":"object","description":"What the tool's inputSchema wants."}},` +
				`"required":["name"],"additionalProperties":false}`),
		},
		{
			Name: searchName, Title: "Find tools",
			Description: fmt.Sprintf("Finds tools by what they do, among %d. Answers with their definitions, the best first; call one with %s.", n, callName),
			InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
				`"query":{"type":"string","minLength":1,"description":"What the tool should do, in a few words, or its name."},`+
				`"limit":{"type":"integer","minimum":1,"maximum":%d,"default":5,"description":"The most tools to answer with."}},`+
				`"required":["query"],"additionalProperties":false}`, s.budgets.SearchResults)),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{` +
				`"tools":{"type":"array","items":{"type":"object"}},` +
				`"total":{"type":"integer","description":"How many tools there are."},` +
				`"notice":{"type":"string"}},"required":["tools","total"]}`),
			Annotations: tools.Annotations{ReadOnly: &yes, Idempotent: &yes},
		},
	} {
		json := renderTool(def)
		items = append(items, item{name: def.Name, modern: json, legacy: json})
	}
	return items
}

// defaultResults is how many tools are answered with where nobody says.
const defaultResults = 5

// searchTools answers tool_search.
func (s *Server) searchTools(x exchange, shelf *shelf, arguments json.RawMessage) tools.Result {
	query, limit := "", min(defaultResults, s.budgets.SearchResults)
	if raw, ok := wire.Member(arguments, "limit"); ok && json.Unmarshal(raw, &limit) != nil {
		return tools.Failure(`"limit" is not an integer.`)
	}
	if raw, _ := wire.Member(arguments, "query"); json.Unmarshal(raw, &query) != nil || strings.TrimSpace(query) == "" {
		return tools.Failure(`"query" must say what the tool should do.`)
	}
	index := shelf.index()
	hits := index.Search(query, min(max(limit, 1), s.budgets.SearchResults))
	answer := func(found [][]byte, left []string) tools.Result {
		o := newObject()
		o.list("tools", found)
		o.value("total", index.Len())
		switch {
		case len(hits) == 0:
			o.text("notice", "No tool has any of these words. Try others.")
		case len(left) > 0:
			o.text("notice", fmt.Sprintf("%d more were found. Their definitions are more than may be said at once: %s", len(left), cut(strings.Join(left, ", "), maxNames)))
		}
		return tools.Result{Structured: o.end()}
	}
	var found [][]byte
	var left []string
	for _, hit := range hits { // what has no room makes way for what is shorter
		i, ok := shelf.find(hit.Definition.Name)
		if ok && len(renderResult(x, answer(append(found, i.modern), left)))+3*maxNames <= s.budgets.SearchBytes {
			found = append(found, i.modern)
		} else {
			left = append(left, hit.Definition.Name)
		}
	}
	return answer(found, left)
}

// maxNames bounds what names may take of an answer that has no room, in bytes.
const maxNames = 1 << 10

// callFound answers tool_call: call is then the one that it asks for.
func (s *Server) callFound(ctx context.Context, x exchange, shelf *shelf, call *tools.Call) (res tools.Result, refused, err error) {
	var name string
	if raw, _ := wire.Member(call.Arguments, "name"); json.Unmarshal(raw, &name) != nil || name == "" {
		return tools.Failure(`"name" must be the name of a tool.`), nil, nil
	}
	arguments, _ := wire.Member(call.Arguments, "arguments")
	if len(arguments) > 0 && string(arguments) != "null" && arguments[0] != '{' {
		return tools.Failure(`"arguments" must be a JSON object.`), nil, nil
	}
	if _, ok := shelf.find(name); !ok {
		text := fmt.Sprintf("There is no tool %q.", cut(name, maxMessage))
		if near := shelf.index().Near(name); len(near) > 0 {
			text += " Perhaps you mean: " + strings.Join(near, ", ") + "."
		}
		return tools.Failure(text), nil, nil
	}
	client := s.clientOf(ctx, x)
	if !s.finders.enter(client, s.budgets.SearchCalls) {
		return res, rpcError(CodeTooManyCalls, fmt.Sprintf("%d calls by %s are under way for this client, and no more are at a time", s.budgets.SearchCalls, callName)), nil
	}
	defer s.finders.leave(client)
	call.Name, call.Arguments = name, arguments
	if res, err = s.cfg.Guard.Call(ctx, *call); err != nil {
		return res, nil, err
	}
	return s.fit(x, res), nil, nil
}

// fit cuts a result down to SearchBytes and says so in it. Texts are cut; what
// can't be cut is left out.
func (s *Server) fit(x exchange, res tools.Result) tools.Result {
	size := len(renderResult(x, res))
	if size <= s.budgets.SearchBytes {
		return res
	}
	notice := tools.Content{Kind: tools.KindText, Text: fmt.Sprintf("[The result was cut: it has %d bytes, and at most %d are passed on.]", size, s.budgets.SearchBytes)}
	short := tools.Result{IsError: res.IsError, Content: []tools.Content{notice}}
	content := res.Content
	if len(content) == 0 {
		content = []tools.Content{{Kind: tools.KindText, Text: string(res.Structured)}}
	}
	left := s.budgets.SearchBytes - len(renderResult(x, short))
	for _, c := range content {
		whole := len(renderContent(x, c)) + 1
		switch {
		case whole <= left:
		case c.Kind == tools.KindText:
			for whole > left && c.Text != "" { // in JSON a text is longer, and not evenly
				c.Text = strings.ToValidUTF8(c.Text[:len(c.Text)*max(left, 0)/whole], "")
				whole = len(renderContent(x, c)) + 1
			}
			if c.Text == "" {
				continue
			}
		default:
			continue
		}
		left -= whole
		short.Content = append(short.Content[:len(short.Content)-1], c, notice)
	}
	return short
}

// A client is who calls, as far as that is known: a session, a stream on stdio, or
// over HTTP without a session whoever has the name. Those without one are one client
// together.
type client struct {
	session   *mcp.ServerSession
	home      *home
	principal string
}

func (s *Server) clientOf(ctx context.Context, x exchange) client {
	if !x.modern {
		return client{session: x.session}
	}
	return client{home: s.homeOf(ctx), principal: x.principal}
}

// finders are the calls by tool_call, by client.
type finders struct {
	mu    sync.Mutex
	calls map[client]int
}

func (f *finders) enter(c client, limit int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[c] >= limit {
		return false
	}
	if f.calls == nil {
		f.calls = map[client]int{}
	}
	f.calls[c]++
	return true
}

func (f *finders) leave(c client) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[c]--; f.calls[c] == 0 {
		delete(f.calls, c)
	}
}
