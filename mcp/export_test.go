package mcp

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// InMemory has every server of a startup spoken to over a transport of the SDK's
// own within this process.
func (o Options) InMemory(connect func() sdk.Transport) Options {
	o.dial = func() link { return &memory{Transport: connect()} }
	return o
}

// memory is a link that does with messages what those of processes and of HTTP do,
// and nothing else.
type memory struct {
	sdk.Transport
	sdk.Connection
	calls calls
}

func (m *memory) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := m.Transport.Connect(ctx)
	m.Connection = c
	return m, err
}

func (m *memory) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := m.Connection.Read(ctx)
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		m.calls.settle(msg)
	case *jsonrpc.Request:
		reduceRequest(msg)
	}
	return msg, err
}

func (m *memory) Write(ctx context.Context, msg jsonrpc.Message) error {
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		m.calls.add(ctx, req)
	}
	return m.Connection.Write(ctx, msg)
}

func (m *memory) fault() error { return nil }
func (m *memory) abandon()     { _ = m.Close() }
func (m *memory) speak(string) {}
func (m *memory) end() error   { return m.Close() }
