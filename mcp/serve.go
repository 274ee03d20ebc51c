package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/tools"
)

// wholeParams is the member of a request's _meta that holds its parameters as
// they came, as text.
const wholeParams = "crewhost/params"

// reduceRequest is what of a server's own request the SDK gets to see: that there
// is one. This package reads the parameters itself, in the order in which they
// were written and digit for digit; the SDK would refuse what it does not know.
func reduceRequest(req *jsonrpc.Request) {
	switch req.Method {
	case methodElicit, methodSample, methodRoots:
	default:
		return
	}
	whole, err := json.Marshal(string(req.Params))
	if err != nil {
		return
	}
	req.Params = json.RawMessage(`{"_meta":{"` + wholeParams + `":` + string(whole) + `}}`)
}

// serve answers what a server of the legacy era asks. It stands before the SDK's
// own handlers.
func (s *session) serve(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case methodElicit, methodSample, methodRoots:
		default:
			return next(ctx, method, req)
		}
		var params string
		if p := req.GetParams(); p != nil {
			params, _ = p.GetMeta()[wholeParams].(string)
		}
		if method == methodRoots {
			roots, err := s.roots()
			return roots, refusal(err)
		}
		ops := s.asking.current()
		if len(ops) == 0 {
			s.warn("asked for input outside of any call, which is declined: " + method)
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "there is no call that this could be for"}
		}
		if !s.admit(ops) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("more than %d questions in one call", maxRounds)}
		}
		ctx, cancel := context.WithCancel(ctx)
		var watched sync.WaitGroup
		defer watched.Wait()
		defer cancel()
		watched.Go(func() { // nobody is asked for what is over
			for _, op := range ops {
				select {
				case <-op.over:
				case <-ctx.Done():
					return
				}
			}
			cancel()
		})
		asked := ctx       //nolint:contextcheck // it ends with ctx
		if len(ops) == 1 { // else it is for nobody that is known
			asked = behalf{ctx, ops[0].value}
		}
		response, err := s.respond(asked, ops, method, json.RawMessage(params))
		var u *unanswered
		if errors.As(err, &u) {
			if method == methodElicit {
				note(ops, u.text)
				return &sdk.ElicitResult{Action: string(Decline)}, nil
			}
			s.warn(u.text)
		}
		if err != nil {
			return nil, refusal(err)
		}
		result, _ := response.(sdk.Result)
		return result, nil
	}
}

// refusal is err as an answer to the server, which learns nothing of the host.
func refusal(err error) error {
	if err == nil {
		return nil
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "declined"}
}

// admit counts a question against the operations that it may belong to, and
// reports whether it may be asked.
func (s *session) admit(ops []*operation) bool {
	admitted := false
	for _, op := range ops {
		op.mu.Lock()
		if op.asked++; op.asked <= maxRounds {
			admitted = true
		}
		op.mu.Unlock()
	}
	return admitted
}

// note keeps what was asked in vain for the results of the operations.
func note(ops []*operation, text string) {
	for _, op := range ops {
		op.mu.Lock()
		op.notes = append(op.notes, text)
		op.sole = op.sole || len(ops) == 1
		op.mu.Unlock()
	}
}

// noted is a result with what was asked in vain while it was made. Where there
// is no doubt whose question that was, it is a failure (O19): what the server
// made of no answer is not what was wanted.
func (op *operation) noted(res tools.Result) tools.Result {
	op.mu.Lock()
	defer op.mu.Unlock()
	if len(op.notes) == 0 {
		return res
	}
	content := make([]tools.Content, 0, len(op.notes)+len(res.Content))
	for _, text := range op.notes {
		content = append(content, tools.Content{Kind: tools.KindText, Text: text})
	}
	res.Content = append(content, res.Content...)
	res.IsError = res.IsError || op.sole
	return res
}
