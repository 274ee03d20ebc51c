package main

import (
	"io"
	"testing"
)

// Who answers the moment that the question is there is heard.
func TestKeyboardHearsAQuickAnswer(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	k := keyboard{in: r}
	for _, want := range []string{"first", "second"} {
		got, err := k.line(t.Context(), func() {
			if _, err := io.WriteString(w, want+"\n"); err != nil {
				t.Error(err)
			}
		})
		if err != nil || got != want {
			t.Errorf("heard %q, %v, want %q", got, err, want)
		}
	}
}
