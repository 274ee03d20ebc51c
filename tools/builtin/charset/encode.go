package charset

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// Encode turns text into the bytes of a file, with a byte order mark where the format
// has one. A character that the encoding does not have is an error that names it and
// its line.
func Encode(text string, f Format) ([]byte, error) {
	if f.Encoding == utf16 {
		f.Encoding = utf16LE
	}
	var mark string
	if f.Mark {
		mark = markOf(f.Encoding)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the text is not valid UTF-8")
	}
	if f.Encoding == UTF8 {
		return []byte(mark + text), nil
	}
	enc := table(f.Encoding)
	if enc == nil {
		return nil, fmt.Errorf("there is no encoding %q", f.Encoding)
	}
	data, n, err := transform.Bytes(enc.NewEncoder(), []byte(text))
	if err != nil {
		r, _ := utf8.DecodeRuneInString(text[n:])
		return nil, fmt.Errorf("the character %q (U+%04X) on line %d can't be written in %s; take it out, or name another encoding, such as utf-8",
			r, r, 1+strings.Count(text[:n], "\n"), f.Encoding)
	}
	return append([]byte(mark), data...), nil
}
