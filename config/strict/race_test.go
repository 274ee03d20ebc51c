//go:build race

package strict

// raceFactor is how much slower the race detector makes a parser.
const raceFactor = 10
