package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/config"
)

// spoken is the version that is spoken on a connection, once it is another one
// than the SDK's session has agreed on.
type spoken struct {
	negotiating sync.Mutex // held while it changes

	mu      sync.Mutex
	version string // empty: that of the session
	turn    int    // how often it changed
}

func (s *spoken) get() (version string, turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version, s.turn
}

func (s *spoken) set(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
	s.turn++
}

// version is the version that is spoken on the connection.
func (c *connection) version() string {
	if version, _ := c.spoken.get(); version != "" {
		return version
	}
	if agreed := c.client.InitializeResult(); agreed != nil {
		return agreed.ProtocolVersion
	}
	return ""
}

// era is the era that is spoken on the connection.
func (c *connection) era() Era {
	version, _ := c.spoken.get()
	if version == "" {
		version = c.client.InitializeResult().ProtocolVersion
	}
	return eraOf(version)
}

func eraOf(version string) Era {
	if version >= firstModern {
		return Modern
	}
	return Legacy
}

// carry sends a request of a connection that stands. Where the server refuses the
// version of a request although it was agreed on (a server that was replaced by
// another release), the two agree anew, once, and the request is sent again,
// once (O6). It was refused before anything was done for it.
func (s *session) carry(ctx context.Context, conn *connection, next sdk.MethodHandler, method string, req sdk.Request) (sdk.Result, error) {
	turn := conn.stamp(req)
	res, err := next(ctx, method, req)
	refusal := versionRefused(err)
	if refusal == nil || !s.renegotiate(ctx, conn, next, req, refusal, turn) {
		return res, err
	}
	conn.stamp(req)
	return next(ctx, method, req)
}

// versionRefused is the refusal of a version (-32022), or nil.
func versionRefused(err error) *jsonrpc.Error {
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) && refusal.Code == sdk.CodeUnsupportedProtocolVersion {
		return refusal
	}
	return nil
}

// stamp makes a request of the version that is spoken, and returns its turn. The
// SDK stamps requests with the version that it agreed on.
func (c *connection) stamp(req sdk.Request) (turn int) {
	version, turn := c.spoken.get()
	params := req.GetParams()
	if version == "" || params == nil {
		return turn
	}
	meta := params.GetMeta()
	switch {
	case meta == nil:
	case eraOf(version) == Modern:
		meta[sdk.MetaKeyProtocolVersion] = version
	default:
		delete(meta, sdk.MetaKeyProtocolVersion)
		delete(meta, sdk.MetaKeyClientInfo)
		delete(meta, sdk.MetaKeyClientCapabilities)
		if len(meta) == 0 {
			params.SetMeta(nil)
		}
	}
	return turn
}

// renegotiate agrees on another version, unless that has happened since turn. It
// reports whether there is one.
func (s *session) renegotiate(ctx context.Context, conn *connection, next sdk.MethodHandler, req sdk.Request, refusal *jsonrpc.Error, turn int) bool {
	conn.spoken.negotiating.Lock()
	defer conn.spoken.negotiating.Unlock()
	if _, now := conn.spoken.get(); now != turn {
		return true
	}
	cs, ok := req.GetSession().(*sdk.ClientSession)
	if !ok || conn.era() == Legacy {
		return false
	}
	var data sdk.UnsupportedProtocolVersionData
	_ = json.Unmarshal(refusal.Data, &data) // where there is no list, discover has one
	version := firstModern
	if data.Supported != nil {
		version = newestMutual(data.Supported)
	}
	if eraOf(version) == Modern && version != "" {
		version = s.discoverAgain(ctx, next, cs, version)
	}
	switch {
	case version == "" || eraOf(version) == Legacy && s.server.Protocol == config.ProtocolModern:
		return false
	case eraOf(version) == Legacy:
		if version = s.initializeAgain(ctx, next, cs, version); version == "" {
			return false
		}
	}
	conn.link.speak(version)
	conn.spoken.set(version)
	s.mu.Lock()
	s.report.Protocol, s.report.Era = version, eraOf(version)
	s.mu.Unlock()
	s.log.Warn("MCP server refused the protocol version that was agreed on", "version", version)
	return true
}

// discoverAgain asks what the server speaks now, and returns the newest version
// that both do, or nothing.
func (s *session) discoverAgain(ctx context.Context, next sdk.MethodHandler, cs *sdk.ClientSession, version string) string {
	ctx, _ = withExchange(ctx)
	res, err := next(ctx, methodDiscover, &sdk.ClientRequest[*sdk.DiscoverParams]{Session: cs, Params: &sdk.DiscoverParams{
		Meta: sdk.Meta{
			sdk.MetaKeyProtocolVersion:    version,
			sdk.MetaKeyClientInfo:         s.identityOfClient(),
			sdk.MetaKeyClientCapabilities: struct{}{},
		},
	}})
	if err != nil {
		return ""
	}
	if found, ok := res.(*sdk.DiscoverResult); ok {
		return newestMutual(found.SupportedVersions)
	}
	return ""
}

// initializeAgain makes the handshake of the legacy era on the connection, and
// returns the version that the server chose, or nothing.
func (s *session) initializeAgain(ctx context.Context, next sdk.MethodHandler, cs *sdk.ClientSession, version string) string {
	ctx, _ = withExchange(ctx)
	res, err := next(ctx, methodInitialize, &sdk.ClientRequest[*sdk.InitializeParams]{Session: cs, Params: &sdk.InitializeParams{
		ProtocolVersion: version, ClientInfo: s.identityOfClient(), Capabilities: s.capabilities(),
	}})
	if err != nil {
		return ""
	}
	answer, ok := res.(*sdk.InitializeResult)
	if !ok || eraOf(answer.ProtocolVersion) != Legacy || newestMutual([]string{answer.ProtocolVersion}) == "" {
		return ""
	}
	if _, err := next(ctx, methodInitialized, &sdk.ClientRequest[*sdk.InitializedParams]{Session: cs, Params: &sdk.InitializedParams{}}); err != nil {
		return ""
	}
	return answer.ProtocolVersion
}

// newestMutual is the newest of the versions that are spoken here, or nothing.
func newestMutual(offered []string) string {
	for _, v := range sdk.SupportedProtocolVersions() {
		if slices.Contains(offered, v) {
			return v
		}
	}
	return ""
}
