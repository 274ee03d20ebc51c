package charset_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"crewhost/tools/builtin/charset"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// others are the files of testdata that another program wrote: the text, in the
// encoding that the name's end says.
func others(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.*")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, n := range names {
		if filepath.Ext(n) != ".txt" && filepath.Ext(n) != ".md" {
			list = append(list, filepath.Base(n))
		}
	}
	if len(list) < 30 {
		t.Fatalf("%d files in testdata", len(list))
	}
	return list
}

func wanted(t testing.TB, name string) string {
	t.Helper()
	stem, _, _ := strings.Cut(name, ".")
	if stem != "notepad" && stem != "writer" {
		return string(file(t, stem+".txt"))
	}
	return strings.ReplaceAll(string(file(t, "western.txt")), "\n", "\r\n")
}

func TestFilesOfOtherPrograms(t *testing.T) {
	for _, name := range others(t) {
		data, want := file(t, name), wanted(t, name)
		label := strings.TrimPrefix(filepath.Ext(name), ".")
		for _, spelled := range []string{label, strings.ToUpper(label), strings.ReplaceAll(label, "-", "_"), " " + label + " "} {
			text, format, err := charset.Decode(data, spelled)
			if err != nil || text != want {
				t.Errorf("%s as %s: got %q, %v", name, spelled, text, err)
				continue
			}
			if back, err := charset.Encode(text, format); err != nil || !bytes.Equal(back, data) {
				t.Errorf("%s as %+v is not the same when it is written: %v", name, format, err)
			}
		}
		r, _, err := charset.NewReader(iotest.OneByteReader(bytes.NewReader(data)), label)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if text, err := io.ReadAll(iotest.OneByteReader(r)); err != nil || string(text) != want {
			t.Errorf("%s read byte by byte: got %q, %v", name, text, err)
		}
	}
}

func TestDetection(t *testing.T) {
	for name, want := range map[string]charset.Format{
		"western.txt":          {Encoding: "utf-8"},
		"western.windows-1252": {Encoding: "windows-1252", Guessed: true},
		"western.utf-16le":     {Encoding: "utf-16le"},
		"western.utf-16be":     {Encoding: "utf-16be"},
		"western.utf-16":       {Encoding: "utf-16le", Mark: true},
		"japanese.utf-16le":    {Encoding: "utf-16le"},
		"japanese.iso-2022-jp": {Encoding: "iso-2022-jp"},
		"notepad.utf-8-sig":    {Encoding: "utf-8", Mark: true},
		"notepad.utf-16":       {Encoding: "utf-16le", Mark: true},
		"writer.utf-16":        {Encoding: "utf-16le", Mark: true},
		"writer.windows-1252":  {Encoding: "windows-1252", Guessed: true},
	} {
		text, got, err := charset.Decode(file(t, name), "")
		if err != nil || got != want || text != wanted(t, name) {
			t.Errorf("%s: got %+v, %q, %v, want %+v", name, got, text, err, want)
		}
		if note := got.Note(); want.Guessed != strings.Contains(note, "guess") || (note == "") != (want.Encoding == "utf-8") {
			t.Errorf("%s: the note is %q", name, note)
		}
	}
	// What windows-1252 does not have is no guess.
	for _, name := range []string{"japanese.shift_jis"} {
		if text, f, err := charset.Decode(file(t, name), ""); err == nil || !strings.Contains(err.Error(), "name its encoding, such as shift_jis") {
			t.Errorf("%s: got %+v, %q, %v", name, f, text, err)
		}
	}
}

func TestByteOrderMarkIsBelieved(t *testing.T) {
	for _, label := range []string{"utf-16be", "utf-8", "windows-1252", "utf-16"} {
		text, f, err := charset.Decode([]byte("\xff\xfeh\x00i\x00"), label)
		if err != nil || text != "hi" || f != (charset.Format{Encoding: "utf-16le", Mark: true}) {
			t.Errorf("%s: got %q, %+v, %v", label, text, f, err)
		}
	}
}

func TestBinaryIsRefused(t *testing.T) {
	for data, want := range map[string]string{
		"%PDF-1.7\n1 0 obj":                       "a PDF; use pdf_reader",
		"PK\x03\x04....word/document.xml":         "a DOCX document; use docx_reader",
		"PK\x03\x04....xl/workbook.xml":           "an XLSX workbook; use xlsx_reader",
		"PK\x03\x04....a.txt":                     "a ZIP archive, which no tool for text can read",
		"\x89PNG\r\n\x1a\n":                       "a PNG image",
		"SQLite format 3\x00":                     "relational_database_query",
		"MZ\x90\x00\x03":                          "a program",
		"RIFF\x00\x00\x00\x00WEBPVP8 ":            "a WebP image",
		"a\x00b":                                  "a NUL byte at offset 1",
		"\x00h\x00i\x00":                          "a NUL byte at offset 0",
		"\x01\x00\x02\x00\x03\x00\x04\x00":        "a NUL byte",
		strings.Repeat("\x01\x02\x03abc", 100):    "control characters",
		"BZh91AY&SY" + strings.Repeat("\x02", 10): "compressed with bzip2",
	} {
		for _, label := range []string{"", "utf-8", "iso-8859-1"} {
			if text, _, err := charset.Decode([]byte(data), label); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.20q as %q: got %q, %v, want %s", data, label, text, err, want)
			}
		}
	}
	for _, text := range []string{"", "MZ is two letters", "BZh", "\x1b[31mred\x1b[0m\r\n", "a\tb\fc\v", "ID3", "\ufeff"} {
		if got, _, err := charset.Decode([]byte(text), ""); err != nil || got != strings.TrimPrefix(text, "\ufeff") {
			t.Errorf("%q: got %q, %v", text, got, err)
		}
	}
}

func TestNothingIsGarbled(t *testing.T) {
	for _, tt := range []struct{ data, label, want string }{
		{"one\ntw\xe9", "utf-8", "not valid UTF-8 (byte 0xE9 on line 2)"},
		{strings.Repeat("é", 9) + "\n\xe9", "", "not valid UTF-8 (byte 0xE9 on line 2)"}, // UTF-8 but for one
		{"a\n\x00\xd8b\x00", "utf-16le", "not valid utf-16le on line 1"},
		{"\x81\x82", "euc-jp", "not valid euc-jp on line 1"},
		{"abc\n\xe9", "us-ascii", "not valid us-ascii on line 2"},
		{"abc", "shift_jiss", `did you mean "shift_jis"?`},
		{"abc", "Windows-1552", `did you mean "windows-1252"?`},
		{"abc", "hz-gb-2312x", `there is no encoding "hz-gb-2312x"`},
		{"abc", strings.Repeat("x", 1000), "some are utf-8"},
		{"abc", "iso-2022-kr", "there is no encoding"}, // the web forbids it
	} {
		text, _, err := charset.Decode([]byte(tt.data), tt.label)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q as %s: got %q, %v, want %s", tt.data, tt.label, text, err, tt.want)
		}
	}
	// A U+FFFD that stands in the file is text.
	for _, tt := range []struct{ data, label string }{
		{"\uFFFD", "utf-8"}, {"\xfd\xff", "utf-16le"}, {"\x84\x31\xa4\x37", "gb18030"},
	} {
		if text, _, err := charset.Decode([]byte(tt.data), tt.label); err != nil || text != "\uFFFD" {
			t.Errorf("%q as %s: got %q, %v", tt.data, tt.label, text, err)
		}
	}
}

func TestReaderGivesWhatIsGoodFirst(t *testing.T) {
	r, _, err := charset.NewReader(strings.NewReader("one\ntwo\xff\nthree"), "utf-8")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if string(text) != "one\ntwo" || err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %q, %v", text, err)
	}
	for label, want := range map[string]string{"utf-8": "é\uFFFD\uFFFD\n\uFFFD", "us-ascii": "\uFFFD\uFFFD\uFFFD\uFFFD\n\uFFFD"} {
		r, _, err := charset.NewReader(strings.NewReader("é\xff\xfe\n\xe9"), label)
		if err != nil {
			t.Fatal(err)
		}
		r.Lossy = true
		text, err := io.ReadAll(r)
		if n := strings.Count(want, "\uFFFD"); err != nil || string(text) != want || r.Replaced() != n {
			t.Errorf("%s: got %q, %v, %d replaced, want %d", label, text, err, r.Replaced(), n)
		}
	}
}

// TestDetectionLooksAtTheBeginning, which may end within a character.
func TestDetectionLooksAtTheBeginning(t *testing.T) {
	for _, before := range []int{1<<20 - 3, 1<<20 - 2, 1<<20 - 1, 1 << 20} {
		text := strings.Repeat("x", before) + "é語"
		r, f, err := charset.NewReader(strings.NewReader(text), "")
		if err != nil || f.Encoding != "utf-8" || f.Guessed {
			t.Fatalf("%d: got %+v, %v", before, f, err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("%d: got %q, %v", before, got[max(0, len(got)-10):], err)
		}
	}
	// What comes later is not what the beginning said.
	r, f, err := charset.NewReader(strings.NewReader(strings.Repeat("x\n", 1<<20)+"caf\xe9"), "")
	if err != nil || f.Encoding != "utf-8" {
		t.Fatalf("got %+v, %v", f, err)
	}
	if _, err := io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "byte 0xE9 on line 1048577") {
		t.Errorf("got %v", err)
	}
}

func TestReaderIsBounded(t *testing.T) {
	const size = 64 << 20
	line := bytes.Repeat([]byte("Grüße, "), 50)
	endless := &repeater{line: append(line, '\n')}
	r, f, err := charset.NewReader(io.LimitReader(endless, size), "")
	if err != nil || f.Encoding != "utf-8" {
		t.Fatal(f, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
	runtime.ReadMemStats(&after)
	if err != nil && !strings.Contains(err.Error(), "UTF-8") || n < size-4 {
		t.Errorf("%d bytes, %v", n, err)
	}
	// A buffer is made anew where a character is cut between two; nothing is kept.
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 16<<20 {
		t.Errorf("%d MB are held after the reading of 64 MB", grown>>20)
	}
}

type repeater struct {
	line []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.line[r.at:])
	r.at = (r.at + n) % len(r.line)
	return n, nil
}

func TestEncodeNamesWhatItCannot(t *testing.T) {
	for _, tt := range []struct{ text, label, want string }{
		{"one\ntwo €", "iso-8859-1", "'€' (U+20AC) on line 2 can't be written in iso-8859-1"},
		{"é", "us-ascii", "'é' (U+00E9) on line 1"},
		{"日本\n한", "shift_jis", "'한' (U+D55C) on line 2"},
		{"a\n\n😀", "iso-2022-jp", "'😀' (U+1F600) on line 3"},
		{"\xff", "utf-8", "not valid UTF-8"},
	} {
		f, err := charset.Find(tt.label)
		if err != nil {
			t.Fatal(err)
		}
		if data, err := charset.Encode(tt.text, f); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q in %s: got %q, %v", tt.text, tt.label, data, err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range charset.Names() {
		if f, err := charset.Find(name); err != nil || f.Encoding != name {
			t.Errorf("%s: got %+v, %v", name, f, err)
		}
	}
	for label, want := range map[string]string{
		"UTF8": "utf-8", "latin1": "iso-8859-1", "Latin-1": "iso-8859-1", "ISO_8859-1:1987": "iso-8859-1", "l1": "iso-8859-1",
		"cp1252": "windows-1252", "win-1251": "windows-1251", "Windows_1250": "windows-1250", "cp850": "ibm850", "CP437": "ibm437", "cp866": "ibm866",
		"sjis": "shift_jis", "cp932": "shift_jis", "Windows-31J": "shift_jis", "eucjp": "euc-jp", "iso8859_15": "iso-8859-15", "utf_16_le": "utf-16le",
		"gb2312": "gbk", "koi8r": "koi8-r", "ASCII": "us-ascii", "ks_c_5601-1987": "euc-kr", "big5-hkscs": "big5", "mac_roman": "macintosh",
	} {
		if f, err := charset.Find(label); err != nil || f.Encoding != want {
			t.Errorf("%s: got %q, %v, want %s", label, f.Encoding, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, name := range others(f) {
		f.Add(file(f, name), strings.TrimPrefix(filepath.Ext(name), "."))
		f.Add(file(f, name), "")
	}
	f.Add([]byte("\xff\xfe\x00\xd8"), "utf-8")
	f.Fuzz(func(t *testing.T, data []byte, label string) {
		text, format, err := charset.Decode(data, label)
		r, streamed, rerr := charset.NewReader(iotest.HalfReader(bytes.NewReader(data)), label)
		if rerr != nil {
			if err == nil {
				t.Fatalf("the reader refuses what Decode takes: %v", rerr)
			}
			return
		}
		if err == nil && streamed != format {
			t.Fatalf("%+v and %+v", format, streamed)
		}
		r.Lossy = true
		read, lerr := io.ReadAll(r)
		if lerr != nil || !strings.Contains(text, "\uFFFD") && err == nil && string(read) != text {
			t.Fatalf("decoded %q, read %q, %v", text, read, lerr)
		}
		if (err != nil) && r.Replaced() == 0 {
			t.Fatalf("%v, and nothing was replaced", err)
		}
	})
}
