package web

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	bom "golang.org/x/text/encoding/unicode"
)

const (
	defaultLength = 20_000 // characters of a body or a page that a result has
	maxLength     = 30_000 // with what stands around it, no more reaches a model
)

// text is the body as text, by the charset that the server names, by a byte order mark,
// or else by what the bytes look like. It is not ok where they are no text.
func (a answer) text() (text string, ok bool) {
	text, ok = a.decoded()
	return a.mask(text), ok
}

func (a answer) decoded() (text string, ok bool) {
	_, params, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	if a.header.Get("Content-Encoding") != "" {
		return "", false // packed in a way that was not asked for
	}
	if label := params["charset"]; label != "" {
		if name := strings.ToLower(strings.ReplaceAll(label, "_", "-")); strings.HasPrefix(name, "utf-32") {
			data, err := utf32.UTF32(utf32.LittleEndian, utf32.UseBOM).NewDecoder().Bytes(a.body)
			return string(data), err == nil
		}
		if enc, name := charset.Lookup(label); enc != nil && name != "utf-8" && name != "replacement" {
			if data, _, err := transform.Bytes(bom.BOMOverride(enc.NewDecoder()), a.body); err == nil {
				return string(data), true
			}
		}
	}
	data := a.body
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		data = data[3:]
	case bytes.HasPrefix(data, []byte("\xff\xfe")), bytes.HasPrefix(data, []byte("\xfe\xff")):
		if data, err := bom.UTF16(bom.LittleEndian, bom.UseBOM).NewDecoder().Bytes(data); err == nil {
			return string(data), true
		}
	}
	if a.more { // the last character may be cut
		for n := 1; n < utf8.UTFMax && n < len(data); n++ {
			if start := data[len(data)-n]; utf8.RuneStart(start) {
				if !utf8.FullRune(data[len(data)-n:]) {
					data = data[:len(data)-n]
				}
				break
			}
		}
	}
	switch {
	case bytes.IndexByte(data, 0) >= 0:
		return "", false
	case utf8.Valid(data):
		return string(data), true
	case !textual(a.kind(), data):
		return "", false
	}
	enc, _, _ := charset.DetermineEncoding(data, a.header.Get("Content-Type"))
	decoded, err := enc.NewDecoder().Bytes(data)
	return string(decoded), err == nil
}

// textual reports whether bytes are text by their media type.
func textual(kind string, data []byte) bool {
	if kind == "" {
		kind = http.DetectContentType(data)
	}
	_, sub, _ := strings.Cut(kind, "/")
	switch sub {
	case "json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "csv", "graphql", "sql", "x-ndjson", "x-www-form-urlencoded":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(sub, "+json") || strings.HasSuffix(sub, "+xml")
}

// clean takes out of a stranger's text what nobody would see in it, and so could carry
// words to a model that a person never reads, or commands to a terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t', r == '\u200c', r == '\u200d', r == '\ufe0e', r == '\ufe0f':
			return r // the last four shape letters and pictures
		case r == '\u2028', r == '\u2029':
			return '\n'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

// line is a stranger's text on one line, of at most limit characters.
func line(s string, limit int) string {
	const far = 8 // bytes that a character may take, and spaces
	if len(s) > far*limit+1024 {
		s = s[:far*limit+1024]
	}
	return head(strings.Join(strings.Fields(clean(s)), " "), limit)
}

// head is the beginning of a text, of at most limit characters.
func head(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

// part is the piece of a text from offset on, in characters, and what to say of the rest.
func part(text string, offset, length int, more string) (piece, note string) {
	total := utf8.RuneCountInString(text)
	if offset == 0 && total <= length {
		return text, ""
	}
	if offset >= total {
		return "", fmt.Sprintf("[There are %d characters: none from %d on.]", total, offset)
	}
	start := skip(text, offset)
	end := start + skip(text[start:], length)
	shown := min(length, total-offset)
	note = fmt.Sprintf("[Characters %d to %d of %d.", offset, offset+shown, total)
	if offset+shown < total {
		note += " " + more
	}
	return text[start:end], note + "]"
}

// skip is where the first n characters of s end.
func skip(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}
