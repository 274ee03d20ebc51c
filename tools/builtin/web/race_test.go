//go:build race

package web

// raced says that all takes ten times as long.
const raced = true
