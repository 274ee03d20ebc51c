package secret_test

import (
	"strings"
	"testing"

	"crewhost/config/secret"
)

func TestHeldIsWhatMayBecomeASecret(t *testing.T) {
	var r secret.Redactor
	r.Add(secret.New("open sesame now"), secret.New("open"), secret.New("a b-c d"))
	for _, tt := range []struct {
		text string
		held string
	}{
		{"", ""},
		{"a word ", ""},
		{"a word", "word"},
		{"it is sk-ab", "sk-ab"},
		{"please, open ", "open "},
		{"please, open sesame ", "open sesame "},
		{"please, open sesame now", "open sesame now"},
		{"please, open sesame now, ", ""},
		{"tell a b-c d", "a b-c d"}, // the cut splits none that is whole
		{"größe", "e"},
		{strings.Repeat("x", 10_000), strings.Repeat("x", 8<<10)},
	} {
		if n := r.Held(tt.text); tt.text[len(tt.text)-n:] != tt.held {
			t.Errorf("%.40q: %d are held, want %q", tt.text, n, tt.held)
		}
	}
	var none *secret.Redactor
	if n := none.Held("a word"); n != 4 {
		t.Errorf("held %d", n)
	}
}

// However a text is cut into pieces, what comes of masking them one by one is
// what comes of masking it whole.
func FuzzHeld(f *testing.F) {
	f.Add("say open sesame now and sk-proj-0123456789abcdefghij, twice", uint8(3))
	f.Add("open open sesame open", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		if len(text) > 2_000 {
			t.Skip()
		}
		var r secret.Redactor
		r.Add(secret.New("open sesame now"), secret.New("open sesame"), secret.New("secret-1"))
		var out strings.Builder
		pending := ""
		for rest := text; rest != ""; {
			n := min(len(rest), int(size)+1)
			pending, rest = pending+rest[:n], rest[n:]
			ready := len(pending) - r.Held(pending)
			out.WriteString(r.Redact(pending[:ready]))
			pending = pending[ready:]
		}
		out.WriteString(r.Redact(pending))
		if got, want := out.String(), r.Redact(text); got != want {
			t.Errorf("%q in pieces of %d: %q, want %q", text, int(size)+1, got, want)
		}
	})
}
