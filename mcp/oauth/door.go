package oauth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// callbackPath is where the browser comes back to.
const callbackPath = "/callback"

// A door is the listener on loopback that the browser is sent out from, and
// brings the answer to. That it leads out, too, makes for an address that is short,
// and that says nothing of the server.
type door struct {
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
	state    string
	out      string // path of the way out, which nobody guesses
	there    atomic.Pointer[string]
	answers  chan redirected
}

// redirected is the answer that a browser brings.
type redirected struct {
	code, issuer string
	failure      error
}

// listen opens the door, at a port or, where that is 0, at any.
func listen(ctx context.Context, port int, state string) (*door, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listening for the answer: %w", err)
	}
	d := &door{listener: l, state: state, out: "/" + rand.Text(), answers: make(chan redirected, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+d.out, d.leave)
	mux.HandleFunc("GET "+callbackPath, d.answer)
	d.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		WriteTimeout:      5 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	d.serving.Go(func() { _ = d.server.Serve(l) }) // it ends when the door is closed
	return d, nil
}

// url is the redirect URI. It says 127.0.0.1, as RFC 8252 recommends in 8.3.
func (d *door) url() string { return "http://" + d.listener.Addr().String() + callbackPath }

// leadTo says where the way out leads, and returns the URL where it begins.
func (d *door) leadTo(u string) string {
	d.there.Store(&u)
	return "http://" + d.listener.Addr().String() + d.out
}

func (d *door) leave(w http.ResponseWriter, r *http.Request) {
	there := d.there.Load()
	if there == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, *there, http.StatusFound)
}

// answer takes the answer. One without the state is somebody else's, and costs
// the person nothing.
func (d *door) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(d.state)) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This is not the answer that is waited for.\n")
		return
	}
	got := redirected{code: q.Get("code"), issuer: q.Get("iss")}
	text := "You are logged in, and may close this page.\n"
	switch {
	case q.Get("error") != "":
		got.failure = &refusal{q.Get("error"), q.Get("error_description")}
		text = "The login was refused. You may close this page.\n"
	case got.code == "":
		got.failure = errors.New("the answer of the authorization server has no code")
		text = "The login failed. You may close this page.\n"
	}
	select {
	case d.answers <- got:
	default: // the first counts
	}
	_, _ = io.WriteString(w, text)
}

// wait waits for the answer.
func (d *door) wait(ctx context.Context) (redirected, error) {
	select {
	case got := <-d.answers:
		return got, nil
	case <-ctx.Done():
		return redirected{}, fmt.Errorf("waiting for the login: %w", ctx.Err())
	}
}

// close shuts the door, after the page that is being written.
func (d *door) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		_ = d.server.Close()
	}
	d.serving.Wait()
}
