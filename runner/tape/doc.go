// Package tape is a recording of a whole run: what it was started with, what the
// servers and models of the host were, each of its steps with what came of it, the
// events as they were told, and the end. A run that goes by a [Tape] needs none of
// what is recorded there – no server, no model, no key, no network – and is held
// against it: it must ask the same, do the same and tell the same, in the same order.
//
//	rec, err := tape.Create("run.tape", redactor.Redact)   // record
//	…
//	steps := rec.Steps(journal.Live{})                     // around the steps of a run
//
//	t, err := tape.Open("run.tape")                        // replay
//	replay := t.Replay(tape.Options{Stop: stop, Tell: stream.Catch})
//	stream.Follow(replay)                                  // its events, and
//	outcome, err := replay.Do(ctx, step, nil)              // its steps
//
// # The form
//
// A tape is JSONL. The first line says what it is; each other is an object with one
// member, which says what the line is about:
//
//	{"tape":"crewhost","version":2}
//	{"start":{…}}   what the program was started with
//	{"event":{…}}   an event as it was told, at any time
//	{"host":{…}}    the servers, tools and model profiles that there were
//	{"run":{…}}     the crew, and its inputs: the run begins
//	{"step":{"n":1,"kind":"model",…,"request":{…}}}   what is asked, before it is
//	{"done":{"n":1,"outcome":{…}}}                    what came of it, after
//	{"result":{…}}  what the run came to
//	{"end":{…}}     the exit code
//
// Lines are written one by one, so that what a crash leaves is a tape that can be
// read up to there and says that it is not complete. Secrets are masked in every text
// of it, those in base64 included; its file is its owner's alone.
//
// Version 1 is a tape of a model alone, which package replay reads and a profile with
// the provider replay answers from.
//
// # What is held against the tape
//
// The order of the lines is the order in which things happened. A step's outcome is
// given only once all that stands before it has happened anew, and events are told in
// the order of the tape, whatever runs beside whatever. So runs that do the same come
// out the same to the last byte: times, durations and numbers of events are the
// tape's. What comes of the world and not of the run – pieces of a model's answer, the
// progress of a tool, questions to a person, changes of a server's state – is told as
// it stands on the tape; every other event must be emitted by the run, and all that
// stands on the tape must come. What differs is a [*DivergenceError].
package tape
