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
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Config is what a log is made of. Only Path must be set.
type Config struct {
	Path     string
	MaxBytes int64               // of a file; 0: 16 MiB
	Keep     int                 // full files beside the one that is written; 0: all
	Mask     func(string) string // hides secrets in texts; nil: none are known
	Now      func() time.Time    // nil: time.Now
}

const (
	defaultBytes = 16 << 20
	// lockLimit is how long a record waits for other processes.
	lockLimit = 10 * time.Second
	lockEvery = time.Millisecond
	// syncEvery is how much time may pass until records are forced to the disk.
	syncEvery = time.Second
)

// Log is a log that is open for writing. It is safe for concurrent use, and so are
// several of one file, in one process or in many.
type Log struct {
	cfg  Config
	name naming

	mu     sync.Mutex
	at     end // as this Log left it
	synced time.Time
	dirty  bool // something is not on the disk for sure
	lost   int  // records that could not be written
}

// end is the end of a log: the last record, and the file that holds it.
type end struct {
	head  Head
	first uint64      // the number of the file's first record; 0: there is no file
	info  fs.FileInfo // of the file
	torn  *Torn       // what stands after the last record
	open  bool        // that does not end its line
}

// Open opens a log, or begins one, with its folder: when it returns, the log can be
// written. An error may be a [*Break]: the last record was changed.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if cfg.Path == "" {
		return nil, errors.New("opening the audit log: it has no path")
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = defaultBytes
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Log{cfg: cfg, name: namingOf(cfg.Path), synced: cfg.Now()}
	if err := os.MkdirAll(l.name.dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	if err := l.locked(ctx, l.ready); err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return l, nil
}

// Append writes a record, also where ctx has ended. When it returns nil, the record is
// with the operating system.
func (l *Log) Append(ctx context.Context, r Record) error {
	if r.Time.IsZero() {
		r.Time = l.cfg.Now()
	}
	for _, text := range r.texts() {
		if l.cfg.Mask != nil && *text != "" {
			*text = l.cfg.Mask(*text)
		}
		*text = plain(*text, maxText)
	}
	err := l.locked(ctx, func() error {
		if err := l.ready(); err != nil {
			return err
		}
		if l.lost > 0 {
			if err := l.write(Record{Kind: Lost, Time: l.cfg.Now(), Lost: l.lost}); err != nil {
				return err
			}
			l.lost = 0
		}
		return l.write(r)
	})
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lost++
		return fmt.Errorf("writing to the audit log: %w", err)
	}
	if r.Kind == RunFinished {
		return l.sync()
	}
	return nil
}

// Head returns the last record that this Log wrote or found.
func (l *Log) Head() Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at.head
}

// Close forces to the disk what this Log wrote.
func (l *Log) Close() error { return l.sync() }

func (l *Log) sync() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.dirty {
		return nil
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has filled it, and forced it to the disk
	}
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("forcing the audit log to the disk: %w", err)
	}
	l.dirty, l.synced = false, l.cfg.Now()
	return nil
}

// locked does something while no other process, and nobody in this one, writes.
func (l *Log) locked(ctx context.Context, do func() error) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockLimit)
	defer cancel()
	lock := flock.New(l.cfg.Path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, lockEvery); err != nil {
		return fmt.Errorf("locking %s: %w", l.cfg.Path, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	return do()
}

// ready has the file be one that can be written to, and not full, and at know its end.
// The caller holds the lock.
func (l *Log) ready() error {
	now, err := l.end()
	if err != nil {
		return err
	}
	if was := l.at.head; now.head.Seq < was.Seq || now.head.Seq == was.Seq && was.Seq > 0 && now.head != was {
		return fmt.Errorf("record %d, which this program wrote, is gone from %s", was.Seq, l.cfg.Path)
	}
	l.at = now
	if l.at.first > 0 && l.at.first < l.at.head.Seq && l.at.torn == nil && l.at.info.Size() >= l.cfg.MaxBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	switch {
	case l.at.first == 0:
		return l.begin()
	case l.at.torn != nil:
		return l.write(Record{Kind: TornLine, Time: l.cfg.Now()})
	}
	return nil
}

// rotate puts a full file aside.
func (l *Log) rotate() error {
	aside := l.name.full(l.at.first)
	if _, err := os.Lstat(aside); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("putting a full file aside: there is a %s already", aside)
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(l.cfg.Path, aside)); err != nil {
		return fmt.Errorf("putting a full file aside: %w", err)
	}
	l.at.first, l.at.info = 0, nil
	return nil
}

// begin writes the first record of a file, and then removes the files that are too
// old: the record says first where the log begins without them.
func (l *Log) begin() error {
	files, err := l.name.files()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return l.write(Record{Kind: Began, Time: l.cfg.Now()})
	}
	kept := files
	if l.cfg.Keep > 0 {
		kept = files[max(0, len(files)-l.cfg.Keep):]
	}
	oldest, err := firstRecord(kept[0].path)
	if err != nil {
		return err
	}
	err = l.write(Record{Kind: Continued, Time: l.cfg.Now(), Begins: &Head{oldest.Seq, oldest.Prev}})
	if err != nil {
		return err
	}
	for _, old := range files[:len(files)-len(kept)] {
		_ = os.Remove(old.path) // one that stays is removed the next time, and does no harm
	}
	return nil
}

// write appends a record to the end that at knows. The caller holds the lock.
func (l *Log) write(r Record) (err error) {
	r.Version, r.Seq, r.Prev, r.Torn = version, l.at.head.Seq+1, l.at.head.Hash, l.at.torn
	r.Time = r.Time.UTC().Truncate(time.Millisecond)
	line, hash, err := r.line()
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if l.at.open {
		line = append([]byte{'\n'}, line...) // in one piece, so that the line is never whole without the record about it
	}
	f, err := os.OpenFile(l.cfg.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(line); err != nil {
		var before int64
		if l.at.info != nil {
			before = l.at.info.Size()
		}
		_ = f.Truncate(before) // where that can't be done, the next writer finds a torn line
		return err
	}
	l.dirty = true
	if now := l.cfg.Now(); now.Sub(l.synced) >= syncEvery {
		if err := f.Sync(); err != nil {
			return err
		}
		l.dirty, l.synced = false, now
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if l.at.first == 0 {
		l.at.first = r.Seq
	}
	l.at = end{head: Head{r.Seq, hash}, first: l.at.first, info: info}
	return nil
}

// end finds the end of the log.
func (l *Log) end() (end, error) {
	info, err := os.Stat(l.cfg.Path)
	switch {
	case err == nil && l.at.info != nil && os.SameFile(info, l.at.info) && info.Size() == l.at.info.Size() && info.ModTime().Equal(l.at.info.ModTime()):
		return l.at, nil
	case err == nil && info.IsDir():
		return end{}, fmt.Errorf("%s is a folder", l.cfg.Path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return end{}, err
	}
	var e end
	if err == nil && info.Size() > 0 {
		if e, err = endOf(l.cfg.Path); err != nil {
			return end{}, err
		}
	}
	if e.head.Seq > 0 {
		return e, nil
	}
	// The file holds no record yet: the log ends in the one before.
	e.head = start()
	files, err := l.name.files()
	if err != nil || len(files) == 0 {
		return e, err
	}
	last, err := endOf(files[len(files)-1].path)
	if err != nil {
		return end{}, err
	}
	if last.head.Seq == 0 || last.torn != nil {
		return end{}, &Break{File: files[len(files)-1].path, Line: 1, Reason: "it does not end in a record"}
	}
	e.head = last.head
	return e, nil
}

// window is how much of the end of a file is looked at for its last record.
const window = 4 * maxLine

// endOf finds the end of a file. Its head is zero where it holds no record, but only
// what may be the beginning of one.
func endOf(path string) (e end, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if e.info, err = f.Stat(); err != nil {
		return e, err
	}
	from := max(0, e.info.Size()-window)
	tail, err := io.ReadAll(io.NewSectionReader(f, from, window))
	if err != nil {
		return e, err
	}
	lines := bytes.SplitAfter(tail, []byte("\n"))
	debris := 0 // bytes after the last record
	for i := len(lines) - 1; i >= 0; i-- {
		text, ended := bytes.CutSuffix(lines[i], []byte("\n"))
		if i == 0 && from > 0 {
			break // the end of a line
		}
		if len(lines[i]) == 0 {
			continue
		}
		r, err := parse(text)
		if err == nil && ended {
			e.head = r.head()
			break
		}
		if _, _, whole := split(text); whole && ended {
			return e, &Break{File: path, Reason: "the last record can't be gone on from: " + err.Error()}
		}
		debris += len(lines[i])
	}
	switch {
	case e.head.Seq == 0 && from > 0:
		return e, &Break{File: path, Reason: "it does not end in a record"}
	case debris > 0:
		rest := tail[len(tail)-debris:]
		e.open = rest[len(rest)-1] != '\n'
		e.torn = tornOf(bytes.TrimSuffix(rest, []byte("\n")))
	}
	if e.head.Seq == 0 {
		return e, nil
	}
	first, err := firstRecord(path)
	e.first = first.Seq
	return e, err
}

// tornOf describes what a writer left that was stopped.
func tornOf(rest []byte) *Torn { return &Torn{Bytes: len(rest), Digest: "sha256:" + hashOf(rest)} }

// firstRecord reads the first record of a file; a torn line before it is passed over.
func firstRecord(path string) (r Record, err error) {
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in := bufio.NewReaderSize(f, maxLine+2)
	for range 4 {
		line, err := in.ReadSlice('\n')
		if err != nil {
			break
		}
		if r, err = parse(bytes.TrimSuffix(line, []byte("\n"))); err == nil {
			return r, nil
		}
	}
	return r, &Break{File: path, Line: 1, Reason: errNoRecord.Error()}
}
