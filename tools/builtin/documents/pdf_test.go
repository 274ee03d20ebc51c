package documents_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crewhost/tools"
	"crewhost/tools/builtin/documents"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

// pdfEngine is shared by the tests, which don't wait for the compiler each.
var pdfEngine = documents.NewPDFEngine()

func newPDFBench(t testing.TB) nativetest.Bench {
	t.Helper()
	withoutDetector(t) // PDFium's compiler takes minutes with it
	return nativetest.New(t, func(fsys *mount.FS) []native.Tool {
		return []native.Tool{documents.PDFReader(fsys, pdfEngine)}
	})
}

// newSmallBench is one whose files have 32 MB of memory each.
func newSmallBench(t testing.TB) nativetest.Bench {
	t.Helper()
	withoutDetector(t)
	return nativetest.New(t, func(fsys *mount.FS) []native.Tool {
		return []native.Tool{documents.PDFReader(fsys, pdfEngine.Small(32<<20))}
	})
}

// putFiles puts the files of a folder of testdata into /in.
func putFiles(t testing.TB, b nativetest.Bench, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		b.Put("in/"+filepath.Base(f), string(data))
	}
}

func TestPDFReaderReadsWhatOtherProgramsMade(t *testing.T) {
	b := newPDFBench(t)
	putFiles(t, b, "pdf")
	for name, want := range map[string][]string{
		"libreoffice-writer.pdf": {
			"--- page 1 ---\nKopfzeile: Hafenamt\nJahresbericht über den Hafen\n1. Übersicht\n",
			"Straße, Öl, Äpfel, Übermaß. Efficient\noffices find five fluffy flies.",
			"η θάλασσα είναι ήρεμη σήμερα. Русский текст: море",
			"\n• first point\n", "\nSchiff Ladung Gewicht (t)\nAnna Kohle 1200\n", "\n[page 1 of 1]",
		},
		"groff-columns.pdf": {
			"find that extraordinary circumstances of internationalization make hyphenation necessary in narrow columns",
			"\nName Count Price\nApple 10 1.20\nPear 200 33.40\n",
		},
		"ghostscript.pdf": {
			"The quick brown fox jumps over the lazy dog. Efficient offices find five fluffy\nflies in the official office.",
			"--- page 2 ---\ng.ms", "[pages 1-2 of 2]",
		},
		"reportlab.pdf":         {"Größe, Straße, café.", "日本語のテキスト、東京都。", "Ελληνικά, Русский", "--- page 2 ---\nSecond page.\n"},
		"cairo-image.pdf":       {"no text on page 1, but images: it may be scanned"},
		"qpdf-linearized.pdf":   {"The quick brown fox", "[pages 1-2 of 2]"},
		"qpdf-aes256-owner.pdf": {"The quick brown fox", "[pages 1-2 of 2]"},
		"qpdf-rc4-owner.pdf":    {"The quick brown fox", "[pages 1-2 of 2]"},
	} {
		b.WantParts("pdf_reader", nativetest.Args("path", "/in/"+name), want...)
	}
	b.WantFailure("pdf_reader", nativetest.Args("path", "/in/qpdf-aes256-user.pdf"), "/in/qpdf-aes256-user.pdf", "encrypted and opens with a password only")
	b.WantFailure("pdf_reader", nativetest.Args("path", "/in/README"), "no PDF file")
	b.WantParts("pdf_reader", nativetest.Args("path", "/in/libreoffice-writer.pdf", "include_metadata", true),
		"Title: Jahresbericht Hafen\nAuthor: Änne Müller\nCreator: Writer\n", "\n1 page\n\n--- page 1 ---\n")
}

func TestPDFReaderPages(t *testing.T) {
	b := newPDFBench(t)
	b.Put("in/many.pdf", manyPages(5000))
	for pages, want := range map[string]string{
		"1":       "--- page 1 ---\nThis is page 1.\n[page 1 of 5000]",
		"last":    "--- page 5000 ---\nThis is page 5000.\n[page 5000 of 5000]",
		"2-3, 7":  "--- page 2 ---\nThis is page 2.\n--- page 3 ---\nThis is page 3.\n--- page 7 ---\nThis is page 7.\n[pages 2-3, 7 of 5000]",
		"4999-":   "--- page 4999 ---\nThis is page 4999.\n--- page 5000 ---\nThis is page 5000.\n[pages 4999-5000 of 5000]",
		"-1":      "--- page 1 ---\nThis is page 1.\n[page 1 of 5000]",
		"5000-99": "",
		"5-5":     "--- page 5 ---\nThis is page 5.\n[page 5 of 5000]",
	} {
		args := nativetest.Args("path", "/in/many.pdf", "page_range", pages)
		if want == "" {
			b.WantFailure("pdf_reader", args, "ends before it begins")
			continue
		}
		b.WantText("pdf_reader", args, want)
	}
	for pages, want := range map[string]string{
		"0": "is no page", "x": "is no page", "1,,2": "is no page", "3-2": "ends before", "last-3": "ends before", "-": "is no page",
		"99999999999": "is no page", "5001": "there is no page 5001: the last one is 5000", strings.Repeat("1,", 150) + "1": "more than 100 parts",
	} {
		b.WantFailure("pdf_reader", nativetest.Args("path", "/in/many.pdf", "page_range", pages), want)
	}

	// What is cut says how to go on, and going on misses and repeats nothing.
	whole, _ := b.Call("pdf_reader", nativetest.Args("path", "/in/many.pdf", "page_range", "1-9"))
	whole = strings.TrimSuffix(whole, "[pages 1-9 of 5000]")
	var parts strings.Builder
	offset := 1
	for range 10 {
		part, failed := b.Call("pdf_reader", nativetest.Args("path", "/in/many.pdf", "page_range", "1-9", "offset", offset, "max_chars", 100))
		if failed {
			t.Fatal(part)
		}
		text, note, _ := strings.Cut(part, "\n[page")
		_, next, more := strings.Cut(note, "the text goes on with offset ")
		parts.WriteString(text)
		if !more {
			break
		}
		if _, err := fmt.Sscanf(next, "%d", &offset); err != nil {
			t.Fatalf("%q: %v", part, err)
		}
	}
	if got := parts.String() + "\n"; got != whole {
		t.Errorf("in parts\n%q, want\n%q", got, whole)
	}
	b.WantText("pdf_reader", nativetest.Args("path", "/in/many.pdf", "page_range", "1", "offset", 100), "[the text of these pages has 31 characters; offset lies behind them]")
	got, _ := b.Call("pdf_reader", nativetest.Args("path", "/in/many.pdf"))
	if n := len(got); n > 16_200 || !strings.Contains(got, "of 5000; the text goes on with offset 16001]") {
		t.Errorf("%d characters: %.200q", n, got[n-200:])
	}
}

// TestPDFReaderSurvives holds files that end, hang or blow up other readers.
func TestPDFReaderSurvives(t *testing.T) {
	b := newSmallBench(t)
	good := onePage("", "BT /F 12 Tf 50 50 Td (still here) Tj ET")
	for name, tt := range map[string]struct{ file, want string }{
		"empty":               {"", "is empty"},
		"junk":                {strings.Repeat("\x00", 500), "no PDF file"},
		"truncated":           {good[:60], "no PDF file"},
		"no such count":       {makePDF("", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 2000000000>>"), "can't be read"},
		"an object in itself": {selfStream(), "can't be read"},
		"a stream of 40 MB":   {onePage("/Filter/FlateDecode", deflate(40<<20)), "page 1 is damaged, or too large"},
	} {
		b.Put("in/a.pdf", tt.file)
		got, failed := b.Call("pdf_reader", nativetest.Args("path", "/in/a.pdf"))
		if !failed || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q (failed: %t), want %q", name, got, failed, tt.want)
		}
	}
	// A loop in the table of objects, and arrays in arrays, are mended or passed over.
	for name, file := range map[string]string{
		"xref loop": strings.Replace(good, "/Root", fmt.Sprintf("/Prev %d/Root", strings.LastIndex(good, "xref\n0")), 1),
		"no xref":   strings.Replace(good, "xref\n0", "xxxx\n0", 1),
		"nested":    makePDF("", "<</Type/Catalog/Pages 2 0 R/X "+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+">>") + strings.TrimPrefix(good, "%PDF-1.7\n"),
	} {
		b.Put("in/a.pdf", file)
		if got, failed := b.Call("pdf_reader", nativetest.Args("path", "/in/a.pdf")); failed || !strings.Contains(got, "still here") {
			t.Errorf("%s: %q (failed: %t)", name, got, failed)
		}
	}
}

// TestPDFReaderIsInterrupted ends a call in the middle of a page.
func TestPDFReaderIsInterrupted(t *testing.T) {
	b := newPDFBench(t)
	b.Put("in/small.pdf", onePage("", "BT /F 12 Tf 50 50 Td (small) Tj ET"))
	b.WantParts("pdf_reader", nativetest.Args("path", "/in/small.pdf"), "small") // PDFium is compiled now
	b.Put("in/a.pdf", formBomb())
	tool, _ := b.Reg.Lookup("pdf_reader")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := tool.Call(ctx, tools.Call{Arguments: json.RawMessage(nativetest.Args("path", "/in/a.pdf"))})
	var te *tools.Error
	if !errors.As(err, &te) || te.Code != tools.CodeCallTimeout {
		t.Errorf("got %v, want a call that took too long", err)
	}
}

func FuzzPDFReader(f *testing.F) {
	bench := newPDFBench(f)
	files, _ := filepath.Glob("testdata/pdf/*.pdf")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(selfStream()))
	bench.Put("in/a.pdf", onePage("", ""))
	bench.Call("pdf_reader", nativetest.Args("path", "/in/a.pdf")) // compiling takes longer than an input may
	f.Fuzz(func(t *testing.T, data []byte) {
		b := bench
		b.TB = t
		b.Put("in/a.pdf", string(data))
		b.Call("pdf_reader", nativetest.Args("path", "/in/a.pdf", "include_metadata", true))
	})
}

// makePDF makes a file of objects, which are numbered from 1.
func makePDF(trailer string, objects ...string) string {
	var b strings.Builder
	b.WriteString("%PDF-1.7\n")
	var at []int
	for i, o := range objects {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, trailer, xref)
	return b.String()
}

func stream(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(data), data)
}

const (
	helvetica = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
	resources = "/MediaBox[0 0 600 800]/Resources<</Font<</F 3 0 R>>/XObject<</X 6 0 R>>>>"
)

func onePage(filter, content string, more ...string) string {
	return makePDF("", append([]string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[4 0 R]/Count 1>>", helvetica,
		"<</Type/Page/Parent 2 0 R/Contents 5 0 R" + resources + ">>", stream(filter, content),
	}, more...)...)
}

func manyPages(n int) string {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", helvetica}
	var kids strings.Builder
	for i := range n {
		fmt.Fprintf(&kids, "%d 0 R ", 4+2*i)
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/Contents %d 0 R%s>>", 5+2*i, resources),
			stream("", fmt.Sprintf("BT /F 12 Tf 50 700 Td (This is page %d.) Tj ET", i+1)))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", n, kids.String())
	return makePDF("", objects...)
}

// formBomb draws a form that draws another one twice, and so on, 2^40 times.
func formBomb() string {
	var forms []string
	for i := range 40 {
		forms = append(forms, stream(fmt.Sprintf("/Type/XObject/Subtype/Form/BBox[0 0 600 800]/Resources<</XObject<</X %d 0 R>>>>", 7+i), "/X Do /X Do"))
	}
	return onePage("", "/X Do", forms...)
}

// selfStream says that the pages are in a stream that lies in itself.
func selfStream() string {
	head := "%PDF-1.5\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
	table := "\x00\x00\x00\x00" + "\x01\x00\x09\x00" + "\x02\x00\x05\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x05\x00"
	return head + "6 0 obj\n" + stream("/Type/XRef/Size 6/W[1 2 1]/Root 1 0 R", table) + "\nendobj\nstartxref\n" + fmt.Sprint(len(head)) + "\n%%EOF\n"
}

func deflate(spaces int) string {
	var b bytes.Buffer
	w, _ := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	block := bytes.Repeat([]byte(" "), 1<<20)
	for range spaces >> 20 {
		_, _ = w.Write(block)
	}
	_ = w.Close()
	return b.String()
}
