package documents

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds of files of office programs, which are ZIP archives of XML. A small archive
// may hold parts of any size: what is read of them is read as a stream.
const (
	maxOffice    = 512 << 20 // bytes of the archive
	maxDirectory = 4 << 20   // bytes read to find out what is in it
	maxPart      = 2 << 30   // bytes of a part, unpacked
	maxToken     = 4 << 20   // bytes of a tag, or of a text between two tags
	maxLevels    = 500       // elements in elements
)

// officePackage is an open archive.
type officePackage struct {
	ctx   context.Context //nolint:containedctx // it lives for one call
	parts map[string]*zip.File
}

// budget fails reads at an offset once so many bytes were read: a directory of an archive
// may have any number of entries.
type budget struct {
	r    io.ReaderAt
	left int64
	off  bool
}

func (b *budget) ReadAt(p []byte, off int64) (int, error) {
	if !b.off {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, errors.New("its directory is too large")
		}
	}
	return b.r.ReadAt(p, off)
}

// openOffice opens a file of an office program: kind is what it should be.
func openOffice(ctx context.Context, file seekReader, size int64, kind string) (*officePackage, error) {
	if size > maxOffice {
		return nil, fmt.Errorf("the file has %d bytes, and at most %d can be read", size, int64(maxOffice))
	}
	head := make([]byte, 8)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch head = head[:n]; {
	case n == 0:
		return nil, errors.New("the file is empty")
	case bytes.HasPrefix(head, []byte("\xd0\xcf\x11\xe0")):
		return nil, oldOffice(file, kind)
	case !bytes.HasPrefix(head, []byte("PK")):
		return nil, fmt.Errorf("the file is no %s file", kind)
	}
	limited := &budget{r: untilEnd{ctx, file}, left: maxDirectory}
	archive, err := zip.NewReader(limited, size)
	if err != nil {
		return nil, fmt.Errorf("the file is no %s file, or is damaged (%w)", kind, err)
	}
	limited.off = true
	p := &officePackage{ctx, map[string]*zip.File{}}
	for _, f := range archive.File {
		name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(f.Name, `\`, "/"), "/"))
		if p.parts[name] == nil {
			p.parts[name] = f
		}
	}
	switch {
	case p.parts["[content_types].xml"] != nil:
		return p, nil
	case p.parts["mimetype"] != nil && p.parts["content.xml"] != nil:
		return nil, fmt.Errorf("it is a file of the OpenDocument format, and only %s is read; save it as %s", kind, kind)
	}
	return nil, fmt.Errorf("it is an archive, and no %s file", kind)
}

// oldOffice says what a file in the container of old office programs is: new ones
// put what they encrypt into it, too.
func oldOffice(file io.ReaderAt, kind string) error {
	part := make([]byte, 64<<10)
	n, _ := file.ReadAt(part, 0)
	if bytes.Contains(part[:n], []byte("E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00")) {
		return errors.New("the file is encrypted and opens with a password only")
	}
	return fmt.Errorf("it is a file of the format before 2007 (.doc, .xls), and only %s is read; save it as %s", kind, kind)
}

// withOffice opens a file of a mount, hands the archive to do and closes it.
func withOffice(ctx context.Context, fsys *mount.FS, name, kind string, do func(*officePackage) (string, error)) (string, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return guarded(func() (string, error) {
		p, err := openOffice(ctx, file, file.Info().Size, kind)
		if err != nil {
			return "", at(name, err)
		}
		text, err := do(p)
		if err != nil {
			return "", at(name, err)
		}
		return text, nil
	})
}

// each reads a part of an archive, token by token. It is no error that it is
// missing, and do may end it with errDone.
func (p *officePackage) each(name string, do func(*xmlReader, xml.Token) error) error {
	f := p.parts[strings.ToLower(strings.TrimPrefix(name, "/"))]
	if f == nil {
		return nil
	}
	part, err := f.Open()
	if err != nil {
		return fmt.Errorf("its part %s can't be unpacked: %w", native.Shorten(name), err)
	}
	defer part.Close()
	x := newXMLReader(p.ctx, part)
	for {
		token, err := x.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return x.fault(name, err)
		}
		switch err := do(x, token); {
		case errors.Is(err, errDone):
			return nil
		case err != nil:
			return x.fault(name, err)
		}
	}
}

// errDone ends the reading of a part.
var errDone = errors.New("done")

// relation is where an id leads.
type relation struct {
	kind, target string // the last part of its type; a part, or an address
	external     bool
}

// relations reads where the ids of a part lead; those of the archive itself have no name.
func (p *officePackage) relations(name string) (map[string]relation, error) {
	found := map[string]relation{}
	rels := "_rels/.rels"
	if name != "" {
		rels = path.Join(path.Dir(name), "_rels", path.Base(name)+".rels")
	}
	err := p.each(rels, func(_ *xmlReader, token xml.Token) error {
		start, is := token.(xml.StartElement)
		if !is || start.Name.Local != "Relationship" {
			return nil
		}
		r := relation{path.Base(attribute(start, "Type")), attribute(start, "Target"), attribute(start, "TargetMode") == "External"}
		switch {
		case r.external:
		case strings.HasPrefix(r.target, "/"):
			r.target = r.target[1:]
		default:
			r.target = path.Join(path.Dir(name), r.target)
		}
		if len(found) < 100_000 {
			found[attribute(start, "Id")] = r
		}
		return nil
	})
	return found, err
}

// firstOf is the part of a kind, the one with the first id where there are several.
func firstOf(rels map[string]relation, kind string) (string, bool) {
	for _, id := range slices.Sorted(maps.Keys(rels)) {
		if r := rels[id]; r.kind == kind && !r.external {
			return r.target, true
		}
	}
	return "", false
}

// main is the part that the archive is about.
func (p *officePackage) main() (string, error) {
	rels, err := p.relations("")
	if err != nil {
		return "", err
	}
	if part, is := firstOf(rels, "officeDocument"); is {
		return part, nil
	}
	return "", errors.New("it has no main part")
}

// attribute returns an attribute by its name alone: the namespaces of the two variants
// of the format differ.
func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// xmlReader reads foreign XML in bounded memory.
type xmlReader struct {
	*xml.Decoder
	ctx   context.Context //nolint:containedctx // it lives for one call
	r     io.Reader
	total int64
	token int64 // bytes read for the token at hand
	level int
}

func newXMLReader(ctx context.Context, r io.Reader) *xmlReader {
	x := &xmlReader{ctx: ctx, r: r}
	x.Decoder = xml.NewDecoder(x)
	return x
}

// Read implements [io.Reader] for the decoder.
func (x *xmlReader) Read(b []byte) (int, error) {
	switch {
	case x.ctx.Err() != nil:
		return 0, x.ctx.Err()
	case x.total > maxPart:
		return 0, errors.New("it is too large, unpacked")
	case x.token > maxToken:
		return 0, errors.New("a text or a tag in it is too large")
	}
	n, err := x.r.Read(b)
	x.total += int64(n)
	x.token += int64(n)
	return n, err
}

func (x *xmlReader) next() (xml.Token, error) {
	x.token = 0
	token, err := x.Token()
	switch token.(type) {
	case xml.StartElement:
		x.level++
	case xml.EndElement:
		x.level--
	}
	if err == nil && x.level > maxLevels {
		err = errors.New("its elements are nested too deep")
	}
	return token, err
}

func (x *xmlReader) fault(name string, err error) error {
	if x.ctx.Err() != nil {
		return x.ctx.Err()
	}
	return fmt.Errorf("its part %s is damaged: %w", native.Shorten(path.Base(name)), err)
}

// text returns the text up to the end of the element that was begun, most characters
// of it at most.
func (x *xmlReader) text(most int) (string, error) {
	var b strings.Builder
	for level := x.level; x.level >= level; {
		token, err := x.next()
		if err != nil {
			return "", err
		}
		if data, is := token.(xml.CharData); is && b.Len() < most {
			b.Write(data)
		}
	}
	return b.String(), nil
}

// pass reads on to the end of the element that was begun.
func (x *xmlReader) pass() error {
	_, err := x.text(0)
	return err
}
