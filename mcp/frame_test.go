package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

// frames reads all of a stream and tells what was in it, an entry each.
func frames(stream string, limit int) []string {
	var got []string
	f := newFrameReader(strings.NewReader(stream), limit, asIs, func(line []byte) {
		got = append(got, "stray "+cut(string(bytes.TrimSpace(line)), firstBytes))
	})
	for {
		msg, err := f.next()
		var bad *fault
		switch {
		case errors.Is(err, io.EOF):
			return got
		case errors.As(err, &bad):
			return append(got, "fault "+bad.detail)
		case err != nil:
			return append(got, "error "+err.Error())
		}
		switch msg := msg.(type) {
		case *jsonrpc.Request:
			got = append(got, fmt.Sprintf("request %v %s", msg.ID.Raw(), msg.Method))
		case *jsonrpc.Response:
			if errors.As(msg.Error, &bad) {
				got = append(got, fmt.Sprintf("refusal %v %s", msg.ID.Raw(), bad.code))
				continue
			}
			got = append(got, fmt.Sprintf("response %v %s", msg.ID.Raw(), msg.Result))
		}
	}
}

func asIs(s string) string { return s }

func TestFrames(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{"a":1.50}}`
	long := strings.Repeat("x", 300)
	for name, tt := range map[string]struct {
		stream string
		want   []string
	}{
		"a message":                 {ok + "\n", []string{`response 1 {"a":1.50}`}},
		"line endings":              {"\r\n" + ok + "\r\n\n", []string{`response 1 {"a":1.50}`}},
		"no line ending at the end": {ok, []string{`response 1 {"a":1.50}`}},
		"a batch": {`[{"jsonrpc":"2.0","id":"a","result":1},{"jsonrpc":"2.0","method":"m"}]` + "\n" + ok,
			[]string{"response a 1", "request <nil> m", `response 1 {"a":1.50}`}},
		"two on a line": {`{"jsonrpc":"2.0","method":"m"}` + ok + "\n" + ok,
			[]string{"request <nil> m", `response 1 {"a":1.50}`, `response 1 {"a":1.50}`}},
		"what looks like two": {`{"jsonrpc":"2.0","id":2,"result":"}{\"jsonrpc\""}` + "\n" + ok,
			[]string{`response 2 "}{\"jsonrpc\""`, `response 1 {"a":1.50}`}},
		"two, and one is none": {ok + `{"jsonrpc":"1.0"}` + "\n" + ok, []string{"refusal 1 mcp_protocol_error", `response 1 {"a":1.50}`}},
		"stray lines (K01)": {"Ready v1.2\n" + `{"status":200}` + "\nnull\n{ starting\n[info] up\n[]\n\"text\"\n" + ok,
			[]string{"stray Ready v1.2", `stray {"status":200}`, "stray null", "stray { starting\n[info] up\n[]\n\"text\"", `response 1 {"a":1.50}`}},
		"bytes":                  {"\xff\xfe\n" + ok, []string{"stray \xff\xfe", `response 1 {"a":1.50}`}},
		"headers (K17)":          {"Content-Length: 90\r\n\r\n" + ok, []string{`fault stdout is not newline-delimited JSON: it begins with "Content-Length: 90"`}},
		"headers, too late":      {ok + "\ncontent-length: 90\n", []string{`response 1 {"a":1.50}`, "stray content-length: 90"}},
		"pretty (K17)":           {"{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}\n", []string{`fault stdout is not newline-delimited JSON: it begins with "{\n\"jsonrpc\": \"2.0\",\n\"id\": 1,\n\"result\": {}\n}\n"`}},
		"pretty, no message":     {"{\n  \"status\": 200\n}\n" + ok, []string{"stray {\n\"status\": 200\n}", `response 1 {"a":1.50}`}},
		"no version":             {`{"id":1,"result":{}}`, []string{`stray {"id":1,"result":{}}`}},
		"an answer gone wrong":   {`{"jsonrpc":"2.0","id":7,"result":{"a":tru}}`, []string{"refusal 7 mcp_protocol_error"}},
		"an answer without id":   {`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`, []string{`stray {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`}},
		"too long (K35)":         {`{"jsonrpc":"2.0","id":3,"result":"` + long + `"}` + "\n" + ok, []string{"refusal 3 mcp_result_too_large", `response 1 {"a":1.50}`}},
		"too long, id at end":    {`{"result":{"id":9,"s":"` + long + `\"}"},"jsonrpc":"2.0","id":"s-1"}` + "\n" + ok, []string{"refusal s-1 mcp_result_too_large", `response 1 {"a":1.50}`}},
		"too long, a request":    {`{"jsonrpc":"2.0","id":3,"method":"m","params":["` + long + `"]}` + "\n" + ok, []string{`stray {"jsonrpc":"2.0","id":3,"method":"m","params":["` + long[:80-48] + "…", `response 1 {"a":1.50}`}},
		"too long, and no JSON":  {long + "\n" + ok, []string{"stray " + long[:80] + "…", `response 1 {"a":1.50}`}},
		"too long and never end": {long + long, []string{"stray " + long[:80] + "…"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, frames(tt.stream, 256)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A message is read or passed over, never held beyond the limit, whatever comes.
func FuzzFrameReader(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", `{"jsonrpc":"2.0","method":"a"}{"jsonrpc":"2.0","method":"b"}` + "\n",
		"Content-Length: 90\r\n\r\n{}", "{\n\"jsonrpc\":\"2.0\"\n}\n", "[[[[\n]]]]\n", `{"id":1,"jsonrpc":"2.0"}` + "\n",
		`[{"jsonrpc":"2.0","method":"x"}]` + "\n", "\x00\xff\n", `{"a":"\`, `}{"id":1}` + "\n", strings.Repeat(`{"a":`, 200),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 128
		r := newFrameReader(bytes.NewReader(stream), limit, asIs, func([]byte) {})
		for range len(stream) + 2 {
			msg, err := r.next()
			if err != nil {
				var bad *fault
				if !errors.Is(err, io.EOF) && !errors.As(err, &bad) {
					t.Fatalf("an error of no kind: %v", err)
				}
				return
			}
			if msg == nil {
				t.Fatal("neither message nor error")
			}
		}
		t.Fatal("more messages than bytes")
	})
}

// A line beyond the limit is told by its outline as it would be by its JSON.
func FuzzOutline(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"id":2}}`, `{"id":"a\"b","method":"m"}`, `{"x":[{"id":1}],"id":-5}`, `{"id":1.5}`, `{"id":null}`, `{}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		msg, err := jsonrpc.DecodeMessage([]byte(line))
		resp, ok := msg.(*jsonrpc.Response)
		if err != nil || !ok || len(line) > wire.MaxToken || strings.Count(line, `"id"`) != 1 || strings.Contains(line, `\u`) {
			t.Skip()
		}
		var o wire.Outline
		for _, b := range []byte(line) {
			o.Add([]byte{b})
		}
		got := o.Refuse(faultf(tools.CodeResultTooLarge, "x"))
		if got == nil || got.ID != resp.ID {
			t.Errorf("%s: got %v, want id %v", line, got, resp.ID.Raw())
		}
	})
}

// An event stream comes out in one form, with one event's fault kept to its request.
// Lines that are no messages are passed over, but not for ever.
func TestFramesWithoutEnd(t *testing.T) {
	const message = `{"jsonrpc":"2.0","method":"m"}` + "\n"
	strays := 0
	f := newFrameReader(strings.NewReader(strings.Repeat("a log line\n", 50)+message+strings.Repeat("another\n", 1000)), 500, asIs, func([]byte) { strays++ })
	f.patience = 1000
	if _, err := f.next(); err != nil || strays != 50 {
		t.Fatalf("%d lines passed over, %v", strays, err)
	}
	_, err := f.next()
	if err == nil || err.Error() != "stdout has no message in 1000 bytes" || strays >= 1050 {
		t.Errorf("%d lines passed over, %v", strays, err)
	}
}

func TestEventStream(t *testing.T) {
	const ok = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for name, tt := range map[string]struct{ stream, want string }{
		"an event":            {"data: " + ok + "\n\n", "data: " + ok + "\n\n"},
		"all fields":          {"id: 7\nevent: message\nretry: 10\n: c\nx: y\ndata:" + ok + "\n\n", "data: " + ok + "\n\n"},
		"an empty id event":   {"id: 7\ndata:\n\n", ""},
		"a batch":             {"data: [" + ok + "," + ok + "]\n\n", "data: " + ok + "\n\ndata: " + ok + "\n\n"},
		"another kind":        {"event: ping\ndata: " + ok + "\n\n", ""},
		"no JSON-RPC":         {"data: hello\n\ndata: " + ok + "\n\n", "data: " + ok + "\n\n"},
		"no end, complete":    {"data: " + ok, "data: " + ok + "\n\n"},
		"no end, incomplete":  {"data: " + ok[:20], ""},
		"too large":           {`data: {"id":1,"result":"` + strings.Repeat("x", 300) + `","jsonrpc":"2.0"}` + "\n\ndata: " + ok + "\n\n", `data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the answer is larger than 256 bytes"}}` + "\n\ndata: " + ok + "\n\n"},
		"too large, a notice": {`data: {"jsonrpc":"2.0","method":"` + strings.Repeat("x", 300) + `"}` + "\n\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := &mender{limit: 256, redact: asIs}
			got, err := io.ReadAll(m.mendStream(io.NopCloser(strings.NewReader(tt.stream)), nil))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}

// What a stream says about its going on stays with it.
func TestEventStreamGoesOn(t *testing.T) {
	m := &mender{limit: 256, redact: asIs}
	s := m.mendStream(io.NopCloser(strings.NewReader("id: 7\nretry: 10\n\nid: 8\ndata:\n\nretry: never\n\n")), nil)
	if got, err := io.ReadAll(s); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
	if string(s.last) != "8" || s.retry != 10*time.Millisecond || s.older {
		t.Errorf("goes on from %q after %v", s.last, s.retry)
	}
}

// What comes out of an event stream is well-formed, whatever goes in.
func FuzzEventStream(f *testing.F) {
	for _, seed := range []string{"data: {}\n\n", "id\nid:\n\nretry: 1\r\n\r\n", ":::\n\n", "data: a\ndata\n\n", "event: x\ndata: {\"jsonrpc\":\"2.0\",\"id\":1}\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		m := &mender{limit: 128, redact: asIs}
		out, err := io.ReadAll(m.mendStream(io.NopCloser(bytes.NewReader(stream)), nil))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			line = strings.TrimSuffix(line, "\n")
			if name, _, ok := strings.Cut(line, ": "); line != "" && (!ok || name != "data") {
				t.Fatalf("a line of no kind: %q", line)
			}
		}
	})
}
