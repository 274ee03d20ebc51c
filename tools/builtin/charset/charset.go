// Package charset turns the bytes of text files into text and back.
//
//	text, err := charset.Decode(data, "") // by its byte order mark, or else UTF-8
package charset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// Encodings are the encodings of text files, the default first.
var Encodings = []string{"utf-8", "utf-16le", "utf-16be", "iso-8859-1"}

var (
	markUTF8 = []byte("\xef\xbb\xbf")
	markLE   = []byte("\xff\xfe")
	markBE   = []byte("\xfe\xff")
)

// Decode turns the bytes of a file into text. A byte order mark is taken off,
// and where no encoding is named, it names one.
func Decode(data []byte, encoding string) (string, error) {
	switch {
	case encoding == "" && bytes.HasPrefix(data, markLE):
		encoding = "utf-16le"
	case encoding == "" && bytes.HasPrefix(data, markBE):
		encoding = "utf-16be"
	}
	switch encoding {
	case "utf-16le":
		return decodeUTF16(bytes.TrimPrefix(data, markLE), binary.LittleEndian)
	case "utf-16be":
		return decodeUTF16(bytes.TrimPrefix(data, markBE), binary.BigEndian)
	case "iso-8859-1":
		runes := make([]rune, len(data))
		for i, b := range data {
			runes[i] = rune(b)
		}
		return string(runes), nil
	}
	data = bytes.TrimPrefix(data, markUTF8)
	if at := bytes.IndexByte(data, 0); at >= 0 {
		return "", fmt.Errorf("it is no text: there is a NUL byte at offset %d", at)
	}
	if !utf8.Valid(data) {
		return "", errors.New(`it is not valid UTF-8; if it is text, name its encoding, such as "iso-8859-1"`)
	}
	return string(data), nil
}

func decodeUTF16(data []byte, order binary.ByteOrder) (string, error) {
	if len(data)%2 != 0 {
		return "", errors.New("it is not UTF-16: its number of bytes is odd")
	}
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units)), nil
}

// Encode is the inverse of Decode, without a byte order mark.
func Encode(text, encoding string) ([]byte, error) {
	switch encoding {
	case "utf-16le":
		return encodeUTF16(text, binary.LittleEndian), nil
	case "utf-16be":
		return encodeUTF16(text, binary.BigEndian), nil
	case "iso-8859-1":
		data := make([]byte, 0, len(text))
		for _, r := range text {
			if r > 0xff {
				return nil, fmt.Errorf("the character %q can't be written in iso-8859-1", r)
			}
			data = append(data, byte(r))
		}
		return data, nil
	}
	return []byte(text), nil
}

func encodeUTF16(text string, order binary.AppendByteOrder) []byte {
	var data []byte
	for _, u := range utf16.Encode([]rune(text)) {
		data = order.AppendUint16(data, u)
	}
	return data
}
