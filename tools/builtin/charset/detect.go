package charset

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"
)

// marks are the byte order marks, a longer one before the one that it begins with.
func marks() []struct{ mark, name string } {
	return []struct{ mark, name string }{
		{"\xef\xbb\xbf", UTF8},
		{"\xff\xfe\x00\x00", utf32LE}, {"\x00\x00\xfe\xff", utf32BE},
		{"\xff\xfe", utf16LE}, {"\xfe\xff", utf16BE},
	}
}

// markOf is the byte order mark of an encoding, empty where it has none.
func markOf(name string) string {
	for _, m := range marks() {
		if m.name == name {
			return m.mark
		}
	}
	return ""
}

// marked returns the format that a byte order mark tells. A mark that is there is
// believed before what anybody says: no text of another encoding begins so.
func marked(head []byte) (Format, bool) {
	for _, m := range marks() {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			return Format{Encoding: m.name, Mark: true}, true
		}
	}
	return Format{}, false
}

// detect returns the format of a text by its beginning, which is all of it where whole
// is set, and label, which may be empty.
func detect(head []byte, whole bool, label string) (Format, error) {
	named := Format{}
	if label != "" {
		var err error
		if named, _, err = find(label); err != nil {
			return Format{}, err
		}
	}
	if kind := kindOf(head); kind.sure {
		return Format{}, kind.refusal()
	}
	if f, ok := marked(head); ok {
		return f, nil
	}
	switch named.Encoding {
	case utf16:
		named.Encoding, named.Mark = utf16LE, false
		if order, ok := pattern(head); ok {
			named.Encoding = order
		}
		return named, nil
	case utf16LE, utf16BE, utf32LE, utf32BE:
		return named, nil
	case "":
		if order, ok := pattern(head); ok {
			return Format{Encoding: order}, nil
		}
	}
	if err := refuseBinary(head); err != nil {
		return Format{}, err
	}
	if named.Encoding != "" {
		named.Mark = false // there is none
		return named, nil
	}
	return guess(head, whole)
}

// guess tells the encoding of text without NUL bytes.
func guess(head []byte, whole bool) (Format, error) {
	if !whole {
		head = head[:len(head)-unfinished(head)]
	}
	if utf8.Valid(head) {
		if sevenBit(head) && (bytes.Contains(head, []byte("\x1b$B")) || bytes.Contains(head, []byte("\x1b$@"))) {
			return Format{Encoding: "iso-2022-jp"}, nil // which shifts between sets, and looks like ASCII
		}
		return Format{Encoding: UTF8}, nil
	}
	if damaged(head) {
		return Format{Encoding: UTF8}, nil
	}
	for i, b := range head {
		switch b {
		case 0x81, 0x8d, 0x8f, 0x90, 0x9d:
			return Format{}, fmt.Errorf("it is neither UTF-8 nor %s (byte 0x%02X on line %d); if it is text, name its encoding, such as shift_jis, windows-1251 or gb18030",
				fallback, b, 1+bytes.Count(head[:i], []byte("\n")))
		}
	}
	return Format{Encoding: fallback, Guessed: true}, nil
}

// damaged reports whether the text is UTF-8 but for a few bytes.
func damaged(text []byte) bool {
	good, bad := 0, 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		}
		text = text[size:]
	}
	return good > 4*bad
}

func sevenBit(text []byte) bool {
	return bytes.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// unfinished is the length of a rune at the end of text whose last bytes are missing.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}

// pattern tells UTF-16 without a byte order mark: spaces, digits, line ends and Latin
// letters have a NUL byte, always on the same side, and all is characters in use.
func pattern(head []byte) (order string, ok bool) {
	const enough = 8 << 10
	head = head[:min(len(head), enough)]
	var zeros [2]int
	for i, b := range head {
		if b == 0 {
			zeros[i%2]++
		}
	}
	var high int // where the high byte of a unit lies
	switch {
	case zeros[0] == 0 && zeros[1] > 0:
		order, high = utf16LE, 1
	case zeros[1] == 0 && zeros[0] > 0:
		order, high = utf16BE, 0
	default:
		return "", false
	}
	if len(head)%2 != 0 {
		return "", false
	}
	strange := 0
	for i := 0; i+1 < len(head); i += 2 {
		r := rune(head[i+high])<<8 | rune(head[i+1-high])
		surrogate := 0xd800 <= r && r < 0xe000
		if !surrogate && !unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) && (r < '\t' || r > '\r') {
			strange++
		}
	}
	return order, strange*100 <= len(head)/2
}

// refuseBinary refuses what has NUL bytes or many control characters.
func refuseBinary(head []byte) error {
	controls := 0
	for i, b := range head {
		switch {
		case b == 0:
			if kind := kindOf(head); kind.name != "" {
				return kind.refusal()
			}
			return fmt.Errorf("it is no text: there is a NUL byte at offset %d", i)
		case b < ' ' && (b < '\b' || b > '\r') && b != 0x1b, b == 0x7f:
			controls++
		}
	}
	if controls*50 <= len(head) {
		return nil
	}
	if kind := kindOf(head); kind.name != "" {
		return kind.refusal()
	}
	return errors.New("it is no text: there are many control characters in it")
}
