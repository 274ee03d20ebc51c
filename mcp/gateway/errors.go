package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"crewhost/mcp/admission"
	"crewhost/mcp/oauth"
)

// Why a server of an agent is not answered, in the words that the agents' side gets.
var (
	errAway     = errors.New("it redirects to another origin, where no header or message is sent")
	errChanged  = errors.New("it redirects in a way that cannot be followed with a message")
	errForEver  = errors.New("it redirects for ever")
	errMessages = errors.New("it wants messages at another origin, where no header or message is sent")
)

// An Error says why a request of an agent was not answered, and not where it went. The
// cause is for errors.Is and errors.As, and not to be shown.
type Error struct {
	text string
	err  error
}

// Error returns what may be shown.
func (e *Error) Error() string { return e.text }

// Unwrap returns the cause, whose text may tell of URLs and addresses.
func (e *Error) Unwrap() error { return e.err }

// veiled is an error in words that don't say where a server is.
func veiled(err error) error {
	if errors.As(err, new(*Error)) {
		return err
	}
	return &Error{text: plain(err), err: err}
}

func plain(err error) string {
	for _, own := range []error{errAway, errChanged, errForEver, errMessages, ErrElsewhere, ErrNotAllowed} {
		if errors.Is(err, own) {
			return own.Error()
		}
	}
	var (
		refused *admission.Error
		dns     *net.DNSError
		op      *net.OpError
		cert    *tls.CertificateVerificationError
		timeout net.Error
	)
	switch {
	case errors.As(err, &refused):
		return "the gateway does not admit it: its address is " + refused.Reason + " (an operator may allow it by mcp.gateway.allow)"
	case errors.Is(err, context.Canceled):
		return context.Canceled.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return context.DeadlineExceeded.Error()
	case oauth.Denied(err):
		return `the credential that the vault has for it is of no use any more: "crewhost vault check" says which`
	case errors.As(err, &cert):
		return "its certificate is not valid"
	case errors.As(err, &dns):
		return "its host was not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections"
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return "it was not reached in time"
	case errors.As(err, &op) && op.Op == "dial":
		return "it was not reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &op):
		return "the connection to it broke"
	}
	return "the request to it failed"
}
