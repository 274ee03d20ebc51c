package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
)

// maxDepth is how deep a message may nest (K83).
const maxDepth = 500

// A fault is what is wrong with a message as a whole, and the id that its sender
// can know the answer by; none is null.
type fault struct {
	id  json.RawMessage
	err *jsonrpc.Error
}

// openEnvelope reads one message, or says what is wrong with it (I3, K81). It
// returns neither for what is to be passed over: an answer to nothing.
func openEnvelope(data []byte) (jsonrpc.Message, *fault) {
	data = bytes.TrimSpace(data)
	if !utf8.Valid(data) {
		return nil, &fault{err: rpcError(jsonrpc.CodeParseError, "the message is not UTF-8")}
	}
	if wire.Nesting(data) > maxDepth {
		var o wire.Outline
		o.Add(data)
		return nil, &fault{id: usable(o.ID), err: rpcError(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message nests deeper than %d levels", maxDepth))}
	}
	if msg := wire.Usual(data); msg != nil {
		return msg, nil
	}
	switch {
	case !json.Valid(data):
		return nil, &fault{err: rpcError(jsonrpc.CodeParseError, "the message is not JSON")}
	case data[0] == '[':
		return nil, &fault{err: rpcError(jsonrpc.CodeInvalidRequest, "batches are not served: send one message at a time")}
	case data[0] != '{':
		return nil, &fault{err: rpcError(jsonrpc.CodeInvalidRequest, "the message is not a JSON object")}
	}
	return openObject(data)
}

func openObject(data []byte) (jsonrpc.Message, *fault) {
	members := map[string]json.RawMessage{}
	for name, value := range wire.Members(data) {
		switch string(name) {
		case "jsonrpc", "id", "method", "params", "result", "error":
			members[string(name)] = value
		}
	}
	id := usable(members["id"])
	wrong := func(format string, args ...any) (jsonrpc.Message, *fault) {
		return nil, &fault{id: id, err: rpcError(jsonrpc.CodeInvalidRequest, fmt.Sprintf(format, args...))}
	}
	name, isRequest := members["method"]
	result, isResult := members["result"]
	refusal, isError := members["error"]
	var version string
	if json.Unmarshal(members["jsonrpc"], &version) != nil || version != "2.0" {
		return wrong(`"jsonrpc" must be "2.0"`)
	}
	if !isRequest {
		switch {
		case !isResult && !isError:
			return wrong(`there is no "method"`)
		case id == nil:
			return nil, nil
		}
		resp := &jsonrpc.Response{ID: takeID(id), Result: bytes.Clone(result)}
		if isError && string(refusal) != "null" {
			e := new(jsonrpc.Error)
			if json.Unmarshal(refusal, e) != nil {
				e = rpcError(jsonrpc.CodeInternalError, "the error can't be read")
			}
			resp.Error, resp.Result = e, nil
		}
		return resp, nil
	}
	req := new(jsonrpc.Request)
	if string(name) == "null" || json.Unmarshal(name, &req.Method) != nil {
		return wrong(`"method" is not a string`)
	}
	if _, given := members["id"]; given {
		if id == nil {
			return wrong(`"id" is neither a string nor a number`)
		}
		req.ID = takeID(id)
	}
	if params := members["params"]; params != nil && string(params) != "null" {
		if params[0] != '{' {
			if !req.IsCall() {
				return nil, nil
			}
			return nil, &fault{id: id, err: rpcError(jsonrpc.CodeInvalidParams, `"params" is not an object`)}
		}
		req.Params = bytes.Clone(params)
	}
	return req, nil
}

// usable is an id that a request may have, or nil.
func usable(id []byte) json.RawMessage {
	if len(id) == 0 || !json.Valid(id) {
		return nil
	}
	if c := id[0]; c == '"' || c == '-' || c >= '0' && c <= '9' {
		return bytes.Clone(id)
	}
	return nil
}

// exact begins an id that the SDK could not give back as it came: it holds numbers
// as integers, after they were floating-point ones. No client can send it as such.
const exact = "\x00"

// takeID is a client's id as the SDK is given it (O8).
func takeID(raw json.RawMessage) jsonrpc.ID {
	var v any
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		v = string(raw[1 : len(raw)-1])
	} else if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n > -1<<53 && n < 1<<53 && strconv.FormatInt(n, 10) == string(raw) {
		v = float64(n)
	} else {
		v = exact + string(raw)
	}
	id, err := jsonrpc.MakeID(v)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

// giveID is an id as its client wrote it, for one as the SDK has it.
func giveID(id any) json.RawMessage {
	switch id := id.(type) {
	case int64:
		return strconv.AppendInt(nil, id, 10)
	case string:
		if raw, ok := bytes.CutPrefix([]byte(id), []byte(exact)); ok {
			return raw
		}
		return encode(id)
	}
	return json.RawMessage("null")
}

// versionKey is where a modern request says which revision it is of.
const versionKey = "io.modelcontextprotocol/protocolVersion"

// checkMeta looks at what a request says of itself: whether it is of the modern
// era, and what is wrong with that. It stands before everything else, whatever the
// method is (O7, I9).
func (s *Server) checkMeta(params json.RawMessage) (modern bool, err *jsonrpc.Error) {
	meta, ok := wire.Member(params, "_meta")
	if !ok {
		return false, nil
	}
	if len(meta) > s.budgets.MetadataBytes {
		return false, rpcError(CodeMetadataTooLarge, fmt.Sprintf("_meta has %d bytes, and at most %d are read", len(meta), s.budgets.MetadataBytes))
	}
	raw, ok := wire.Member(meta, versionKey)
	if !ok {
		return false, nil
	}
	var version string
	if json.Unmarshal(raw, &version) != nil || string(raw) == "null" {
		return false, rpcError(jsonrpc.CodeInvalidParams, fmt.Sprintf("the value of %q in _meta is not a string", versionKey))
	}
	for _, v := range supported() {
		if v == version {
			return v >= modernVersion, nil
		}
	}
	e := rpcError(codeUnsupportedVersion, "unsupported protocol version")
	e.Data = encode(struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{supported(), version})
	return false, e
}
