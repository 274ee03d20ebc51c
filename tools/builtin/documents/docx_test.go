package documents_test

import (
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

func TestDOCXReaderReadsWhatOtherProgramsMade(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "office")
	b.WantText("docx_reader", nativetest.Args("path", "/in/libreoffice.docx"), strings.Join([]string{
		"# Contract", "", "The parties agree[^f2] on the following[^e2], see [the terms](https://example.com/terms).", "",
		"It costs the new price a month.", "", "## Duties", "", "1. Deliver", "  a) on time", "  b) in full", "2. Pay", "",
		"Around the box.", "", "In a text box", "", "| Both |  |", "| --- | --- |", `| a\|b | two<br>lines |`, "", "The end.", "",
		"[^f2]: With effect from 2027.", "", "[^e2]: See the annex.", "",
		"[the document has tracked changes; what they delete is left out; hidden text is left out]",
	}, "\n"))
	b.WantParts("docx_reader", nativetest.Args("file_path", "/in/libreoffice.docx", "include_comments", true), "a month[^c0].", "\n[^c0]: (Carol) Is that right?")
	b.WantParts("docx_reader", nativetest.Args("path", "/in/python-docx.docx", "include_metadata", true, "include_headers", true),
		"Author: Änne Müller\nCreated: 2013-12-23T23:15:00Z\n", "Title: Jahresbericht Hafen\n\n[header: Kopfzeile: Hafenamt]\n\n[footer: Fußzeile: vertraulich]\n\n# Jahresbericht über den Hafen\n\n# 1. Übersicht\n",
		"This is bold and italic text.\n\n- first point\n- second point\n- third point\n1. eins\n2. zwei\n\n## 2. Tabelle\n",
		"| Schiff | Ladung | Gewicht (t) |\n| --- | --- | --- |\n| Anna | Kohle | 1200 |\n| Berta \\| II | Öl | 88,5 |\n| Cäsar | Weizen und<br>Mais |  |\n| Summe |  | 1288,5 |\n")
	got, failed := b.Call("docx_reader", nativetest.Args("path", "/in/python-docx.docx", "include_tables", false))
	if failed || strings.Contains(got, "Anna") || !strings.HasSuffix(got, "[1 table was left out]") {
		t.Errorf("without tables: %q", got)
	}
	b.WantParts("docx_reader", nativetest.Args("path", "/in/python-docx.docx", "offset", 3, "max_chars", 100), "Jahresbericht über", "[characters 3 to 102 of ", "go on with offset 103]")
	b.WantFailure("docx_reader", nativetest.Args("path", "/in/python-docx.docx", "offset", 100_000), "offset lies behind")
	b.WantFailure("docx_reader", nativetest.Args("path", "/in/libreoffice.doc"), "/in/libreoffice.doc can't be read", "format before 2007", "save it as .docx")
	b.WantFailure("docx_reader", nativetest.Args("path", "/in/libreoffice.xlsx"), "no text document")
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/python-docx.docx"), "no spreadsheet")
	b.WantFailure("docx_reader", nativetest.Args("path", "/in/none.docx"), "does not exist")
}

func TestDOCXReaderText(t *testing.T) {
	b := newBench(t)
	for body, want := range map[string]string{
		"": "[the document has no text]",
		p("a") + `<w:del><w:p><w:r><w:t>x</w:t></w:r></w:p></w:del>` + p("b"):                                                                                                                                                         "a\n\nb\n\n[the document has tracked changes; what they delete is left out]",
		`<w:p><w:ins><w:r><w:t xml:space="preserve">in </w:t></w:r></w:ins><w:del><w:r><w:delText>out</w:delText></w:r></w:del></w:p>`:                                                                                                "in\n\n[the document has tracked changes; what they delete is left out]",
		`<w:p><w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r></w:p>`:                                                                                                                     "a\tb\nc-d",
		`<w:p><w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t>seen</w:t></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>not</w:t></w:r></w:p>`:                                                                                                "seen\n\n[hidden text is left out]",
		`<w:p><w:r><w:fldChar/><w:instrText>PAGE</w:instrText></w:r><w:fldSimple><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p>`:                                                                                                         "7",
		`<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>head</w:t></w:r></w:p>`:                                                                                                                                               "## head",
		`<w:p><w:r><w:drawing><wp:docPr descr="a ship"/></w:drawing></w:r></w:p>`:                                                                                                                                                     "[image: a ship]",
		`<w:sdt><w:sdtPr><w:p/></w:sdtPr><w:sdtContent>` + p("in a field") + `</w:sdtContent></w:sdt>`:                                                                                                                                "in a field",
		`<w:p><mc:AlternateContent><mc:Choice><w:r><w:t>one</w:t></w:r></mc:Choice><mc:Fallback><w:r><w:t>two</w:t></w:r></mc:Fallback></mc:AlternateContent></w:p>`:                                                                  "one",
		`<w:p><m:oMath><m:r><m:t>x=1</m:t></m:r></m:oMath></w:p>`:                                                                                                                                                                     "x=1",
		`<w:tbl><w:tr><w:tc>` + p("a") + `</w:tc></w:tr><w:tr><w:trPr><w:del/></w:trPr><w:tc>` + p("gone") + `</w:tc></w:tr><w:tr><w:tc>` + p("b") + `<w:tbl><w:tr><w:tc>` + p("in") + `</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>`: "| a |\n| --- |\n| b<br>\\| in \\|<br>\\| --- \\| |\n\n[the document has tracked changes; what they delete is left out]",
		`<w:p><w:r><w:footnoteReference w:id="9"/><w:t>x</w:t></w:r></w:p>`:                                                                                                                                                           "[^f9]x",
	} {
		b.Put("in/a.docx", text(body))
		b.WantText("docx_reader", nativetest.Args("path", "/in/a.docx"), want)
	}
}

func TestDOCXReaderNumbersLists(t *testing.T) {
	b := newBench(t)
	of := func(list, level, text string) string {
		return `<w:p><w:pPr><w:numPr><w:ilvl w:val="` + level + `"/><w:numId w:val="` + list + `"/></w:numPr></w:pPr><w:r><w:t>` + text + `</w:t></w:r></w:p>`
	}
	item := func(level, text string) string { return of("1", level, text) }
	b.Put("in/a.docx", zipped("[Content_Types].xml", "<x/>", "_rels/.rels", strings.ReplaceAll(officeRels, "xl/workbook.xml", "word/document.xml"),
		"word/document.xml", document(item("0", "a")+item("1", "b")+item("1", "c")+item("2", "d")+item("0", "e")+item("1", "f")+of("2", "0", "g")+of("2", "1", "h")),
		"word/_rels/document.xml.rels", `<Relationships><Relationship Id="n" Type="x/numbering" Target="numbering.xml"/></Relationships>`,
		"word/numbering.xml", `<w:numbering><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%1."/></w:lvl>`+
			`<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl><w:lvl w:ilvl="2"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl></w:abstractNum>`+
			`<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>`+
			`<w:num w:numId="2"><w:abstractNumId w:val="0"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num></w:numbering>`))
	b.WantText("docx_reader", nativetest.Args("path", "/in/a.docx"), "III. a\n\n  III.1 b\n\n  III.2 c\n\n    (a) d\nIV. e\n\n  IV.1 f\n\nI. g\n\n  I.1 h")
}

func TestDOCXReaderSurvives(t *testing.T) {
	b := bounds(t)
	for name, tt := range map[string]struct{ file, want string }{
		"nested":       {text(strings.Repeat("<w:tbl><w:tr><w:tc>", 10_000)), "nested too deep"},
		"boxes":        {text(strings.Repeat("<w:p><w:r><w:txbxContent>", 10_000)), "nested too deep"},
		"no end":       {text("<w:p><w:r><w:t>" + strings.Repeat("x", 6<<20)), "too large"},
		"cut":          {text("<w:p>"), "damaged"},
		"entities":     {text(`<w:p>&bomb;</w:p>`), "damaged"},
		"not a text":   {zipped("[Content_Types].xml", "<x/>", "_rels/.rels", strings.ReplaceAll(officeRels, "xl/workbook.xml", "a.xml"), "a.xml", "<x/>"), "no text document"},
		"an archive":   {zipped("a", "b"), "an archive, and no .docx file"},
		"opendocument": {zipped("mimetype", "x", "content.xml", "<x/>"), "OpenDocument"},
	} {
		b.Put("in/a.docx", tt.file)
		got, failed := b.Call("docx_reader", nativetest.Args("path", "/in/a.docx"))
		if !failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q (failed: %t), want %q", name, got, failed, tt.want)
		}
	}
	// More text than can be held is cut, and said to be.
	b.Put("in/a.docx", text(strings.Repeat(p(strings.Repeat("x", 1000)), 10_000)))
	got, _ := b.Call("docx_reader", nativetest.Args("path", "/in/a.docx"))
	if len(got) > 17_000 || !strings.Contains(got, "go on with offset 16001") {
		t.Errorf("%d characters: %q", len(got), got[len(got)-100:])
	}
	b.WantParts("docx_reader", nativetest.Args("path", "/in/a.docx", "offset", 8_400_000), "[the text goes on behind 8388608 bytes")
}

func FuzzDOCXReader(f *testing.F) {
	bench := newBench(f)
	f.Add(p("a") + `<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val="3"/></w:tcPr>` + p("x") + `</w:tc></w:tr></w:tbl>`)
	f.Add(`<w:p><w:pPr><w:pStyle w:val="a"/><w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr></w:pPr><w:r><w:t>b</w:t><w:txbxContent>` + p("c") + `</w:txbxContent></w:r></w:p>`)
	f.Fuzz(func(t *testing.T, body string) {
		b := bench
		b.TB = t
		b.Put("in/a.docx", text(body))
		b.Call("docx_reader", nativetest.Args("path", "/in/a.docx", "include_comments", true, "include_headers", true))
	})
}

func p(text string) string { return "<w:p><w:r><w:t>" + text + "</w:t></w:r></w:p>" }

func document(body string) string {
	return "<w:document><w:body>" + body + "</w:body></w:document>"
}

// text makes a document of a body.
func text(body string) string {
	return zipped("[Content_Types].xml", "<x/>", "_rels/.rels", strings.ReplaceAll(officeRels, "xl/workbook.xml", "word/document.xml"), "word/document.xml", document(body))
}
