package journal

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Mask returns JSON with every text in it masked, names of members included, and
// nothing else changed. The texts are masked as they are read, so that how a secret is
// escaped does not hide it. What is no JSON comes back as a JSON text, masked.
func Mask(raw json.RawMessage, mask func(string) string) json.RawMessage {
	if mask == nil || len(raw) == 0 {
		return raw
	}
	var out []byte // nil: nothing was changed so far
	done := 0      // of raw, what is in out
	for i := 0; i < len(raw); {
		if raw[i] != '"' {
			i++
			continue
		}
		end := closing(raw, i+1)
		if end < 0 {
			text, _ := json.Marshal(mask(string(raw))) // texts encode
			return text
		}
		literal := raw[i : end+1]
		if masked, changed := maskText(literal, mask); changed {
			out = append(append(out, raw[done:i]...), masked...)
			done = end + 1
		}
		i = end + 1
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// closing finds the quote that ends a text which begins at i.
func closing(raw []byte, i int) int {
	for i < len(raw) {
		n := bytes.IndexAny(raw[i:], `"\`)
		switch {
		case n < 0:
			return -1
		case raw[i+n] == '"':
			return i + n
		}
		i += n + 2
	}
	return -1
}

func maskText(literal []byte, mask func(string) string) ([]byte, bool) {
	text := string(literal[1 : len(literal)-1])
	if strings.IndexByte(text, '\\') >= 0 {
		if json.Unmarshal(literal, &text) != nil {
			text = string(literal[1 : len(literal)-1])
		}
	}
	masked := mask(text)
	if masked == text {
		return nil, false
	}
	out, err := json.Marshal(masked)
	return out, err == nil
}
