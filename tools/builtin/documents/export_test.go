package documents

// What tests share: PDFium is compiled once for all of them.
var (
	NewPDFEngine = newPDFEngine
	PDFReader    = pdfReader
)
