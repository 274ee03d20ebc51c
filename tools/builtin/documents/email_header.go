package documents

import (
	"bufio"
	"errors"
	"io"
	"mime"
	"net/textproto"
	"regexp"
	"strings"
	"unicode"

	"crewhost/tools/builtin/charset"
)

const maxMailHeader = 512 << 10 // bytes of the header of a message

// mailHeader is the header of a message, in its order.
type mailHeader []headerField

type headerField struct{ name, value string }

// readMailHeader reads up to the empty line. Lines that are no fields are passed over:
// programs of many years have left them.
func readMailHeader(r *bufio.Reader) (mailHeader, error) {
	var h mailHeader
	size := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return h, err
		}
		if size += len(line); size > maxMailHeader {
			return h, errors.New("its header does not end")
		}
		text := strings.TrimRight(line, "\r\n")
		name, value, ok := strings.Cut(text, ":")
		switch {
		case text == "":
			return h, nil
		case (text[0] == ' ' || text[0] == '\t') && len(h) > 0:
			h[len(h)-1].value += " " + strings.TrimSpace(text)
		case ok && !strings.ContainsAny(strings.TrimSpace(name), " \t"):
			h = append(h, headerField{strings.TrimSpace(name), strings.TrimSpace(value)})
		}
		if err != nil {
			return h, nil
		}
	}
}

// get returns a field as it is written, the first where there are several.
func (h mailHeader) get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.name, name) {
			return f.value
		}
	}
	return ""
}

// partHeader is the header of a part.
func partHeader(h textproto.MIMEHeader) mailHeader {
	var out mailHeader
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding", "Content-Disposition", "Content-ID"} {
		if v := h.Get(name); v != "" {
			out = append(out, headerField{name, v})
		}
	}
	return out
}

// decodeHeader is a field as people read it (RFC 2047), in one line.
func decodeHeader(value string) string {
	words := mime.WordDecoder{CharsetReader: func(label string, r io.Reader) (io.Reader, error) {
		t, _, err := charset.NewReader(r, label)
		if err == nil {
			t.Lossy = true
		}
		return t, err
	}}
	text, err := words.DecodeHeader(value)
	if err != nil { // one of its words can't be read; the others can
		text = encodedWord.ReplaceAllStringFunc(value, func(word string) string {
			if decoded, err := words.Decode(word); err == nil {
				return decoded
			}
			return word
		})
	}
	if decoded, _, err := charset.Decode([]byte(text), ""); err == nil {
		text = decoded // bytes that should have been encoded
	}
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.TrimSpace(text)
}

var encodedWord = regexp.MustCompile(`=\?[^?\s]+\?[bBqQ]\?[^?\s]*\?=`) //nolint:gochecknoglobals // compiled once

// mediaType is the type of a part, whatever is wrong with its parameters.
func mediaType(h mailHeader) (kind string, params map[string]string) {
	value := h.get("Content-Type")
	kind, params, err := mime.ParseMediaType(value)
	if err != nil && kind == "" {
		kind, _, _ = strings.Cut(value, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	if !strings.Contains(kind, "/") {
		kind = "text/plain"
	}
	return kind, params
}

// fileName is the name that a part gives itself.
func fileName(h mailHeader, params map[string]string) string {
	_, disposition, _ := mime.ParseMediaType(h.get("Content-Disposition"))
	name := disposition["filename"]
	if name == "" {
		name = params["name"]
	}
	return decodeHeader(name)
}
