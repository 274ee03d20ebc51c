package documents

// What tests share: PDFium is compiled once for all of them.
var (
	NewPDFEngine = newPDFEngine
	PDFReader    = pdfReader
)

// Small is the engine with less memory for a file, and the same code.
func (e *pdfEngine) Small(memory uint32) *pdfEngine {
	small := *e
	small.memory = memory
	return &small
}
