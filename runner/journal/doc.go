// Package journal is what a run writes down while it goes, so that it can be proven,
// replayed and resumed: each [Step] whose outcome comes from outside of the run,
// before it is done and after.
package journal
