package charset

import (
	"bytes"
	"errors"
)

// kind is what a file is that is no text.
type kind struct {
	magic string // its first bytes
	sure  bool   // no text begins so
	name  string
	tool  string // that reads it, if there is one
}

func (k kind) refusal() error {
	if k.tool == "" {
		return errors.New("it is no text but " + k.name + ", which no tool for text can read")
	}
	return errors.New("it is no text but " + k.name + "; use " + k.tool)
}

// kindOf tells a file's kind by its first bytes; it has no name where they say nothing.
func kindOf(head []byte) kind {
	for _, k := range kinds() {
		if !bytes.HasPrefix(head, []byte(k.magic)) {
			continue
		}
		if k.magic != "PK\x03\x04" {
			return k
		}
		for _, inner := range []kind{
			{magic: "word/", name: "a DOCX document", tool: "docx_reader"},
			{magic: "xl/", name: "an XLSX workbook", tool: "xlsx_reader"},
			{magic: "mimetypeapplication/vnd.oasis", name: "an OpenDocument file"},
			{magic: "ppt/", name: "a PPTX presentation"},
		} {
			if bytes.Contains(head, []byte(inner.magic)) {
				inner.sure = true
				return inner
			}
		}
		return k
	}
	if len(head) > 12 && bytes.HasPrefix(head, []byte("RIFF")) && string(head[8:12]) == "WEBP" {
		return kind{sure: true, name: "a WebP image"}
	}
	return kind{}
}

func kinds() []kind {
	return []kind{
		{"%PDF-", true, "a PDF", "pdf_reader"},
		{"PK\x03\x04", true, "a ZIP archive", ""},
		{"\x89PNG\r\n", true, "a PNG image", ""},
		{"\xff\xd8\xff", true, "a JPEG image", ""},
		{"GIF87a", false, "a GIF image", ""},
		{"GIF89a", false, "a GIF image", ""},
		{"II*\x00", true, "a TIFF image", ""},
		{"MM\x00*", true, "a TIFF image", ""},
		{"SQLite format 3\x00", true, "an SQLite database", "relational_database_query"},
		{"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", true, "an old Office file (DOC, XLS, PPT or MSG)", ""},
		{"\x1f\x8b\x08", true, "compressed with gzip", ""},
		{"BZh", false, "compressed with bzip2", ""},
		{"\xfd7zXZ\x00", true, "compressed with xz", ""},
		{"\x28\xb5\x2f\xfd", true, "compressed with zstd", ""},
		{"7z\xbc\xaf\x27\x1c", true, "a 7z archive", ""},
		{"Rar!\x1a\x07", true, "a RAR archive", ""},
		{"\x7fELF", true, "a program", ""},
		{"MZ", false, "a program", ""},
		{"\xcf\xfa\xed\xfe", true, "a program", ""},
		{"\x00asm", true, "a program of WebAssembly", ""},
		{"\xca\xfe\xba\xbe", true, "a program", ""},
		{"OggS", false, "a sound or a film", ""},
		{"ID3", false, "a sound", ""},
		{"fLaC", false, "a sound", ""},
		{"PAR1", false, "a Parquet file", ""},
	}
}
