// Package mind has the tools by which an agent thinks, keeps a list of what is to do, and
// uses what its crew remembers and the documents that it has.
package mind

import (
	"context"

	"crewhost/tools/native"
)

// Config is what the tools work with. The zero value is useful for listing them: each
// says, when called, what it lacks.
type Config struct {
	// Memory and Documents return what the crew has that makes a call, by the
	// context of the call: nil where it has none, or no crew makes it. A nil
	// function is one that returns nil.
	Memory    func(context.Context) Memory
	Documents func(context.Context) Documents
}

// Tools returns the tools.
func Tools(cfg Config) []native.Tool {
	return []native.Tool{memoryStore(cfg.Memory), ragSearch(cfg.Documents), semanticSearch(cfg.Memory), think(), todo()}
}
