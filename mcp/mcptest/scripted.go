package mcptest

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// script is what a Scripted server does; each field is a flag.
type script struct {
	banner  string // a line printed before anything else
	stray   bool   // lines that are no JSON-RPC before each reply
	frame   string // lines, length (Content-Length headers) or pretty
	unknown string // what an unknown method meets: refuse, silent or die
	only    string // the one version that initialize accepts
	version string // the version that initialize answers with
	ping    bool   // asks for a ping, with id "hb-1", before it answers initialize
	says    string // its instructions
	list    string // the tools, as a JSON array
	cursor  string // none, empty, repeat or endless
	reply   string // the result of every tools/call, as JSON
	failure string // the error of every tools/call, as JSON
	deaf    bool   // stops to read after the first tools/list
	stderr  string // a text for stderr at the start

	misbehaving
	changing
}

// Tools that a Scripted server has whatever its list says:
//
//   - log: every line received so far, as one text with line breaks
//   - slow: no answer until the call is cancelled, and then a late one
//   - pinged: pings the client in the middle of the call, with id "hb-2", and
//     answers with what came back
//   - asks: {"request":{"method":…,"params":…},"late":false}: sends the request
//     with id "q-1" in the middle of the call and answers with what came back;
//     if late, sends it before it answers the next ping instead
//   - huge: {"bytes":n}: a line of about n bytes with its id at the end
//
// and those of changing.go.
//
// Any other tool answers with -reply, or with its arguments as text.
const scriptedList = `[{"name":"log","inputSchema":{"type":"object"}},` +
	`{"name":"slow","inputSchema":{"type":"object"}},` +
	`{"name":"pinged","inputSchema":{"type":"object"}},` +
	`{"name":"huge","inputSchema":{"type":"object"}}]`

// runScripted serves a script on r and w until r ends.
func runScripted(flags []string, r io.Reader, w io.Writer) error {
	var s script
	fs := flag.NewFlagSet(string(Scripted), flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&s.banner, "banner", "", "first line of stdout")
	fs.BoolVar(&s.stray, "stray", false, "stray lines before each reply")
	fs.StringVar(&s.frame, "frame", "lines", "lines, length or pretty")
	fs.StringVar(&s.unknown, "unknown", "refuse", "refuse, silent or die")
	fs.StringVar(&s.only, "only", "", "the only version accepted")
	fs.StringVar(&s.version, "version", "2025-11-25", "the version answered")
	fs.BoolVar(&s.ping, "ping", false, "ping the client first")
	fs.StringVar(&s.says, "says", "", "the instructions")
	fs.StringVar(&s.list, "list", scriptedList, "the tools")
	fs.StringVar(&s.cursor, "cursor", "none", "none, empty, repeat or endless")
	fs.StringVar(&s.reply, "reply", "", "result of every call")
	fs.StringVar(&s.failure, "failure", "", "error of every call")
	fs.BoolVar(&s.deaf, "deaf", false, "stop reading after the list")
	fs.StringVar(&s.stderr, "stderr", "", "text for stderr")
	s.define(fs)
	s.flags(fs)
	if err := fs.Parse(flags); err != nil {
		return err
	}
	if err := s.start(&s.list); err != nil {
		return err
	}
	p := &peer{script: s, in: bufio.NewReader(r), out: w}
	if s.stderr != "" {
		fmt.Fprintln(os.Stderr, s.stderr)
	}
	if s.litter > 0 {
		if _, err := io.CopyN(w, filler{}, int64(s.litter)); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	if s.banner != "" {
		fmt.Fprintln(w, s.banner)
	}
	for {
		err := p.step()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

// peer is a script being played.
type peer struct {
	script
	in    *bufio.Reader
	out   io.Writer
	seen  []string        // lines received
	slow  json.RawMessage // id of the slow call, if one waits
	pages int
	late  string // a request to send before the next ping is answered
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Error  json.RawMessage `json:"error"`
}

func (p *peer) read() (message, error) {
	line, err := p.in.ReadString('\n')
	if err != nil {
		return message{}, err
	}
	p.seen = append(p.seen, strings.TrimSpace(line))
	var m message
	return m, json.Unmarshal([]byte(line), &m)
}

// step reads one message and does what the script says.
func (p *peer) step() error {
	m, err := p.read()
	if err != nil {
		return err
	}
	if done, err := p.misbehave(m); done || err != nil {
		return err
	}
	switch m.Method {
	case "initialize":
		return p.initialize(m)
	case "ping":
		return p.ponged(m.ID)
	case "tools/list":
		return p.tools(m)
	case "tools/call":
		return p.call(m)
	case "notifications/cancelled":
		if p.slow == nil {
			return nil
		}
		id := p.slow
		p.slow = nil
		return p.result(id, `{"content":[{"type":"text","text":"too late"}]}`)
	}
	if m.ID == nil {
		return nil
	}
	if done, err := p.modernStep(m); done {
		return err
	}
	switch p.unknown {
	case "silent":
		return nil
	case "die":
		return fmt.Errorf("unknown method %q", m.Method)
	}
	return p.refuse(m.ID, `{"code":-32601,"message":"Method not found"}`)
}

func (p *peer) initialize(m message) error {
	p.legacy = true
	var params struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return err
	}
	if p.only != "" && params.ProtocolVersion != p.only {
		data, err := json.Marshal(map[string]any{
			"code": -32602, "message": "only " + p.only + " is served here",
			"data": map[string]any{"supported": []string{p.only}, "requested": params.ProtocolVersion},
		})
		if err != nil {
			return err
		}
		return p.refuse(m.ID, string(data))
	}
	if p.only != "" {
		p.version = p.only
	}
	if p.ping {
		if err := p.send(`{"jsonrpc":"2.0","id":"hb-1","method":"ping"}`); err != nil {
			return err
		}
		answer, err := p.read()
		if err != nil {
			return err
		}
		if string(answer.ID) != `"hb-1"` || answer.Error != nil {
			return fmt.Errorf("hanging up: the ping hb-1 was answered with %s", p.seen[len(p.seen)-1])
		}
	}
	says, err := json.Marshal(p.says)
	if err != nil {
		return err
	}
	return p.result(m.ID, `{"protocolVersion":"`+p.version+`","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"0.1"},"instructions":`+string(says)+`}`)
}

// tools answers tools/list. The second page has the tool "second".
func (p *peer) tools(m message) error {
	var params struct {
		Cursor *string `json:"cursor"`
	}
	if err := json.Unmarshal(m.Params, &params); m.Params != nil && err != nil {
		return err
	}
	list, second := p.list, `[{"name":"second","inputSchema":{"type":"object"}}]`
	p.pages++
	if p.broken {
		return p.refuse(m.ID, `{"code":-32603,"message":"no list today"}`)
	}
	if p.ttl > 0 {
		list += fmt.Sprintf(`,"ttlMs":%d`, p.ttl)
	}
	defer func() {
		if p.deaf {
			hang()
		}
		if p.leave {
			os.Exit(8)
		}
	}()
	switch {
	case p.cursor == "none", params.Cursor != nil && p.cursor == "empty":
		if p.cursor == "empty" {
			list = second
		}
		return p.result(m.ID, `{"tools":`+list+`}`)
	case p.cursor == "empty":
		return p.result(m.ID, `{"tools":`+list+`,"nextCursor":""}`)
	case p.cursor == "endless":
		return p.result(m.ID, fmt.Sprintf(`{"tools":[{"name":"tool_%d","inputSchema":{"type":"object"}}],"nextCursor":"page %d"}`, p.pages, p.pages))
	default:
		return p.result(m.ID, `{"tools":`+list+`,"nextCursor":"again"}`)
	}
}

func (p *peer) call(m message) error {
	var params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return err
	}
	if done, err := p.change(m, params.Name, params.Arguments); done {
		return err
	}
	switch {
	case params.Name == "log":
		return p.text(m.ID, strings.Join(p.seen, "\n"))
	case params.Name == "slow":
		p.slow = m.ID
		return nil
	case params.Name == "pinged":
		if err := p.send(`{"jsonrpc":"2.0","id":"hb-2","method":"ping"}`); err != nil {
			return err
		}
		if _, err := p.read(); err != nil {
			return err
		}
		return p.text(m.ID, p.seen[len(p.seen)-1])
	case params.Name == "asks":
		return p.asks(m.ID, params.Arguments)
	case params.Name == "huge":
		var in struct{ Bytes int }
		if err := json.Unmarshal(params.Arguments, &in); err != nil {
			return err
		}
		return p.huge(m.ID, in.Bytes)
	case p.failure != "":
		return p.refuse(m.ID, p.failure)
	case p.reply != "":
		return p.result(m.ID, p.reply)
	}
	return p.text(m.ID, string(params.Arguments))
}

// ponged answers a ping, once what is still to be asked is answered.
func (p *peer) ponged(id json.RawMessage) error {
	if p.late != "" {
		request := p.late
		p.late = ""
		if err := p.send(request); err != nil {
			return err
		}
		if _, err := p.read(); err != nil {
			return err
		}
	}
	return p.result(id, `{}`)
}

// asks asks the client something of the client.
func (p *peer) asks(id, arguments json.RawMessage) error {
	var in struct {
		Request map[string]json.RawMessage
		Late    bool
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return err
	}
	in.Request["jsonrpc"], in.Request["id"] = json.RawMessage(`"2.0"`), json.RawMessage(`"q-1"`)
	data, err := json.Marshal(in.Request)
	if err != nil {
		return err
	}
	if in.Late {
		p.late = string(data)
		return p.text(id, "asked later")
	}
	if err := p.send(string(data)); err != nil {
		return err
	}
	if _, err := p.read(); err != nil {
		return err
	}
	return p.text(id, p.seen[len(p.seen)-1])
}

// huge writes a result of about n bytes, in steps of 64 KiB, without holding
// it; its id is last.
func (p *peer) huge(id json.RawMessage, n int) error {
	w := bufio.NewWriterSize(p.out, 1<<20)
	fmt.Fprint(w, `{"result":{"content":[{"type":"text","text":"`)
	chunk := strings.Repeat("é", 32<<10)
	for ; n >= len(chunk); n -= len(chunk) {
		fmt.Fprint(w, chunk)
	}
	fmt.Fprintf(w, `"}]},"jsonrpc":"2.0","id":%s}`+"\n", id)
	return w.Flush()
}

func (p *peer) text(id json.RawMessage, s string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return p.result(id, `{"content":[{"type":"text","text":`+string(data)+`}]}`)
}

func (p *peer) result(id json.RawMessage, result string) error {
	return p.send(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (p *peer) refuse(id json.RawMessage, failure string) error {
	return p.send(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + failure + `}`)
}

// send writes one message in the frame of the script.
func (p *peer) send(msg string) error {
	var err error
	if p.stray {
		if _, err = fmt.Fprintln(p.out, "{\"status\":200}\nnull"); err != nil {
			return err
		}
	}
	switch p.frame {
	case "length":
		_, err = fmt.Fprintf(p.out, "Content-Length: %d\r\n\r\n%s", len(msg), msg)
	case "pretty":
		var v any
		if err := json.Unmarshal([]byte(msg), &v); err != nil {
			return err
		}
		data, merr := json.MarshalIndent(v, "", "  ")
		if merr != nil {
			return merr
		}
		_, err = fmt.Fprintf(p.out, "%s\n", data)
	default:
		_, err = fmt.Fprintln(p.out, msg)
	}
	return err
}

// grace is how long a test server waits for what it must not wait for ever.
const grace = 10 * time.Minute
