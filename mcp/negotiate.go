package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
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

// An attempt is one way to agree on a version with a server.
type attempt struct {
	version string        // asked for with initialize, without a probe; empty: probe first
	probe   time.Duration // limit of the probe
}

// outcome is what an attempt led to.
type outcome struct {
	client  *sdk.ClientSession // nil where it failed
	err     error
	ex      *exchange // of the last request
	silent  bool      // whether the probe was passed over in silence
	refusal *jsonrpc.Error
}

// negotiate starts the server and agrees with it on a version (O5). Most
// servers need one attempt. There is one more where the server dies on the probe
// (it is started again and not probed), where it refuses a version and lists
// others (K13), and where it was too slow to answer the probe but knows nothing
// else. Settled is called when the server has begun to answer, or the
// probe's limit has passed.
func (s *session) negotiate(ctx context.Context, settled func()) error {
	try := attempt{probe: s.probeTimeout}
	var respawned, listed, patient bool
	for {
		s.stage("start")
		link, err := s.open(ctx)
		if err != nil {
			return s.startFailure(ctx, err)
		}
		s.stage("negotiate")
		out := s.attempt(ctx, link, try, settled)
		if out.client != nil {
			s.link, s.client = link, out.client
			return nil
		}
		dead := link.fault()
		failure := s.failure(ctx, link, out.ex, out.err)
		if ctx.Err() != nil {
			link.abandon()
		}
		if err := link.end(); err != nil {
			s.warn(err.Error())
		}
		var f *fault
		version := listedVersion(out.refusal, try.version)
		switch {
		case ctx.Err() != nil:
			return failure
		case errors.As(dead, &f) && f.code == tools.CodeTransportClosed && try.version == "" && !respawned:
			respawned, try.version = true, newestLegacy
		case version != "" && !listed:
			listed, try.version = true, version
		case out.silent && out.refusal != nil && !patient:
			patient, try.probe = true, s.server.ConnectTimeout
		default:
			return failure
		}
		s.log.Debug("connecting again", "version", try.version, "after", failure)
	}
}

// attempt makes one attempt over a link.
func (s *session) attempt(ctx context.Context, link link, try attempt, settled func()) outcome {
	ctx, ex := withExchange(ctx)
	ex.connecting = true
	out := outcome{ex: ex}
	client := sdk.NewClient(&sdk.Implementation{Name: s.opts.Name, Version: s.opts.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
	})
	client.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
			switch method {
			case methodDiscover:
				if cs, ok := req.GetSession().(*sdk.ClientSession); ok && cs.InitializeResult() != nil {
					break // a ping
				}
				probe, cancel := context.WithTimeout(ctx, try.probe)
				defer cancel()
				res, err := next(probe, method, req)
				out.silent = err != nil && probe.Err() != nil
				if link.fault() == nil {
					settled()
				}
				return res, err
			case methodInitialize:
				defer settled()
			}
			return next(ctx, method, req)
		}
	})
	cs, err := client.Connect(ctx, link, &sdk.ClientSessionOptions{ProtocolVersion: try.version})
	if err != nil {
		_, out.refusal, _ = ex.get()
		out.err = err
		return out
	}
	out.client = cs
	return out
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
func (s *session) open(ctx context.Context) (link, error) {
	if s.server.Transport == config.TransportHTTP {
		return newEndpoint(s.server, s.shutdownTimeout)
	}
	return startPipe(ctx, s.server, s.shutdownTimeout, s.guard, s.masks, s.warn, func(line string) {
		s.log.Debug("stderr", "line", s.masks.line(line, maxDetail))
	})
}

// identity notes what the server said of itself (W5).
func (s *session) identity() {
	res := s.client.InitializeResult()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &s.report
	r.Protocol = oneLine(res.ProtocolVersion, 64)
	r.Era = Legacy
	if r.Protocol >= firstModern {
		r.Era = Modern
	}
	r.Instructions = strings.ToValidUTF8(cut(res.Instructions, maxInstructions), "�")
	if res.ServerInfo != nil {
		r.ServerName = oneLine(res.ServerInfo.Name, maxName)
		r.ServerVersion = oneLine(res.ServerInfo.Version, maxName)
	}
}

// maxInstructions is how much of a server's instructions is kept, in bytes.
const maxInstructions = 16 << 10
