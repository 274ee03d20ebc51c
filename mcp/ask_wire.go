package mcp

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
