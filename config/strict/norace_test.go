//go:build !race

package strict

const raceFactor = 1
