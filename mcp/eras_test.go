package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/mcp/mcptest"
	"crewhost/tools"
)

// legacyVersions are the revisions of the legacy era (O4, O21).
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// O4, O21: each revision is negotiated and works, where a server prefers it and
// where it takes no other.
func TestLegacyRevisions(t *testing.T) {
	t.Parallel()
	for _, version := range legacyVersions {
		for _, flag := range []string{"-version", "-only"} {
			t.Run(version+flag, func(t *testing.T) {
				t.Parallel()
				r := start(t, settings(stdio("a", mcptest.Scripted, flag, version))).connected()
				if report := r.only(); report.Era != mcp.Legacy || report.Protocol != version {
					t.Errorf("%s, %s", report.Era, report.Protocol)
				}
				if _, err := r.Ping(t.Context(), "a"); err != nil {
					t.Error(err)
				}
				log := text(r.call("log", ""))
				if !strings.Contains(log, `"method":"notifications/initialized"`) || strings.Contains(log, `"name":"log","_meta"`) {
					t.Error(log)
				}
			})
		}
	}
}

// On HTTP the revision is in a header, once it is agreed on (K13).
func TestLegacyRevisionsHTTP(t *testing.T) {
	t.Parallel()
	for _, version := range legacyVersions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			s := newEraServer(t, version)
			r := start(t, settings(remote("a", s.url))).connected()
			if report := r.only(); report.Protocol != version {
				t.Errorf("protocol %s", report.Protocol)
			}
			r.call("x", "{}")
			want := []string{"server/discover 2026-07-28", "initialize ", "notifications/initialized " + version, "ping " + version, "tools/list " + version, "tools/call " + version}
			if got := s.log(); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %q", got)
			}
		})
	}
}

// eraServer answers over HTTP in the versions that it speaks at the moment, and
// notes the method and the version of each request.
type eraServer struct {
	url    string
	server *httptest.Server

	mu       sync.Mutex
	speaks   []string
	requests []string
}

func newEraServer(t *testing.T, speaks ...string) *eraServer {
	s := &eraServer{speaks: speaks}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.url, s.server = server.URL, server
	return s
}

func (s *eraServer) speak(versions ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.speaks, s.requests = versions, nil
}

func (s *eraServer) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

func (s *eraServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProtocolVersion string
			Meta            map[string]json.RawMessage `json:"_meta"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	header := r.Header.Get("Mcp-Protocol-Version")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, m.Method+" "+header)
	w.Header().Set("Content-Type", "application/json")
	answer := func(body string) { fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body) }
	version := header
	if m.Method == "initialize" {
		version = m.Params.ProtocolVersion
	}
	spoken, newest := false, s.speaks[0]
	for _, v := range s.speaks {
		spoken = spoken || v == version
	}
	_, stamped := m.Params.Meta["io.modelcontextprotocol/protocolVersion"]
	switch {
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "server/discover" && newest < "2026":
		answer(`"error":{"code":-32601,"message":"no such method"}`)
	case m.Method == "initialize":
		if !spoken {
			version = newest
		}
		answer(`"result":{"protocolVersion":"` + version + `","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
	case !spoken, stamped != (version >= "2026"):
		supported, _ := json.Marshal(s.speaks)
		w.WriteHeader(http.StatusBadRequest)
		answer(`"error":{"code":-32022,"message":"unsupported version","data":{"supported":` + string(supported) + `,"requested":"` + version + `"}}`)
	case m.Method == "server/discover":
		supported, _ := json.Marshal(s.speaks)
		answer(`"result":{"resultType":"complete","supportedVersions":` + string(supported) + `,"capabilities":{}}`)
	case m.Method == "tools/list":
		answer(`"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`)
	default:
		answer(`"result":{"content":[{"type":"text","text":"` + m.Method + `"}]}`)
	}
}

// O6: a version that is refused in mid-flight is agreed on anew, once, and the
// request is sent again, once: on the same process, with what it knows.
func TestRenegotiation(t *testing.T) {
	t.Parallel()
	list := `[{"name":"x"},{"name":"log"},{"name":"pid"}]`
	t.Run("modern again", func(t *testing.T) {
		t.Parallel()
		r := start(t, again(stdio("a", mcptest.Scripted, "-modern", "-list", list, "-refuse", "2026-07-28"))).connected()
		if got := text(r.call("x", `{"n":1}`)); got != `{"n":1}` {
			t.Error(got)
		}
		log := text(r.call("log", ""))
		if n := strings.Count(log, "server/discover"); n != 2 {
			t.Errorf("discovered %d times\n%s", n, log)
		}
		if n := strings.Count(log, `"name":"x"`); n != 2 {
			t.Errorf("the call was sent %d times\n%s", n, log)
		}
		if report := r.only(); report.Era != mcp.Modern || report.Reconnects != 0 {
			t.Errorf("%+v", report)
		}
	})
	t.Run("legacy from now on", func(t *testing.T) {
		t.Parallel()
		r := start(t, again(stdio("a", mcptest.Scripted, "-modern", "-list", list, "-refuse", "1999-01-01,2025-06-18", "-only", "2025-06-18"))).connected()
		if got := text(r.call("x", `{"n":1}`)); got != `{"n":1}` {
			t.Error(got)
		}
		lines := strings.Split(text(r.call("log", "")), "\n")
		handshake := false
		for _, line := range lines {
			handshake = handshake || strings.Contains(line, `"initialize"`)
			if handshake && strings.Contains(line, "io.modelcontextprotocol/") {
				t.Errorf("a modern message after the handshake: %s", line)
			}
		}
		if !handshake || !strings.Contains(strings.Join(lines, "\n"), "notifications/initialized") {
			t.Errorf("no handshake: %s", strings.Join(lines, "\n"))
		}
		if report := r.only(); report.Era != mcp.Legacy || report.Protocol != "2025-06-18" || report.Reconnects != 0 {
			t.Errorf("%+v", report)
		}
		if _, err := r.Ping(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
	t.Run("nothing in common", func(t *testing.T) {
		t.Parallel()
		r := start(t, again(stdio("a", mcptest.Scripted, "-modern", "-list", list, "-refuse", "1999-01-01"))).connected()
		res := r.call("x", "{}")
		if !res.IsError || !strings.Contains(text(res), "-32022") {
			t.Errorf("%+v", res)
		}
		if log := text(r.call("log", "")); strings.Count(log, "server/discover") != 1 || strings.Contains(log, `"initialize"`) {
			t.Error(log)
		}
	})
	t.Run("held to the modern era", func(t *testing.T) {
		t.Parallel()
		s := stdio("a", mcptest.Scripted, "-modern", "-list", list, "-refuse", "2025-06-18")
		s.Protocol = config.ProtocolModern
		r := start(t, again(s)).connected()
		if res := r.call("x", "{}"); !res.IsError || !strings.Contains(text(res), "-32022") {
			t.Errorf("%+v", res)
		}
	})
}

// O6 on HTTP: a server that is replaced by an older release, and back.
func TestRenegotiationHTTP(t *testing.T) {
	t.Parallel()
	s := newEraServer(t, "2026-07-28", "2025-11-25")
	r := start(t, settings(remote("a", s.url))).connected()
	if report := r.only(); report.Era != mcp.Modern {
		t.Fatalf("%+v", report)
	}
	s.speak("2025-11-25", "2025-06-18")
	var calls sync.WaitGroup
	for range 8 { // one renegotiation for all of them
		calls.Go(func() {
			if res, err := r.try(t.Context(), "x", "{}"); err != nil || text(res) != "tools/call" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	calls.Wait()
	handshakes := 0
	for _, request := range s.log() {
		if strings.HasPrefix(request, "initialize") {
			handshakes++
		}
	}
	if handshakes != 1 {
		t.Errorf("%d handshakes: %q", handshakes, s.log())
	}
	if report := r.only(); report.Era != mcp.Legacy || report.Protocol != "2025-11-25" {
		t.Errorf("%+v", report)
	}
	s.speak("2025-11-25")
	r.call("x", "{}")
	if got := s.log(); len(got) != 1 || got[0] != "tools/call 2025-11-25" {
		t.Errorf("%q", got)
	}
}

// A server is held to the era of the settings: the other is not tried.
func TestEraPinned(t *testing.T) {
	t.Parallel()
	held := func(s config.Server, p config.Protocol) config.Server {
		s.Protocol = p
		return s
	}
	t.Run("legacy", func(t *testing.T) {
		t.Parallel()
		r := start(t, settings(
			held(stdio("a", mcptest.Standard, "-tools", "echo"), config.ProtocolLegacy), // it speaks both
			held(stdio("b", mcptest.Scripted, "-unknown", "die"), config.ProtocolLegacy),
			held(stdio("c", mcptest.Scripted, "-only", "2024-11-05", "-list", `[]`), config.ProtocolLegacy),
			held(remote("d", mcptest.HTTP(t, "-tools", "env")), config.ProtocolLegacy),
		)).connected()
		for i, want := range []string{"2025-11-25", "2025-11-25", "2024-11-05", "2025-11-25"} {
			if report := r.Reports()[i]; report.Era != mcp.Legacy || report.Protocol != want {
				t.Errorf("%s: %s, %s", report.Name, report.Era, report.Protocol)
			}
		}
		if log := text(r.call("log", "")); strings.Contains(log, "server/discover") {
			t.Error(log)
		}
	})
	t.Run("modern", func(t *testing.T) {
		t.Parallel()
		silent := held(stdio("silent", mcptest.Scripted, "-unknown", "silent"), config.ProtocolModern)
		silent.ConnectTimeout = time.Second
		cfg := settings(
			held(stdio("good", mcptest.Standard, "-tools", "echo", "-delay", "300ms"), config.ProtocolModern),
			held(stdio("old", mcptest.Scripted), config.ProtocolModern),
			held(stdio("dies", mcptest.Scripted, "-unknown", "die", "-stderr", "up: dies"), config.ProtocolModern),
			held(remote("http", mcptest.HTTP(t, "-legacy")), config.ProtocolModern),
			silent,
		)
		cfg.ProbeTimeout = 100 * time.Millisecond
		r := start(t, cfg)
		for i, want := range []struct {
			code tools.Code
			text string
		}{
			{},
			{tools.CodeInitializationFailed, "hold it to the modern era of the protocol, of which it speaks no version that is spoken here: Method not found (JSON-RPC error -32601)"},
			{tools.CodeInitializationFailed, "exit status 1"},
			{tools.CodeInitializationFailed, "hold it to the modern era"},
			{tools.CodeConnectTimeout, "not connected within 1s"},
		} {
			report := r.Reports()[i]
			if want.text == "" {
				if report.Era != mcp.Modern {
					t.Errorf("%s: %s, %v", report.Name, report.State, report.Err)
				}
				continue
			}
			if tools.CodeOf(report.Err) != want.code || !strings.Contains(report.Err.Error(), want.text) {
				t.Errorf("%s: %v", report.Name, report.Err)
			}
		}
		if n := strings.Count(r.log.String(), `line="up: dies"`); n > 1 {
			t.Errorf("started %d times", n)
		}
	})
}
