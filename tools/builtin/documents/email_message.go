package documents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"mime/quotedprintable"
	"strings"

	"crewhost/tools/builtin/charset"
	"crewhost/tools/native"
)

// Bounds of a message.
const (
	maxMailParts   = 1_000
	maxMailDepth   = 20
	maxMailText    = 2 << 20 // bytes of one text
	maxMailTexts   = 8 << 20 // and of all
	maxMailMessage = 1 << 30 // bytes that are read of a file
)

// mailMessage is a message as it is given out.
type mailMessage struct {
	header      mailHeader
	body        string
	attachments []mailAttachment
	notes       []string
}

// mailAttachment is a part that is no text of the message itself.
type mailAttachment struct {
	name, kind string
	size       int64
	saved      string // where
	damaged    bool
}

// mailParser reads one message, once, part by part: nothing of it is held but its texts.
type mailParser struct {
	ctx     context.Context //nolint:containedctx // a parser lives for one call
	message *mailMessage
	save    func(a mailAttachment, content io.Reader) (mailAttachment, error) // nil: don't
	parts   int
	texts   int
}

func (p *mailParser) note(format string, args ...any) {
	if note := fmt.Sprintf(format, args...); len(p.message.notes) < 20 {
		p.message.notes = append(p.message.notes, note)
	}
}

func (p *mailParser) parse(r io.Reader) error {
	in := bufio.NewReader(r)
	h, err := readMailHeader(in)
	if err != nil {
		return err
	}
	if len(h) == 0 {
		return errors.New("it is no message: it has no header such as From: and Subject:")
	}
	p.message.header = h
	text, err := p.part(h, in, 0)
	p.message.body = strings.TrimSpace(text.text)
	return err
}

// mailText is the text that a part has for the reader.
type mailText struct {
	text  string
	plain bool
}

// part reads a part: it returns its text, or adds it to the attachments.
func (p *mailParser) part(h mailHeader, body io.Reader, depth int) (mailText, error) {
	if err := p.ctx.Err(); err != nil {
		return mailText{}, err
	}
	kind, params := mediaType(h)
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		if depth == maxMailDepth {
			p.note("parts nested more than %d levels deep were not looked at", maxMailDepth)
			return mailText{}, nil
		}
		return p.multipart(kind, params["boundary"], body, depth)
	}
	content := &faults{r: decoded(h.get("Content-Transfer-Encoding"), body)}
	name := fileName(h, params)
	disposition, _, _ := strings.Cut(strings.ToLower(h.get("Content-Disposition")), ";")
	if strings.TrimSpace(disposition) == "attachment" || name != "" || kind != "text/plain" && kind != "text/html" {
		return mailText{}, p.attach(mailAttachment{name: name, kind: kind}, content)
	}
	data, err := io.ReadAll(io.LimitReader(content, maxMailText+1))
	if err != nil {
		return mailText{}, err
	}
	if content.err != nil {
		p.note("a text is damaged: %s", content.err)
	}
	if len(data) > maxMailText {
		data = data[:maxMailText]
		p.note("a text was cut after %d bytes", maxMailText)
	}
	if p.texts += len(data); p.texts > maxMailTexts {
		p.note("more texts were left out, since those before have %d bytes", maxMailTexts)
		return mailText{}, nil
	}
	text := p.decode(data, params["charset"])
	if kind == "text/html" {
		return mailText{htmlText(text), false}, nil
	}
	return mailText{strings.ReplaceAll(text, "\r\n", "\n"), true}, nil
}

// decode turns a text into UTF-8. What is wrong with it does not keep anybody from
// reading the rest.
func (p *mailParser) decode(data []byte, label string) string {
	if label == "" || strings.EqualFold(label, "us-ascii") {
		label = "utf-8"
	}
	r, _, err := charset.NewReader(bytes.NewReader(data), label)
	if err != nil {
		p.note("a text names the encoding %q, which is not known; its bytes told another", native.Shorten(label))
		if r, _, err = charset.NewReader(bytes.NewReader(data), ""); err != nil {
			return "[" + err.Error() + "]"
		}
	}
	r.Lossy = true
	text, err := io.ReadAll(r)
	if err != nil {
		p.note("a text is damaged: %s", err)
	}
	if n := r.Replaced(); n > 0 {
		if guess, form, err := charset.Decode(data, ""); err == nil && form.Encoding != strings.ToLower(label) {
			p.note("a text is not %s, as it says; %s", native.Shorten(label), form.Note())
			return guess
		}
		p.note("%s of a text could not be decoded as %s", native.Plural(n, "place", "places"), native.Shorten(label))
	}
	return string(text)
}

func (p *mailParser) multipart(kind, boundary string, body io.Reader, depth int) (mailText, error) {
	r := multipart.NewReader(body, boundary)
	var texts []mailText
	for {
		part, err := r.NextRawPart()
		switch {
		case p.ctx.Err() != nil:
			return mailText{}, p.ctx.Err()
		case errors.Is(err, io.EOF):
			return joinTexts(kind, texts), nil
		case err != nil:
			p.note("the message is damaged; what follows was not read (%s)", oneLine(err.Error()))
			return joinTexts(kind, texts), nil
		}
		if p.parts++; p.parts > maxMailParts {
			if p.parts == maxMailParts+1 {
				p.note("more than %d parts; those behind were not looked at", maxMailParts)
			}
			return joinTexts(kind, texts), nil
		}
		h := partHeader(part.Header)
		if kind == "multipart/digest" && h.get("Content-Type") == "" {
			h = append(h, headerField{"Content-Type", "message/rfc822"})
		}
		text, err := p.part(h, part, depth+1)
		if err != nil {
			return mailText{}, err
		}
		if strings.TrimSpace(text.text) != "" {
			texts = append(texts, text)
		}
	}
}

// joinTexts makes one text: of alternatives the plain one, of other parts all.
func joinTexts(kind string, texts []mailText) mailText {
	if kind == "multipart/alternative" {
		for _, t := range texts {
			if t.plain {
				return t
			}
		}
		if len(texts) > 0 {
			return texts[len(texts)-1] // the last is the best
		}
		return mailText{}
	}
	var all []string
	plain := len(texts) > 0
	for _, t := range texts {
		all = append(all, strings.Trim(t.text, "\n"))
		plain = plain && t.plain
	}
	return mailText{strings.Join(all, "\n\n"), plain}
}

func (p *mailParser) attach(a mailAttachment, content *faults) error {
	var err error
	if p.save != nil {
		a, err = p.save(a, content)
	} else {
		a.size, err = io.Copy(io.Discard, content)
	}
	a.damaged = content.err != nil
	p.message.attachments = append(p.message.attachments, a)
	return err
}

// decoded undoes a transfer encoding.
func decoded(encoding string, r io.Reader) io.Reader {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, &base64Only{r: r})
	case "quoted-printable":
		return quotedprintable.NewReader(r)
	}
	return r
}

// base64Only leaves out what is no base64, such as blanks and the rubbish of gateways,
// and what is behind the padding.
type base64Only struct {
	r     io.Reader
	count int  // of characters that were given on
	pads  bool // padding was seen
}

func (b *base64Only) Read(p []byte) (int, error) {
	for {
		n, err := b.r.Read(p)
		kept := 0
		for _, c := range p[:n] {
			switch {
			case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '+', c == '/':
				if b.pads {
					continue
				}
			case c == '=' && b.count%4 >= 2:
				b.pads = true
			default:
				continue
			}
			p[kept] = c
			kept++
			b.count++
		}
		if kept > 0 || err != nil {
			return kept, err
		}
	}
}

// faults ends where what it reads is damaged, and keeps what was wrong: a part that can
// be read only in part is worth something.
type faults struct {
	r   io.Reader
	err error
}

func (f *faults) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err == nil || errors.Is(err, io.EOF) {
		return n, err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return n, err
	}
	f.err = err
	return n, io.EOF
}
