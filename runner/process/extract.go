package process

import (
	"encoding/json"
	"strings"
)

// Bounds on looking for JSON in an answer.
const (
	maxStarts  = 64    // places that look like the beginning of a value and are none
	maxValues  = 4_096 // that are looked at; each costs no more than its own length
	maxFound   = 256   // of them, that are candidates
	maxNumbers = 16    // arrays of numbers that are
	maxFences  = 16
)

// candidates are the JSON values in an answer, the most likely first: the whole
// answer, what stands in fences, objects and arrays in the text; arrays of numbers
// come after all others there, since [1] is more often a citation. The values are as
// they were written, digit for digit, without white space around them.
func candidates(answer string) []string {
	var found, numbers []string
	add := func(text string) {
		text = strings.TrimSpace(text)
		if json.Valid([]byte(text)) {
			found = append(found, text)
		}
	}
	answer = strings.TrimPrefix(answer, "\uFEFF")
	add(answer)
	for _, block := range fences(answer) {
		add(block)
	}
	starts, values := 0, 0
	for at := 0; at < len(answer) && starts < maxStarts && values < maxValues && len(found) < maxFound; {
		i := strings.IndexAny(answer[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		dec := json.NewDecoder(strings.NewReader(answer[at:]))
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			starts++
			at++
			continue
		}
		values++
		at += int(dec.InputOffset())
		switch value := string(raw); {
		case !ofNumbers(value):
			found = append(found, value)
		case len(numbers) < maxNumbers:
			numbers = append(numbers, value)
		}
	}
	return append(found, numbers...)
}

// ofNumbers reports whether a JSON value is an array that holds numbers alone.
func ofNumbers(value string) bool {
	inner, isArray := strings.CutPrefix(value, "[")
	return isArray && strings.Trim(inner, "0123456789+-.eE, \t\r\n") == "]"
}

// fences are the contents of the fenced blocks in a Markdown text, outermost
// and closed ones only, at most maxFences.
func fences(text string) []string {
	var blocks []string
	var open string // the marks that opened a block, or ""
	var block strings.Builder
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case open == "" && len(marks) >= 3:
			open = marks
			block.Reset()
		case open != "" && len(marks) >= len(open) && marks == trimmed:
			open = ""
			if blocks = append(blocks, block.String()); len(blocks) == maxFences {
				return blocks
			}
		case open != "":
			block.WriteString(line)
		}
	}
	return blocks
}
