package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"

	"crewhost/mcp/wire"
)

// waitingAnswers is how many requests, beyond those that are served at a time, may
// have an answer that the client has not read. At that many nothing more is read:
// a client that doesn't listen holds no memory.
const waitingAnswers = 16

// A stream is one client on stdio. The SDK's sessions are of one era each, so that
// there are up to two of them behind it, each with a lane, and the stream sorts
// messages by what they say of themselves (R1).
type stream struct {
	s    *Server
	out  lineWriter
	home home

	broken chan error     // holds why out failed
	closed chan struct{}  // when nothing more is taken
	group  sync.WaitGroup // of lanes

	open  *semaphore.Weighted // requests without an answer
	limit int64               // of them

	mu     sync.Mutex
	legacy *lane
	modern *lane
	hello  bool // whether an initialize has been read
	shutup bool // whether it is closed
	flying map[jsonrpc.ID]*flight
}

// A flight is a request that is not answered.
type flight struct {
	lane      *lane
	method    string
	cancelled bool // the client doesn't want an answer any more
}

func newStream(ctx context.Context, s *Server, out io.Writer) *stream {
	st := &stream{
		s:      s,
		out:    lineWriter{w: out},
		broken: make(chan error, 1),
		closed: make(chan struct{}),
		limit:  int64(s.budgets.ConcurrentRequests) + waitingAnswers,
		flying: map[jsonrpc.ID]*flight{},
	}
	st.open = semaphore.NewWeighted(st.limit)
	st.home.id = func(id any) any { return giveID(id) }
	return st
}

// take takes a line. The error is that of a stream that can't go on.
func (st *stream) take(ctx context.Context, line []byte) error {
	msg, bad := openEnvelope(line)
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if msg.IsCall() {
			return st.request(ctx, msg)
		}
		st.notification(msg)
		return nil
	case *jsonrpc.Response:
		if l := st.laneOf(false); l != nil {
			l.deliver(msg)
		}
		return nil
	}
	if bad != nil {
		st.refuse(bad.id, bad.err)
	}
	return nil
}

// tooLong answers a line that was too long to be read.
func (st *stream) tooLong(o *wire.Outline) {
	err := requestTooLarge(st.s.budgets.RequestBytes)
	id := usable(o.ID)
	switch {
	case o.Method && len(o.ID) == 0: // a notification
	case !o.Method && id != nil: // an answer; who waits for it learns why there is none
		if l := st.laneOf(false); l != nil {
			l.deliver(&jsonrpc.Response{ID: takeID(id), Error: err})
		}
	default:
		st.refuse(id, err)
	}
}

// request passes a request on to the session of its era, or refuses it.
func (st *stream) request(ctx context.Context, req *jsonrpc.Request) error {
	id := giveID(req.ID.Raw())
	modern, bad := st.s.checkMeta(req.Params)
	st.mu.Lock()
	_, again := st.flying[req.ID]
	switch {
	case bad != nil:
	case again:
		// An answer with its id would be taken for the other one's.
		id, bad = nil, rpcError(jsonrpc.CodeInvalidRequest, "a request with this id is not answered yet")
	case !isMethod(req.Method):
		bad = noMethod(req.Method)
	case modern, req.Method == pingMethod, req.Method == discoverMethod:
	case req.Method == initializeMethod && st.hello:
		bad = rpcError(jsonrpc.CodeInvalidRequest, "the session is initialized already")
	case req.Method == initializeMethod:
	case !st.hello:
		bad = rpcError(jsonrpc.CodeInvalidRequest, fmt.Sprintf("%q needs a session, or the protocol's version in _meta: send initialize first", req.Method))
	}
	st.mu.Unlock()
	if bad != nil {
		st.refuse(id, bad)
		return nil
	}
	if err := st.open.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	l, err := st.ensure(ctx, modern)
	if err != nil {
		st.open.Release(1)
		return err
	}
	st.mu.Lock()
	st.flying[req.ID] = &flight{lane: l, method: req.Method}
	st.hello = st.hello || !modern && req.Method == initializeMethod
	st.mu.Unlock()
	if !l.deliver(req) { // it is over
		st.open.Release(1)
	}
	return nil
}

// notification passes on what a session must hear of. Everything else means
// nothing here, and is not answered (K79).
func (st *stream) notification(req *jsonrpc.Request) {
	switch req.Method {
	case cancelledMethod:
		if id := usable(field(req.Params, "requestId")); id != nil {
			st.cancel(takeID(id))
		}
	case initializedMethod, rootsMethod:
		if l := st.laneOf(false); l != nil {
			l.deliver(req)
		}
	}
}

func field(object json.RawMessage, name string) json.RawMessage {
	value, _ := wire.Member(object, name)
	return value
}

// cancel cancels a request. One that is answered, or was never there, is passed
// over (I5).
func (st *stream) cancel(id jsonrpc.ID) {
	st.mu.Lock()
	f := st.flying[id]
	if f == nil || f.method == initializeMethod {
		st.mu.Unlock()
		return
	}
	f.cancelled = true
	st.mu.Unlock()
	f.lane.deliver(cancellation(id))
}

func cancellation(id jsonrpc.ID) *jsonrpc.Request {
	o := newObject()
	o.value("requestId", id.Raw())
	return &jsonrpc.Request{Method: cancelledMethod, Params: o.end()}
}

// landed says that a request is answered, and returns what was known of it.
func (st *stream) landed(resp *jsonrpc.Response) *flight {
	st.mu.Lock()
	defer st.mu.Unlock()
	f := st.flying[resp.ID]
	delete(st.flying, resp.ID)
	if f != nil && f.lane == st.legacy && f.method == initializeMethod && resp.Error != nil {
		st.hello = false // one of the modern era, which has none, says nothing of the session
	}
	return f
}

// refuse answers a message that no session sees.
func (st *stream) refuse(id json.RawMessage, e *jsonrpc.Error) {
	_ = st.write(envelope(id, "error", encode(e))) // where that fails, the stream knows
}

// write writes a line. Where that fails the stream is broken.
func (st *stream) write(line []byte) error {
	err := st.out.write(line)
	if err != nil {
		select {
		case st.broken <- err:
		default:
		}
	}
	return err
}

// envelope is a message that answers a request; no id is null.
func envelope(id json.RawMessage, member string, value []byte) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	b := make([]byte, 0, 40+len(id)+len(member)+len(value))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"`...)
	b = append(b, member...)
	b = append(b, `":`...)
	b = append(b, value...)
	return append(b, '}')
}

// laneOf is the lane of an era, or nil where nobody has used it.
func (st *stream) laneOf(modern bool) *lane {
	st.mu.Lock()
	defer st.mu.Unlock()
	if modern {
		return st.modern
	}
	return st.legacy
}

// ensure returns the lane of an era, and opens it where it is missing.
func (st *stream) ensure(ctx context.Context, modern bool) (*lane, error) {
	if l := st.laneOf(modern); l != nil {
		return l, nil
	}
	l := &lane{st: st, in: make(chan jsonrpc.Message), closed: make(chan struct{})}
	session, err := st.s.sdk.Connect(context.WithValue(ctx, homeKey{}, &st.home), l, nil)
	if err != nil {
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	st.mu.Lock()
	if modern {
		st.modern = l
	} else {
		st.legacy = l
	}
	shut := st.shutup
	st.mu.Unlock()
	if shut {
		_ = l.Close()
	}
	st.group.Go(func() { _ = session.Wait() })
	return l, nil
}

// drain answers what was read before in ended (I6). Streams that are open for the
// client end, since it says nothing any more.
func (st *stream) drain(ctx context.Context) error {
	st.mu.Lock()
	listening := map[jsonrpc.ID]*lane{}
	for id, f := range st.flying {
		if f.method == listenMethod {
			listening[id] = f.lane
		}
	}
	st.mu.Unlock()
	for id, l := range listening {
		l.deliver(cancellation(id))
	}
	grace, cancel := context.WithTimeout(ctx, st.s.budgets.Grace)
	defer cancel()
	switch {
	case st.open.Acquire(grace, st.limit) == nil:
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		st.mu.Lock()
		late := len(st.flying)
		st.mu.Unlock()
		st.s.log.Warn("requests were not answered in time after the end of input, and are cancelled", "requests", late, "grace", st.s.budgets.Grace)
	}
	return nil
}

// shut ends the sessions, which cancels what they do.
func (st *stream) shut() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.shutup {
		return
	}
	st.shutup = true
	close(st.closed)
	for _, l := range []*lane{st.legacy, st.modern} {
		if l != nil {
			_ = l.Close()
		}
	}
}

// wait waits for the sessions and for what belongs to them.
func (st *stream) wait(patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	st.home.finish()
	ended := join(&st.group, patience)
	return join(&st.home.group, max(time.Until(deadline), patience/10)) && ended
}

// A lane is the connection of one of the SDK's sessions.
type lane struct {
	st     *stream
	in     chan jsonrpc.Message
	once   sync.Once
	closed chan struct{}
}

// Connect is what the SDK opens the session with.
func (l *lane) Connect(context.Context) (mcp.Connection, error) { return l, nil }

// SessionID is empty: there is one client.
func (l *lane) SessionID() string { return "" }

// deliver passes a message on; false says that the lane is closed.
func (l *lane) deliver(msg jsonrpc.Message) bool {
	select {
	case l.in <- msg:
		return true
	case <-l.closed:
		return false
	}
}

// Read returns the next message for the session.
func (l *lane) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-l.in:
		return msg, nil
	case <-l.closed:
		return nil, io.EOF
	}
}

// Close ends the session, which cancels what it does.
func (l *lane) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Write writes what the session says.
func (l *lane) Write(_ context.Context, msg jsonrpc.Message) error {
	resp, ok := msg.(*jsonrpc.Response)
	if !ok {
		line, err := jsonrpc.EncodeMessage(msg)
		if err != nil {
			return fmt.Errorf("encoding a message: %w", err)
		}
		return l.st.write(line)
	}
	f := l.st.landed(resp)
	defer l.st.open.Release(1)
	if f == nil || f.cancelled {
		return nil
	}
	return l.st.write(l.st.answer(f.method, resp))
}

// answer is a response to a method as it is written.
func (st *stream) answer(method string, resp *jsonrpc.Response) []byte {
	id := giveID(resp.ID.Raw())
	if resp.Error == nil && len(resp.Result) > st.s.budgets.ResponseBytes {
		resp.Error = st.s.tooLarge(len(resp.Result))
	}
	if resp.Error == nil {
		result := resp.Result
		if result == nil {
			result = json.RawMessage("{}")
		}
		return envelope(id, "result", result)
	}
	e := &jsonrpc.Error{Message: resp.Error.Error()}
	var known *jsonrpc.Error
	if errors.As(resp.Error, &known) {
		e.Code, e.Data = known.Code, known.Data
	}
	if e.Code == 0 { // the SDK has no code for this
		st.s.log.Debug("a request failed", "method", method, "error", resp.Error)
		switch {
		case errors.Is(resp.Error, context.Canceled):
			e = rpcError(jsonrpc.CodeInternalError, "cancelled")
		case method == initializeMethod: // what it can't read
			e.Code = jsonrpc.CodeInvalidParams
		default:
			e = errInternal()
		}
	}
	e.Message = cut(e.Message, maxMessage)
	return envelope(id, "error", encode(e))
}

// maxMessage is the longest text of an error, in bytes: the SDK's may hold the
// whole of what it could not read.
const maxMessage = 500

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return string(bytes.ToValidUTF8([]byte(s[:limit]), nil)) + "..."
}
