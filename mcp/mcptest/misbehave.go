package mcptest

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// misbehaving are the flags of a Scripted server that is a danger to its client.
type misbehaving struct {
	noisy  int  // bytes written to stderr before each answer
	litter int  // bytes on stdout before anything else, without a line end
	acts   acts // by method

	ticks int // of progress, so far
}

func (b *misbehaving) define(fs *flag.FlagSet) {
	b.acts = make(acts)
	fs.IntVar(&b.noisy, "noisy", 0, "bytes for stderr before each answer")
	fs.IntVar(&b.litter, "litter", 0, "bytes for stdout at the start")
	fs.Var(b.acts, "misbehave", "METHOD=ACT")
}

// acts are what a server does instead of answering a method, by method: the flag
// -misbehave METHOD=ACT, which may be repeated.
//
//   - silent: nothing
//   - wrongid: answers another request than was asked
//   - twice: answers twice
//   - batch: answers in a batch
//   - null: answers with the result null
//   - die: ends with status 1 and a word on stderr
//   - half: writes half an answer and ends
//   - shut: closes stdout and stays
//   - nest: a result of 100,000 arrays in each other
//   - endless: a line without end
//   - garbage: 1,000 lines of no meaning, and then the answer
//   - progress: progress for ever, and no answer
//   - flood: 5,000 notes of progress, and then the answer
//   - requests: 1,000 requests of its own, and then the answer
//   - strange: requests and notifications that are malformed, and then the answer
type acts map[string]string

// String implements flag.Value.
func (a acts) String() string { return fmt.Sprint(map[string]string(a)) }

// Set implements flag.Value.
func (a acts) Set(s string) error {
	method, act, ok := strings.Cut(s, "=")
	if !ok {
		return fmt.Errorf("want METHOD=ACT, not %q", s)
	}
	a[method] = act
	return nil
}

// misbehave does what the script says in place of answering m. It reports false
// where the answer is still to be given.
func (p *peer) misbehave(m message) (done bool, err error) {
	if _, err := io.CopyN(os.Stderr, filler{}, int64(p.noisy)); err != nil {
		return true, err
	}
	switch act := p.acts[m.Method]; act {
	case "":
		return false, nil
	case "silent":
		return true, nil
	case "wrongid":
		return true, p.result(json.RawMessage(`"not-`+strings.Trim(string(m.ID), `"`)+`"`), `{}`)
	case "twice":
		if err := p.result(m.ID, `{"content":[{"type":"text","text":"first"}]}`); err != nil {
			return true, err
		}
		return true, p.result(m.ID, `{"content":[{"type":"text","text":"second"}]}`)
	case "batch":
		return true, p.send(`[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},` +
			`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[{"type":"text","text":"in a batch"}]}}]`)
	case "null":
		return true, p.result(m.ID, `null`)
	case "die":
		return true, fmt.Errorf("dying on %s", m.Method)
	case "half":
		fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"te`, m.ID)
		return true, fmt.Errorf("dying in the middle of an answer")
	case "shut":
		if f, ok := p.out.(*os.File); ok {
			f.Close()
		}
		hang()
		return true, nil
	case "nest":
		return true, p.result(m.ID, `{"content":[],"structuredContent":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`)
	case "endless":
		chunk := strings.Repeat("x", 64<<10)
		fmt.Fprintf(p.out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, m.ID)
		for {
			if _, err := fmt.Fprint(p.out, chunk); err != nil {
				return true, err
			}
		}
	case "progress":
		for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
			if err := p.progress(m); err != nil {
				return true, err
			}
		}
	case "garbage", "flood", "requests", "strange":
		return false, p.noise(act, m)
	default:
		return true, fmt.Errorf("unknown act %q", act)
	}
}

// filler is an endless reader of what means nothing.
type filler struct{}

func (filler) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// noise writes much that is no answer.
func (p *peer) noise(act string, m message) error {
	out := p.out
	defer func() { p.out = out }()
	w := bufio.NewWriterSize(out, 1<<20)
	p.out = w
	n := map[string]int{"garbage": 1000, "flood": 5000, "requests": 1000, "strange": 1}[act]
	for i := range n {
		var err error
		switch act {
		case "garbage":
			_, err = fmt.Fprintf(w, "line %d, { of [ no \"meaning\n", i)
		case "flood":
			err = p.progress(m)
		case "requests":
			err = p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"own-%d","method":"roots/none","params":{}}`, i))
		case "strange":
			for _, line := range []string{
				`{"jsonrpc":"2.0","id":{},"method":"ping"}`,
				`{"jsonrpc":"2.0","id":"s-1","method":5}`,
				`{"jsonrpc":"2.0","id":"s-2","method":"of/no/kind","params":[1]}`,
				`{"jsonrpc":"2.0","id":"s-3","method":"ping","params":"x"}`,
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":{},"progress":"half"}}`,
				`{"jsonrpc":"2.0","method":"notifications/progress"}`,
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99999}}`,
				`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7}}`,
				`{"jsonrpc":"2.0","method":"notifications/of/no/kind","params":[]}`,
				`{"jsonrpc":"2.0","id":424242,"result":{}}`,
				`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
			} {
				if err == nil {
					err = p.send(line)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return w.Flush()
}

// progress tells of progress on a call that asked for it, or on none.
func (p *peer) progress(m message) error {
	var params struct {
		Meta struct {
			ProgressToken json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(m.Params, &params); err != nil {
		return err
	}
	token := params.Meta.ProgressToken
	if token == nil {
		token = json.RawMessage("0")
	}
	p.ticks++
	return p.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"total":100,"message":"tick %d"}}`, token, p.ticks, p.ticks))
}
