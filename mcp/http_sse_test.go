package mcp_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/config"
	"crewhost/mcp"
	"crewhost/tools"
)

// older is a server of the transport of 2024-11-05: events on GET, messages to an
// address of their own.
type older struct {
	address string // of messages; %s is the server's URL
	// post, if set, is asked first; true: it has answered the POST, and there is
	// no more to do.
	post func(http.ResponseWriter, *http.Request, message) bool
	// get, if set, writes what stands before the address.
	get func(http.ResponseWriter, *http.Request)
	// streamable answers what is posted to the address of the stream.
	streamable http.HandlerFunc

	url    string
	mu     sync.Mutex
	opened int
	heard  []string // methods
	events chan string
	hangup chan struct{}
}

func (o *older) serve(t *testing.T) string {
	t.Helper()
	o.events, o.hangup = make(chan string, 100), make(chan struct{})
	if o.address == "" {
		o.address = "/messages?session=1"
	}
	s := httptest.NewServer(o)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	o.url = s.URL
	return s.URL + "/sse"
}

func (o *older) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodGet && r.URL.Path == "/sse":
		o.stream(w, r)
	case r.Method == http.MethodPost && r.URL.Path == "/messages":
		m := received(r)
		o.mu.Lock()
		o.heard = append(o.heard, m.Method)
		o.mu.Unlock()
		if o.post != nil && o.post(w, r, m) {
			return
		}
		if part, ok := legacy[m.Method]; ok && m.ID != nil {
			o.events <- "event: message\ndata: " + answer(m, part) + "\n\n"
		}
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, "Accepted")
	case r.Method == http.MethodPost && o.streamable != nil:
		o.streamable(w, r)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (o *older) stream(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.opened++
	o.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	if o.get != nil {
		o.get(w, r)
	}
	address := o.address
	if strings.Contains(address, "%s") {
		address = fmt.Sprintf(address, o.url)
	}
	fmt.Fprintf(w, ": hello\n\nevent: endpoint\ndata: %s\n\n", address)
	for {
		w.(http.Flusher).Flush()
		select {
		case e := <-o.events:
			fmt.Fprint(w, e)
		case <-o.hangup:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (o *older) methods() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.heard, " ")
}

// sse are the settings of a server of the legacy transport.
func sse(name, url string) config.Server {
	s := remote(name, url)
	s.Transport = config.TransportSSE
	return s
}

// W3: the legacy transport, from the start to the farewell, which it has none of.
func TestSSE(t *testing.T) {
	for name, address := range map[string]string{"relative": "/messages?session=1", "absolute": "%s/messages?session=1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &older{address: address}
			r := start(t, settings(sse("a", o.serve(t)))).connected()
			if got := r.only(); got.Transport != config.TransportSSE || got.Era != mcp.Legacy || got.ServerName != "x" || len(got.Warnings) != 0 {
				t.Errorf("%+v", got)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
			if _, err := r.Ping(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			// A request of the server's own is answered (O18).
			o.events <- "data: {\"jsonrpc\":\"2.0\",\"id\":\"hb\",\"method\":\"ping\"}\n\n"
			eventually(t, func() bool { return strings.HasSuffix(o.methods(), " ") })
			if got, want := strings.TrimSpace(o.methods()), "initialize notifications/initialized ping tools/list tools/call ping"; got != want {
				t.Errorf("heard %q, want %q: the probe belongs to another transport", got, want)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is wrong with the opening of the stream fails the server, in time.
func TestSSEOpening(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other origin was asked") }))
	defer other.Close()
	plain := func(kind, body string, status int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/sse"
	}
	endless := &older{get: func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			fmt.Fprint(w, ": ping\n\n")
			w.(http.Flusher).Flush()
		}
	}}
	for name, tt := range map[string]struct {
		url  string
		code tools.Code
		says string
	}{
		"another origin (K39)":  {(&older{address: other.URL + "/messages"}).serve(t), tools.CodeTransportFailed, "it wants messages at another origin, " + other.URL},
		"another scheme (K39)":  {(&older{address: "file:///etc/hosts"}).serve(t), tools.CodeTransportFailed, "another origin, file:"},
		"a redirect away (K39)": {redirects(t, other.URL+"/sse"), tools.CodeTransportFailed, "it redirects to another origin, " + other.URL},
		"no address":            {(&older{get: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "data: {}\n\n") }}).serve(t), tools.CodeInitializationFailed, "does not begin with the address"},
		"an empty address":      {(&older{get: func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "event: endpoint\ndata:\n\n") }}).serve(t), tools.CodeInitializationFailed, "address for messages has 0 bytes"},
		"a long address":        {(&older{address: "/" + strings.Repeat("x", 5000)}).serve(t), tools.CodeInitializationFailed, "address for messages has 5001 bytes"},
		"comments for ever":     {endless.serve(t), tools.CodeConnectTimeout, "stage: negotiate"},
		"JSON":                  {plain("application/json", "{}", 200), tools.CodeInitializationFailed, `it answers GET with "application/json"`},
		"404":                   {plain("text/plain", "no", 404), tools.CodeTransportFailed, "404 Not Found (wrong URL?)"},
		"401":                   {plain("text/plain", "no", 401), tools.CodeUnauthorized, "401"},
		"403":                   {plain("text/plain", "no", http.StatusForbidden), tools.CodeForbidden, "403"},
		"500":                   {plain("text/plain", "no", 500), tools.CodeTransportFailed, "500"},
		"an end":                {plain("text/event-stream", ": hello\n\n", 200), tools.CodeTransportFailed, "EOF"},
		"refused":               {"http://localhost:1/sse", tools.CodeTransportFailed, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sse("a", tt.url)
			s.ConnectTimeout = 5 * time.Second
			if tt.code == tools.CodeConnectTimeout {
				s.ConnectTimeout = 300 * time.Millisecond
			}
			err := start(t, settings(s)).only().Err
			if tools.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.says)
			}
		})
	}
}

// redirects is the URL of a server that sends everybody to another place.
func redirects(t *testing.T, location string) string {
	s := httptest.NewServer(http.RedirectHandler(location, http.StatusTemporaryRedirect))
	t.Cleanup(s.Close)
	return s.URL + "/sse"
}

// A message that is not taken fails its call, and the session goes on.
func TestSSERefusedMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		post func(*older, http.ResponseWriter, *http.Request, message)
		code tools.Code
		says string
	}{
		"401": {func(_ *older, w http.ResponseWriter, _ *http.Request, _ message) {
			http.Error(w, "who?", http.StatusUnauthorized)
		}, tools.CodeUnauthorized, "401 Unauthorized"},
		"403": {func(_ *older, w http.ResponseWriter, _ *http.Request, _ message) {
			http.Error(w, "no", http.StatusForbidden)
		}, tools.CodeForbidden, "403 Forbidden"},
		"503": {func(_ *older, w http.ResponseWriter, _ *http.Request, _ message) {
			http.Error(w, "later", http.StatusServiceUnavailable)
		}, tools.CodeTransportFailed, "503 Service Unavailable: later"},
		"aborted": {func(*older, http.ResponseWriter, *http.Request, message) {
			panic(http.ErrAbortHandler)
		}, tools.CodeTransportFailed, "EOF"},
		"hangs (K37)": {func(_ *older, _ http.ResponseWriter, r *http.Request, _ message) {
			<-r.Context().Done()
		}, tools.CodeCallTimeout, "no answer within"},
		"never answered (K45)": {func(o *older, w http.ResponseWriter, _ *http.Request, _ message) {
			o.events <- ": ping\n\n"
			w.WriteHeader(202)
		}, tools.CodeCallTimeout, "no answer within"},
		"too large an answer (W4)": {func(o *older, w http.ResponseWriter, _ *http.Request, m message) {
			o.events <- "data: " + answer(m, `{"result":{"content":"`+strings.Repeat("x", 2<<20)+`"}}`) + "\n\n"
			w.WriteHeader(202)
		}, tools.CodeResultTooLarge, "larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			o := new(older)
			o.post = func(w http.ResponseWriter, r *http.Request, m message) (bad bool) {
				if m.Method == "tools/call" {
					once.Do(func() { bad = true })
				}
				if bad {
					tt.post(o, w, r, m)
				}
				return bad
			}
			s := sse("a", o.serve(t))
			s.ToolTimeout = 5 * time.Second
			if tt.code == tools.CodeCallTimeout {
				s.ToolTimeout = 300 * time.Millisecond
			}
			cfg := settings(s)
			cfg.Limits.MessageBytes = 1 << 20
			r := start(t, cfg).connected()
			_, err := r.try(t.Context(), "note", "")
			if tools.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v, want %s with %q", err, tt.code, tt.says)
			}
			if got := text(r.call("note", "")); got != "noted" {
				t.Error(got)
			}
			if tt.code == tools.CodeCallTimeout {
				eventually(t, func() bool { return strings.Contains(o.methods(), "notifications/cancelled") })
			}
		})
	}
}

// The end of the stream, and a session that is forgotten, are the end of the
// connection.
func TestSSEEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		lose func(*older)
		says string
	}{
		"stream":    {func(o *older) { close(o.hangup) }, "its stream of events ended"},
		"forgotten": {func(*older) {}, "it has forgotten the session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := new(older)
			o.post = func(w http.ResponseWriter, _ *http.Request, m message) bool {
				if m.Method != "tools/call" {
					return false
				}
				w.WriteHeader(http.StatusNotFound)
				return true
			}
			r := start(t, settings(sse("a", o.serve(t)))).connected()
			tt.lose(o)
			if name == "stream" { // which ends by itself, and so before the call
				eventually(t, func() bool { return r.only().State == mcp.StateFaulted })
			}
			_, err := r.try(t.Context(), "note", "")
			if err == nil || !strings.Contains(err.Error(), tt.says) && !strings.Contains(err.Error(), "404") {
				t.Errorf("got %v", err)
			}
			eventually(t, func() bool { return r.only().State == mcp.StateFaulted })
			if err := r.only().Err; tools.CodeOf(err) != tools.CodeTransportClosed || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("faulted with %v", err)
			}
		})
	}
}

// W11: closing takes no longer than it may while a message is on its way.
func TestSSECloseIsBounded(t *testing.T) {
	o := new(older)
	posting := make(chan struct{})
	o.post = func(_ http.ResponseWriter, r *http.Request, m message) bool {
		if m.Method != "tools/call" {
			return false
		}
		close(posting)
		<-r.Context().Done()
		return true
	}
	r := start(t, settings(sse("a", o.serve(t)))).connected()
	var calling sync.WaitGroup
	calling.Go(func() {
		if _, err := r.try(t.Context(), "note", ""); tools.CodeOf(err) != tools.CodeTransportClosed {
			t.Errorf("the call ended with %v", err)
		}
	})
	<-posting
	began := time.Now()
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
	calling.Wait()
}

// W6: a server whose stream ended is connected again, on the transport that it was
// found to speak, and a change of its tools is heard on it (O17, O18).
func TestSSEReconnects(t *testing.T) {
	o := new(older)
	l := startLive(t, again(auto("a", o.serve(t))))
	l.connected()
	l.until("a", mcp.StateConnected)
	o.hangup <- struct{}{}
	l.until("a", mcp.StateFaulted)
	l.until("a", mcp.StateConnected)
	if got := text(l.call("note", "")); got != "noted" {
		t.Error(got)
	}
	if report := l.only(); report.Transport != config.TransportSSE || report.Reconnects != 1 {
		t.Errorf("%+v", report)
	}
	before := strings.Count(o.methods(), "tools/list")
	o.events <- "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"
	eventually(t, func() bool { return strings.Count(o.methods(), "tools/list") > before })
}
