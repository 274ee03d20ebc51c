package secret

import "context"

// The kinds of places that a [Ref] names.
const (
	FromEnv     = "env"     // a variable of the environment
	FromFile    = "file"    // a file that holds nothing else
	FromCommand = "command" // what a program prints
	FromLiteral = "literal" // the settings themselves
)

// Ref names a secret, usually without holding it. The zero Ref names none.
type Ref struct {
	// Source is where to look: [FromEnv], [FromFile], [FromCommand] or
	// [FromLiteral].
	Source string
	// Name is the variable, the file's absolute path or the program.
	Name string
	// Args are the arguments of the program.
	Args []string
	// Value is the secret itself where the settings hold it: a literal, or what
	// stands in for a variable that is unset or empty.
	Value Value
}

// IsZero reports whether the Ref names nothing.
func (r Ref) IsZero() bool { return r.Source == "" }

// String says what the Ref names, never the secret or the arguments.
func (r Ref) String() string {
	switch r.Source {
	case "":
		return "(none)"
	case FromLiteral:
		return FromLiteral
	default:
		return r.Source + ":" + r.Name
	}
}

// Source finds secrets by reference. Implementations are safe for concurrent use.
type Source interface {
	// Lookup returns the secret that ref names; ok is false where there is
	// none. An error never holds the secret or what a program printed.
	Lookup(ctx context.Context, ref Ref) (v Value, ok bool, err error)
}
