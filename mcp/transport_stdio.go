package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"crewhost/config"
	"crewhost/mcp/child"
	"crewhost/tools"
)

const (
	// answerLimit is how long an answer to a server's own request may take to
	// be written, which no caller's context bounds.
	answerLimit = 10 * time.Second

	// deathLimit is how long the end of a process is waited for after the end
	// of its stdout, to say how it ended.
	deathLimit = 500 * time.Millisecond

	// maxStderr is how much of the end of stderr an error shows, in bytes.
	maxStderr = 600
)

// A link is a transport that a session owns: the SDK speaks over it, the session
// begins and ends it.
type link interface {
	sdk.Transport

	// fault is why the link can't be used any more, or nil. It is set before
	// the SDK hears of it.
	fault() error

	// abandon makes end quick: whatever is at the other side had its chance.
	abandon()

	// speak says which version of the protocol is spoken from now on, where that
	// is not what the SDK agreed on.
	speak(version string)

	// end ends the link and what it started, within the shutdown timeout of
	// the settings. It may be called again.
	end() error
}

// A pipe speaks newline-delimited JSON with a child process. It is the link of
// stdio servers, and at once the SDK's transport and connection.
type pipe struct {
	process *child.Process
	label   string // the command line as it is shown
	masks   *masks
	frames  *frameReader
	calls   calls

	handshake handshake

	writing chan struct{} // holds one token while somebody writes
	unsent  []byte        // the rest of a message whose writing was broken off

	closing sync.Once
	closed  chan struct{}
	mu      sync.Mutex
	err     error
}

// startPipe starts the process of a server. Warn is told once of what is wrong
// with its stdout.
func startPipe(ctx context.Context, server config.Server, shutdown time.Duration, limit int, environ []string, guard *child.Guard, m *masks, warn func(string), stderr func(string)) (*pipe, error) {
	env := make([]string, 0, len(server.Env))
	for _, v := range server.Env {
		env = append(env, v.Name+"="+v.Value.Reveal())
	}
	args := make([]string, len(server.Args))
	shown := []string{server.Command.String()}
	for i, arg := range server.Args {
		args[i] = arg.Reveal()
		shown = append(shown, arg.String())
	}
	label := child.Quote(shown)
	p, err := child.Start(ctx, child.Config{
		Command:         server.Command.Reveal(),
		Args:            args,
		Env:             child.Environ(environ, env),
		Dir:             server.Cwd,
		Label:           label,
		ShutdownTimeout: shutdown,
		Stderr:          stderr,
		Guard:           guard,
	})
	if err != nil {
		return nil, err
	}
	var once sync.Once
	stray := func(line []byte) {
		once.Do(func() {
			warn(fmt.Sprintf("prints on stdout what is not JSON-RPC: %q", m.line(head(line), firstBytes)))
		})
	}
	return &pipe{
		process: p,
		label:   label,
		masks:   m,
		frames:  newFrameReader(p.Stdout(), limit, m.redact, stray),
		writing: make(chan struct{}, 1),
		closed:  make(chan struct{}),
	}, nil
}

// Connect implements the SDK's Transport.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements the SDK's Connection. There are no sessions on stdio.
func (p *pipe) SessionID() string { return "" }

// Read implements the SDK's Connection.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := p.frames.next()
	if err != nil {
		return nil, p.broken(ctx, err)
	}
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		p.calls.settle(msg)
	case *jsonrpc.Request:
		reduceRequest(msg)
	}
	return msg, nil
}

// broken says why there is nothing more to read, or to be written.
func (p *pipe) broken(ctx context.Context, err error) error {
	select {
	case <-p.closed:
		return io.EOF
	default:
	}
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{code: tools.CodeTransportClosed, detail: p.death(ctx, err), err: err}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = f
	}
	return p.err
}

// death tells how the process ended, with its last words. It waits for its end no
// longer than ctx lasts.
func (p *pipe) death(ctx context.Context, err error) string {
	timer := time.NewTimer(deathLimit)
	defer timer.Stop()
	select {
	case <-p.process.Done():
	case <-p.closed:
	case <-ctx.Done():
	case <-timer.C:
	}
	exit, over := p.process.Exit()
	what := err.Error()
	switch {
	case over:
		what = "it ended with " + exit.String()
	case errors.Is(err, io.EOF):
		what = "it closed its stdout"
	}
	what += " (command: " + p.label + ")"
	if words := lastWords(p.masks.redact(p.process.Stderr())); words != "" {
		what += "; stderr: " + words
	}
	return what
}

// Write implements the SDK's Connection. It returns when ctx ends, also where
// the process doesn't read: the rest of a message that was broken off goes out
// before the next one, so that the stream keeps its lines.
func (p *pipe) Write(ctx context.Context, msg jsonrpc.Message) error {
	if p.handshake.cancelled(msg) {
		return nil
	}
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	caller := ctx
	if caller.Done() == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(caller, answerLimit)
		defer cancel()
	}
	select {
	case p.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-p.closed:
		return os.ErrClosed
	}
	defer func() { <-p.writing }()

	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		p.calls.add(ctx, req)
		p.handshake.note(req)
	}
	if err := p.write(ctx, data); err != nil {
		if caller.Err() != nil {
			return caller.Err()
		}
		return p.broken(ctx, fmt.Errorf("it does not read its stdin: %w", err))
	}
	return nil
}

func (p *pipe) write(ctx context.Context, data []byte) error {
	stdin := p.process.Stdin()
	// Where the system has no deadlines for pipes, nothing bounds the write.
	_ = stdin.SetWriteDeadline(time.Time{})
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = stdin.SetWriteDeadline(time.Unix(1, 0))
		close(stopped)
	})
	defer func() {
		if !stop() {
			<-stopped
		}
	}()
	if len(p.unsent) > 0 {
		n, err := stdin.Write(p.unsent)
		p.unsent = p.unsent[n:]
		if err != nil {
			return err
		}
		p.unsent = nil
	}
	n, err := stdin.Write(data)
	if ex := exchangeOf(ctx); ex != nil && n > 0 {
		ex.sent.Store(true)
	}
	if err != nil && n > 0 {
		p.unsent = data[n:]
	}
	return err
}

// Close implements the SDK's Connection. The SDK calls it with a lock held, so
// it only breaks off what reads and writes; the process is ended by end.
func (p *pipe) Close() error {
	p.closing.Do(func() { close(p.closed) })
	_ = p.process.Stdin().Close()
	if err := p.process.Stdout().SetReadDeadline(time.Unix(1, 0)); err != nil {
		p.process.Kill() // the only other way to end a read
	}
	return nil
}

func (p *pipe) fault() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *pipe) abandon() { p.process.Kill() }

// speak has nothing to do: messages say it themselves.
func (p *pipe) speak(string) {}

// end ends the process and all that came of it. Until it is gone its stdout is
// still read, so that it can finish what it is writing.
func (p *pipe) end() error {
	p.closing.Do(func() { close(p.closed) })
	return p.process.Close()
}
