package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/mcp/wire"
)

// maxField is the longest id or other small field of an event that is kept.
const maxField = 4 << 10

// An eventStream is a body of server-sent events on its way to the SDK. Events
// come out whole, in one form, with their answers settled. What holds no JSON-RPC
// is left out, and an event beyond the limit becomes the failure of the
// request that it answers. An event without a blank line at its end is taken if
// its message is complete.
type eventStream struct {
	body  io.ReadCloser
	lines *bufio.Reader
	limit int64
	calls *calls
	ex    *exchange // of the request that is answered, or nil

	done  bool          // whether an answer came
	last  []byte        // the last id
	retry time.Duration // how long to wait before the stream is opened again, if it was said
	older bool          // whether it is the stream of the transport before this one
	out   bytes.Buffer
	err   error
}

func (m *mender) mendStream(body io.ReadCloser, ex *exchange) *eventStream {
	return &eventStream{body: body, lines: bufio.NewReaderSize(body, 4<<10), limit: m.limit, calls: &m.calls, ex: ex}
}

func (s *eventStream) Close() error { return s.body.Close() }

// over goes on with another body, which continues the first.
func (s *eventStream) over(body io.ReadCloser) {
	s.body, s.err = body, nil
	s.lines.Reset(body)
}

func (s *eventStream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.out.Cap() > maxKept {
			s.out = bytes.Buffer{}
		}
		s.out.Reset()
		var e event
		if s.err = s.read(&e); s.err == nil || errors.Is(s.err, io.EOF) {
			s.emit(&e)
		}
		if s.older {
			s.err = io.EOF
		}
	}
	return s.out.Read(p)
}

// An event is one server-sent event while it is read.
type event struct {
	name, id, retry []byte
	data            []byte
	over            *wire.Outline // of the data, once it is beyond the limit
}

// read reads the lines of one event.
func (s *eventStream) read(e *event) error {
	var field string
	for whole := true; ; {
		chunk, err := s.lines.ReadSlice('\n')
		ended := !errors.Is(err, bufio.ErrBufferFull)
		if ended {
			chunk = bytes.TrimRight(chunk, "\r\n")
		}
		if whole {
			if len(chunk) == 0 {
				return err
			}
			name, value, _ := bytes.Cut(chunk, []byte{':'})
			field, chunk = string(name), bytes.TrimPrefix(value, []byte{' '})
		}
		e.add(field, chunk, ended, s.limit)
		if whole = ended; err != nil && ended {
			return err
		}
	}
}

// add adds a piece of a field.
func (e *event) add(field string, piece []byte, ended bool, limit int64) {
	var small *[]byte
	switch field {
	case "data":
		if ended {
			piece = append(bytes.Clone(piece), '\n')
		}
		if e.over == nil {
			if e.data = append(e.data, piece...); int64(len(e.data)) <= limit {
				return
			}
			e.over, piece, e.data = new(wire.Outline), e.data, nil
		}
		e.over.Add(piece)
		return
	case "event":
		small = &e.name
	case "id":
		small = &e.id
	case "retry":
		small = &e.retry
	default: // a comment, or a field of no meaning here
		return
	}
	if len(*small)+len(piece) <= maxField {
		*small = append(*small, piece...)
	}
}

// emit writes the messages of an event, each as one. Ids and times to wait stay
// here: the SDK is not to open streams again by itself.
func (s *eventStream) emit(e *event) {
	for _, msg := range s.messages(e) {
		if data, err := jsonrpc.EncodeMessage(msg); err == nil {
			fmt.Fprintf(&s.out, "data: %s\n\n", data)
		}
	}
}

// messages are the messages of an event, settled.
func (s *eventStream) messages(e *event) []jsonrpc.Message {
	if e.id != nil {
		s.last = e.id
	}
	if ms, err := strconv.ParseUint(string(e.retry), 10, 31); err == nil {
		s.retry = time.Duration(ms) * time.Millisecond
	}
	switch string(e.name) {
	case "", "message":
	case eventEndpoint:
		s.older = true
		return nil
	default:
		return nil
	}
	if e.over != nil {
		resp := e.over.Refuse(tooLarge(int(s.limit)))
		if resp == nil {
			return nil
		}
		// The SDK reads the answer from the stream, and so gets no Go error.
		s.done = s.calls.settle(resp) || s.done
		resp.Error = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: resp.Error.Error()}
		return []jsonrpc.Message{resp}
	}
	data := bytes.TrimSpace(e.data)
	if len(data) == 0 {
		return nil
	}
	msgs, _ := parse(data)
	for _, msg := range msgs {
		switch msg := msg.(type) {
		case *jsonrpc.Response:
			s.done = s.calls.settle(msg) || s.done
		case *jsonrpc.Request:
			reduceRequest(msg)
		}
	}
	return msgs
}

// eventEndpoint is the first event of the legacy transport.
const eventEndpoint = "endpoint"
