package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// Line is a line of a log, in its place.
type Line struct {
	File   string
	Number int    // from 1
	Text   []byte // without its end; valid until the next line is read
	Record Record
	Err    error // why the text is no record
	Ended  bool  // the text ends in a line end
}

// Read reads a log whole, from its oldest file to its newest, and gives each line to
// take, whose error ends it. Memory does not grow with the log. What is written
// meanwhile is not read.
func Read(ctx context.Context, path string, take func(Line) error) error {
	files, last, err := snapshot(ctx, path)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	if last != nil {
		defer last.Close()
	}
	for _, f := range files {
		if err := readFile(ctx, f.path, take); err != nil {
			return err
		}
	}
	if last == nil {
		return nil
	}
	return read(ctx, path, io.LimitReader(last, last.size), take)
}

// newest is the file that is written to, as far as it was written.
type newest struct {
	*os.File
	size int64
}

// snapshot finds the files of a log, and opens the newest, between two records.
func snapshot(ctx context.Context, path string) (files []full, last *newest, err error) {
	if _, err := os.Stat(path + ".lock"); err == nil { // nobody writes a log without
		ctx, cancel := context.WithTimeout(ctx, lockLimit)
		defer cancel()
		lock := flock.New(path+".lock", flock.SetFlag(os.O_RDONLY))
		if locked, _ := lock.TryRLockContext(ctx, lockEvery); locked {
			defer func() { err = errors.Join(err, lock.Unlock()) }()
		}
	}
	if files, err = namingOf(path).files(); err != nil {
		return nil, nil, err
	}
	f, err := open(path)
	if errors.Is(err, fs.ErrNotExist) && len(files) > 0 {
		return files, nil, nil // its writer was stopped between two files
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return files, &newest{f, info.Size()}, nil
}

// open opens a file of a log. What is none is not opened: a pipe would hold the reader
// up for ever.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	return os.Open(path)
}

func readFile(ctx context.Context, path string, take func(Line) error) error {
	f, err := open(path)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer f.Close()
	return read(ctx, path, f, take)
}

// read gives the lines of one file to take.
func read(ctx context.Context, path string, from io.Reader, take func(Line) error) error {
	in := bufio.NewReaderSize(from, maxLine+2)
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return &Break{File: path, Line: n, Reason: fmt.Sprintf("it has more than %d bytes, which no record has", maxLine)}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		if len(text) == 0 {
			return nil
		}
		line := Line{File: path, Number: n}
		line.Text, line.Ended = bytes.CutSuffix(text, []byte("\n"))
		line.Record, line.Err = parse(line.Text)
		if err := take(line); err != nil {
			return err
		}
	}
}
