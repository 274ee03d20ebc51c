package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// An exchange is what went over the wire for one request, beyond what the SDK
// hands on: the result as it was written, digit for digit and with members that
// the SDK has no field for, and the server's own refusal, told apart from errors of
// the SDK's making. Who wants to know puts one into the context of the request;
// the transports fill it in.
type exchange struct {
	// sent says that something of the request went out, so that it may have
	// had an effect.
	sent atomic.Bool

	// done, if set before the request, is closed with the first answer, or when
	// it is known that there will be none.
	done chan struct{}

	mu      sync.Mutex
	id      jsonrpc.ID // of the request, once it is sent
	result  json.RawMessage
	refusal *jsonrpc.Error
	fault   *fault
}

type exchangeKey struct{}

// withExchange returns a context for one request, and what will be known of it.
func withExchange(ctx context.Context) (context.Context, *exchange) {
	ex := new(exchange)
	return context.WithValue(ctx, exchangeKey{}, ex), ex
}

// exchangeOf returns the exchange of a request, or nil.
func exchangeOf(ctx context.Context) *exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*exchange)
	return ex
}

// asks notes the request as it is sent. A nil exchange notes nothing.
func (ex *exchange) asks(id jsonrpc.ID) {
	if ex == nil {
		return
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.id = id
}

// asked is the id of the request, or empty where none was sent.
func (ex *exchange) asked() string {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	if !ex.id.IsValid() {
		return ""
	}
	return fmt.Sprint(ex.id.Raw())
}

// answered notes an answer. A nil exchange notes nothing.
func (ex *exchange) answered(resp *jsonrpc.Response) {
	if ex == nil {
		return
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.settle()
	ex.result, ex.refusal, ex.fault = resp.Result, nil, nil
	if resp.Error != nil {
		ex.result = nil
		if !errors.As(resp.Error, &ex.fault) {
			errors.As(resp.Error, &ex.refusal)
		}
	}
}

// failed notes that no answer could be had, or none that can be used.
func (ex *exchange) failed(f *fault) {
	if ex == nil {
		return
	}
	ex.mu.Lock()
	defer ex.mu.Unlock()
	ex.settle()
	ex.result, ex.refusal, ex.fault = nil, nil, f
}

// settle closes done. The caller holds mu.
func (ex *exchange) settle() {
	if ex.done == nil {
		return
	}
	select {
	case <-ex.done:
	default:
		close(ex.done)
	}
}

// outcome is the result as it was written, or why there is none: the server's
// own refusal before err, which the SDK made of it.
func (ex *exchange) outcome(err error) (json.RawMessage, error) {
	result, refusal, _ := ex.get()
	if refusal != nil {
		return nil, refusal
	}
	return result, err
}

func (ex *exchange) get() (json.RawMessage, *jsonrpc.Error, *fault) {
	ex.mu.Lock()
	defer ex.mu.Unlock()
	return ex.result, ex.refusal, ex.fault
}

// Methods that the transports and the session look at.
const (
	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"
	methodInitialized = "notifications/initialized"
	methodListTools   = "tools/list"
	methodCallTool    = "tools/call"
	methodCancelled   = "notifications/cancelled"
	methodChanged     = "notifications/tools/list_changed"
	methodNewPrompts  = "notifications/prompts/list_changed"
	methodNewSources  = "notifications/resources/list_changed"
	methodListen      = "subscriptions/listen"
	methodListening   = "notifications/subscriptions/acknowledged"
)

// reduce is what of a result the SDK gets to see. Results that this package reads
// itself, from the exchange, are cut to what the SDK acts on: otherwise one
// block of a type that it does not know, or one tool with a number for a
// description, would fail the whole answer.
func reduce(method string, result json.RawMessage) json.RawMessage {
	var seen any
	switch method {
	case methodListTools:
		// The SDK keeps the schemas, for headers that are made of arguments.
		// Cursors and times to live are left out: pages are asked for here.
		type sdkTool struct {
			Name        string          `json:"name"`
			InputSchema json.RawMessage `json:"inputSchema,omitempty"`
		}
		var page struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if json.Unmarshal(result, &page) != nil {
			return result
		}
		list := struct {
			Tools []sdkTool `json:"tools"`
		}{make([]sdkTool, 0, len(page.Tools))}
		for _, raw := range page.Tools {
			var t sdkTool
			if json.Unmarshal(raw, &t) == nil && t.Name != "" {
				list.Tools = append(list.Tools, t)
			}
		}
		seen = list
	case methodCallTool:
		// Whatever it is, it is read here.
		if !isObject(bytes.TrimSpace(result)) {
			return result
		}
		return json.RawMessage(`{"content":[]}`)
	case methodListResources, methodListTemplates, methodReadResource, methodListPrompts, methodGetPrompt, methodComplete:
		seen = struct{}{}
	default:
		return result
	}
	data, err := json.Marshal(seen)
	if err != nil {
		return result
	}
	return data
}
