package documents_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

func TestCSVOfOtherPrograms(t *testing.T) {
	b := newBench(t)
	putFiles(t, b, "csv")
	rows := "| Name | Preis | Anzahl | Datum |\n| --- | --- | --- | --- |\n" +
		"| Müller & Söhne | 1.234,50 | 3 | 2026-11-30 |\n" +
		"| Say \"hi\"; twice | 0,99 | 12 | 2026-01-05 |\n"
	b.WantParts("csv_reader", `{"path":"/in/libreoffice-windows-1252.csv"}`, rows, "| Zeile 1<br>Zeile 2 | -7,25 |", "| Käse € |", "\n[4 rows]", "[decoded as windows-1252, which is a guess", "[the delimiter is ;]")
	b.WantParts("csv_reader", `{"path":"/in/libreoffice-unicode-text.txt"}`, rows, "| Käse € |", "[decoded as utf-16le]", "[the delimiter is tab]")
	got, _ := b.Call("csv_reader", `{"path":"/in/libreoffice-utf-8.csv"}`)
	if !strings.HasPrefix(got, rows) || !strings.HasSuffix(got, "|\n[4 rows]") {
		t.Errorf("got %s", got)
	}
	b.WantText("csv_reader", `{"path":"/in/sqlite3.csv","format":"json"}`, "["+
		"\n  {\"id\": \"1\", \"name\": \"Müller\", \"note\": \"a \\\"quoted\\\", word\", \"amount\": \"1.5\"},"+
		"\n  {\"id\": \"2\", \"name\": \"line\\nbreak\", \"note\": \"\", \"amount\": \"-20000000000.0\"},"+
		"\n  {\"id\": \"3\", \"name\": \"\", \"note\": \"  padded \", \"amount\": \"0.0\"}\n]\n[3 rows]")
	b.WantText("csv_reader", `{"path":"/in/python-excel-tab.tsv","format":"csv"}`,
		"id,name,remark\n1,Zoë,tab\there\n2,,\"quote \"\" and ; and ,\"\n3,\"line\nbreak\",x\n[3 rows]\n[the delimiter is tab]")
	b.WantParts("csv_reader", `{"path":"/in/python-unix.csv","where":{"id":2},"columns":["remark","id"],"format":"csv"}`, "remark,id\n\"quote \"\" and ; and ,\",2\n[1 matching row]")
	b.WantText("csv_reader", `{"path":"/in/psql.csv","format":"json"}`, "["+
		"\n  {\"id\": \"1\", \"name\": \"Müller, \\\"x\\\"\", \"note\": \"\", \"amount\": \"1.50\", \"ok\": \"t\"},"+
		"\n  {\"id\": \"2\", \"name\": \"a\\nb\", \"note\": \"\", \"amount\": \"-3\", \"ok\": \"f\"}\n]\n[2 rows]")
	b.WantText("csv_reader", `{"path":"/in/mariadb.tsv"}`, "| id | name | note | amount |\n| --- | --- | --- | --- |\n"+
		"| 1 | Müller \"x\" | NULL | 1.50 |\n| 2 | a\\nb\\tc |  | -3.00 |\n[2 rows]\n[the delimiter is tab]")
	b.WantParts("csv_reader", `{"path":"/in/libreoffice-windows-1252.csv","summary":true}`, "4 rows, 4 columns\nName: text, such as \"Müller & Söhne\"\n",
		"Preis: number (decimal comma), from -7,25 to 1.234,50\n", "Datum: date, from 2025-12-24 to 2026-11-30")
}

func TestCSVForms(t *testing.T) {
	b := newBench(t)
	long := strings.Repeat("x", 9000)
	for name, tt := range map[string]struct{ file, args, want string }{
		"no header":       {"1,2\n3,4\n", `"has_header":false`, "column_1,column_2\n1,2\n3,4\n[2 rows]"},
		"crlf":            {"a,b\r\n1,2\r\n", ``, "a,b\n1,2\n[1 row]"},
		"cr only":         {"a,b\r1,\"x\r2\"\r3,4", ``, "a,b\n1,\"x\n2\"\n3,4\n[2 rows]"},
		"no last end":     {"a,b\n1,2", ``, "a,b\n1,2\n[1 row]"},
		"empty lines":     {"\n\na,b\n\n1,2\n\n\n", ``, "a,b\n1,2\n[1 row]"},
		"sep line":        {"sep=|\r\na|b\r\n1|2,3,4\r\n", ``, "a,b\n1,\"2,3,4\"\n[1 row]\n[the delimiter is |]"},
		"given":           {"a;b,c\n1;2,3\n", `"delimiter":","`, "a;b,c\n1;2,3\n[1 row]"},
		"given tab":       {"a\tb\n1\t2\n", `"delimiter":"tab"`, "a,b\n1,2\n[1 row]"},
		"decimal comma":   {"a;b\n1,5;2,5\n3,1;4\n", ``, "a,b\n\"1,5\",\"2,5\"\n\"3,1\",4\n[2 rows]\n[the delimiter is ;]"},
		"names":           {"a,a,,a_2\n1,2,3,4\n", ``, "a,a_2,column_3,a_2_2\n1,2,3,4\n[1 row]\n[several columns are named a, a_2; the later ones have a number added]"},
		"short and long":  {"a,b\n1\n1,2,3\n1,2\n", ``, "a,b,column_3\n1,,\n1,2,3\n1,2,\n[3 rows]\n[2 rows have not 2 values like the first row: line 2, 3]"},
		"lazy quotes":     {"a,b\nit's 5\" long,2\n\"x\"y,3\n\"p\" ,4\n", ``, "a,b\n\"it's 5\"\" long\",2\nxy,3\np,4\n[3 rows]\n[1 value has text behind its closing quote, which was taken as a part of it]"},
		"unclosed":        {"a,b\n1,\"open\n2,3\n", ``, "a,b\n1,\"open\n2,3\n\"\n[1 row]\n[a quote in the row of line 2 is never closed; everything behind it was taken for one value]"},
		"quotes":          {"a,b\n\"1,\"\"2\"\"\",\"\"\n", ``, "a,b\n\"1,\"\"2\"\"\",\n[1 row]"},
		"one column":      {"word\nb\na\n", ``, "word\nb\na\n[2 rows]"},
		"only a header":   {"a,b\n", ``, "[no row; the columns are a, b]"},
		"empty":           {"", ``, "[the file has no rows]"},
		"offset":          {"a\n1\n2\n3\n4\n", `"offset":2,"max_rows":2`, "a\n2\n3\n[rows 2 to 3, and there are more; go on with offset 4]"},
		"offset to end":   {"a\n1\n2\n3\n4\n", `"offset":3,"max_rows":2`, "a\n3\n4\n[rows 3 to 4 of 4]"},
		"where":           {"a,b\nx,1\ny,1\nX,2\nx,3\n", `"where":{"a":"x"},"offset":2`, "a,b\nx,3\n[matching rows 2 to 2 of 2]"},
		"contains":        {"a,b\nAnna,1\nbob,1\nHANNES,2\n", `"contains":{"A":"ann"},"where":{"b":2}`, "a,b\nHANNES,2\n[1 matching row]"},
		"none match":      {"a,b\nx,1\n", `"where":{"a":"z"}`, "[no matching row; the columns are a, b]"},
		"long value":      {"a,b\n" + long + ",2\n", ``, "a,b\n" + long[:4000] + "[... 5000 more characters],2\n[1 row]\n[1 long value was cut; raise max_chars to see more of them]"},
		"latin-1":         {"a,b\nM\xfcller,2\n", `"encoding":"iso-8859-1"`, "a,b\nMüller,2\n[1 row]"},
		"bad bytes later": {"a,b\n" + strings.Repeat("1,2\n", 50_000) + "\xfc,3\n", `"offset":50001,"encoding":"utf-8"`, "a,b\n\uFFFD,3\n[rows 50001 to 50001 of 50001]\n[1 place is no utf-8 and shown as \"\uFFFD\"; name the encoding]"},
	} {
		b.Put("in/x.csv", tt.file)
		args := `{"path":"/in/x.csv","format":"csv"`
		if tt.args != "" {
			args += "," + tt.args
		}
		if got, failed := b.Call("csv_reader", args+"}"); failed || got != tt.want {
			t.Errorf("%s: got %.300q, want %.300q", name, got, tt.want)
		}
	}
	b.Put("in/x.csv", "a,b\n"+strings.Repeat("some words here,2\n", 1000))
	b.WantParts("csv_reader", `{"path":"/in/x.csv","max_rows":1000}`, "[rows 1 to 332 of 1000; go on with offset 333]")
	b.WantParts("csv_reader", `{"path":"/in/x.csv","offset":1000,"format":"json"}`, "[\n  {\"a\": \"some words here\", \"b\": \"2\"}\n]\n[rows 1000 to 1000 of 1000]")
	b.Put("in/x.csv", "a word|b\n1|x\\|y\x01 and some more words"+strings.Repeat(" and more", 100)+"\n")
	b.WantParts("csv_reader", `{"path":"/in/x.csv","delimiter":";"}`, `| 1\|x\\|y`+"\uFFFD and some more words and more")
}

func TestCSVSummary(t *testing.T) {
	b := newBench(t)
	b.Put("in/x.csv", "id,price,when,ok,zip,none,note,mix\n1,2.5,2026-01-02,true,01234,,a,1\n-3,10,2025-01-02T10:00:00Z,FALSE,99999,,,x\n20,.5,2026-01-02 10:00,true,1,,b,3\n")
	b.WantText("csv_reader", `{"path":"/in/x.csv","summary":true}`, `3 rows, 8 columns
id: integer, from -3 to 20
price: number, from .5 to 10
when: date, from 2025-01-02T10:00:00Z to 2026-01-02 10:00
ok: boolean
zip: number, from 1 to 99999
none: empty
note: text, such as "a", 1 empty
mix: text, such as "1"`)
	b.WantText("csv_reader", `{"path":"/in/x.csv","summary":true,"columns":["mix"],"where":{"ok":true}}`, "2 matching rows, 8 columns\nmix: integer, from 1 to 3")
	b.Put("in/x.csv", strings.Repeat("a column,", 3000)+"last\n1\n")
	b.WantParts("csv_reader", `{"path":"/in/x.csv","summary":true}`, "1 row, 3001 columns", "more columns are not shown; name them in columns]")
}

func TestCSVRefuses(t *testing.T) {
	b := newBench(t)
	b.Put("in/x.csv", "country,amount\nDE,1\n")
	b.Put("in/x.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	b.Put("in/x.xlsx", "PK\x03\x04\x14\x00\x06\x00\x08\x00")
	b.Put("in/bin.csv", "a,b\n\x00\x01\x00\x02\x05")
	for args, want := range map[string]string{
		`{"path":"/in/x.csv","columns":["contry"]}`:     `no column "contry" (did you mean "country"?); the columns are country, amount`,
		`{"path":"/in/x.csv","where":{"land":"DE"}}`:    `no column "land"`,
		`{"path":"/in/x.csv","offset":3}`:               "/in/x.csv: 1 row is all that there is",
		`{"path":"/in/x.csv","delimiter":"::"}`:         "one ASCII character",
		`{"path":"/in/x.csv","delimiter":"é"}`:          "one ASCII character",
		`{"path":"/in/x.csv","encoding":"klingon"}`:     `the argument "encoding"`,
		`{"path":"/in/none.csv"}`:                       "/in/none.csv",
		`{"path":"/in/x.png"}`:                          "/in/x.png can't be read",
		`{"path":"/in/x.xlsx"}`:                         "ZIP archive",
		`{"path":"/in/bin.csv"}`:                        "/in/bin.csv can't be read",
		`{"path":"/in"}`:                                "/in",
		`{"path":"/in/x.csv","where":{"amount":[1,2]}}`: "must be a string",
	} {
		b.WantFailure("csv_reader", args, want)
	}
}

// TestCSVNamesManyColumns has as many columns of one name as a file can have, which are
// numbered one after the other. Trying every number for each took minutes.
func TestCSVNamesManyColumns(t *testing.T) {
	b := newBench(t)
	b.Put("in/x.csv", "a,a_3"+strings.Repeat(",a", 16_382)+"\n1\n")
	b.WantParts("csv_reader", `{"path":"/in/x.csv","format":"csv","columns":["a_4","a_16384"]}`, "a_4,a_16384\n", "several columns are named a;")
}

// TestCSVIsBounded reads values and rows that never end.
func TestCSVIsBounded(t *testing.T) {
	b := bounds(t)
	write(t, filepath.Join(b.Root, "in/x.csv"), func(w *bufio.Writer) {
		fmt.Fprint(w, "a,b\n1,\"")
		for range 100 << 10 {
			w.WriteString(strings.Repeat("x", 1023) + "\n")
		}
		fmt.Fprint(w, "\"\n2,")
		for range 10 << 10 {
			w.WriteString(strings.Repeat("y,", 512))
		}
		fmt.Fprint(w, "\n3,4\n")
	})
	peak := peakOf(t, func() {
		b.WantParts("csv_reader", `{"path":"/in/x.csv","columns":["a","b"],"format":"csv"}`, "\n2,y\n3,4\n[3 rows]",
			"1 value was longer than 1048576 bytes and cut]", "values beyond column 16384 were left out]", "[1 row has not 2 values like the first row: line 102403]")
	})
	if peak > 48<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}
}

// TestCSVStreams reads 200 MB in a heap of some megabytes.
func TestCSVStreams(t *testing.T) {
	b := bounds(t)
	rows := 0
	write(t, filepath.Join(b.Root, "in/big.csv"), func(w *bufio.Writer) {
		fmt.Fprintln(w, "id;name;amount;remark")
		for size := 0; size < 200<<20; rows++ {
			n, _ := fmt.Fprintf(w, "%d;\"Name \"\"%d\"\"\";%d,%02d;some words that make the row longer, and %x\n", rows+1, rows%1000, rows%777, rows%100, rows)
			size += n
		}
	})
	peak := peakOf(t, func() {
		b.WantParts("csv_reader", nativetest.Args("path", "/in/big.csv", "offset", rows-1), fmt.Sprintf("| %d | Name ", rows), fmt.Sprintf("[rows %d to %d of %d]", rows-1, rows, rows))
		b.WantParts("csv_reader", `{"path":"/in/big.csv","summary":true}`, fmt.Sprintf("%d rows, 4 columns\nid: integer, from 1 to %d\n", rows, rows), "amount: number (decimal comma), from 0,00 to 776,")
		b.WantParts("csv_reader", `{"path":"/in/big.csv"}`, "[rows 1 to 100, and there are more; go on with offset 101]")
	})
	if peak > 32<<20 {
		t.Errorf("the heap grew to %d MiB", peak>>20)
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	tool, _ := b.Reg.Lookup("csv_reader")
	gone := errors.New("gone")
	timer := time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
	defer timer.Stop()
	_, err := tool.Call(ctx, call(`{"path":"/in/big.csv","summary":true}`))
	if tools.CodeOf(err) != tools.CodeCancelled || !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func write(t *testing.T, name string, fill func(w *bufio.Writer)) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	fill(w)
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// peakOf is how much more the heap holds at most while f runs.
func peakOf(t *testing.T, f func()) int64 {
	t.Helper()
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var peak int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				runtime.ReadMemStats(&now)
				peak = max(peak, int64(now.HeapAlloc)-int64(before.HeapAlloc))
			}
		}
	})
	f()
	close(done)
	wg.Wait()
	return peak
}

func FuzzCSV(f *testing.F) {
	b := newBench(f)
	tool, _ := b.Reg.Lookup("csv_reader")
	for _, s := range []string{"a,b\n1,\"x\ny\"\n", "sep=;\r\na;a\r\n\"1\"x;\"2", "a\tb\r1\t2\r", "\xff\xfea\x00,\x00b\x00\n\x00"} {
		f.Add([]byte(s), "table", false)
	}
	f.Fuzz(func(t *testing.T, data []byte, format string, summary bool) {
		if err := os.WriteFile(filepath.Join(b.Root, "in/x.csv"), data, 0o644); err != nil {
			t.Fatal(err)
		}
		res, err := tool.Call(t.Context(), call(nativetest.Args("path", "/in/x.csv", "format", format, "summary", summary)))
		holdsBound(t, res, err)
	})
}
