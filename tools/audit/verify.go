package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// Break is the first place in which a log is not what its writers wrote.
type Break struct {
	File   string
	Line   int // 0: not known
	Reason string
}

// Error names the place first.
func (b *Break) Error() string {
	if b.Line == 0 {
		return fmt.Sprintf("%s: %s", b.File, b.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", b.File, b.Line, b.Reason)
}

// Report is what a log that is whole comes to.
type Report struct {
	Files   int
	Records uint64
	First   uint64 // the number of the first record; above 1 where files were removed that were too old
	Head    Head   // to be kept elsewhere
	Since   uint64 // records after the one that was expected
	Lost    int    // records that could not be written, as the log says itself
	// Torn are the first lines that a writer left which was stopped in the middle, each
	// said by the record after it, and TornLines how many there are.
	Torn      []Place
	TornLines int
}

// Place is a line of a file.
type Place struct {
	File string
	Line int
}

// String is file:line.
func (p Place) String() string { return fmt.Sprintf("%s:%d", p.File, p.Line) }

// maxPlaces is how many places a report has.
const maxPlaces = 20

// Verify reads a log whole and holds each record against the one before. Expected, if
// it is not zero, is a head that was kept elsewhere: the log must have that record. An
// error that is a [*Break] says where the log is wrong first. Memory does not grow with
// the log.
func Verify(ctx context.Context, path string, expected Head) (Report, error) {
	v := verifier{expected: expected, last: start()}
	err := Read(ctx, path, v.line)
	if err == nil {
		err = v.end(path)
	}
	return v.report, err
}

// verifier follows the chain.
type verifier struct {
	report   Report
	expected Head
	last     Head
	file     string
	opening  Place  // of the first record
	before   Head   // what the first record follows
	begins   Head   // where the log begins, as the newest file says
	debris   debris // what stands after the last record and is none
}

// debris is what a writer left.
type debris struct {
	at    Place
	bytes int
	sum   hash.Hash // nil: there is none
}

func (v *verifier) line(l Line) error {
	if l.File != v.file {
		if v.debris.sum != nil {
			return v.unsaid()
		}
		v.file = l.File
		v.report.Files++
	}
	fail := func(format string, args ...any) error {
		return &Break{File: l.File, Line: l.Number, Reason: fmt.Sprintf(format, args...)}
	}
	if l.Err != nil || !l.Ended {
		if _, _, whole := split(l.Text); whole && l.Err != nil {
			return fail("%v", l.Err)
		}
		v.debris.add(l)
		return nil
	}
	r := l.Record
	switch torn := v.debris.torn(); {
	case torn != nil && (r.Torn == nil || *r.Torn != *torn):
		return v.unsaid()
	case torn == nil && r.Torn != nil:
		return fail("it says that a torn line of %d bytes stands before it, and there is none", r.Torn.Bytes)
	case torn != nil:
		if v.report.TornLines++; len(v.report.Torn) < maxPlaces {
			v.report.Torn = append(v.report.Torn, v.debris.at)
		}
		v.debris = debris{}
	}
	first := v.report.Records == 0
	switch {
	case first:
		v.opening, v.before, v.report.First = Place{l.File, l.Number}, Head{r.Seq - 1, r.Prev}, r.Seq
		if r.Kind != Began && r.Kind != Continued || r.Kind == Began && v.before != start() || r.Seq == 0 {
			return fail("the log does not begin here: record %d is not the first of a file, so some are missing", r.Seq)
		}
	case r.Seq > v.last.Seq+1:
		return fail("record %d follows record %d: what was between them is missing", r.Seq, v.last.Seq)
	case r.Seq <= v.last.Seq:
		return fail("record %d follows record %d: it is not in its place", r.Seq, v.last.Seq)
	case r.Prev != v.last.Hash:
		return fail("record %d does not follow from the one before: one of the two is another one", r.Seq)
	case r.Kind == Began:
		return fail("a log begins in the middle of another")
	}
	if r.Kind == Continued && r.Begins != nil {
		v.begins = *r.Begins
	}
	if r.Kind == Lost {
		v.report.Lost += r.Lost
	}
	v.last = r.head()
	v.report.Records++
	v.report.Head = v.last
	if v.expected.Seq == r.Seq {
		if v.expected != v.last {
			return fail("record %d is not the one that is expected: the log was written anew", r.Seq)
		}
	}
	return nil
}

// end is what is to be said once all was read.
func (v *verifier) end(path string) error {
	switch {
	case v.debris.sum != nil:
		return &Break{File: v.debris.at.File, Line: v.debris.at.Line, Reason: "it is torn: " +
			"its writer was stopped in the middle, or the end was cut off; the next writer will say so in a record"}
	case v.report.Records == 0:
		return &Break{File: path, Reason: "there is no record in it"}
	}
	// A log that begins later than with its first record must say so itself.
	if v.before != start() {
		// Older files than those that are kept may not have been removed yet.
		if v.begins.Seq < v.report.First || v.begins.Seq == v.report.First && v.begins.Hash != v.before.Hash {
			return &Break{File: v.opening.File, Line: v.opening.Line, Reason: fmt.Sprintf(
				"record %d follows nothing: the files before it are missing, and no record says that they were removed for being too old", v.report.First)}
		}
	}
	if v.expected == (Head{}) {
		return nil
	}
	switch {
	case v.expected.Seq > v.last.Seq:
		return &Break{File: v.file, Reason: fmt.Sprintf(
			"record %d, which is expected, is not there: the log ends with record %d, so its end was cut off", v.expected.Seq, v.last.Seq)}
	case v.expected.Seq < v.report.First:
		return &Break{File: v.opening.File, Line: v.opening.Line, Reason: fmt.Sprintf(
			"record %d, which is expected, is older than what is kept: the log begins with record %d", v.expected.Seq, v.report.First)}
	}
	v.report.Since = v.last.Seq - v.expected.Seq
	return nil
}

// unsaid is the break that debris is which no record speaks of.
func (v *verifier) unsaid() error {
	return &Break{File: v.debris.at.File, Line: v.debris.at.Line, Reason: "it is no record, and the one after it does not say why"}
}

func (d *debris) add(l Line) {
	if d.sum == nil {
		*d = debris{at: Place{l.File, l.Number}, sum: sha256.New()}
	} else {
		d.sum.Write([]byte{'\n'})
		d.bytes++
	}
	d.sum.Write(l.Text)
	d.bytes += len(l.Text)
}

func (d *debris) torn() *Torn {
	if d.sum == nil {
		return nil
	}
	return &Torn{Bytes: d.bytes, Digest: "sha256:" + hex.EncodeToString(d.sum.Sum(nil))}
}
