package documents_test

import (
	"archive/zip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

const salesSheet = `{"name": "Sales & more", "headers": ["Day", "Amount", "Note"], "rows": [
  [{"date": "2026-11-30"}, 12.5, "=1+1"], [{"date": "2026-11-30T13:45:10"}, 725653563933458433, "line 1\nline 2"],
  ["Sum", {"formula": "=SUM(B2:B2)"}, null, true], [], [{"date": "1900-01-01"}, 1e400, " <&> ", -0.10]]}`

func TestXLSXWriter(t *testing.T) {
	b := newBench(t)
	b.WantParts("xlsx_writer", `{"path": "/out/new/a.xlsx", "sheets": [`+salesSheet+`, {"name": "Second", "rows": [["äöü", 100000000000000000000, false]]}]}`,
		"Created /out/new/a.xlsx (", `: sheet "Sales & more" with 5 rows, sheet "Second" with 1 row.`, "2 numbers were written as text")
	want := "row,Day,Amount,Note\n2,2026-11-30,12.5,=1+1\n3,2026-11-30T13:45:10,725653563933458433,\"line 1\nline 2\"\n4,Sum,=SUM(B2:B2),,TRUE\n6,1900-01-01,1e400,\" <&> \",-0.1\n"
	b.WantParts("xlsx_reader", nativetest.Args("path", "/out/new/a.xlsx"), want)
	b.WantParts("xlsx_reader", nativetest.Args("path", "/out/new/a.xlsx", "sheet_name", "second", "has_header_row", false), "1,äöü,100000000000000000000,FALSE\n")

	// In the file itself: what begins with = is a text, and long numbers are.
	sheet := zipPart(t, filepath.Join(b.Root, "out/new/a.xlsx"), "xl/worksheets/sheet1.xml")
	for _, part := range []string{`<c r="B4" t="str"><f>SUM(B2:B2)</f></c>`, `<c r="B2"><v>12.5</v></c>`, `<autoFilter ref="$A$1:$C$6"`, `state="frozen"`, `ySplit="1"`} {
		if !strings.Contains(sheet, part) {
			t.Errorf("the sheet lacks %s: %s", part, sheet)
		}
	}
	if n := strings.Count(sheet, "<f>"); n != 1 {
		t.Errorf("%d formulas, want 1: %s", n, sheet)
	}

	// Adding keeps what is there.
	b.WantParts("xlsx_writer", `{"file_path": "/out/new/a.xlsx", "append_to_existing": true, "sheets": [
	  {"name": "SALES & MORE", "headers": ["Day", "Amount", "Note"], "rows": [["x", 1, "y"]]}, {"name": "Third", "headers": ["a"]}]}`,
		"Added to /out/new/a.xlsx", `sheet "Sales & more" with 1 row, sheet "Third" with 0 rows`)
	b.WantParts("xlsx_reader", nativetest.Args("path", "/out/new/a.xlsx", "include_metadata", true), `Sheets: "Sales & more", "Second", "Third"`, want+"7,x,1,y\n")
	b.WantFailure("xlsx_writer", `{"path": "/out/new/a.xlsx", "append_to_existing": true, "sheets": [{"name": "Second", "headers": ["other"], "rows": [[1]]}]}`,
		"was not written", "the headers of sheet \"Second\" are äöü")

	// Adding to what another program made keeps its dates, formulas and sheets.
	putFiles(t, b, "office")
	b.Put("out/lo.xlsx", b.Get("in/libreoffice.xlsx"))
	b.WantParts("xlsx_writer", `{"path": "/out/lo.xlsx", "append_to_existing": true, "sheets": [{"name": "Sales", "rows": [[{"date": "2027-01-02"}, "new"]]}]}`, "Added to")
	b.WantParts("xlsx_reader", nativetest.Args("path", "/out/lo.xlsx", "formulas", true, "include_metadata", true),
		"(hidden)", "A6:C6", "2,2026-11-30,Änne,1200.5,0.25,=TRUE(),=C2*2,", "8,,,,,far\n9,2027-01-02,new\n")

	// Replacing replaces, and a failure leaves the file as it is.
	before := b.Get("out/lo.xlsx")
	b.WantFailure("xlsx_writer", `{"path": "/out/lo.xlsx", "sheets": [{"name": "a:b", "rows": [[1]]}]}`, "must not have any of")
	if b.Get("out/lo.xlsx") != before {
		t.Error("a call that failed changed the file")
	}
	b.WantParts("xlsx_writer", `{"path": "/out/lo.xlsx", "sheets": [{"name": "New", "rows": [[1]]}]}`, "Replaced /out/lo.xlsx")
	b.WantParts("xlsx_reader", nativetest.Args("path", "/out/lo.xlsx", "include_metadata", true, "has_header_row", false), "Sheets: \"New\"\n", "1,1\n")
}

func zipPart(t testing.TB, archive, name string) string {
	t.Helper()
	r, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	f, err := r.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestXLSXWriterNamesAllProblems(t *testing.T) {
	b := newBench(t)
	b.WantFailure("xlsx_writer", `{"path": "/out/a.xls", "sheets": [
	  {"name": "", "rows": [[1]]}, {"name": "a/b", "rows": [[1]]}, {"name": "Twice", "rows": [[1]]}, {"name": "TWICE", "rows": [[1]]},
	  {"name": "`+strings.Repeat("ä", 32)+`", "rows": [[1]]}, {"name": "'q", "rows": [[1]]}, {"name": "history", "rows": [[1]]}, {"name": "e"}, {"nme": "x", "rows": [[1]]}, 7,
	  {"name": "Cells", "rows": [[[1]], [{"date": "30.11.2026"}], [{"formula": "=SUM(A1"}], [{"x": "y"}], [1, {"date": "1899-01-01"}], "row"]}]}`,
		`"/out/a.xls" does not end with .xlsx`, "sheet \"\": its name is empty", `sheet "a/b": its name must not have any of`, `sheet "TWICE": the name is given twice`,
		"has 32 characters, and at most 31 can be", "apostrophe", "History is reserved", "neither headers nor rows", `there is no "nme" in a sheet (did you mean "name"?)`,
		"sheet 10: it must be an object", `sheet "Cells": cell A1: a cell can't be a list`, `cell A2: "30.11.2026" is no date such as 2026-11-30`,
		`cell A3: the formula "SUM(A1" opens a bracket`, `cell A4: an object must be`, "cell B5: 1899-01-01 can't be a date", "row 6 must be a list of cells")
	for formula, want := range map[string]string{
		"=": "is empty", `=cmd|'/c calc'!A1`: "starts another program", `=WEBSERVICE("http://x/"&A1)`: "WEBSERVICE reaches out", "= _xlfn.webservice (A1)": "WEBSERVICE reaches out",
		`=IF(1,IMAGE("x"),2)`: "IMAGE reaches out", `="a`: "has no end", "=A1)": "closes a bracket", "=RTD(1)": "RTD reaches out",
	} {
		b.WantFailure("xlsx_writer", nativetest.Args("path", "/out/a.xlsx", "sheets", []any{map[string]any{"name": "S", "rows": []any{[]any{map[string]string{"formula": formula}}}}}), want)
	}
	for _, formula := range []string{`=IF(A1="(|",1,2)`, "='My (sheet'!A1", "=MYIMAGE(1)", `="WEBSERVICE("&A1`} {
		b.WantParts("xlsx_writer", nativetest.Args("path", "/out/ok.xlsx", "sheets", []any{map[string]any{"name": "S", "rows": []any{[]any{map[string]string{"formula": formula}}}}}), "/out/ok.xlsx")
		b.WantParts("xlsx_reader", nativetest.Args("path", "/out/ok.xlsx", "has_header_row", false, "formulas", true), strings.ReplaceAll(formula, `"`, `""`))
	}
	b.WantFailure("xlsx_writer", nativetest.Args("path", "/out/a.xlsx", "sheets", []any{map[string]any{"name": "S", "rows": []any{[]any{strings.Repeat("x", 32_768)}}}}), "cell A1 has 32768 characters")
	b.WantFailure("xlsx_writer", `{"sheets": []}`, `"path" is missing`, "must have 1 to 200 sheets")
	b.WantFailure("xlsx_writer", `{"path": "/in/a.xlsx", "sheets": [{"name": "S", "rows": [[1]]}]}`, "/in is mounted read-only")
	b.Put("out/broken.xlsx", "PK nothing")
	b.WantFailure("xlsx_writer", `{"path": "/out/broken.xlsx", "append_to_existing": true, "sheets": [{"name": "S", "rows": [[1]]}]}`, "/out/broken.xlsx can't be read")
	if _, err := os.Stat(filepath.Join(b.Root, "out/a.xlsx")); !os.IsNotExist(err) {
		t.Error("a call that failed wrote a file")
	}
}

func TestXLSXWriterEffect(t *testing.T) {
	b := newBench(t)
	tool, _ := b.Reg.Lookup("xlsx_writer")
	for args, want := range map[string]native.Effect{
		`{}`: native.Repeatable, `{"append_to_existing": false}`: native.Repeatable, `{"append_to_existing": null}`: native.Repeatable,
		`{"append_to_existing": true}`: native.Once, `{"append_to_existing": "true"}`: native.Once, `{"append_to_existing": "yes"}`: native.Once,
	} {
		if got := tool.(native.Tool).Does(json.RawMessage(args)); got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
	if !tool.(native.Tool).WritesFiles {
		t.Error("it writes files, and does not say so")
	}
}

func FuzzXLSXWriter(f *testing.F) {
	bench := newBench(f)
	f.Add(`[` + salesSheet + `]`)
	f.Fuzz(func(t *testing.T, sheets string) {
		if !json.Valid([]byte(sheets)) {
			return
		}
		b := bench
		b.TB = t
		if _, failed := b.Call("xlsx_writer", `{"path": "/out/a.xlsx", "sheets": `+sheets+`}`); !failed {
			b.WantParts("xlsx_reader", nativetest.Args("path", "/out/a.xlsx"), "[sheet")
		}
	})
}
