package server

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// Lines are those that a split at each end of line gives, but that a line beyond the
// limit is known by its outline alone (K83), and that the last needs no end (K77).
func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "\n", "a", "a\n", "a\nb", "a\r\n\r\nb\r", "0123456789\n01234567890\n0123456789", "{\"id\":1,\"x\":\"yyyyyyyyyyyy\"}\nz"} {
		f.Add([]byte(seed), 10)
	}
	f.Fuzz(func(t *testing.T, in []byte, limit int) {
		if limit < 1 || limit > 1<<16 {
			t.Skip()
		}
		want := bytes.Split(in, []byte("\n"))
		if len(want[len(want)-1]) == 0 {
			want = want[:len(want)-1]
		}
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			lines := newLineReader(r, limit)
			for i, w := range want {
				w = bytes.TrimRight(w, "\r")
				line, long, err := lines.next()
				if err != nil {
					t.Fatalf("line %d of %q: %v", i, in, err)
				}
				if (long != nil) != (len(w) > limit) || long == nil && !bytes.Equal(line, w) {
					t.Errorf("line %d of %q is %q, %v; want %q", i, in, line, long, w)
				}
			}
			if line, long, err := lines.next(); !errors.Is(err, io.EOF) {
				t.Errorf("after the end of %q come %q, %v, %v", in, line, long, err)
			}
		}
	})
}

// What a reader fails with is told after the lines before it, which half a line is not.
func TestLinesOfABrokenReader(t *testing.T) {
	broken := errors.New("broken")
	lines := newLineReader(io.MultiReader(bytes.NewReader([]byte("a\nhalf")), iotest.ErrReader(broken)), 10)
	if line, _, err := lines.next(); err != nil || string(line) != "a" {
		t.Errorf("got %q, %v", line, err)
	}
	if line, _, err := lines.next(); !errors.Is(err, broken) {
		t.Errorf("got %q, %v", line, err)
	}
}
