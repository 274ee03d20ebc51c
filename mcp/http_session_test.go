package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/mcp"
	"crewhost/tools"
)

// amnesiac is a server of the legacy era that keeps sessions and can forget them.
type amnesiac struct {
	// refuse answers a call of a session that is not known. Nil: 404.
	refuse func(http.ResponseWriter, message)
	// initialize, if set, is asked first; true: it has answered.
	initialize func(w http.ResponseWriter, m message, nth int) bool
	// call, if set, is asked first about calls of a session that is known.
	call func(w http.ResponseWriter, r *http.Request, m message) bool
	// get, if set, is the stream of its own messages.
	get func(w http.ResponseWriter, r *http.Request, session string)

	mu        sync.Mutex
	known     string
	begun     int
	announced []string // sessions that notifications/initialized came in
	calls     []string // the sessions of calls, as they came
	ended     []string // the sessions of farewells
}

func (f *amnesiac) serve(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL + "/mcp"
}

func (f *amnesiac) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known = "nobody"
}

func (f *amnesiac) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	session := r.Header.Get("Mcp-Session-Id")
	f.mu.Lock()
	known := session != "" && session == f.known
	f.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		switch {
		case f.get != nil && known:
			f.get(w, r, session)
		case f.get != nil:
			w.WriteHeader(http.StatusNotFound)
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
		return
	case http.MethodDelete:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = append(f.ended, session)
		return
	}
	m := received(r)
	f.mu.Lock()
	switch m.Method {
	case "initialize":
		f.begun++
		nth := f.begun
		f.mu.Unlock()
		if session != "" {
			http.Error(w, "a session in initialize", http.StatusBadRequest)
			return
		}
		if f.initialize != nil && f.initialize(w, m, nth) {
			return
		}
		f.mu.Lock()
		f.known = fmt.Sprintf("s%d", nth)
		w.Header().Set("Mcp-Session-Id", f.known)
		f.mu.Unlock()
		reply(w, m, legacy)
		return
	case "server/discover":
		f.mu.Unlock()
		http.Error(w, "no session", http.StatusBadRequest)
		return
	case "notifications/initialized":
		f.announced = append(f.announced, session)
	case "tools/call":
		f.calls = append(f.calls, session)
	}
	f.mu.Unlock()
	switch {
	case !known && f.refuse != nil:
		f.refuse(w, m)
	case !known:
		http.Error(w, "session not found", http.StatusNotFound)
	case m.Method == "tools/call" && f.call != nil && f.call(w, r, m):
	default:
		reply(w, m, legacy)
	}
}

// seen is what came, on one line.
func (f *amnesiac) seen() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprintf("begun %d, announced %q, calls %q, ended %q", f.begun, f.announced, f.calls, f.ended)
}

// K41: a session that was forgotten costs one more initialize and one repeat of the
// request that was refused, and nobody notices.
func TestSessionForgotten(t *testing.T) {
	for name, refuse := range map[string]func(http.ResponseWriter, message){
		"404": nil,
		"404 and a message without an id": func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
		},
		"404 and a message": func(w http.ResponseWriter, m message) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, answer(m, `{"error":{"code":-32001,"message":"Session not found"}}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &amnesiac{refuse: refuse}
			r := start(t, settings(remote("a", f.serve(t)))).connected()
			for range 2 {
				if got := text(r.call("note", "")); got != "noted" {
					t.Error(got)
				}
			}
			f.forget()
			for range 2 {
				if got := text(r.call("note", "")); got != "noted" {
					t.Error(got)
				}
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			want := `begun 2, announced ["s1" "s2"], calls ["s1" "s1" "s1" "s2" "s2"], ended ["s2"]`
			if got := f.seen(); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
			if strings.Contains(r.log.String(), "level=WARN") {
				t.Errorf("not silent: %s", r.log)
			}
		})
	}
}

// K41: the answer to the other initialize may be a stream.
func TestSessionRenewedByStream(t *testing.T) {
	f := new(amnesiac)
	f.initialize = func(w http.ResponseWriter, m message, nth int) bool {
		f.mu.Lock()
		f.known = fmt.Sprintf("s%d", nth)
		w.Header().Set("Mcp-Session-Id", f.known)
		f.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hello\n\nid: 1\ndata:\n\ndata: %s\n\n", answer(m, legacy["initialize"]))
		return true
	}
	r := start(t, settings(remote("a", f.serve(t)))).connected()
	f.forget()
	if got := text(r.call("note", "")); got != "noted" {
		t.Error(got)
	}
	if got, want := f.seen(), `begun 2, announced ["s1" "s2"], calls ["s1" "s2"], ended []`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// K41: calls at once share one renewal. Of one that fails, each says why.
func TestSessionRenewalIsShared(t *testing.T) {
	const n = 8
	for name, fails := range map[string]bool{"": false, "fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := new(amnesiac)
			var refused sync.WaitGroup // of all calls, before any is answered
			refused.Add(n)
			f.refuse = func(w http.ResponseWriter, m message) {
				if m.Method == "tools/call" {
					refused.Done()
					refused.Wait()
				}
				w.WriteHeader(http.StatusNotFound)
			}
			f.initialize = func(w http.ResponseWriter, _ message, nth int) bool {
				if nth == 1 || !fails {
					return false
				}
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
			r := start(t, settings(remote("a", f.serve(t)))).connected()
			f.forget()
			var calling sync.WaitGroup
			for range n {
				calling.Go(func() {
					res, err := r.try(t.Context(), "note", "")
					switch {
					case fails && (tools.CodeOf(err) != tools.CodeTransportFailed || !strings.Contains(err.Error(), "begins no other: HTTP status 503")):
						t.Errorf("got %v", err)
					case !fails && (err != nil || text(res) != "noted"):
						t.Errorf("%+v, %v", res, err)
					}
				})
			}
			calling.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			if want := map[bool]int{false: 2 * n, true: n}[fails]; len(f.calls) != want {
				t.Errorf("%d calls, want %d", len(f.calls), want)
			}
			if !fails && f.begun != 2 {
				t.Errorf("%d sessions were begun", f.begun)
			}
		})
	}
}

// K41: a server that answers 404 to everything fails calls, each after one attempt
// to begin again, and the session goes on when the server does.
func TestSessionAlwaysForgotten(t *testing.T) {
	var broken sync.Map
	is := func(what string) bool { _, ok := broken.Load(what); return ok }
	f := new(amnesiac)
	f.initialize = func(w http.ResponseWriter, _ message, _ int) bool {
		if is("initialize") {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	f.call = func(w http.ResponseWriter, _ *http.Request, _ message) bool {
		if is("call") {
			w.WriteHeader(http.StatusNotFound)
			return true
		}
		return false
	}
	r := start(t, settings(remote("a", f.serve(t)))).connected()
	f.forget()
	broken.Store("initialize", true)
	_, err := r.try(t.Context(), "note", "")
	if tools.CodeOf(err) != tools.CodeTransportFailed || !strings.Contains(err.Error(), "it has forgotten the session, and begins no other: HTTP status 404 Not Found") {
		t.Errorf("got %v", err)
	}
	broken.Delete("initialize")
	broken.Store("call", true)
	_, err = r.try(t.Context(), "note", "")
	if tools.CodeOf(err) != tools.CodeTransportFailed || !strings.Contains(err.Error(), "it forgets each session at once: HTTP status 404 Not Found") {
		t.Errorf("got %v", err)
	}
	if got, want := f.seen(), `begun 3, announced ["s1" "s3"], calls ["s1" "s1" "s3"], ended []`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	broken.Delete("call")
	if got := text(r.call("note", "")); got != "noted" {
		t.Error(got)
	}
	if state := r.only().State; state != mcp.StateConnected {
		t.Error(state)
	}
}

// A 404 that carries the answer to the request is that answer.
func TestNotFoundThatAnswers(t *testing.T) {
	f := new(amnesiac)
	f.call = func(w http.ResponseWriter, _ *http.Request, m message) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, answer(m, `{"error":{"code":-32602,"message":"no such note"}}`))
		return true
	}
	r := start(t, settings(remote("a", f.serve(t)))).connected()
	if res := r.call("note", ""); !res.IsError || !strings.Contains(text(res), "no such note") {
		t.Errorf("%+v", res)
	}
	if got, want := f.seen(), `begun 1, announced ["s1"], calls ["s1"], ended []`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

// A server that comes back with another version of the protocol is another
// server: the connection is over.
func TestSessionOfAnotherVersion(t *testing.T) {
	f := new(amnesiac)
	f.initialize = func(w http.ResponseWriter, m message, nth int) bool {
		if nth == 1 {
			return false
		}
		w.Header().Set("Mcp-Session-Id", "s2")
		reply(w, m, map[string]string{"initialize": strings.Replace(legacy["initialize"], "2025-11-25", "2025-03-26", 1)})
		return true
	}
	r := start(t, settings(remote("a", f.serve(t)))).connected()
	f.forget()
	if _, err := r.try(t.Context(), "note", ""); tools.CodeOf(err) != tools.CodeTransportClosed || !strings.Contains(err.Error(), `"2025-03-26" in place of "2025-11-25"`) {
		t.Errorf("got %v", err)
	}
	if state := r.only().State; state != mcp.StateFaulted {
		t.Error(state)
	}
}

// Statuses in the middle of a session fail one call, with what they mean, and
// the next one works (K41 where there is no session).
func TestHTTPStatusesFailOneCall(t *testing.T) {
	for status, want := range map[int]struct {
		code tools.Code
		says string
	}{
		400: {tools.CodeTransportFailed, "400 Bad Request: why"},
		401: {tools.CodeUnauthorized, "401 Unauthorized (it wants credentials, or refuses those it got; crewhost vault set keeps some for its URL): why"},
		403: {tools.CodeForbidden, "403 Forbidden (it does not allow this to the credentials it got): why"},
		404: {tools.CodeTransportFailed, "404 Not Found (wrong URL?): why"},
		405: {tools.CodeTransportFailed, "405 Method Not Allowed: why"},
		410: {tools.CodeTransportFailed, "410 Gone: why"},
		429: {tools.CodeTransportFailed, "429 Too Many Requests: why"},
		500: {tools.CodeTransportFailed, "500 Internal Server Error: why"},
		501: {tools.CodeTransportFailed, "501 Not Implemented: why"},
		502: {tools.CodeTransportFailed, "502 Bad Gateway: why"},
		503: {tools.CodeTransportFailed, "503 Service Unavailable: why"},
		504: {tools.CodeTransportFailed, "504 Gateway Timeout: why"},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			url := serve(t, func(w http.ResponseWriter, _ *http.Request, m message) {
				bad := false
				if m.Method == "tools/call" {
					once.Do(func() { bad = true })
				}
				if bad {
					http.Error(w, "why", status)
					return
				}
				reply(w, m, legacy)
			})
			r := start(t, settings(remote("a", url))).connected()
			_, err := r.try(t.Context(), "note", "")
			if tools.CodeOf(err) != want.code || !strings.Contains(err.Error(), want.says) {
				t.Errorf("got %v, want %s with %q", err, want.code, want.says)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
			if state := r.only().State; state != mcp.StateConnected {
				t.Error(state)
			}
		})
	}
}

// O18: the stream of the server's own messages belongs to the session, and is
// opened again with another one: after a call that renewed it, and by itself.
func TestOwnStreamFollowsSession(t *testing.T) {
	for name, call := range map[string]bool{"after a call": true, "by itself": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			streams, hangup := make(chan string, 9), make(chan struct{})
			f := &amnesiac{get: func(w http.ResponseWriter, r *http.Request, session string) {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "retry: 1\nid: "+session+"\n\n")
				w.(http.Flusher).Flush()
				streams <- session + " from " + r.Header.Get("Last-Event-ID")
				select {
				case <-hangup:
				case <-r.Context().Done():
				}
			}}
			r := start(t, settings(remote("a", f.serve(t)))).connected()
			if got := <-streams; got != "s1 from " {
				t.Error(got)
			}
			f.forget()
			if call {
				r.call("note", "")
			} else {
				close(hangup)
			}
			if got := <-streams; got != "s2 from " {
				t.Error(got)
			}
			r.call("note", "")
		})
	}
}

// K39: the stream of the server's own messages follows the same rules.
func TestOwnStreamRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other origin was asked") }))
	defer other.Close()
	for name, tt := range map[string]struct {
		location string
		warns    string
	}{
		"within": {"/events", ""},
		"away":   {other.URL + "/events", "what it sends of its own accord is not heard: it redirects to another origin, " + other.URL},
	} {
		t.Run(name, func(t *testing.T) {
			pongs := make(chan json.RawMessage, 1)
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet && r.URL.Path == "/events":
					if r.Header.Get("X-Key") != "k-123456" || r.Header.Get("Mcp-Protocol-Version") != "2025-11-25" {
						t.Errorf("headers %v", r.Header)
					}
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"hb\",\"method\":\"ping\"}\n\n")
					w.(http.Flusher).Flush()
					<-r.Context().Done()
				case r.Method == http.MethodGet:
					http.Redirect(w, r, tt.location, http.StatusTemporaryRedirect)
				default:
					m := received(r)
					if m.Method == "" {
						pongs <- m.ID
					}
					reply(w, m, legacy)
				}
			}))
			defer s.Close()
			defer s.CloseClientConnections()
			server := remote("a", s.URL+"/mcp")
			server.Headers = variables("X-Key", "k-123456")
			r := start(t, settings(server)).connected()
			if tt.warns == "" {
				if id := <-pongs; string(id) != `"hb"` {
					t.Errorf("answered %s", id)
				}
			} else {
				eventually(t, func() bool { return strings.Contains(strings.Join(r.only().Warnings, "\n"), tt.warns) })
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// K45: a stream that can't be resumed fails its call, at once or after a few
// attempts, and the session goes on.
func TestAnswerThatCannotResume(t *testing.T) {
	for name, tt := range map[string]struct {
		get  http.HandlerFunc
		says string
	}{
		"no such stream": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }, "the stream of its answer ended early and can't be resumed: HTTP status 405"},
		"forbidden":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "can't be resumed: HTTP status 403"},
		"broken":         {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "ended early, and went on 5 times without it"},
		"without it": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "id: 7\nretry: 1\n\n")
		}, "ended early, and went on 5 times without it"},
		"away (K39)": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://localhost:1/", http.StatusTemporaryRedirect)
		}, "it redirects to another origin, http://localhost:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					if r.Header.Get("Last-Event-ID") == "7" {
						tt.get(w, r)
					} else {
						w.WriteHeader(http.StatusMethodNotAllowed)
					}
					return
				}
				m := received(r)
				bad := false
				if m.Method == "tools/call" {
					once.Do(func() { bad = true })
				}
				if bad {
					w.Header().Set("Content-Type", "text/event-stream")
					fmt.Fprint(w, "id: 7\nretry: 1\ndata:\n\n")
					return
				}
				reply(w, m, legacy)
			}))
			defer s.Close()
			defer s.CloseClientConnections()
			r := start(t, settings(remote("a", s.URL))).connected()
			_, err := r.try(t.Context(), "note", "")
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
		})
	}
}

// variables are headers or environment variables, from names and values in turn.
func variables(pairs ...string) []config.Variable {
	var all []config.Variable
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, config.Variable{Name: pairs[i], Value: secret.Literal(pairs[i+1])})
	}
	return all
}
