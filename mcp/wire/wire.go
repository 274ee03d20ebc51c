// Package wire is what both ends of MCP share of JSON-RPC on a stream: reading a
// message without the SDK's decoder, knowing a line that is too long to be held,
// and looking into JSON without decoding it.
//
//	msg, err := wire.Decode(line)
//	meta, ok := wire.Member(params, "_meta")
package wire

// Nesting is how deep a JSON text is nested.
func Nesting(text []byte) int {
	deepest, now := 0, 0
	quoted, escaped := false, false
	for _, b := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = b == '\\'
			quoted = b != '"'
		case b == '"':
			quoted = true
		case b == '{' || b == '[':
			now++
			deepest = max(deepest, now)
		case b == '}' || b == ']':
			now--
		}
	}
	return deepest
}
