package secret

import (
	"context"
	"fmt"
)

// Ref names a secret without holding it. The zero Ref names none.
type Ref struct {
	// Source is where to look: "env", "file" or "command".
	Source string
	// Name is the variable, the file or the command line, or, for "env", the
	// text with variables in it: "${OPENAI_API_KEY}".
	Name string
	// Args are the arguments of a command.
	Args []string
}

// IsZero reports whether the Ref names nothing.
func (r Ref) IsZero() bool { return r.Source == "" && r.Name == "" }

// String says what the Ref names.
func (r Ref) String() string {
	if r.IsZero() {
		return "(none)"
	}
	return fmt.Sprintf("%s:%s", r.Source, r.Name)
}

// Source finds secrets by name.
type Source interface {
	// Lookup returns the secret of that name; ok is false where there is none.
	Lookup(ctx context.Context, name string) (v Value, ok bool, err error)
}
