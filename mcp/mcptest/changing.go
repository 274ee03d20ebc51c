package mcptest

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// changing is what a Scripted server changes about itself while it runs. Each
// field is a flag, and these are its tools, whatever its list says:
//
//   - pid: the id of its process
//   - lists: how often its tools were asked for
//   - die: ends the process with status 7, without an answer
//   - freeze: answers, and nothing more, and ends only when it is killed
//   - garble: answers, and goes on with a message over several lines
//   - relist: {"list":[…],"times":n}: from now on these are its tools, which it
//     says n times; with {"broken":true}, its list is refused from now on
//   - unlisten: ends the subscription that it has
type changing struct {
	modern bool   // speaks the modern era too
	refuse string // versions, separated by commas: the first call is refused with -32022 and this list
	ttl    int    // of its list, in milliseconds
	mark   string // a file that gets a line at each start
	then   string // the tools from the second start on
	crash  int    // how many starts after the first end at once
	leave  bool   // ends after the first list
	holder bool   // starts a process that hangs and holds stderr open

	broken bool
	listen json.RawMessage // id of the subscription
	legacy bool            // after a handshake
}

func (c *changing) flags(fs *flag.FlagSet) {
	fs.BoolVar(&c.modern, "modern", false, "speak the modern era too")
	fs.StringVar(&c.refuse, "refuse", "", "versions that the refusal of the first call lists")
	fs.IntVar(&c.ttl, "ttl", 0, "ttlMs of the list")
	fs.StringVar(&c.mark, "mark", "", "file that gets a line at each start")
	fs.StringVar(&c.then, "then", "", "tools from the second start on")
	fs.BoolVar(&c.leave, "leave", false, "end after the first list")
	fs.BoolVar(&c.holder, "holder", false, "leave a process that holds stderr")
	fs.IntVar(&c.crash, "crash", 0, "number of starts after the first that end at once")
}

// start notes the start in the file of marks and does what is due at this one.
func (c *changing) start(list *string) error {
	if c.holder {
		command, args := Command(Hang)
		cmd := exec.Command(command, args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
	}
	if c.mark == "" {
		return nil
	}
	f, err := os.OpenFile(c.mark, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, os.Getpid())
	var marks []byte
	if _, serr := f.Seek(0, io.SeekStart); serr == nil {
		marks, _ = io.ReadAll(f)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	starts := strings.Count(string(marks), "\n")
	if starts > 1 && starts <= 1+c.crash {
		return fmt.Errorf("start %d fails", starts)
	}
	if starts > 1 && c.then != "" {
		*list = c.then
	}
	return nil
}

// modernStep answers what only the modern era has.
func (p *peer) modernStep(m message) (done bool, err error) {
	if !p.modern || p.legacy {
		return false, nil
	}
	switch m.Method {
	case "server/discover":
		return true, p.result(m.ID, `{"resultType":"complete","supportedVersions":["`+modern+`"],"capabilities":{"tools":{"listChanged":true}},`+
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"scripted","version":"0.1"}}}`)
	case "subscriptions/listen":
		p.listen = m.ID
		return true, p.send(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},` + p.subscription() + `}}`)
	}
	return false, nil
}

func (p *peer) subscription() string {
	return `"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(p.listen) + `}`
}

// change runs a tool that changes the server.
func (p *peer) change(m message, tool string, arguments json.RawMessage) (done bool, err error) {
	if p.script.refuse != "" {
		supported, err := json.Marshal(strings.Split(p.script.refuse, ","))
		if err != nil {
			return true, err
		}
		p.script.refuse = ""
		return true, p.refuse(m.ID, `{"code":-32022,"message":"unsupported protocol version","data":{"supported":`+string(supported)+`,"requested":"`+modern+`"}}`)
	}
	switch tool {
	case "pid":
		return true, p.text(m.ID, fmt.Sprint(os.Getpid()))
	case "lists":
		return true, p.text(m.ID, fmt.Sprint(p.pages))
	case "die":
		fmt.Fprintln(os.Stderr, "scripted: leaving in the middle of a call")
		os.Exit(7)
	case "freeze":
		err := p.text(m.ID, "frozen")
		if err == nil {
			hang()
		}
		return true, err
	case "garble":
		if err := p.text(m.ID, "so far, so good"); err != nil {
			return true, err
		}
		_, err := fmt.Fprint(p.out, "{\n  \"jsonrpc\": \"2.0\",\n  \"method\": \"notifications/message\"\n}\n")
		return true, err
	case "unlisten":
		id := p.listen
		p.listen = nil
		if err := p.result(id, `{"resultType":"complete","_meta":{}}`); err != nil {
			return true, err
		}
		return true, p.text(m.ID, "no longer")
	case "relist":
		return true, p.relist(m, arguments)
	}
	return false, nil
}

func (p *peer) relist(m message, arguments json.RawMessage) error {
	in := struct {
		List   json.RawMessage
		Times  int
		Broken bool
	}{Times: 1}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return err
	}
	p.broken = in.Broken
	if len(in.List) > 0 {
		p.list = string(in.List)
	}
	note := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	if p.listen != nil {
		note = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{` + p.subscription() + `}}`
	}
	for range in.Times {
		if err := p.send(note); err != nil {
			return err
		}
	}
	return p.text(m.ID, "changed")
}
