package mcp

import (
	"fmt"
	"unicode/utf8"

	"crewhost/config"
	"crewhost/mcp/wire"
	"crewhost/tools"
)

// maxNesting is how deep the JSON of a result may be nested: many programs that
// read it later are recursive (W10).
const maxNesting = 500

// fit makes a result fit the limits of the settings (W10, K35). Texts are cut in
// their middle and say so, the first ones last; what can't be cut without
// becoming something else is refused where it is too large.
func fit(res tools.Result, limits config.Limits) (tools.Result, *fault) {
	rigid, deepest := len(res.Structured), wire.Nesting(res.Structured)
	for _, c := range res.Content {
		deepest = max(deepest, wire.Nesting(c.Raw))
		rigid += len(c.Data) + len(c.Raw) + len(c.URI) + len(c.Name) + len(c.MIME)
	}
	if rigid > limits.ResultBytes {
		return tools.Result{}, faultf(tools.CodeResultTooLarge, "the result has %d bytes that are no text to be cut, of %s at most", rigid, byteCount(limits.ResultBytes))
	}
	if deepest > maxNesting {
		return tools.Result{}, faultf(tools.CodeResultTooLarge, "the result is nested %d levels deep, of %d at most", deepest, maxNesting)
	}
	chars, bytes := limits.TextChars, limits.ResultBytes-rigid
	left := 0
	for i := range res.Content {
		text := &res.Content[i].Text
		var n int
		*text, n = shorten(*text, chars, bytes)
		left += n
		chars -= utf8.RuneCountInString(*text)
		bytes -= len(*text)
	}
	if left > 0 {
		res.Content = append(res.Content, tools.Content{
			Kind: tools.KindText, Text: fmt.Sprintf("[... %d more characters were left out here ...]", left),
		})
	}
	return res, nil
}

// minShortened is the least room, in characters, in which a text is cut. Where
// there is less, nothing of it is kept.
const minShortened = 200

// shorten cuts a text to so many characters and bytes, or leaves all of it out and
// returns how many characters that was.
func shorten(text string, chars, bytes int) (kept string, left int) {
	count := 0
	if len(text) <= bytes {
		if len(text) <= chars {
			return text, 0
		}
		if count = utf8.RuneCountInString(text); count <= chars {
			return text, 0
		}
	}
	room := min(chars, bytes)
	for room >= minShortened {
		kept = tools.Truncate(text, room)
		if len(kept) <= bytes {
			return kept, 0
		}
		room = room * bytes / len(kept) // less, since kept is longer than bytes
	}
	if count == 0 {
		count = utf8.RuneCountInString(text)
	}
	return "", count
}
