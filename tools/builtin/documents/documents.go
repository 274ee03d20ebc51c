// Package documents has the tools that read and write documents: JSON, CSV, XML, PDF,
// spreadsheets, texts of word processors and mail.
package documents

import (
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Tools returns the tools over the mounts of fsys; nil holds no mount.
func Tools(fsys *mount.FS) []native.Tool {
	return []native.Tool{csvReader(fsys), emailParser(fsys), jsonTool(fsys), pdfReader(fsys, newPDFEngine()), xlsxReader(fsys), xlsxWriter(fsys), docxReader(fsys), xmlTool(fsys)}
}
