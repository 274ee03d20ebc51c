//go:build race

package journal_test

// few and many are the records of a long run, and of a longer one. The race detector
// finds no more in more of them, and takes five times as long.
const few, many = 70_000, 140_000
