// Package journal is what a run writes down while it goes, so that it can be proven,
// replayed and resumed: each [Step] whose outcome comes from outside of the run,
// before it is done and after.
//
// A run comes to everything by itself but for its steps, so that one which gets the
// outcomes that it got before goes where it went before. [Log] is the [Steps] of a run
// that keeps a journal; a program that was killed opens it again, and the run goes on
// from its beginning without doing a second time what was done:
//
//	log, err := journal.Create(journal.Config{Dir: dir}, journal.Header{Crew: "Tides"})
//	outcome, err := log.Do(ctx, step, func(ctx context.Context) (json.RawMessage, error) { … })
//	…
//	log, err = journal.Open(journal.Config{Dir: dir}, run)
//	err = log.Resume(journal.Life{Host: "1.2.0"})
//	outcome, err = log.Do(ctx, step, nil) // it is known
//
// # The file
//
// The journal of a run is one file of JSON, a record a line, that only grows. One file
// can be copied, sent and read by a person; a database would want three, and would
// rather mend what is torn than say so. Each line has a number and a checksum over
// itself and the line before, so that none can be lost, doubled, moved or changed
// unnoticed. That a step is begun which may be done once is on the disk before it is
// done, with the name of the file and all that was written before, and so is all when the
// run ends; the rest is written and left to the system, which loses it with the power
// alone. What is lost then is at worst the result of such a step, which is not known
// then, and asked about.
//
// A last line without an end was torn, and counts as not written: nothing was done in
// reliance on it. Any other line that is not what its sum says is a [*DamagedError],
// also the last, for the step that it was about may have been done.
//
// # What is not known
//
// A step that was begun and has no result may have been done or not. One that changes
// nothing, or may be done twice, is done again; another only if somebody says so
// ([Config].Unknown). A run that asks for something else than it did, where it is to do
// the same, gets a [*DivergenceError] and does nothing.
package journal
