package mcp

import (
	"fmt"

	"crewhost/config"
)

// Limits that the settings don't change.
const (
	maxSchemas = 32 << 20 // bytes of all schemas of a server
	maxCursor  = 64 << 10 // bytes of a cursor

	// maxMessage, maxCalls and maxName are defaults; maxName also bounds other
	// short texts of a server.
	maxMessage = 16 << 20
	maxCalls   = 16
	maxName    = 256
)

// limitsOf are the limits of the settings, with the defaults for what they
// don't say.
func limitsOf(l config.Limits) config.Limits {
	for _, d := range []struct {
		limit *int
		value int
	}{
		{&l.Tools, 10_000},
		{&l.Pages, 1000},
		{&l.NameLength, maxName},
		{&l.DescriptionLength, 32 << 10},
		{&l.SchemaBytes, 1 << 20},
		{&l.MessageBytes, maxMessage},
		{&l.ArgumentsBytes, 4 << 20},
		{&l.ResultBytes, maxMessage},
		{&l.TextChars, maxMessage},
	} {
		if *d.limit <= 0 {
			*d.limit = d.value
		}
	}
	return l
}

// byteCount is a number of bytes as people write it.
func byteCount(n int) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
