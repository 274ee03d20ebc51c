//go:build !race

package files_test

const raced = false
