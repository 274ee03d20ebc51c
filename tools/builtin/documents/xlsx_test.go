package documents_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"

	"crewhost/tools/native/nativetest"
)

func TestXLSXReaderReadsWhatOtherProgramsMade(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "office")
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx"), strings.Join([]string{
		"row,Date,Ship,Weight,Share,Paid,Total,When,Note",
		"2,2026-11-30,Änne,1200.5,0.25,TRUE,2401,2026-11-30T13:45:10,\"line 1\nline 2\"",
		"3,1999-12-31,=not a formula,123456789012346000,1,FALSE,#DIV/0!,08:30:00",
		"4,,Berta,-0.1,0.333333333333,,123456789012347000,30:05:00,007",
		"6,merged over three",
		"8,,,,,far",
		`[sheet "Sales"; rows 2 to 8, which is the end]`,
	}, "\n"))
	b.WantText("xlsx_reader", nativetest.Args("file_path", "/in/openpyxl.xlsx", "range", "A1:F3"), strings.Join([]string{
		"row,Date,Ship,Weight,Share,Paid,Total",
		"2,2026-11-30,Änne,1200.5,0.25,TRUE,=C2*2",
		"3,1999-12-31,=not a formula,123456789012346000,1,FALSE,=C3/0",
		`[sheet "Sales"; rows 2 to 3, which is the end; 2 formulas have no stored value and are shown instead]`,
	}, "\n"))
	b.WantParts("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "range", "E:F", "has_header_row", false, "formulas", true),
		"row,E,F\n1,Paid,Total\n2,=TRUE(),=C2*2\n", "4,,=SUM(C2:C4)\n8,far\n")
	b.WantParts("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "include_metadata", true),
		"Sheets: \"Sales\", \"Hidden stuff\" (hidden), \"Empty\"\nThis sheet, \"Sales\", has 8 rows and 8 columns.\nMerged cells, whose value is in the first: A6:C6.\n\nrow,Date")
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "sheet_name", "2", "has_header_row", false), "row,A\n1,secret plan\n[sheet \"Hidden stuff\", which is hidden; rows 1 to 1, which is the end]")
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "sheet_name", "empty"), `[sheet "Empty"; nothing in these cells]`)
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "range", "B:B", "offset", 3, "max_rows", 1), "row,Ship\n3,=not a formula\n[sheet \"Sales\"; rows 3 to 3; more follow, go on with offset 4]")

	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "sheet_name", "Sale"), `no sheet "Sale"`, "did you mean", `the sheets are "Sales", "Hidden stuff" (hidden), "Empty"`)
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xls"), "/in/libreoffice.xls can't be read", "format before 2007")
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/libreoffice.ods"), "OpenDocument")
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/README"), "no .xlsx file")
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/none.xlsx"), "/in/none.xlsx", "does not exist")
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/a", "file_path", "/in/a"), "one argument")
	b.WantFailure("xlsx_reader", "{}", `"path" is missing`)
	for _, r := range []string{"E2:F", "A0", "A1:B", "1:B2", "XFE1", "A1048577", "A1:B2:C3", "é1", ""} {
		b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/libreoffice.xlsx", "range", r), `"range" can't be read`)
	}
}

func TestXLSXReaderNumbers(t *testing.T) {
	b := newBench(t)
	formats := []string{"General", "0.00", "dd.mm.yyyy", "m/d/yy h:mm", "[$-407]d. mmmm yyyy;@", "h:mm AM/PM", "[h]:mm:ss", "mm:ss.0", `"due "0`, "#,##0.00 [$€-407]", `0.00\d`, "[Red]0;-0", "yyyy-mm", "@"}
	var styles, cells, fmts strings.Builder
	for i, f := range formats {
		fmt.Fprintf(&fmts, `<numFmt numFmtId="%d" formatCode=%q/>`, 164+i, strings.ReplaceAll(f, `"`, "&quot;"))
		fmt.Fprintf(&styles, `<xf numFmtId="%d"/>`, 164+i)
		fmt.Fprintf(&cells, `<row r="%d"><c r="A%d" s="%d"><v>46356.25</v></c></row>`, i+1, i+1, i)
	}
	for i, v := range []string{"1", "59", "60", "61", "-1", "2958466", "0", "NaN"} {
		fmt.Fprintf(&cells, `<row r="%d"><c s="2"><v>%s</v></c></row>`, 101+i, v)
	}
	for i, v := range []string{"0.30000000000000004", "1e300", "1e-7", "123456789012345678", "1.5E+3", "-0.10", "x"} {
		fmt.Fprintf(&cells, `<row r="%d"><c><v>%s</v></c></row>`, 201+i, v)
	}
	b.Put("in/a.xlsx", workbook(cells.String(), "", "<numFmts>"+fmts.String()+"</numFmts><cellXfs>"+styles.String()+"</cellXfs>"))
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false), strings.Join([]string{
		"row,A", "1,46356.25", "2,46356.25", "3,2026-11-30T06:00:00", "4,2026-11-30T06:00:00", "5,2026-11-30T06:00:00", "6,2026-11-30T06:00:00", "7,1112550:00:00",
		"8,2026-11-30T06:00:00", "9,46356.25", "10,46356.25", "11,46356.25", "12,46356.25", "13,2026-11-30T06:00:00", "14,46356.25",
		"101,1900-01-01", "102,1900-02-28", "103,1900-02-29", "104,1900-03-01", "105,-1", "106,2958466", "107,1899-12-31", "108,NaN",
		"201,0.3", "202,1e+300", "203,1e-07", "204,123456789012345678", "205,1500", "206,-0.1", "207,x",
		`[sheet "S"; rows 1 to 207, which is the end]`,
	}, "\n"))
}

func TestXLSXReaderCells(t *testing.T) {
	b := newBench(t)
	b.Put("in/a.xlsx", workbook(`<row><c t="s"><v>0</v></c><c t="s"><v>1</v></c><c r="E1" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r></is></c></row>`+
		`<row r="3"><c r="B3" t="str"><f>A1</f><v>text</v></c><c t="b"><v>1</v></c><c t="e"><v>#REF!</v></c><c t="d"><v>2026-11-30</v></c></row>`+
		`<row r="4"><c r="A4"><f t="shared" si="0">B1*2</f><v>2</v></c><c r="B4"><f t="shared" si="0"/><v>4</v></c></row>`,
		`<si><r><t>rich </t></r><r><rPr><b/></rPr><t>text</t></r><rPh><t>no</t></rPh></si><si><t>a_x000D_&#10;b &amp; "c"</t></si>`, ""))
	b.WantText("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false),
		"row,A,B,C,D,E\n1,rich text,\"a\nb & \"\"c\"\"\",,,inline\n3,,text,TRUE,#REF!,2026-11-30\n4,2,4\n[sheet \"S\"; rows 1 to 4, which is the end]")
	b.WantParts("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false, "formulas", true), "3,,=A1,", "\n4,=B1*2,=C1*2\n")

	// Long texts are cut, and a result has a bound.
	long := strings.Repeat("x", 5000)
	b.Put("in/a.xlsx", workbook(strings.Repeat(`<row><c t="inlineStr"><is><t>`+long+`</t></is></c></row>`, 100), "", ""))
	got, failed := b.Call("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false))
	if failed || len(got) > 31_000 || !strings.Contains(got, "x... [4000 more characters]\n") || !strings.Contains(got, "more follow, go on with offset 29]") {
		t.Errorf("%d characters, %q", len(got), got[len(got)-200:])
	}
}

func TestXLSXReaderMovesSharedFormulas(t *testing.T) {
	b := newBench(t)
	for formula, want := range map[string]string{ // from B2 to C4
		"A1+1": "B3+1", "$A1*A$1*$A$1": "$A3*B$1*$A$1", "SUM(A1:B2)": "SUM(B3:C4)", "'A1 x'!B2&amp;\"A1\"": "'A1 x'!C4&amp;\"A1\"", "A1!B2": "A1!C4",
		"LOG10(B2)": "LOG10(C4)", "Rate1x*2": "Rate1x*2", "Table1[A1]": "Table1[A1]", "a1%": "B3%", "[1]S!A1": "[1]S!B3", "1.5E+3": "1.5E+3", "XFD1": "#REF!", "TRUE": "TRUE", "A:$A+1:$1": "B:$A+3:$1", "A+1": "A+1",
	} {
		b.Put("in/a.xlsx", workbook(`<row r="1"><c r="A1"><f>1</f><v>1</v></c></row><row r="2"><c r="B2"><f t="shared" si="3">`+formula+`</f><v>1</v></c></row>`+
			`<row r="4"><c r="A4"><f t="shared" si="9"/><v>1</v></c><c r="C4"><f t="shared" si="3"/><v>1</v></c></row>`, "", ""))
		got, _ := b.Call("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "range", "C4", "has_header_row", false, "formulas", true))
		want = strings.ReplaceAll(want, "&amp;", "&")
		if !strings.Contains(strings.ReplaceAll(got, `""`, `"`), "="+want+"\n") && !strings.Contains(strings.ReplaceAll(got, `""`, `"`), "="+want+"\"\n") {
			t.Errorf("%s: got %q, want %s", formula, got, want)
		}
	}
	b.WantParts("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "formulas", true), "row,=1\n", "4,=(a formula that is not stored in this cell),,")
}

func TestXLSXReaderTakesEmptyTexts(t *testing.T) {
	b := newBench(t)
	b.Put("in/a.xlsx", workbook(`<row><c t="s"/><c t="s"><v></v></c><c t="inlineStr"/><c><v>1</v></c></row>`, "", ""))
	b.WantParts("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false), "1,,,,1\n")
}

func TestXLSXReaderSurvives(t *testing.T) {
	b := bounds(t)
	row := func(cells string) string { return "<row>" + cells + "</row>" }
	for name, tt := range map[string]struct{ file, want string }{
		"a text without end":      {workbook(row("<c><v>"+strings.Repeat(" ", 6<<20)), "", ""), "too large"},
		"a comment without end":   {workbook(row("<!--"+strings.Repeat(" <a>", 2<<20)), "", ""), "too large"},
		"a tag without end":       {workbook(row("<c "+strings.Repeat(`a="b" `, 1<<20)), "", ""), "too large"},
		"elements in elements":    {workbook(row(strings.Repeat("<c>", 100_000)), "", ""), "nested too deep"},
		"entities":                {workbook(`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>`+row("<c><v>&b;</v></c>"), "", ""), "damaged"},
		"no such text":            {workbook(row(`<c t="s"><v>7</v></c>`), "", ""), "a text that is not there"},
		"negative text":           {workbook(row(`<c t="s"><v>-1</v></c>`), "", ""), "a text that is not there"},
		"a row too many":          {workbook(`<row r="1048577"></row>`, "", ""), "no number that a row can have"},
		"cells out of order":      {workbook(row(`<c r="B1"><v>1</v></c><c r="A1"><v>1</v></c>`), "", ""), "out of order"},
		"too many columns":        {workbook(row(`<c r="XFD1"><v>1</v></c><c><v>1</v></c>`), "", ""), "more columns"},
		"no end":                  {workbook(row("<c><v>1</v></c>"), "", "")[:300], "damaged"},
		"no sheet":                {zipped("[Content_Types].xml", "<x/>", "_rels/.rels", officeRels, "xl/workbook.xml", "<workbook/>"), "no spreadsheet"},
		"no main part":            {zipped("[Content_Types].xml", "<x/>"), "no main part"},
		"another archive":         {zipped("a.txt", "a"), "an archive, and no .xlsx file"},
		"many parts":              {zipped(names(100_000)...), "directory is too large"},
		"a sheet that is missing": {zipped("[Content_Types].xml", "<x/>", "_rels/.rels", officeRels, "xl/workbook.xml", workbookXML), "missing in the file"},
		"empty":                   {"", "empty"},
	} {
		b.Put("in/a.xlsx", tt.file)
		got, failed := b.Call("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "has_header_row", false))
		if !failed || !strings.Contains(got, tt.want) || !strings.Contains(got, "/in/a.xlsx") {
			t.Errorf("%s: %q (failed: %t), want %q", name, got, failed, tt.want)
		}
	}

	// What is encrypted is told from what is old.
	f := excelize.NewFile()
	var buf bytes.Buffer
	if err := f.Write(&buf, excelize.Options{Password: "secret"}); err != nil {
		t.Fatal(err)
	}
	b.Put("in/a.xlsx", buf.String())
	b.WantFailure("xlsx_reader", nativetest.Args("path", "/in/a.xlsx"), "encrypted and opens with a password only")
}

func FuzzXLSXReader(f *testing.F) {
	bench := newBench(f)
	f.Add(`<row r="2"><c r="B2" t="s"><v>0</v></c><c><f>A1</f></c></row>`, `<si><t>x</t></si>`, `<cellXfs><xf numFmtId="14"/></cellXfs>`)
	f.Fuzz(func(t *testing.T, rows, shared, styles string) {
		b := bench
		b.TB = t
		b.Put("in/a.xlsx", workbook(rows, shared, styles))
		b.Call("xlsx_reader", nativetest.Args("path", "/in/a.xlsx", "include_metadata", true))
	})
}

func FuzzOfficeArchive(f *testing.F) {
	bench := newBench(f)
	files, _ := filepath.Glob("testdata/office/*.*")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bench
		b.TB = t
		b.Put("in/a.xlsx", string(data))
		b.Call("xlsx_reader", nativetest.Args("path", "/in/a.xlsx"))
	})
}

const (
	officeRels  = `<Relationships><Relationship Id="r" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>`
	workbookXML = `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`
	bookRels    = `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="x/sharedStrings" Target="sharedStrings.xml"/><Relationship Id="r3" Type="x/styles" Target="/xl/styles.xml"/></Relationships>`
)

// workbook makes a spreadsheet of one sheet.
func workbook(rows, shared, styles string) string {
	return zipped("[Content_Types].xml", "<x/>", "_rels/.rels", officeRels, "xl/workbook.xml", workbookXML, "xl/_rels/workbook.xml.rels", bookRels,
		"xl/worksheets/sheet1.xml", "<worksheet><sheetData>"+rows+"</sheetData></worksheet>",
		"xl/sharedStrings.xml", "<sst>"+shared+"</sst>", "xl/styles.xml", "<styleSheet>"+styles+"</styleSheet>")
}

// zipped makes an archive of names and contents.
func zipped(parts ...string) string {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		method := zip.Deflate
		if parts[i+1] == "" {
			method = zip.Store // a compressor is half a megabyte
		}
		f, err := w.CreateHeader(&zip.FileHeader{Name: parts[i], Method: method})
		if err == nil {
			_, err = f.Write([]byte(parts[i+1]))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

func names(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("part%d", i), "")
	}
	return list
}
