package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
	"crewhost/tools"
)

const (
	// maxPieces bounds lines that look like parts of one message.
	maxPieces = 1 << 20

	// maxStray is how much of what is no message may come between two of them,
	// in bytes. More than that is no banner and no log.
	maxStray = 64 << 20

	// maxKept is the longest buffer that is kept from one line to the next.
	maxKept = 1 << 20

	// firstBytes is how much of a strange line is shown. More of it is kept
	// until secrets are masked: half of one is not recognised any more.
	firstBytes = 80
	keptBytes  = 4 << 10
)

// contentLength is the header of the framing that language servers use.
var contentLength = regexp.MustCompile(`(?i)^content-length\s*:\s*[0-9]+$`)

// A frameReader reads JSON-RPC messages, one a line. Lines that are something
// else are passed over (K01); a stream that is framed in another way is
// recognised for what it is (K17); of a line beyond the limit only its id is
// read, so that the one request that it answers fails (K35).
type frameReader struct {
	r      *bufio.Reader
	limit  int
	stray  func(line []byte)     // told of each line that is passed over
	redact func(s string) string // masks secrets in what is shown

	patience int // how many bytes without a message are read
	strayed  int // and were

	line   []byte
	queue  []jsonrpc.Message // the rest of a batch
	spoken bool              // whether a message came
	pieces []byte            // lines that may be parts of one message
	open   wire.Outline      // of pieces
}

func newFrameReader(r io.Reader, limit int, redact func(string) string, stray func(line []byte)) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit, redact: redact, stray: stray, patience: max(maxStray, 2*limit)}
}

// next returns the next message. The error is that of the stream, or a *fault if
// it isn't framed as it must be.
func (f *frameReader) next() (jsonrpc.Message, error) {
	for {
		if len(f.queue) > 0 {
			msg := f.queue[0]
			f.queue = f.queue[1:]
			f.strayed = 0
			return msg, nil
		}
		line, long, err := f.read()
		if err != nil && len(line) == 0 {
			return nil, err
		}
		if long != nil {
			if resp := long.Refuse(tooLarge(f.limit)); resp != nil {
				f.strayed = 0
				return resp, nil
			}
			f.strayed += f.limit
			f.stray(line)
		}
		if f.strayed += len(line); f.strayed > f.patience {
			return nil, faultf(tools.CodeProtocolError, "stdout has no message in %s", byteCount(f.patience))
		}
		if long != nil {
			continue
		}
		if ferr := f.take(bytes.TrimSpace(line)); ferr != nil {
			return nil, ferr
		}
	}
}

// read returns the next line, or, of one beyond the limit, its first bytes and its outline.
func (f *frameReader) read() (line []byte, long *wire.Outline, err error) {
	if cap(f.line) > maxKept {
		f.line = nil
	}
	f.line = f.line[:0]
	for {
		chunk, err := f.r.ReadSlice('\n')
		if long != nil {
			long.Add(chunk)
		} else if f.line = append(f.line, chunk...); len(f.line) > f.limit {
			long = new(wire.Outline)
			long.Add(f.line)
			f.line = bytes.Clone(f.line[:min(len(f.line), keptBytes)])
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return f.line, long, err
		}
	}
}

// take finds out what a line is.
func (f *frameReader) take(line []byte) error {
	if len(line) == 0 {
		return nil
	}
	if msgs, ok := parse(line); ok {
		if f.pieces != nil {
			f.stray(f.pieces)
			f.pieces = nil
		}
		f.queue, f.spoken = msgs, true
		return nil
	}
	if f.pieces == nil {
		if !f.spoken && contentLength.Match(line) {
			return f.notLines(line)
		}
		// An answer that can't be used fails its request at once.
		whole := new(wire.Outline)
		whole.Add(line)
		if whole.Depth == 0 {
			if resp := whole.Refuse(faultf(tools.CodeProtocolError, "the answer is not valid JSON-RPC")); resp != nil && whole.Versioned {
				f.queue = []jsonrpc.Message{resp}
				return nil
			}
			f.stray(line)
			return nil
		}
		if line[0] != '{' && line[0] != '[' {
			f.stray(line)
			return nil
		}
		f.open = wire.Outline{}
	}
	// A line that opens a brace and doesn't close it may be the first of a
	// message over several lines.
	f.pieces = append(append(f.pieces, line...), '\n')
	f.open.Add(line)
	switch {
	case f.open.Depth <= 0:
		pieces := f.pieces
		f.pieces = nil
		if _, ok := parse(pieces); ok {
			return f.notLines(pieces)
		}
		f.stray(pieces)
	case len(f.pieces) > maxPieces:
		f.stray(f.pieces)
		f.pieces = nil
	}
	return nil
}

// notLines is the fault of a server that frames its messages in another way.
func (f *frameReader) notLines(line []byte) error {
	return faultf(tools.CodeProtocolError, "stdout is not newline-delimited JSON: it begins with %q", cut(f.redact(head(line)), firstBytes))
}

// head is the beginning of a line, long enough to be masked before it is cut.
func head(line []byte) string { return string(line[:min(len(line), keptBytes)]) }

// parse returns the message in a line, the messages that a server forgot to part,
// or those of a batch; ok is false where the line is anything else.
func parse(line []byte) (msgs []jsonrpc.Message, ok bool) {
	switch line[0] {
	case '{':
		// These bytes are in no string and in no single value of JSON.
		if bytes.Contains(line, []byte(`}{"jsonrpc"`)) {
			return decode(apart(line))
		}
		msg, err := wire.Decode(line)
		if err != nil {
			return nil, false
		}
		return []jsonrpc.Message{msg}, true
	case '[':
		var batch []json.RawMessage
		if json.Unmarshal(line, &batch) != nil {
			return nil, false
		}
		return decode(batch)
	}
	return nil, false
}

// apart are the values of JSON in a line, or none where there is anything else.
func apart(line []byte) (values []json.RawMessage) {
	for dec := json.NewDecoder(bytes.NewReader(line)); ; {
		var value json.RawMessage
		switch err := dec.Decode(&value); {
		case errors.Is(err, io.EOF):
			return values
		case err != nil:
			return nil
		}
		values = append(values, value)
	}
}

// decode decodes messages; ok is false where there are none or one is none.
func decode(raws []json.RawMessage) (msgs []jsonrpc.Message, ok bool) {
	for _, raw := range raws {
		msg, err := wire.Decode(raw)
		if err != nil {
			return nil, false
		}
		msgs = append(msgs, msg)
	}
	return msgs, len(msgs) > 0
}
