package server

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"crewhost/mcp/wire"
)

// codeHeaderMismatch is the modern era's for headers that say something else than
// the message.
const codeHeaderMismatch = -32020

func mismatch(message string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: codeHeaderMismatch, message: message}
}

// A mirror is an argument of a tool that goes in a header too, so that what stands
// between client and server can route by it. Schemas say so by x-mcp-header.
type mirror struct {
	path   []string // of the argument
	header string
}

const (
	mirrorKeyword = "x-mcp-header"
	mirrorPrefix  = "Mcp-Param-"
	maxMirrors    = 64 // of one tool, and how deep they are looked for
)

// mirrors are those of a schema. What is no name of a header is none.
func mirrors(schema json.RawMessage) []mirror {
	if !bytes.Contains(schema, []byte(mirrorKeyword)) {
		return nil
	}
	return mirrorsIn(schema, nil, nil)
}

func mirrorsIn(schema json.RawMessage, path []string, found []mirror) []mirror {
	properties, ok := wire.Member(schema, "properties")
	if !ok || len(path) == maxMirrors {
		return found
	}
	for name, property := range wire.Members(properties) {
		at := append(slices.Clone(path), string(name))
		var header string
		if raw, ok := wire.Member(property, mirrorKeyword); ok && json.Unmarshal(raw, &header) == nil && paramHeader.MatchString(mirrorPrefix+header) && len(found) < maxMirrors {
			found = append(found, mirror{at, mirrorPrefix + header})
		}
		found = mirrorsIn(property, at, found)
	}
	return found
}

// checkParams holds the headers of a call against its arguments: who routed by the
// one and who runs the other must have seen the same.
func (s *Server) checkParams(header http.Header, tool string, params json.RawMessage) *refusal {
	shelf := s.offered()
	held, ok := shelf.find(tool)
	if !ok || len(held.mirrors) == 0 || shelf.isStandIn(tool) {
		return nil
	}
	arguments, _ := wire.Member(params, "arguments")
	for _, m := range held.mirrors {
		value := arguments
		for _, name := range m.path {
			value, _ = wire.Member(value, name)
		}
		given := header.Values(m.header)
		switch {
		case len(value) == 0 || string(value) == "null":
			if len(given) > 0 {
				return mismatch("there is a header " + m.header + ", and no argument for it")
			}
		case len(given) != 1:
			return mismatch("the argument that goes in the header " + m.header + " is not there once")
		default:
			text, ok := unwrap(given[0])
			if !ok {
				return mismatch("the header " + m.header + " is not encoded as base64, as it says")
			}
			if !mirrored(value, text) {
				return mismatch("the header " + m.header + " is not what the argument is")
			}
		}
	}
	return nil
}

// unwrap is the text of a header, which stands as base64 where it is no plain one.
func unwrap(value string) (text string, ok bool) {
	inner, begins := strings.CutPrefix(value, "=?base64?")
	inner, ends := strings.CutSuffix(inner, "?=")
	if !begins || !ends {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(decoded), err == nil
}

// mirrored reports whether a header's text is that of a value: a text, a boolean or
// an integer that every reader of JSON takes for the same.
func mirrored(value json.RawMessage, text string) bool {
	switch {
	case value[0] == '"':
		var s string
		return json.Unmarshal(value, &s) == nil && s == text
	case string(value) == "true" || string(value) == "false":
		return string(value) == text
	}
	number, errValue := strconv.ParseFloat(string(value), 64)
	said, errText := strconv.ParseFloat(text, 64)
	const safe = 1<<53 - 1
	return errValue == nil && errText == nil && number == said && number == float64(int64(number)) && -safe <= number && number <= safe
}
