//go:build !race

package journal_test

// many are the records of a long run.
const many = 1_000_000
