//go:build race

package journal_test

// many are the records of a long run. The race detector finds no more in more of them,
// and takes five times as long.
const many = 200_000
