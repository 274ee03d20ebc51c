package wire

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Member returns the value of a member of a JSON object, or false where it has
// none of that name. Of several it is the last, as for every decoder. The text
// must be valid JSON; of anything else the answer means nothing.
func Member(object []byte, name string) (value json.RawMessage, ok bool) {
	for key, v := range Members(object) {
		if string(key) == name {
			value, ok = v, true
		}
	}
	return value, ok
}

// Members goes through the members of a JSON object, in their order, without
// decoding their values, which are slices of the text. Names are compared byte by
// byte, as MCP wants it, and not in any case, as encoding/json does. Of anything
// but an object it yields nothing.
func Members(object []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func(name []byte, value json.RawMessage) bool) {
		i := blank(object, 0)
		if i == len(object) || object[i] != '{' {
			return
		}
		for i++; ; i++ {
			i = blank(object, i)
			if i == len(object) || object[i] != '"' {
				return
			}
			end := skip(object, i)
			name := plain(object[i:end])
			i = blank(object, end)
			if i == len(object) || object[i] != ':' {
				return
			}
			i = blank(object, i+1)
			end = skip(object, i)
			if !yield(name, json.RawMessage(object[i:end])) {
				return
			}
			i = blank(object, end)
			if i == len(object) || object[i] != ',' {
				return
			}
		}
	}
}

// blank is where the next byte that is no white space is.
func blank(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') {
		i++
	}
	return i
}

// skip is where the value that begins at i ends.
func skip(text []byte, i int) int {
	depth := 0
	for i < len(text) {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
			continue
		default:
			if i++; depth == 0 && i < len(text) && bytes.IndexByte([]byte(",:}] \t\r\n"), text[i]) >= 0 {
				return i
			}
			continue
		}
		if i++; depth == 0 {
			return min(i, len(text))
		}
	}
	return len(text)
}

// plain is the text of a name, which stands between quotes.
func plain(quoted []byte) []byte {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var s string
		if json.Unmarshal(quoted, &s) == nil {
			return []byte(s)
		}
	}
	return bytes.Trim(quoted, `"`)
}
