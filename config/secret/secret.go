// Package secret keeps values that must not be seen out of logs, errors, events
// and reports.
//
// A [Value] is a secret from the moment it is read: every way to print or encode
// it gives "•••", and only [Value.Reveal] gives the text, at the last moment
// before it is sent. A [Text] is a setting that may hold secrets in places; it
// prints as it was written, "Bearer ${TOKEN}". A [Ref] names a secret without
// holding it, and [Resolve] fetches it from a [Source]: a variable, a file or a
// command. A [Redactor] knows all values in use and masks them in text that
// others wrote, such as a server's stderr.
//
//	v := secret.New("hunter2")
//	fmt.Println(v)                       // •••
//	req.Header.Set("X-Key", v.Reveal()) // hunter2
package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// Mask is what a secret prints as.
const Mask = "•••"

// Value is a secret text. The zero value is the empty secret. Values are
// compared with [Value.Equal].
type Value struct {
	// A pointer, because fmt prints what an unexported field of a caller's
	// struct holds without asking its methods, and it does not follow pointers
	// there.
	text *string
}

// New makes a secret of text.
func New(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{&text}
}

// Reveal returns the text itself.
func (v Value) Reveal() string {
	if v.text == nil {
		return ""
	}
	return *v.text
}

// IsZero reports whether the secret is empty.
func (v Value) IsZero() bool { return v.text == nil }

// Equal reports whether two secrets have the same text, in a time that says
// nothing about it but its length.
func (v Value) Equal(other Value) bool {
	return subtle.ConstantTimeCompare([]byte(v.Reveal()), []byte(other.Reveal())) == 1
}

// String returns [Mask].
func (v Value) String() string { return Mask }

// GoString returns [Mask].
func (v Value) GoString() string { return Mask }

// Format writes [Mask] for every verb and flag.
func (v Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, Mask) }

// LogValue returns [Mask].
func (v Value) LogValue() slog.Value { return slog.StringValue(Mask) }

// MarshalText returns [Mask]; JSON, YAML and TOML encoders use it.
func (v Value) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// MarshalBinary returns [Mask], so that gob does not see the text either.
func (v Value) MarshalBinary() ([]byte, error) { return []byte(Mask), nil }
