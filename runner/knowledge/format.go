package knowledge

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// Format is what a document is written in.
type Format string

// The formats.
const (
	Plain    Format = "text"
	Markdown Format = "markdown"
	CSV      Format = "csv"
	TSV      Format = "tsv"
	JSON     Format = "json"
	HTML     Format = "html"
)

// formats are the formats by the ends of names. Text in other clothes is text.
var formats = map[string]Format{
	".md": Markdown, ".markdown": Markdown,
	".csv": CSV, ".tsv": TSV,
	".json": JSON, ".jsonl": JSON, ".ndjson": JSON,
	".html": HTML, ".htm": HTML, ".xhtml": HTML,
}

// FormatOf is the format that a document's name says; [Plain] where it says none.
func FormatOf(name string) Format {
	if f, ok := formats[strings.ToLower(path.Ext(name))]; ok {
		return f
	}
	return Plain
}

// binary are the names of formats whose documents are no text.
var binary = map[string]string{
	".pdf": "PDF", ".doc": "Word", ".docx": "Word", ".odt": "OpenDocument", ".rtf": "RTF", ".epub": "EPUB",
	".xls": "Excel", ".xlsx": "Excel", ".ods": "OpenDocument", ".ppt": "PowerPoint", ".pptx": "PowerPoint", ".odp": "OpenDocument",
	".png": "image", ".jpg": "image", ".jpeg": "image", ".gif": "image", ".webp": "image", ".bmp": "image", ".tif": "image", ".tiff": "image", ".ico": "image",
	".zip": "archive", ".gz": "archive", ".tar": "archive", ".7z": "archive", ".bz2": "archive", ".xz": "archive", ".zst": "archive", ".jar": "archive",
	".mp3": "sound", ".wav": "sound", ".mp4": "video", ".mov": "video", ".webm": "video",
	".parquet": "Parquet", ".sqlite": "SQLite", ".db": "database", ".exe": "program", ".dll": "program", ".so": "program",
}

// ErrNotText is a document that is no text.
var ErrNotText = errors.New("it is no text in UTF-8")

// NotText says why a document can't be read as text, by its name and the first
// bytes of its content; nil where it can.
func NotText(name string, head []byte) error {
	ext := strings.ToLower(path.Ext(name))
	if what, ok := binary[ext]; ok {
		return fmt.Errorf("%w: %s is a format (%s) that is not read; export it as text, markdown, csv, json or html", ErrNotText, ext, what)
	}
	if bytes.IndexByte(head, 0) >= 0 || !utf8.Valid(wholeRunes(head)) {
		return ErrNotText
	}
	return nil
}

// wholeRunes is b without the letter that is cut off at its end.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if r := b[len(b)-i]; utf8.RuneStart(r) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// Text is the text of a document. Its lines are those of the document.
func (f Format) Text(data []byte) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(data, 0) >= 0 || !utf8.Valid(data) {
		return "", ErrNotText
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	if f == HTML {
		return visible(text), nil
	}
	return text, nil
}

// visible is what a reader sees of a page. The line ends of what is left out stay.
func visible(page string) string {
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(page))
	hidden := "" // the element that is being left out
	for {
		kind := z.Next()
		raw := string(z.Raw())
		switch {
		case kind == html.ErrorToken:
			return b.String()
		case kind == html.TextToken && hidden == "":
			b.WriteString(html.UnescapeString(raw))
			continue
		case kind == html.StartTagToken && hidden == "":
			switch name, _ := z.TagName(); string(name) {
			case "script", "style", "template", "noscript", "svg":
				hidden = string(name)
			}
		case kind == html.EndTagToken:
			if name, _ := z.TagName(); string(name) == hidden {
				hidden = ""
			}
		}
		if lines := strings.Count(raw, "\n"); lines > 0 {
			b.WriteString(strings.Repeat("\n", lines))
		} else if kind != html.TextToken {
			b.WriteByte(' ')
		}
	}
}
