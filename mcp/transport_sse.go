package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

// A duplex speaks the transport of 2024-11-05 with one server: a GET whose events
// are the server's messages, the first of them the address to which each message for the
// server is posted. It is the link of such servers, and at once the SDK's transport
// and connection. The end of the stream is the end of the session.
type duplex struct {
	reach    *reach
	client   *http.Client
	limit    int64
	redact   func(string) string
	messages string // the address, known once it is connected

	calls     calls
	handshake handshake
	hurry     hurry

	incoming chan jsonrpc.Message
	reading  sync.WaitGroup
	over     chan struct{} // closed when the stream has ended by itself
	closing  sync.Once
	closed   chan struct{}

	mu     sync.Mutex
	cancel context.CancelFunc // of the stream, once it is there
	err    *fault
}

// newDuplex makes the link of a server within reach; nothing is sent yet.
func newDuplex(r *reach, limit int, masks *masks) *duplex {
	return &duplex{
		reach: r, client: r.client(r), limit: int64(limit), redact: masks.redact,
		hurry: newHurry(), incoming: make(chan jsonrpc.Message), over: make(chan struct{}), closed: make(chan struct{}),
	}
}

// Connect implements the SDK's Transport. Ctx bounds the opening of the stream,
// not its life.
func (d *duplex) Connect(ctx context.Context) (sdk.Connection, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	opened := context.AfterFunc(ctx, cancel)
	events, err := d.open(life)
	if !opened() && err == nil {
		_ = events.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	d.mu.Lock()
	d.cancel = cancel
	d.mu.Unlock()
	d.reading.Go(func() { d.read(events) })
	return d, nil
}

// open opens the stream and reads the address.
func (d *duplex) open(ctx context.Context) (*eventStream, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.reach.target.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := d.client.Do(req)
	if err != nil {
		return nil, unreachable(err)
	}
	if !isStream(resp) {
		defer drop(resp)
		if resp.StatusCode == http.StatusOK {
			return nil, faultf(tools.CodeProtocolError, "it answers GET with %q, not with a stream of events", resp.Header.Get("Content-Type"))
		}
		return nil, refused(resp, "")
	}
	events := &eventStream{body: resp.Body, lines: bufio.NewReaderSize(resp.Body, 16<<10), limit: d.limit, calls: &d.calls}
	for {
		var e event
		err := events.read(&e)
		switch {
		case string(e.name) == eventEndpoint:
			if f := d.address(resp.Request.URL, e.data); f != nil {
				_ = events.Close()
				return nil, f
			}
			return events, nil
		case err != nil:
			_ = events.Close()
			return nil, unreachable(err)
		case len(e.name) > 0 || len(e.data) > 0 || e.over != nil:
			_ = events.Close()
			return nil, faultf(tools.CodeProtocolError, "its stream does not begin with the address for messages")
		}
	}
}

// address takes the address for messages, which is relative to that of the
// stream and within its origin.
func (d *duplex) address(base *url.URL, data []byte) *fault {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || len(data) > maxField {
		return faultf(tools.CodeProtocolError, "its address for messages has %d bytes", len(data))
	}
	u, err := base.Parse(string(data))
	switch {
	case err != nil:
		return faultf(tools.CodeProtocolError, "its address for messages is not a URL")
	case origin(u) != d.reach.origin:
		return faultf(tools.CodeTransportFailed, "it wants messages at another origin, %s, where no header or message is sent", origin(u))
	}
	d.messages = u.String()
	return nil
}

// read hands on what comes, until the stream ends.
func (d *duplex) read(events *eventStream) {
	defer func() { _ = events.Close() }()
	for {
		var e event
		err := events.read(&e)
		for _, msg := range events.messages(&e) {
			if !d.deliver(nil, msg) {
				return
			}
		}
		if err != nil {
			f := faultf(tools.CodeTransportClosed, "its stream of events ended")
			if !errors.Is(err, io.EOF) {
				f.detail += ": " + unreachable(err).detail
			}
			d.lose(f)
			return
		}
	}
}

// deliver gives a message to the SDK, unless done is closed before.
func (d *duplex) deliver(done <-chan struct{}, msg jsonrpc.Message) bool {
	select {
	case d.incoming <- msg:
		return true
	case <-done:
	case <-d.closed:
	}
	return false
}

// lose notes that the session is over.
func (d *duplex) lose(f *fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-d.closed:
		return
	default:
	}
	if d.err == nil {
		d.err = f
		close(d.over)
	}
}

// SessionID implements the SDK's Connection. The address holds it.
func (d *duplex) SessionID() string { return "" }

// Read implements the SDK's Connection.
func (d *duplex) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-d.incoming:
		return msg, nil
	case <-d.over:
		return nil, d.fault()
	case <-d.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements the SDK's Connection. A message that the server does not take
// fails its own request: an error from here would end the session.
func (d *duplex) Write(ctx context.Context, msg jsonrpc.Message) error {
	if d.handshake.cancelled(msg) {
		return nil
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	caller := ctx
	if caller.Done() == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(caller, answerLimit)
		defer cancel()
	}
	call, _ := msg.(*jsonrpc.Request)
	if call != nil && !call.IsCall() {
		call = nil
	}
	if call != nil {
		d.calls.add(ctx, call)
		d.handshake.note(call)
	} else {
		var done func()
		ctx, done = d.hurry.within(ctx)
		defer done()
	}
	f := d.post(ctx, data)
	switch {
	case caller.Err() != nil:
		return caller.Err()
	case f == nil || call == nil:
		return nil
	case f.status == http.StatusNotFound && call.Method != methodInitialize:
		f = faultf(tools.CodeTransportClosed, "it has forgotten the session (HTTP status %d)", f.status)
		d.lose(f)
	}
	if d.calls.take(call.ID) == nil {
		return nil // the answer came all the same
	}
	exchangeOf(ctx).failed(f)
	answer := &jsonrpc.Response{ID: call.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: f.detail}}
	if !d.deliver(ctx.Done(), answer) {
		return os.ErrClosed
	}
	return nil
}

// post sends a message.
func (d *duplex) post(ctx context.Context, data []byte) *fault {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.messages, bytes.NewReader(data))
	if err != nil {
		return unreachable(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := d.client.Do(req)
	if ex := exchangeOf(ctx); ex != nil && !undialled(err) {
		ex.sent.Store(true)
	}
	if err != nil {
		return unreachable(err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		drop(resp)
		return nil
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxSnippet)) // what came of it is enough to show
	drop(resp)
	return refused(resp, oneLine(d.redact(string(body)), maxDetail))
}

// Close implements the SDK's Connection. The SDK calls it with a lock held, so
// it waits for nothing.
func (d *duplex) Close() error {
	d.closing.Do(func() { close(d.closed) })
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
	return nil
}

func (d *duplex) fault() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		return nil
	}
	return d.err
}

// abandon cuts short what is said to the server as it is left.
func (d *duplex) abandon() { d.hurry.begin() }

// speak has nothing to do: the transport is that of one era.
func (d *duplex) speak(string) {}

// end closes the stream and drops the connections.
func (d *duplex) end() error {
	_ = d.Close() // it has no error
	d.reading.Wait()
	d.reach.close()
	return nil
}
