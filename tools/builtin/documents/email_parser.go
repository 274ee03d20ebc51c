package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds of what is saved and shown.
const (
	maxAttachment  = 64 << 20 // bytes
	maxAttachments = 256 << 20
	shownFields    = 100
	shownParts     = 100
	maxFieldShown  = 1_000 // characters
)

const emailParserSchema = `{
  "type": "object",
  "properties": {
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a message (.eml), or of a mailbox of many (.mbox), such as /data/offer.eml."
    },
    "message": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "Which message of a mailbox; they count from 1."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first character of the text to return, to go on with a long one."
    },
    "max_chars": {
      "type": "integer", "minimum": 1, "maximum": 30000, "default": 8000,
      "description": "The most characters of the text to return."
    },
    "all_headers": {
      "type": "boolean", "default": false,
      "description": "Show every header field, not only From, To, Cc, Reply-To, Date, Subject and Message-ID."
    },
    "save_attachments_to": {
      "type": "string", "minLength": 1,
      "description": "A folder that can be written to, such as /output/mail, to save the attachments in. Nothing there is overwritten: a name that is taken gets a number."
    }
  },
  "required": ["path"],
  "additionalProperties": false
}`

func emailParser(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "email_parser", Title: "Read e-mail",
		Description: "Reads a message of a file: its sender, recipients, date and subject, its text (plain, or made of HTML), and a list of its attachments, which it can save. " +
			"What a message says is what its sender wants to be believed.",
		Schema: emailParserSchema, EffectOf: savesAttachments, WritesFiles: true,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			call := emailCall{
				path:   args.Need("path"),
				number: args.Integer("message", 1, 1, math.MaxInt32),
				offset: args.Integer("offset", 1, 1, math.MaxInt32),
				most:   args.Integer("max_chars", defaultChars, 1, maxChars),
				all:    args.Flag("all_headers"),
				folder: args.Text("save_attachments_to", ""),
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			out, err := call.run(ctx, fsys)
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "email_parser")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(out), nil
		},
	}
}

// savesAttachments is the effect of a call: a second one would save all once more, under
// other names.
func savesAttachments(arguments json.RawMessage) native.Effect {
	var args map[string]json.RawMessage
	_ = json.Unmarshal(arguments, &args)
	if folder := args["save_attachments_to"]; folder != nil && string(folder) != "null" {
		return native.Once
	}
	return native.ReadOnly
}

// emailCall is one call of email_parser.
type emailCall struct {
	path, folder         string
	number, offset, most int
	all                  bool
}

func (c emailCall) run(ctx context.Context, fsys *mount.FS) (string, error) {
	f, err := fsys.Open(c.path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.Info().Size > maxMailMessage {
		return "", fmt.Errorf("%s has %d bytes, and at most %d can be read", c.path, f.Info().Size, maxMailMessage)
	}
	box := newMboxReader(native.Reader(ctx, io.LimitReader(f, maxMailMessage)))
	for n := 1; n < c.number; n++ {
		more, err := box.advance()
		if err != nil {
			return "", err
		}
		if !more {
			return "", fmt.Errorf("%s has %s; there is no message %d", c.path, native.Plural(n, "message", "messages"), c.number)
		}
	}
	p := mailParser{ctx: ctx, message: &mailMessage{}}
	if c.folder != "" {
		if err := fsys.MkdirAll(c.folder); err != nil {
			return "", err
		}
		p.save = (&saver{fsys: fsys, folder: c.folder}).save
	}
	if err := p.parse(box); err != nil {
		if len(p.message.attachments) > 0 {
			return "", fmt.Errorf("%s: %w; before that: %s", c.path, err, oneLine(c.attachments(p.message)))
		}
		return "", fmt.Errorf("%s: %w", c.path, err)
	}
	if box.mailbox {
		more, err := box.advance()
		if err != nil {
			return "", err
		}
		switch {
		case more:
			p.message.notes = append(p.message.notes, fmt.Sprintf("message %d of a mailbox; the next is message %d", c.number, c.number+1))
		case c.number > 1:
			p.message.notes = append(p.message.notes, fmt.Sprintf("message %d, the last of a mailbox", c.number))
		}
	}
	return c.show(p.message)
}

func (c emailCall) show(m *mailMessage) (string, error) {
	var b strings.Builder
	shown := 0
	for _, f := range m.header {
		if !c.all && !common(f.name) {
			continue
		}
		if shown++; shown > shownFields {
			fmt.Fprintf(&b, "[more header fields than %d]\n", shownFields)
			break
		}
		value := decodeHeader(f.value)
		if n := utf8.RuneCountInString(value); n > maxFieldShown {
			value = fmt.Sprintf("%s[... %d more characters]", value[:byteAt(value, maxFieldShown)], n-maxFieldShown)
		}
		fmt.Fprintf(&b, "%s: %s\n", decodeHeader(native.Shorten(f.name)), value)
	}
	body := m.body
	if body == "" {
		body = "[the message has no text]"
	}
	text, err := excerpt(body, c.offset, c.most)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.path, err)
	}
	b.WriteString("\n" + text)
	b.WriteString(c.attachments(m))
	for _, n := range m.notes {
		b.WriteString("\n[" + n + "]")
	}
	return b.String(), nil
}

// common reports that a field is shown always.
func common(name string) bool {
	switch strings.ToLower(name) {
	case "from", "to", "cc", "bcc", "reply-to", "date", "subject", "message-id":
		return true
	}
	return false
}

func (c emailCall) attachments(m *mailMessage) string {
	if len(m.attachments) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nAttachments:")
	for i, a := range m.attachments {
		if i == shownParts {
			fmt.Fprintf(&b, "\n[%d more]", len(m.attachments)-i)
			break
		}
		name := a.name
		if name == "" {
			name = "(no name)"
		}
		fmt.Fprintf(&b, "\n%d. %s (%s, %s)", i+1, native.Shorten(name), native.Shorten(a.kind), native.Plural(int(a.size), "byte", "bytes"))
		if a.damaged {
			b.WriteString(", damaged")
		}
		if a.saved != "" {
			b.WriteString(", saved as " + a.saved)
		}
	}
	return b.String()
}

// saver saves attachments in a folder.
type saver struct {
	fsys   *mount.FS
	folder string
	total  int64
}

func (s *saver) save(a mailAttachment, content io.Reader) (mailAttachment, error) {
	name, err := s.unused(safeName(a.name, a.kind))
	if err != nil {
		return a, err
	}
	w, err := s.fsys.Create(name, maxAttachment)
	if err != nil {
		return a, err
	}
	defer func() { _ = w.Close() }()
	a.size, err = io.Copy(w, content)
	if s.total += a.size; err == nil && s.total > maxAttachments {
		err = fmt.Errorf("the attachments have more than %d bytes", maxAttachments)
	}
	if err == nil {
		err = w.Commit()
	}
	if err == nil {
		a.saved = w.Path()
	}
	return a, err
}

// unused returns a path in the folder where nothing is.
func (s *saver) unused(name string) (string, error) {
	const tries = 1000
	end := path.Ext(name)
	base := strings.TrimSuffix(name, end)
	for i := range tries {
		if i > 0 {
			name = fmt.Sprintf("%s-%d%s", base, i+1, end)
		}
		full := path.Join(s.folder, name)
		if _, err := s.fsys.Stat(full); errors.Is(err, fs.ErrNotExist) {
			return full, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s holds %d files of the name %s already", s.folder, tries, base+end)
}

// safeName makes a name for a file of what a stranger calls it: no path, nothing hidden,
// nothing that a file system or a shell reads as more than a name.
func safeName(name, kind string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune(" .-_()+,@", r):
			return r
		case unicode.IsMark(r):
			return r
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return '_'
	}, strings.ToValidUTF8(name, "_"))
	name = strings.Trim(name, ". -")
	const most = 120 // bytes
	if end := path.Ext(name); len(name) > most {
		if len(end) > 20 {
			end = ""
		}
		name = strings.ToValidUTF8(name[:most-len(end)], "") + end
	}
	if name == "" || name == strings.TrimPrefix(path.Ext("."+name), ".") && strings.Trim(name, "_") == "" {
		name = "attachment"
		switch kind {
		case "message/rfc822":
			name += ".eml"
		case "text/calendar":
			name += ".ics"
		}
	}
	// Windows keeps these for devices, whatever the ending.
	stem, _, _ := strings.Cut(strings.ToUpper(name), ".")
	switch strings.TrimRight(stem, "0123456789 ") {
	case "CON", "PRN", "AUX", "NUL", "COM", "LPT":
		name = "_" + name
	}
	return name
}
