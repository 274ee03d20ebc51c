package mcp

import (
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"crewhost/mcp/wire"
)

// An endpoint speaks Streamable HTTP with one server. It is the link of such
// servers: the SDK's transport over an HTTP client of its own, which mends the
// answers before the SDK sees them.
type endpoint struct {
	sdk.StreamableClientTransport
	mender *mender
}

// newEndpoint makes the link of a server within reach; nothing is sent yet.
func newEndpoint(r *reach, shutdown time.Duration, limit int, masks *masks, warn func(string)) *endpoint {
	m := &mender{
		reach:    r,
		direct:   r.client(r),
		shutdown: shutdown,
		limit:    int64(limit),
		redact:   masks.redact,
		warn:     warn,
		hurry:    newHurry(),
	}
	return &endpoint{mender: m, StreamableClientTransport: sdk.StreamableClientTransport{
		Endpoint:   r.target.String(),
		HTTPClient: r.client(m),
		// Zero would mean no limit at all. The mender's own limit is the lower
		// one and fails a request, not the session.
		MaxEventSize: 2*limit + wire.MaxToken*8,
	}}
}

// fault is nil as a rule: that a connection fails is no fact about the next one.
func (e *endpoint) fault() error { return e.mender.fault() }

// abandon cuts farewells short.
func (e *endpoint) abandon() { e.mender.hurry.begin() }

// speak gives the requests that follow the header of another version.
func (e *endpoint) speak(version string) { e.mender.version.Store(&version) }

// end drops the connections. The SDK's session has said farewell before.
func (e *endpoint) end() error {
	e.mender.reach.close()
	return nil
}
