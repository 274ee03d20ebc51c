package process

import (
	"encoding/json"
	"strings"
)

// Bounds on looking for JSON in an answer.
const (
	maxStarts     = 64 // places at which a value may begin
	maxCandidates = 16
)

// candidates are the JSON values in an answer, the most likely first: the whole
// answer, what stands in fences, objects and arrays in the text. The values are
// as they were written, digit for digit, without white space around them.
func candidates(answer string) []string {
	var found []string
	add := func(text string) {
		text = strings.TrimSpace(text)
		if len(found) < maxCandidates && json.Valid([]byte(text)) {
			found = append(found, text)
		}
	}
	answer = strings.TrimPrefix(answer, "\uFEFF")
	add(answer)
	for _, block := range fences(answer) {
		add(block)
	}
	starts := 0
	for at := 0; at < len(answer) && starts < maxStarts; {
		i := strings.IndexAny(answer[at:], "{[")
		if i < 0 {
			break
		}
		at += i
		starts++
		dec := json.NewDecoder(strings.NewReader(answer[at:]))
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			at++
			continue
		}
		add(string(value))
		at += int(dec.InputOffset())
	}
	return found
}

// fences are the contents of the fenced blocks in a Markdown text, outermost
// and closed ones only, at most maxCandidates.
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
			if blocks = append(blocks, block.String()); len(blocks) == maxCandidates {
				return blocks
			}
		case open != "":
			block.WriteString(line)
		}
	}
	return blocks
}
