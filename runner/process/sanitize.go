package process

import (
	"regexp"
	"slices"
	"strings"
)

// stopTokens are marks of a model's template that some servers leave at the end
// of an answer, such as <|im_end|>, <|eot_id|> and </s>.
var stopTokens = regexp.MustCompile(`(?:(?:<\|[a-zA-Z0-9_]{1,40}\|>|</s>)\s*)+$`)

// heading is the first line of a Markdown text proper.
var heading = regexp.MustCompile(`(?m)^#{1,2} `)

// sanitize takes from an answer what belongs to the conversation and not to the
// file: a byte order mark, stop tokens, a fence around the whole, and before the
// first heading of a Markdown text one short paragraph that announces it with a
// colon. JSON and plain text keep all but the mark. The file ends with one line
// feed. What could be content stays.
func sanitize(answer, format string) string {
	text := strings.TrimPrefix(answer, "\uFEFF")
	languages, known := map[string][]string{
		"":         {"", "markdown", "md"},
		"markdown": {"", "markdown", "md"},
		"md":       {"", "markdown", "md"},
		"yaml":     {"", "yaml", "yml"},
		"yml":      {"", "yaml", "yml"},
	}[strings.ToLower(format)]
	if !known {
		return text
	}
	text = stopTokens.ReplaceAllString(text, "")
	text = strings.TrimSpace(unfence(strings.TrimSpace(text), languages))
	if slices.Contains(languages, "markdown") {
		text = withoutAnnouncement(text)
	}
	return text + "\n"
}

// unfence returns what stands in a fence of one of the languages where the fence
// is around the whole text.
func unfence(text string, languages []string) string {
	marks := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	if len(marks) < 3 {
		return text
	}
	first, rest, ok := strings.Cut(text[len(marks):], "\n")
	if !ok || !slices.Contains(languages, strings.ToLower(strings.TrimSpace(first))) {
		return text
	}
	body, closed := strings.CutSuffix(rest, "\n"+marks)
	if !closed {
		return text
	}
	// A fence within that opens or closes may mean that these two marks do not
	// belong together.
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) == marks {
			return text
		}
	}
	return body
}

// withoutAnnouncement drops a line such as "Here is the report:".
func withoutAnnouncement(text string) string {
	at := heading.FindStringIndex(text)
	if at == nil || at[0] == 0 {
		return text
	}
	before := strings.TrimSpace(text[:at[0]])
	if strings.Contains(before, "\n") || len(before) > 200 || !strings.HasSuffix(before, ":") {
		return text
	}
	return text[at[0]:]
}
