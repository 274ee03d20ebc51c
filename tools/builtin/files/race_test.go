//go:build race

package files_test

// raced says that all takes ten times as long, and that pools forget a part of what
// they are given, so that what is allocated tells nothing.
const raced = true
