//go:build interop

package shell

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestInteropWords holds the splitting against that of a shell, for every line of some
// characters that matter.
func TestInteropWords(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Fatal(err)
	}
	const letters = `a '"\$#~*{|=`
	var lines []string
	var make func(line string, more int)
	make = func(line string, more int) {
		if _, err := words(line); err == nil {
			lines = append(lines, line)
		}
		for i := 0; i < len(letters) && more > 0; i++ {
			make(line+letters[i:i+1], more-1)
		}
	}
	make("", 4)
	var script strings.Builder
	for _, line := range lines {
		script.WriteString("printf '%s\\0' " + line + " ''; printf '\\n\\0'\n")
	}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(string(out), "\x00\n\x00")
	if len(answers)-1 != len(lines) || len(lines) < 1000 {
		t.Fatalf("%d lines, %d answers", len(lines), len(answers)-1)
	}
	for i, line := range lines {
		got, err := words(line)
		want := strings.Split(answers[i], "\x00")
		if want = want[:len(want)-1]; err != nil || !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("%s: %q, %v; a shell has %q", line, got, err, want)
		}
	}
}
