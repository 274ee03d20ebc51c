package mcp

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// decodeMessage reads one JSON-RPC message as the SDK's own decoder does, which
// sets aside tens of kilobytes for each, however small: nine tenths of all that a
// call allocates. What is plain is read here. Anything else, and anything wrong, is
// left to the SDK, so that both agree on what a message is.
func decodeMessage(data []byte) (jsonrpc.Message, error) {
	if msg := plainMessage(data); msg != nil {
		return msg, nil
	}
	return jsonrpc.DecodeMessage(data)
}

// plainDepth is how deep a message that is read here may nest.
const plainDepth = 500

// plainMessage returns the message in data, or nil where it is not a plain one.
func plainMessage(data []byte) jsonrpc.Message {
	if nests(data, plainDepth) {
		return nil
	}
	var members map[string]json.RawMessage // a struct would match names in any case
	if json.Unmarshal(data, &members) != nil {
		return nil
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return nil
	}
	for _, name := range []string{"method", "params", "result"} {
		if string(members[name]) == "null" {
			return nil
		}
	}
	var rawID any
	if given, ok := members["id"]; ok && json.Unmarshal(given, &rawID) != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(rawID)
	if err != nil {
		return nil
	}
	if name, ok := members["method"]; ok {
		req := &jsonrpc.Request{ID: id, Params: members["params"]}
		if json.Unmarshal(name, &req.Method) != nil {
			return nil
		}
		return req
	}
	if !id.IsValid() {
		return nil
	}
	resp := &jsonrpc.Response{ID: id, Result: members["result"]}
	if raw, ok := members["error"]; ok && string(raw) != "null" {
		var refusal jsonrpc.Error
		if json.Unmarshal(raw, &refusal) != nil {
			return nil
		}
		resp.Error = &refusal
	}
	return resp
}

// nests reports whether a text of JSON nests deeper than limit.
func nests(data []byte, limit int) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= limit {
		return false
	}
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > limit {
				return true
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return false
}
