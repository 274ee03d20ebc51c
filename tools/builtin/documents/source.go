package documents

import (
	"context"
	"fmt"
	"io"
	"unicode/utf8"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds of what one call returns, in characters.
const (
	defaultChars = 8_000
	maxChars     = 30_000 // what a model gets of any result is native.MaxResult
)

// readFile reads a file of at most limit bytes, and stops when ctx ends.
func readFile(ctx context.Context, fsys *mount.FS, path string, limit int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(native.Reader(ctx, f), limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("%s has %d bytes, and at most %d can be worked on", path, f.Info().Size, limit)
	}
	return data, nil
}

// excerpt is what a call gives of a long text: most characters from the offset on, the
// first of which is 1, with a note that says how to go on where that is not all.
func excerpt(text string, offset, most int) (string, error) {
	total := utf8.RuneCountInString(text)
	switch {
	case offset == 1 && total <= most:
		return text, nil
	case offset > max(total, 1):
		return "", fmt.Errorf("%s is all that there is; offset lies behind them", native.Plural(total, "character", "characters"))
	}
	last := min(total, offset-1+most)
	note := fmt.Sprintf("\n[characters %d to %d of %d", offset, last, total)
	if last < total {
		note += fmt.Sprintf("; go on with offset %d", last+1)
	}
	return text[byteAt(text, offset-1):byteAt(text, last)] + note + "]", nil
}

// byteAt is the offset of the character with index n.
func byteAt(text string, n int) int {
	for i := range text {
		if n == 0 {
			return i
		}
		n--
	}
	return len(text)
}
