package secret

import (
	"fmt"
	"io"
	"log/slog"
)

// Text is a text in which parts may be secret, as a setting with a variable in
// it: it prints as it was written and reveals what it means.
type Text struct {
	source  string
	value   Value
	secrets []Value
}

// Literal makes a Text that holds no secret.
func Literal(s string) Text { return Text{source: s, value: New(s)} }

// NewText makes a Text that was written as source, means value, and holds the
// given secrets somewhere in value. Source is shown, and so must hold none.
func NewText(source, value string, secrets ...Value) Text {
	return Text{source: source, value: New(value), secrets: secrets}
}

// Reveal returns what the text means, secrets included.
func (t Text) Reveal() string { return t.value.Reveal() }

// String returns the text as it was written.
func (t Text) String() string { return t.source }

// IsZero reports whether the text is empty, both as written and as meant.
func (t Text) IsZero() bool { return t.source == "" && t.value.IsZero() }

// Equal reports whether two texts were written alike and mean the same.
func (t Text) Equal(other Text) bool { return t.source == other.source && t.value.Equal(other.value) }

// Secrets returns the secret parts of the text.
func (t Text) Secrets() []Value { return t.secrets }

// Format writes the text as it was written, for every verb but %q, which quotes it.
func (t Text) Format(s fmt.State, verb rune) {
	if verb == 'q' {
		_, _ = fmt.Fprintf(s, "%q", t.source)
		return
	}
	_, _ = io.WriteString(s, t.source)
}

// LogValue returns the text as it was written.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.source) }

// MarshalText returns the text as it was written.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.source), nil }

// MarshalBinary returns the text as it was written.
func (t Text) MarshalBinary() ([]byte, error) { return []byte(t.source), nil }
