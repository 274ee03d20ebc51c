// Package lock is the file crewhost.lock: what MCP servers offered when somebody looked
// at it last, so that a server that changes a tool is noticed before a model is (R4).
//
//	locked, err := lock.Read("crewhost.lock")                 // strict.Issues, each with its line
//	drift := lock.Compare(locked.Path, locked.Servers, found) // empty: nothing has changed
//	err = locked.Write()                                      // whole or not at all
//
// Of each server the file has how it is reached, what it calls itself, and of each of
// its tools three digests: of the description, of the schemas, and of all of the
// definition (tools.Digests). It has no texts of servers: whoever reviews a change of it
// reads those where they are, and nobody's model reads them by way of a repository.
//
// The file is in YAML, sorted and one fact a line, so that a change of a server is a
// change of few lines; it is read strictly. Servers that agents of a crew bring along
// stand below the path of that crew.
//
// The package knows no servers and no settings: who compares says what was found.
package lock
