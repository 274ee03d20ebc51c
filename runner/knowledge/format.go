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

// FormatOf is the format that a document's name says; [Plain], which text in other
// clothes is as well, where it says none.
func FormatOf(name string) Format {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return Markdown
	case ".csv":
		return CSV
	case ".tsv":
		return TSV
	case ".json", ".jsonl", ".ndjson":
		return JSON
	case ".html", ".htm", ".xhtml":
		return HTML
	}
	return Plain
}

// binary says what documents of a name that ends so are, if they are no text.
func binary(ext string) string {
	switch ext {
	case ".pdf":
		return "PDF"
	case ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".rtf":
		return "of an office program"
	case ".epub":
		return "EPUB"
	case ".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico":
		return "of images"
	case ".mp3", ".wav", ".mp4", ".mov", ".webm":
		return "of sound or film"
	case ".zip", ".gz", ".tar", ".tgz", ".7z", ".bz2", ".xz", ".zst", ".jar":
		return "of archives"
	case ".parquet", ".sqlite", ".db":
		return "of databases"
	case ".exe", ".dll", ".so", ".wasm":
		return "of programs"
	}
	return ""
}

// ErrNotText is a document that is no text.
var ErrNotText = errors.New("it is no text in UTF-8")

// NotText says why a document can't be read as text, by its name and the first
// bytes of its content; nil where it can.
func NotText(name string, head []byte) error {
	ext := strings.ToLower(path.Ext(name))
	if what := binary(ext); what != "" {
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
