//go:build !race

package journal_test

// few and many are the records of a long run, and of a longer one.
const few, many = 100_000, 1_000_000
