package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// pdfEngine opens PDF files with PDFium, which runs in a sandbox of WebAssembly: no
// file can bring the process down, take more memory than the sandbox has, or go on
// after its context ended. Libraries in Go were worse at text, and one file of a few
// hundred bytes ended the process.
//
// The first file costs some seconds, in which PDFium is compiled; the code is kept.
type pdfEngine struct {
	code      wazero.CompilationCache
	compiling chan struct{} // one at a time, so that those who wait find the code
	slots     chan struct{} // files open at once
	memory    uint32        // bytes that each may take
}

const (
	pdfSlots  = 2
	pdfMemory = 256 << 20 // bytes a file
	wasmPage  = 64 << 10

	// maxPageText bounds the characters of a page that are looked at.
	maxPageText = 500_000
	// maxPageObjects bounds the objects of a page without text that are looked at.
	maxPageObjects = 50
)

func newPDFEngine() *pdfEngine {
	return &pdfEngine{wazero.NewCompilationCache(), make(chan struct{}, 1), make(chan struct{}, pdfSlots), pdfMemory}
}

// take waits for a place in a channel, until ctx ends.
func take(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Errors of files that can't be opened.
var (
	errPDFPassword = errors.New("the file is encrypted and opens with a password only")
	errPDFFormat   = errors.New("the file is no PDF file, or is damaged beyond repair")
)

// use opens a file, hands it to do, and closes it. When ctx ends, so does all that
// goes on in the sandbox.
func (e *pdfEngine) use(ctx context.Context, file io.ReadSeeker, size int64, do func(*pdfDocument) error) error {
	if err := take(ctx, e.slots); err != nil {
		return err
	}
	defer func() { <-e.slots }()
	pool, err := e.sandbox(ctx)
	if err != nil {
		return fmt.Errorf("PDFium does not start: %w", err)
	}
	defer func() { _ = pool.Close() }()
	lib, err := pool.GetInstanceWithContext(ctx)
	if err != nil {
		return fmt.Errorf("PDFium does not start: %w", err)
	}
	defer func() { _ = lib.Close() }()
	opened, err := lib.OpenDocument(&requests.OpenDocument{FileReader: file, FileReaderSize: size})
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return errPDFPassword
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return errors.New("the file is encrypted in a way that is not known here")
	case err != nil:
		return errPDFFormat
	}
	doc := &pdfDocument{lib: lib, ref: opened.Document}
	count, err := lib.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc.ref})
	if err != nil {
		return errPDFFormat
	}
	doc.pages = count.PageCount
	return do(doc)
}

func (e *pdfEngine) sandbox(ctx context.Context) (pdfium.Pool, error) {
	if err := take(ctx, e.compiling); err != nil {
		return nil, err
	}
	defer func() { <-e.compiling }()
	// A worker for each processor, and each ends with ctx: the compiler alone does not.
	ctx = experimental.WithCompilationWorkers(ctx, max(runtime.GOMAXPROCS(0), 2))
	return webassembly.Init(webassembly.Config{
		Context: ctx, MaxTotal: 1, MaxIdle: 1,
		RuntimeConfig: wazero.NewRuntimeConfig().
			WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling). // PDFium is built with them
			WithCloseOnContextDone(true).
			WithMemoryLimitPages(e.memory / wasmPage).
			WithCompilationCache(e.code),
		FSConfig: wazero.NewFSConfig(), // no file of the host
		Stdout:   io.Discard, Stderr: io.Discard,
	})
}

// pdfDocument is an open file.
type pdfDocument struct {
	lib   pdfium.Pdfium
	ref   references.FPDF_DOCUMENT
	pages int
}

func (d *pdfDocument) page(number int) requests.Page {
	return requests.Page{ByIndex: &requests.PageByIndex{Document: d.ref, Index: number - 1}}
}

// text returns the text of a page, which counts from 1, and whether all of it.
func (d *pdfDocument) text(number int) (text string, whole bool, err error) {
	loaded, err := d.lib.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: d.page(number)})
	if err != nil {
		return "", false, err
	}
	defer func() {
		_, cerr := d.lib.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage})
		err = errors.Join(err, cerr)
	}()
	count, err := d.lib.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	if err != nil || count.Count <= 0 {
		return "", true, err
	}
	got, err := d.lib.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: loaded.TextPage, Count: min(count.Count, maxPageText)})
	if err != nil {
		return "", false, err
	}
	return plainText(got.Text), count.Count <= maxPageText, nil
}

// images counts the images of a page, among its first objects.
func (d *pdfDocument) images(number int) int {
	page := d.page(number)
	count, err := d.lib.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: page})
	if err != nil {
		return 0
	}
	images := 0
	for i := range min(count.Count, maxPageObjects) {
		object, err := d.lib.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: page, Index: i})
		if err != nil {
			return images
		}
		kind, err := d.lib.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object.PageObject})
		if err == nil && kind.Type == enums.FPDF_PAGEOBJ_IMAGE {
			images++
		}
	}
	return images
}

// about returns what the file says of itself, a line each: most files have none of
// some, which PDFium calls an error.
func (d *pdfDocument) about() []string {
	meta, err := d.lib.GetMetaData(&requests.GetMetaData{Document: d.ref})
	if err != nil {
		return nil
	}
	var lines []string
	for _, tag := range meta.Tags {
		value := strings.Join(strings.Fields(plainText(tag.Value)), " ")
		if value == "" {
			continue
		}
		const most = 300
		if r := []rune(value); len(r) > most {
			value = string(r[:most]) + "..."
		}
		lines = append(lines, tag.Tag+": "+value)
	}
	return lines
}

// plainText mends what PDFium hands out: its mark of where a hyphen and a line break
// divided a word that it joined, bullets of symbol fonts, ligatures, and characters
// that are none.
func plainText(s string) string {
	s = strings.NewReplacer(
		"\r\n", "\n", "\r", "\n", "\ufffe", "", "\u0002", "", "\u00a0", " ",
		"\uf0b7", "•", "\uf0a7", "▪", "\ue00c", "•",
		"\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl",
	).Replace(strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}
