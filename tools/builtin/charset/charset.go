// Package charset turns the bytes of the world's text files into UTF-8 text and back.
//
//	text, format, err := charset.Decode(data, "")            // by what the bytes say
//	text, format, err := charset.Decode(data, "shift_jis")   // as named
//	r, format, err := charset.NewReader(file, "")            // the same, in bounded memory
//	data, err := charset.Encode(text, format)                // and back
//
// Where no encoding is named, a byte order mark names it, or the pattern of UTF-16, or
// that the bytes are valid UTF-8. What is none of these is read as windows-1252, and the
// [Format] says that this was a guess: whoever shows the text says so, too. Nothing is
// garbled in silence: bytes that mean nothing in an encoding are an error that names
// their line, and so are characters that it can't write. What is no text at all is
// refused with what it is and which tool reads it.
//
// The errors of this package are the end of a sentence that begins with a file's name,
// such as "/data/a.png can't be read: ".
package charset

import (
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"crewhost/tools/native"
)

// The encodings that need no table.
const (
	UTF8    = "utf-8"
	utf16   = "utf-16" // of whichever order the byte order mark, or the pattern, says
	utf16LE = "utf-16le"
	utf16BE = "utf-16be"
	utf32LE = "utf-32le"
	utf32BE = "utf-32be"
)

// fallback is what text is read as that no rule knows: the most frequent encoding of
// text files that are not Unicode.
const fallback = "windows-1252"

// Format is how a text is written in a file.
type Format struct {
	// Encoding is its name, in small letters.
	Encoding string
	// Mark says that a byte order mark stands before the text.
	Mark bool
	// Guessed says that nothing in the bytes tells the encoding.
	Guessed bool
}

// String returns the name of the encoding.
func (f Format) String() string { return f.Encoding }

// Note is what a model must be told of a text that it named no encoding of; it is
// empty for UTF-8, which is what everybody expects.
func (f Format) Note() string {
	switch {
	case f.Guessed:
		return "decoded as " + f.Encoding + ", which is a guess, since it is not UTF-8; name its encoding if characters are wrong"
	case f.Encoding != UTF8:
		return "decoded as " + f.Encoding
	}
	return ""
}

// Names are the encodings that texts are found in; [Find] knows more, and more names
// of these.
func Names() []string {
	return []string{
		UTF8, utf16, utf16LE, utf16BE, utf32LE, utf32BE, "us-ascii",
		"windows-1252", "iso-8859-1", "iso-8859-15", "windows-1250", "iso-8859-2",
		"windows-1251", "koi8-r", "koi8-u", "iso-8859-5", "ibm866", "windows-1253", "iso-8859-7",
		"windows-1254", "iso-8859-9", "windows-1255", "windows-1256", "windows-1257", "windows-1258",
		"shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "gbk", "big5", "euc-kr",
		"ibm437", "ibm850", "ibm852", "ibm858", "macintosh",
	}
}

// Find returns the format of a label: a name of the IANA or of the web's standard, or
// one that a common program uses, whatever its case.
func Find(label string) (Format, error) {
	f, _, err := find(label)
	return f, err
}

// find returns the table of the encoding, too; nil for UTF-8.
func find(label string) (Format, encoding.Encoding, error) {
	if len(label) > 64 {
		label = label[:64]
	}
	name := strings.ToLower(strings.TrimSpace(label))
	flat := flatten(name)
	switch flat {
	case "utf8":
		return Format{Encoding: UTF8}, nil, nil
	case "utf8sig", "utf8bom":
		return Format{Encoding: UTF8, Mark: true}, nil, nil
	case "utf16":
		return Format{Encoding: utf16, Mark: true}, table(utf16LE), nil
	case "utf16le":
		return Format{Encoding: utf16LE}, table(utf16LE), nil
	case "utf16be":
		return Format{Encoding: utf16BE}, table(utf16BE), nil
	case "utf32le":
		return Format{Encoding: utf32LE}, table(utf32LE), nil
	case "utf32be":
		return Format{Encoding: utf32BE}, table(utf32BE), nil
	}
	for _, candidate := range []string{respelled(flat), name} {
		if enc := indexed(candidate); enc != nil {
			return Format{Encoding: canonical(enc)}, enc, nil
		}
	}
	hint := native.DidYouMean(name, Names())
	if hint == "" {
		hint = "; some are utf-8, utf-16, windows-1252, iso-8859-15, windows-1251, shift_jis, gb18030"
	}
	return Format{}, nil, fmt.Errorf("there is no encoding %q%s", native.Shorten(label), hint)
}

// table is the table of an encoding of a canonical name.
func table(name string) encoding.Encoding {
	switch name {
	case UTF8:
		return nil
	case utf16LE, utf16:
		return unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	case utf16BE:
		return unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	case utf32LE:
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	case utf32BE:
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	}
	return indexed(name)
}

// indexed asks the IANA's index first: on the web, iso-8859-1 is another name of
// windows-1252, and a file is not the web.
func indexed(name string) encoding.Encoding {
	if name == "ibm858" {
		return charmap.CodePage858 // which the registry calls IBM00858
	}
	if enc, err := ianaindex.IANA.Encoding(name); err == nil && enc != nil {
		return enc
	}
	if enc, err := htmlindex.Get(name); err == nil && enc != encoding.Replacement {
		return enc
	}
	return nil
}

func canonical(enc encoding.Encoding) string {
	if enc == charmap.CodePage858 {
		return "ibm858"
	}
	if n, err := htmlindex.Name(enc); err == nil {
		return n
	}
	n, _ := ianaindex.MIME.Name(enc) // it knows all that it gave
	return strings.ToLower(n)
}

// flatten leaves the letters and digits: utf_16_le, UTF-16-LE and utf16le are one.
func flatten(name string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// respelled is the registered name of what programs call cp1252, win1252, cp850,
// iso8859_15, latin_1 or eucjp.
func respelled(flat string) string {
	switch flat {
	case "sjis", "shiftjis", "cp932", "ms932":
		return "shift_jis"
	case "eucjp":
		return "euc-jp"
	case "euckr", "cp949", "ms949", "uhc":
		return "euc-kr"
	case "iso2022jp":
		return "iso-2022-jp"
	case "cp936", "ms936":
		return "gbk"
	case "cp950", "ms950":
		return "big5"
	case "ascii":
		return "us-ascii"
	case "macroman":
		return "macintosh"
	}
	for _, family := range []struct{ prefix, name string }{
		{"iso8859", "iso-8859-"}, {"windows125", "windows-125"}, {"win125", "windows-125"}, {"cp125", "windows-125"},
		{"ibm", "ibm"}, {"cp", "ibm"}, {"koi8", "koi8-"},
	} {
		if rest, ok := strings.CutPrefix(flat, family.prefix); ok {
			return family.name + rest
		}
	}
	return flat
}
