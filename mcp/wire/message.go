package wire

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Decode reads one JSON-RPC message as the SDK's own decoder does, which
// sets aside tens of kilobytes for each, however small: nine tenths of all that a
// call allocates. What is plain is read here. Anything else, and anything wrong, is
// left to the SDK, so that both agree on what a message is.
func Decode(data []byte) (jsonrpc.Message, error) {
	if msg := plainMessage(data); msg != nil {
		return msg, nil
	}
	return jsonrpc.DecodeMessage(data)
}

// plainDepth is how deep a message that is read here may nest.
const plainDepth = 500

// plainMessage returns the message in data, or nil where it is not a plain one.
func plainMessage(data []byte) jsonrpc.Message {
	if Nesting(data) > plainDepth {
		return nil
	}
	if msg := Usual(data); msg != nil {
		return msg
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

// Usual returns the message in data where its members come in the order in
// which the SDK writes them, jsonrpc, id, and then result or method and params, with
// nothing between them. That takes a look at each byte and no more.
func Usual(data []byte) jsonrpc.Message {
	rest, ok := bytes.CutPrefix(bytes.TrimSpace(data), []byte(`{"jsonrpc":"2.0","id":`))
	if !ok || !bytes.HasSuffix(rest, []byte("}")) {
		return nil
	}
	rest = rest[:len(rest)-1]
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	if digits == 0 || digits > 15 || rest[0] == '0' && digits > 1 { // beyond that an id is not what it seems
		return nil
	}
	n, err := strconv.ParseInt(string(rest[:digits]), 10, 64)
	if err != nil {
		return nil
	}
	id, err := jsonrpc.MakeID(float64(n))
	if err != nil {
		return nil
	}
	rest = rest[digits:]
	if result, ok := bytes.CutPrefix(rest, []byte(`,"result":`)); ok {
		if !oneObject(result) {
			return nil
		}
		return &jsonrpc.Response{ID: id, Result: bytes.Clone(result)}
	}
	rest, ok = bytes.CutPrefix(rest, []byte(`,"method":"`))
	name, params, both := bytes.Cut(rest, []byte(`","params":`))
	odd := func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }
	if !ok || !both || bytes.ContainsFunc(name, odd) || !oneObject(params) {
		return nil
	}
	return &jsonrpc.Request{ID: id, Method: string(name), Params: bytes.Clone(params)}
}

// oneObject reports whether a text is one JSON object and nothing else.
func oneObject(text []byte) bool {
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}
