// Package audit keeps a log of what was called, by whom and by which right: one
// record a line, in JSON, each of which holds the hash of the one before.
//
//	log, err := audit.Open(ctx, audit.Config{Path: "audit.jsonl"})
//	err = log.Append(ctx, audit.Record{Kind: audit.Call, Tool: "file_write", Outcome: "succeeded"})
//	report, err := audit.Verify(ctx, "audit.jsonl", audit.Head{}) // a *Break names the file and the line
//
// # The chain
//
// A record ends in its hash: SHA-256, in hex, of the bytes of its line before
// `,"hash"`. One of those bytes' members is the hash of the record before it, and one
// is its number. The first record of a log has the number 1 and sixty-four zeros. So a
// changed byte, a line that is gone, added or moved, and a file that is another one,
// are found, with their place.
//
// What the chain alone can't show: that its end was cut off, or that all of it was
// written anew by somebody who may write the file. There is no key in it, since whoever
// can run this program as the same user could read that as well. Against both there is
// the [Head], a number and a hash: kept elsewhere, such as in the output of a build, it
// fixes every record up to it ([Verify] takes one).
//
// # Files
//
// A file that has reached its size is renamed after the number of its first record,
// audit.000000000001.jsonl, and a new one goes on with the chain. Beyond the number of
// files that are kept the oldest are removed. The first record of each new file says
// where the log begins from then on: a log without its beginning is whole if that is
// what it says, and not otherwise.
//
// # Writers
//
// Several processes may write one log at once; a lock beside it has them take turns. A
// record is with the operating system when Append returns, so no record is lost with
// the process. To the disk they are forced when a run ends, when a file is full, when
// the log is closed, and with the first record a second or more after the last time.
//
// A writer that was stopped in the middle of a line leaves it behind. The next one says
// so in a record (its size and its hash) and goes on; the torn line stays. It goes on
// after nothing else: a last record that was changed is an error of [Open].
//
// # What is not in it
//
// No values of arguments: a digest of them, and their shape (see [Shape]). The digest
// of what can be guessed can be guessed, too.
package audit
