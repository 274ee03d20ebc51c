package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	headerSession   = "Mcp-Session-Id"
	headerVersion   = "Mcp-Protocol-Version"
	headerRequestID = "X-Request-Id"
)

// A visit is one request and its answer.
type visit struct {
	*Handler
	r     *http.Request
	reply *reply

	began time.Time
	id    string // of the request, for those who read logs
	who   identity
	until time.Time // when who is not to be believed any more; zero: never
	msg   message

	to    http.Handler // of the SDK, which answers r once it is judged; nil: answered
	after []func()     // what is given back at the end, the last first
}

// ServeHTTP answers one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case healthPath:
		health(w, r, true)
		return
	case readyPath:
		health(w, r, !h.draining.Load())
		return
	}
	// Also what nobody wants to read is read, before the answer goes out.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(h.cfg.ReadTimeout)) // in tests there is no connection
	x := &visit{Handler: h, r: r, reply: newReply(w, h.cfg.WriteTimeout, &h.outbox), began: time.Now()}
	defer x.leave()
	x.name(w.Header())
	ctx := context.WithValue(r.Context(), requestIDKey{}, x.id)
	if x.allowed(w.Header()) {
		x.serve(ctx)
	}
	if x.to != nil {
		// From here and not from where it was judged: the SDK's decoder goes deep, and
		// on top of all that the stack of a connection would have to grow each time.
		x.to.ServeHTTP(x.reply, x.r)
	}
	x.record(ctx, x.reply.end())
}

// leave gives back what the visit held.
func (x *visit) leave() {
	for _, give := range slices.Backward(x.after) {
		give()
	}
}

// maxName bounds, in bytes, the names of tokens and of requests.
const maxName = 128

// saneRequestID is what may be taken over into a log.
var saneRequestID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/+=-]*$`)

// name gives the request its id: the client's, where it has one that is fit.
func (x *visit) name(answer http.Header) {
	x.id = x.r.Header.Get(headerRequestID)
	if len(x.id) > maxName || !saneRequestID.MatchString(x.id) {
		x.id = rand.Text()
		x.r.Header.Set(headerRequestID, x.id) // where [withRequestID] finds it
	}
	answer.Set(headerRequestID, x.id)
}

// record logs the request: never what was asked with it.
func (x *visit) record(ctx context.Context, status int) {
	if !x.log.Enabled(ctx, slog.LevelInfo) {
		return
	}
	attrs := []slog.Attr{
		slog.String("http", x.r.Method),
		slog.Int("status", status),
		slog.Duration("took", time.Since(x.began)),
		slog.String("from", x.r.RemoteAddr),
	}
	for _, a := range []struct{ key, value string }{{"method", x.msg.method}, {"name", x.msg.name}, {"who", x.who.name}} {
		if a.value != "" {
			attrs = append(attrs, slog.String(a.key, a.value[:min(len(a.value), maxSubject)]))
		}
	}
	x.log.LogAttrs(ctx, slog.LevelInfo, "request", attrs...)
}

func (x *visit) refuse(r *refusal) {
	if r.id == nil {
		r.id = x.msg.id
	}
	r.reply(x.reply)
}

// allowed looks at the name that the server is called by, and at the page that
// calls. It answers whoever is not allowed, and those who ask what is.
func (x *visit) allowed(answer http.Header) bool {
	if !x.hostAllowed(x.r) {
		x.refuse(&refusal{status: http.StatusForbidden, code: CodeUnauthorized, message: "the server is not to be called by this name"})
		return false
	}
	origins := x.r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	answer.Add("Vary", "Origin")
	if len(origins) > 1 || !slices.Contains(x.cfg.AllowedOrigins, origins[0]) {
		x.refuse(&refusal{status: http.StatusForbidden, code: CodeUnauthorized, message: "the origin is not allowed"})
		return false
	}
	answer.Set("Access-Control-Allow-Origin", origins[0])
	answer.Set("Access-Control-Expose-Headers", strings.Join([]string{headerSession, headerRequestID, "WWW-Authenticate", "Retry-After"}, ", "))
	if x.r.Method != http.MethodOptions {
		return true
	}
	answer.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	answer.Set("Access-Control-Allow-Headers", allowedHeaders(x.r.Header.Values("Access-Control-Request-Headers")))
	answer.Set("Access-Control-Max-Age", "600")
	x.reply.WriteHeader(http.StatusNoContent)
	return false
}

// hostAllowed judges the Host header.
func (h *Handler) hostAllowed(r *http.Request) bool {
	name, port := splitHost(r.Host)
	for _, allowed := range h.cfg.AllowedHosts {
		if n, p := splitHost(allowed); n == name && (p == "" || p == port) {
			return true
		}
	}
	if isLoopback(name) {
		return true // a page elsewhere has no such name
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	host, _, err := net.SplitHostPort(local.String())
	return err == nil && !isLoopback(host) && len(h.cfg.AllowedHosts) == 0
}

// allowedHeaders are those that a page may send: the protocol's own, and of those
// it asks for such as carry a tool's parameters.
func allowedHeaders(asked []string) string {
	headers := []string{
		"Accept", "Authorization", "Content-Type", "Last-Event-ID",
		"Mcp-Method", "Mcp-Name", headerVersion, headerSession, headerRequestID,
	}
	for _, list := range asked {
		for name := range strings.SplitSeq(list, ",") {
			name = strings.TrimSpace(name)
			if len(name) <= 128 && paramHeader.MatchString(name) {
				headers = append(headers, name)
			}
		}
	}
	return strings.Join(headers, ", ")
}

var paramHeader = regexp.MustCompile(`(?i)^mcp-param-[a-z0-9_.-]+$`)

// serve answers a request that is allowed.
func (x *visit) serve(ctx context.Context) {
	switch path := x.r.URL.Path; {
	case slices.Contains(x.metadata, path):
		x.auth.serveMetadata(x.reply, x.r)
		return
	case path != x.cfg.Path:
		http.Error(x.reply, "not found", http.StatusNotFound)
		return
	}
	var err error
	if x.who, x.until, err = x.auth.authenticate(ctx, x.r.Header); err != nil {
		if errors.Is(err, errKeys) {
			x.log.WarnContext(ctx, "tokens can't be checked", "error", err)
		}
		x.auth.deny(x.reply, err)
		return
	}
	if x.draining.Load() {
		x.refuse(crammed("the server ends"))
		return
	}
	modern, refused := x.era()
	switch {
	case x.r.Method == http.MethodPost:
		x.post(ctx, modern, refused)
	case refused != nil:
		x.refuse(refused)
	case modern:
		methodNotAllowed(x.reply, "POST")
	case x.r.Method == http.MethodGet:
		x.get(ctx)
	case x.r.Method == http.MethodDelete:
		x.delete()
	default:
		methodNotAllowed(x.reply, "GET, POST, DELETE")
	}
}

// era reads the version of a request. One that is not spoken here is of no era,
// whatever it looks like.
func (x *visit) era() (modern bool, refused *refusal) {
	values := x.r.Header.Values(headerVersion)
	switch {
	case len(values) == 0:
		return false, nil
	case len(values) == 1 && slices.Contains(x.versions, values[0]):
		return values[0] >= modernVersion, nil
	}
	requested := strings.Join(values, ", ")
	return false, &refusal{
		status: http.StatusBadRequest, code: codeUnsupportedVersion, message: "the protocol version is not supported",
		data: map[string]any{"supported": x.versions, "requested": strings.ToValidUTF8(requested[:min(len(requested), 64)], "")},
	}
}

// post takes one message. Where its version was refused already it is read all the
// same, so that the answer has its id.
func (x *visit) post(ctx context.Context, modern bool, unspoken *refusal) {
	if refused := checkContent(x.r.Header); refused != nil {
		x.refuse(refused)
		return
	}
	if !accepts(x.r.Header.Values("Accept"), "application/json", eventStream) {
		x.refuse(notAcceptable("application/json and text/event-stream"))
		return
	}
	body, release, refused := x.room.read(x.r, x.budgets.RequestBytes)
	x.after = append(x.after, release)
	if refused == nil {
		x.hasRead()
		x.msg, refused = x.server.readMessage(body)
		switch {
		case unspoken != nil:
			refused = unspoken
		case refused != nil && refused.code == codeUnsupportedVersion && x.r.Header.Get(headerVersion) != "":
			refused = mismatch("the protocol version in _meta is not that of the header")
		case refused == nil && modern && x.msg.method == "tools/call":
			refused = x.server.checkParams(x.r.Header, x.msg.name, x.msg.params)
		}
	}
	if refused != nil {
		x.refuse(refused)
		return
	}
	holdConnection(ctx)
	x.reply.id, x.reply.call = x.msg.id, x.msg.call()
	if modern || x.msg.modern {
		x.postModern(ctx)
	} else {
		x.postLegacy(ctx)
	}
}

// hasRead ends the time for the request: how long the client waits for the answer
// is its own affair.
func (x *visit) hasRead() { _ = x.reply.rc.SetReadDeadline(time.Time{}) }

func notAcceptable(types string) *refusal {
	return &refusal{status: http.StatusNotAcceptable, code: jsonrpc.CodeInvalidRequest, message: "Accept must allow " + types}
}

// forward has the SDK answer what has been read, and returns when it has.
func (x *visit) forward(ctx context.Context, to http.Handler) {
	x.hand(ctx, to)
	x.to.ServeHTTP(x.reply, x.r)
	x.to = nil
}

// hand has the SDK answer what has been read, once the visit is judged.
func (x *visit) hand(ctx context.Context, to http.Handler) {
	ctx = context.WithValue(ctx, identityKey{}, x.who)
	ctx = context.WithValue(ctx, homeKey{}, &x.home)
	r := x.r.WithContext(ctx)
	if x.who != (identity{}) {
		to = vouched(x.who, to)
	}
	r.Body, r.ContentLength = http.NoBody, 0
	if x.msg.body != nil {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(x.msg.body)), int64(len(x.msg.body))
	}
	r.Header.Set("Accept", "application/json, "+eventStream) // judged before
	x.to, x.r = to, r
}

// accepted says that a message came, and that nothing more will be said of it.
func (x *visit) accepted() { x.reply.WriteHeader(http.StatusAccepted) }

// postModern answers a message of the era without sessions: the request is all
// there is, and when the client leaves it, its call is cancelled.
func (x *visit) postModern(ctx context.Context) {
	switch {
	case x.msg.unheard():
		x.accepted()
	case !x.msg.call():
		x.forward(ctx, x.modern)
	case x.crowded():
		x.refuse(full(x.server))
	case x.msg.method == listenMethod:
		x.stream(ctx, x.modern)
	default:
		x.reply.live(x.budgets.Keepalive)
		x.hand(ctx, x.modern)
	}
}

// crowded reports whether a call would find no place (I9): then HTTP can say so by
// its status. Whoever has one goes on, and what takes none is always let through.
func (x *visit) crowded() bool {
	switch x.msg.method {
	case initializeMethod, discoverMethod, pingMethod, setLevelMethod, "resources/unsubscribe":
		return false
	}
	return !x.msg.resumes && x.server.places.full()
}

// stream serves a stream that stays open until the client leaves or does not read
// it, its token expires, or the server ends.
func (x *visit) stream(ctx context.Context, to http.Handler) {
	if !x.until.IsZero() {
		var expired context.CancelFunc
		ctx, expired = context.WithDeadline(ctx, x.until)
		defer expired()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer x.streams.add(x.r, cancel)()
	x.reply.live(x.budgets.Keepalive)
	x.forward(ctx, to)
}

// postLegacy answers a message of the initialize lineage. A call belongs to its
// session: it goes on if the client leaves, and keeps its place until it is done,
// cancelled by a notification, or the session ends.
func (x *visit) postLegacy(ctx context.Context) {
	initialize := x.msg.call() && x.msg.method == initializeMethod
	id := x.r.Header.Get(headerSession)
	one, done := x.sessions.use(id, x.who)
	switch {
	case one != nil:
		x.after = append(x.after, done)
	case initialize:
		x.r.Header.Del(headerSession) // of a session that has ended (K83)
	default:
		x.noSession(id)
		return
	}
	switch {
	case x.msg.unheard():
		x.accepted()
	case !x.msg.call():
		x.forward(ctx, x.legacy)
	case !isMethod(x.msg.method):
		x.refuse(refusing(http.StatusOK, noMethod(x.msg.method)))
	case one == nil:
		x.open(ctx)
	case x.crowded():
		x.refuse(full(x.server))
	default:
		x.reply.live(x.budgets.Keepalive)
		x.hand(ctx, x.legacy)
	}
}

// noSession answers a request that has no session, or none any more. The text is
// plain: clients take an error of JSON-RPC for the call's, and not for the session's.
func (x *visit) noSession(id string) {
	if id == "" {
		x.refuse(malformed("there is no " + headerSession + " header: a session begins with initialize"))
		return
	}
	http.Error(x.reply, "session not found", http.StatusNotFound)
}

// open begins a session. It is known before the client learns its id.
func (x *visit) open(ctx context.Context) {
	if !x.sessions.reserve() {
		x.refuse(crammed("all sessions are in use"))
		return
	}
	// The SDK keeps the values of this context for the session, and not its end.
	life, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	var one *httpSession
	var done func()
	x.reply.started = func(header http.Header) {
		id := header.Get(headerSession)
		for sdk := range x.server.sdk.Sessions() {
			if id != "" && sdk.ID() == id {
				one = &httpSession{id: id, owner: x.who, cancel: cancel, sdk: sdk, ended: x.server.session(ctx, true)}
				done = x.sessions.opened(one)
				return
			}
		}
	}
	x.forward(context.WithValue(ctx, lifeKey{}, life), x.legacy)
	if one == nil {
		x.sessions.forgo()
		cancel(errSessionEnded)
		return
	}
	done()
	if one.sdk.InitializeParams() == nil { // it failed
		x.sessions.end(one)
	}
}

// get serves the stream of a session: what the server has to say by itself.
func (x *visit) get(ctx context.Context) {
	if !accepts(x.r.Header.Values("Accept"), eventStream) {
		x.refuse(notAcceptable(eventStream))
		return
	}
	id := x.r.Header.Get(headerSession)
	one, done := x.sessions.use(id, x.who)
	if one == nil {
		x.noSession(id)
		return
	}
	defer done()
	if !x.server.places.enter() {
		x.refuse(full(x.server))
		return
	}
	defer x.server.places.leave()
	holdConnection(ctx)
	x.hasRead()
	x.stream(ctx, x.legacy)
}

// delete ends a session.
func (x *visit) delete() {
	id := x.r.Header.Get(headerSession)
	one, done := x.sessions.use(id, x.who)
	if one == nil {
		x.noSession(id)
		return
	}
	x.sessions.end(one)
	done()
	x.reply.WriteHeader(http.StatusNoContent)
}
