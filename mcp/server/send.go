package server

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A parcel is a notification that the SDK has no method for.
type parcel struct {
	method string
	params mcp.Params
}

type parcelKey struct{}

// An acknowledgement waits for what the SDK acknowledges of a subscription.
type acknowledgement struct {
	agreed mcp.NotificationSubscriptions
	id     any // of the request, as the SDK writes it
}

type acknowledgementKey struct{}

// notify sends a notification to the session of a request, on the request's own
// stream where ctx is that of the request. It goes out under the SDK's method for
// progress, and [Server.send] puts what is meant in its place.
func notify(ctx context.Context, to *mcp.ServerSession, method string, params mcp.Params) error {
	return to.NotifyProgress(context.WithValue(ctx, parcelKey{}, parcel{method, params}), nil)
}

// send stands before everything that the SDK sends to a client.
func (s *Server) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		session, ok := req.GetSession().(*mcp.ServerSession)
		if !ok {
			return next(ctx, method, req)
		}
		if p, ok := ctx.Value(parcelKey{}).(parcel); ok && method == progressMethod {
			return next(ctx, p.method, &mcp.ServerRequest[mcp.Params]{Session: session, Params: p.params})
		}
		if ack, ok := ctx.Value(acknowledgementKey{}).(*acknowledgement); ok {
			if p, ok := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams); ok {
				ack.id = p.Meta[mcp.MetaKeySubscriptionID]
				if home, ok := ctx.Value(homeKey{}).(*home); ok && home.id != nil {
					ack.id = home.id(ack.id)
				}
				p.Meta[mcp.MetaKeySubscriptionID], p.Notifications = ack.id, ack.agreed
			}
		}
		return next(ctx, method, req)
	}
}
