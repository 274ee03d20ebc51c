package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/config"
	"crewhost/tools"
)

const (
	firstModern  = "2026-07-28" // the first version without a handshake
	newestLegacy = "2025-11-25" // the last with one
)

// negotiate starts the server and agrees with it on a version (O5). Most
// servers need one attempt. There is one more where the server dies on the probe
// (it is started again and not probed), and where it refuses a version and lists
// others (K13). A server that the settings hold to an era is asked in that one alone.
// Settled is called when the server has begun to answer, or the probe's limit has
// passed.
func (s *session) negotiate(ctx context.Context, settled func()) (*connection, error) {
	var version string // asked for with initialize and without a probe; empty: probe first
	if s.server.Protocol == config.ProtocolLegacy {
		version = newestLegacy
	}
	var respawned, listed bool
	var before *tools.Error // why the transport that was tried first is not spoken
	transport := s.server.Transport
	if transport == config.TransportAuto {
		transport = config.TransportHTTP
	}
	for {
		if transport == config.TransportSSE && version == "" {
			version = newestLegacy // no other era has it
		}
		s.stage("start")
		link, err := s.open(ctx, transport)
		if err != nil {
			return nil, s.startFailure(ctx, err)
		}
		s.stage(stageNegotiate)
		p := &probing{session: s, link: link, settled: settled, stale: make(chan struct{}, 1)}
		if e, ok := link.(*endpoint); ok {
			e.mender.renewed = func() { outdate(p.stale) } // it may be another release by now
		}
		stop := context.AfterFunc(ctx, link.abandon) // the SDK closes what it can't connect
		client, err := p.connect(ctx, version)
		stop()
		if err == nil {
			s.reached(transport)
			return newConnection(link, client, p), nil
		}
		dead := link.fault()
		failure := also(s.failure(ctx, link, &p.ex, err), before)
		if err := endBy(ctx, link); err != nil {
			s.warn(err.Error())
		}
		_, refusal, unspoken := p.ex.get()
		other := listedVersion(refusal, version)
		var f *fault
		switch {
		case ctx.Err() != nil, s.server.Protocol == config.ProtocolModern:
			return nil, failure
		case errors.As(dead, &f) && f.code == tools.CodeTransportClosed && version == "" && !respawned:
			respawned, version = true, newestLegacy
		case other != "" && !listed:
			listed, version = true, other
		case unspoken != nil && unspoken.unsupported && before == nil && s.server.Transport == config.TransportAuto:
			transport, before = config.TransportSSE, failure
		default:
			return nil, failure
		}
		s.log.Debug("connecting again", "version", version, "after", failure)
	}
}

// probing is one attempt to agree on a version over a link.
type probing struct {
	session *session
	link    link
	settled func()
	stale   chan struct{}              // gets a token when the list of tools may have changed
	conn    atomic.Pointer[connection] // once there is one

	ex          exchange // of initialize
	initialized *outcome // of initialize, where it was sent beside the probe
	refused     error    // of the probe, where nothing else is to be asked
}

type outcome struct {
	result sdk.Result
	err    error
}

// connect has the SDK connect, and stands between it and the wire.
func (p *probing) connect(ctx context.Context, version string) (*sdk.ClientSession, error) {
	client := sdk.NewClient(p.session.identityOfClient(), &sdk.ClientOptions{
		Capabilities:                p.session.capabilities(),
		MultiRoundTrip:              &sdk.MultiRoundTripOptions{Disabled: true}, // see converse
		ProgressNotificationHandler: p.session.progressed,
	})
	client.AddReceivingMiddleware(p.session.serve)
	client.AddSendingMiddleware(p.told) // the first that is added is the next to the wire
	client.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch method {
			case methodDiscover:
				if cs, ok := req.GetSession().(*sdk.ClientSession); ok && cs.InitializeResult() == nil {
					res, err := p.probe(ctx, next, req, cs)
					if p.session.server.Protocol == config.ProtocolModern {
						// The SDK would try the legacy era next.
						p.refused = notModern(exchangeOf(ctx), res, err)
					}
					return res, err
				}
			case methodInitialize:
				defer p.settled()
				if p.refused != nil {
					return nil, p.refused
				}
				if p.initialized != nil {
					return p.initialized.result, p.initialized.err
				}
				return next(context.WithValue(ctx, exchangeKey{}, &p.ex), method, req)
			}
			counted(ctx, req)
			if conn := p.conn.Load(); conn != nil {
				return p.session.carry(ctx, conn, next, method, req)
			}
			return next(ctx, method, req)
		}
	})
	client.AddReceivingMiddleware(p.hear)
	ctx, _ = withExchange(ctx)
	return client.Connect(ctx, p.link, &sdk.ClientSessionOptions{ProtocolVersion: version})
}

// probe asks with server/discover. When its limit has passed, the server may be of
// the old era and silent, or merely slow to start; so initialize is asked too, on the same
// connection, and the first answer that helps decides (K09).
func (p *probing) probe(ctx context.Context, next sdk.MethodHandler, req sdk.Request, cs *sdk.ClientSession) (sdk.Result, error) {
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(ctx context.Context, method string, req sdk.Request) <-chan outcome {
		answer := make(chan outcome, 1)
		asked.Go(func() {
			res, err := next(ctx, method, req)
			answer <- outcome{res, err}
		})
		return answer
	}
	timer := time.NewTimer(p.session.probeTimeout)
	defer timer.Stop()

	discovered := ask(ctx, methodDiscover, req)
	select {
	case d := <-discovered:
		if p.link.fault() == nil {
			p.settled()
		}
		return d.result, d.err
	case <-timer.C:
		p.settled()
	}
	if p.session.server.Protocol == config.ProtocolModern {
		d := <-discovered
		return d.result, d.err
	}
	initialized := ask(context.WithValue(ctx, exchangeKey{}, &p.ex), methodInitialize, &sdk.ClientRequest[*sdk.InitializeParams]{
		Session: cs,
		Params: &sdk.InitializeParams{
			ProtocolVersion: newestLegacy,
			ClientInfo:      p.session.identityOfClient(),
			Capabilities:    p.session.capabilities(),
		},
	})
	select {
	case d := <-discovered:
		if d.err == nil {
			return d.result, nil
		}
		i := <-initialized
		p.initialized = &i
		return nil, d.err
	case i := <-initialized:
		p.initialized = &i
		if i.err == nil {
			return nil, errSilent
		}
	}
	// Refused: the answer to the probe may be on its way.
	timer.Reset(p.session.probeTimeout)
	select {
	case d := <-discovered:
		return d.result, d.err
	case <-timer.C:
		return nil, errSilent
	}
}

// notModern is why the answer to a probe makes no connection of the modern era, to
// which the settings hold the server, or nil.
func notModern(ex *exchange, res sdk.Result, err error) error {
	_, refusal, f := ex.get()
	found, _ := res.(*sdk.DiscoverResult)
	why := ""
	switch {
	case f != nil:
		return f
	case err == nil && found != nil && eraOf(newestMutual(found.SupportedVersions)) == Modern:
		return nil
	case refusal != nil:
		why = fmt.Sprintf(": %s (JSON-RPC error %d)", refusal.Message, refusal.Code)
	}
	return faultf(tools.CodeInitializationFailed, "the settings hold it to the modern era of the protocol, of which it speaks no version that is spoken here%s", why)
}

// errSilent is the outcome of a probe that was not answered.
var errSilent = errors.New("server/discover was not answered")

func (s *session) identityOfClient() *sdk.Implementation {
	return &sdk.Implementation{Name: s.opts.Name, Version: s.opts.Version}
}

// listedVersion is the newest version with a handshake that a refusal lists and
// that was not just asked for, or nothing.
func listedVersion(refusal *jsonrpc.Error, asked string) string {
	var list struct {
		Supported         []string `json:"supported"`
		SupportedVersions []string `json:"supportedVersions"`
	}
	if refusal == nil || json.Unmarshal(refusal.Data, &list) != nil {
		return ""
	}
	if asked == "" {
		asked = newestLegacy
	}
	for _, v := range sdk.SupportedProtocolVersions() {
		offered := slices.Contains(list.Supported, v) || slices.Contains(list.SupportedVersions, v)
		if offered && v < firstModern && v != asked {
			return v
		}
	}
	return ""
}

// open starts what the session speaks over.
func (s *session) open(ctx context.Context, transport config.Transport) (link, error) {
	if s.opts.dial != nil {
		return s.opts.dial(), nil
	}
	if !transport.Remote() {
		return startPipe(ctx, s.server, s.shutdownTimeout, s.limits.MessageBytes, s.opts.Environ, s.guard, s.masks, s.warn, func(line string) {
			s.log.Debug("stderr", "line", s.masks.line(line, maxDetail))
		})
	}
	r, err := newReach(s.server, s.allows, s.route, s.authorized)
	switch {
	case err != nil:
		return nil, err
	case transport == config.TransportSSE:
		return newDuplex(r, s.limits.MessageBytes, s.masks), nil
	default:
		return newEndpoint(r, s.shutdownTimeout, s.limits.MessageBytes, s.masks, s.warn), nil
	}
}

// also says why the transport that was tried before was not spoken.
func also(failure, before *tools.Error) *tools.Error {
	if before != nil {
		failure.Detail = "as Streamable HTTP: " + before.Detail + "; as legacy SSE: " + failure.Detail
	}
	return failure
}

// reached notes the transport that connected (W3).
func (s *session) reached(transport config.Transport) {
	if !transport.Remote() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report.Transport = transport
}

// identity notes what the server said of itself (W5).
func (s *session) identity(conn *connection) {
	res := conn.client.InitializeResult()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.report
	r.Protocol = oneLine(res.ProtocolVersion, 64)
	r.Era = eraOf(r.Protocol)
	given := s.masks.redact(res.Instructions)
	r.Instructions = cut(readable(given), maxInstructions)
	if r.InstructionsDigest = ""; given != "" {
		sum := sha256.Sum256([]byte(given))
		r.InstructionsDigest = "sha256:" + hex.EncodeToString(sum[:])
	}
	if res.ServerInfo != nil {
		r.ServerName = s.masks.line(res.ServerInfo.Name, maxName)
		r.ServerVersion = s.masks.line(res.ServerInfo.Version, maxName)
	}
}

// maxInstructions is how much of a server's instructions is kept, in bytes.
const maxInstructions = 16 << 10
