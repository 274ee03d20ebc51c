package journal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// State is how a run stands.
type State string

// The states of a run.
const (
	Running     State = "running"     // a process is at it
	Completed   State = "completed"   // it ended, and all its tasks are done
	Failed      State = "failed"      // it ended, and not all of them are
	Interrupted State = "interrupted" // it was cut short: by a person, a crash, a loss of power
)

// Run is a run as it is listed: what the beginning and the end of its journal say.
type Run struct {
	ID     string
	Path   string
	Header Header
	State  State
	End    *End      // nil: the last life came to none
	Last   time.Time // of the last record
	Bytes  int64
	Err    error // why the journal can't be read; what is known beside it is the id
}

// NoRunError says that there is no run of an id.
type NoRunError struct{ ID, Dir string }

// Error names the id and where it was looked for.
func (e *NoRunError) Error() string {
	return fmt.Sprintf("there is no run %q in %s; crewhost runs list lists the runs", e.ID, e.Dir)
}

// find returns the path of the journal of a run.
func find(dir, run string) (string, error) {
	if run == "" || run != filepath.Base(run) || strings.HasPrefix(run, ".") {
		return "", &NoRunError{run, dir}
	}
	path := filepath.Join(dir, run+extension)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", &NoRunError{run, dir}
	case err != nil:
		return "", fmt.Errorf("finding run %s: %w", run, err)
	case !info.Mode().IsRegular(): // a pipe would hold the program up for ever
		return "", fmt.Errorf("run %s: %s is no regular file", run, path)
	}
	return path, nil
}

// List returns the runs of a folder, the newest first. It reads the beginning and the
// end of each journal. A folder that is missing has none.
func List(dir string) ([]Run, error) {
	files, err := journals(dir)
	if err != nil {
		return nil, fmt.Errorf("listing runs: %w", err)
	}
	var runs []Run
	for _, f := range slices.Backward(files) {
		runs = append(runs, Look(dir, strings.TrimSuffix(f.Name(), extension)))
	}
	return runs, nil
}

// Newest returns the id of the newest run of a folder, or "".
func Newest(dir string) (string, error) {
	files, err := journals(dir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	return strings.TrimSuffix(files[len(files)-1].Name(), extension), nil
}

// journals are the files of a folder that are journals, the oldest first, as their
// names say. A folder that is missing has none.
func journals(dir string) ([]fs.DirEntry, error) {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return slices.DeleteFunc(files, func(f fs.DirEntry) bool {
		return !strings.HasSuffix(f.Name(), extension) || strings.HasPrefix(f.Name(), ".") || f.IsDir()
	}), nil
}

// Look reads the beginning and the end of a journal.
func Look(dir, id string) Run {
	run := Run{ID: id, Path: filepath.Join(dir, id+extension)}
	path, err := find(dir, id)
	if err != nil {
		run.Err = err
		return run
	}
	f, err := os.Open(path)
	if err != nil {
		run.Err = err
		return run
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		run.Bytes = info.Size()
	}
	first, err := NewReader(f).Next()
	switch {
	case errors.Is(err, io.EOF):
		run.Err = errors.New("the journal is empty: the run was cut short before it began")
		return run
	case err != nil:
		run.Err = err
		return run
	}
	run.Header, run.Last, run.State = *first.Header, first.At, Interrupted
	if last, ok := lastOf(f, run.Bytes); ok {
		run.Last, run.End = last.At, last.End
	}
	switch {
	case run.End != nil && run.End.Code == 0:
		run.State = Completed
	case run.End != nil && run.End.Code != interrupted:
		run.State = Failed
	case run.End == nil && held(dir, id):
		run.State = Running
	}
	return run
}

// interrupted is the exit code of a run that a person stopped.
const interrupted = 130

// lastOf reads the last whole record of a journal. Its sum is not judged here: who
// resumes the run does that.
func lastOf(f io.ReaderAt, size int64) (Record, bool) {
	for n := int64(8 << 10); ; n *= 16 {
		n = min(n, size)
		tail := make([]byte, n)
		if _, err := f.ReadAt(tail, size-n); err != nil && !errors.Is(err, io.EOF) {
			return Record{}, false
		}
		if end := bytes.LastIndexByte(tail, '\n'); end >= 0 {
			from := bytes.LastIndexByte(tail[:end], '\n') + 1
			if from > 0 || n == size {
				var line struct {
					Record Record `json:"record"`
				}
				err := json.Unmarshal(tail[from:end], &line)
				return line.Record, err == nil
			}
		}
		if n == size || n > maxLine {
			return Record{}, false
		}
	}
}

// held reports whether a process is at a run.
func held(dir, id string) bool {
	path := filepath.Join(dir, id+lockExtension)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	lock := flock.New(path)
	free, err := lock.TryRLock()
	if free {
		_ = lock.Unlock()
	}
	return err == nil && !free
}

// Detail is a run as it is shown: all that its journal says, in short.
type Detail struct {
	Run
	Lives []time.Time // when each began
	Steps map[Kind]int
	Tasks []TaskEnd // in the order in which they ended last
	Open  []Step    // begun, without a result
	Torn  int       // bytes at the end that are no record
}

// Show reads a whole journal. Where it is damaged, Err says so, and the rest is of
// what stands before.
func Show(dir, id string) (Detail, error) {
	path, err := find(dir, id)
	if err != nil {
		return Detail{}, err
	}
	d := Detail{Run: Look(dir, id), Steps: map[Kind]int{}}
	f, err := os.Open(path)
	if err != nil {
		return Detail{}, fmt.Errorf("run %s: %w", id, err)
	}
	defer f.Close()
	open := map[StepID]Step{}
	r := NewReader(f)
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.Err = err
			break
		}
		d.note(&record, open)
	}
	d.Torn = r.torn
	for _, id := range slices.SortedFunc(mapKeys(open), func(a, b StepID) int { return cmp.Or(cmp.Compare(a.Key, b.Key), a.Nth-b.Nth) }) {
		d.Open = append(d.Open, open[id])
	}
	return d, nil
}

func (d *Detail) note(r *Record, open map[StepID]Step) {
	switch {
	case r.Header != nil, r.Life != nil:
		d.Lives = append(d.Lives, r.At)
	case r.Intent != nil:
		i := r.Intent
		open[i.StepID] = Step{Kind: i.Kind, Scope: i.Scope, Name: i.Name, Effect: i.Effect}
	case r.Result != nil:
		d.Steps[open[r.Result.StepID].Kind]++
		delete(open, r.Result.StepID)
	case r.Task != nil:
		d.Tasks = append(slices.DeleteFunc(d.Tasks, func(t TaskEnd) bool { return t.Task == r.Task.Task }), *r.Task)
	}
}

func mapKeys(m map[StepID]Step) func(func(StepID) bool) {
	return func(yield func(StepID) bool) {
		for id := range m {
			if !yield(id) {
				return
			}
		}
	}
}

// Export writes the journal of a run to w as it is, up to what is no record. A
// [*DamagedError] says that it ends early.
func Export(w io.Writer, dir, id string) error {
	path, err := find(dir, id)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("run %s: %w", id, err)
	}
	defer f.Close()
	r := NewReader(f)
	for {
		_, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("run %s: %w", id, err)
		}
		if _, err := w.Write(r.line); err != nil {
			return err
		}
	}
}

// Keep says which runs stay where old ones are removed. A zero field bounds nothing.
type Keep struct {
	Runs int           // the newest ones
	Age  time.Duration // since their last record
}

// Prune removes the runs that keep does not name, and returns their ids. Runs that a
// process is at stay.
func Prune(dir string, keep Keep, now time.Time) ([]string, error) {
	if keep == (Keep{}) {
		return nil, nil
	}
	files, err := journals(dir)
	if err != nil {
		return nil, fmt.Errorf("removing old runs: %w", err)
	}
	var removed []string
	var errs []error
	seen := 0
	for _, f := range slices.Backward(files) {
		id := strings.TrimSuffix(f.Name(), extension)
		if !f.Type().IsRegular() {
			continue
		}
		seen++
		old := keep.Runs > 0 && seen > keep.Runs
		if info, err := f.Info(); err == nil && keep.Age > 0 && now.Sub(info.ModTime()) > keep.Age {
			old = true
		}
		if !old {
			continue
		}
		gone, err := remove(dir, id)
		if err != nil {
			errs = append(errs, fmt.Errorf("run %s: %w", id, err))
		} else if gone {
			removed = append(removed, id)
		}
	}
	slices.Sort(removed)
	return removed, errors.Join(errs...)
}

// remove removes the files of a run, unless a process is at it.
func remove(dir, id string) (bool, error) {
	base := filepath.Join(dir, id)
	lock := flock.New(base+lockExtension, flock.SetPermissions(0o600))
	ours, err := lock.TryLock()
	if err != nil || !ours {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	removeIndex(base) // of a run that was killed
	_ = os.Remove(base + lockExtension)
	return true, os.Remove(base + extension)
}
