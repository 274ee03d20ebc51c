package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"crewhost/runner/llm"
	"crewhost/tools"
)

// message is what the model reads of a tool's result: one text, cut to chars
// with its head and tail kept (K35), then the images. The machine-readable form
// stands in where the content has no text, digit for digit (K31). A failure is
// marked and never without words (K33).
func (l Limits) message(id string, res tools.Result, chars int) llm.Message {
	var texts []string
	var data []llm.Part
	said := false
	for _, c := range res.Content {
		text, part := l.block(c)
		if part != nil {
			data = append(data, *part)
			text = fmt.Sprintf("[image %d of this result: %s]", len(data), part.MIME)
		} else if strings.TrimSpace(text) != "" {
			said = true
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	if structured := bytes.TrimSpace(res.Structured); !said && len(structured) > 0 && string(structured) != "null" {
		texts = append(texts, string(structured))
		said = true
	}
	text := strings.ToValidUTF8(strings.Join(texts, "\n"), "\uFFFD")
	switch {
	case res.IsError && !said:
		text = strings.TrimSpace("the tool failed and did not say why\n" + text)
	case !said && len(data) == 0:
		text = "(the tool succeeded and returned nothing)"
	}
	if res.IsError {
		text = markError(text)
	}
	return llm.Message{
		Role: llm.RoleTool, CallID: id, IsError: res.IsError,
		Parts: append([]llm.Part{{Text: tools.Truncate(text, chars)}}, data...),
	}
}

// markError marks a text as an error also for models whose API has no mark.
func markError(text string) string {
	if strings.HasPrefix(strings.ToLower(text), "error") {
		return text
	}
	return "Error: " + text
}

// block is a block of content as text or, for an image, as data.
func (l Limits) block(c tools.Content) (string, *llm.Part) {
	switch c.Kind {
	case tools.KindText:
		return c.Text, nil
	case tools.KindImage:
		return l.data(c, "image")
	case tools.KindAudio:
		return fmt.Sprintf("[audio, %s, %d bytes: not shown]", c.MIME, len(c.Data)), nil
	case tools.KindResource:
		if c.Text != "" || len(c.Data) == 0 {
			return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text), nil
		}
		return l.data(c, "resource "+c.URI)
	case tools.KindLink:
		return strings.TrimSpace(fmt.Sprintf("[link to %s] %s %s", c.URI, c.Name, c.Text)), nil
	default:
		var compact bytes.Buffer
		if json.Compact(&compact, c.Raw) != nil {
			return "[content of an unknown kind]", nil
		}
		return "[content of an unknown kind] " + compact.String(), nil
	}
}

// data is an image as data; anything else, and what is too large, as a note.
func (l Limits) data(c tools.Content, what string) (string, *llm.Part) {
	switch {
	case !strings.HasPrefix(c.MIME, "image/"):
		return fmt.Sprintf("[%s, %s, %d bytes: not shown]", what, c.MIME, len(c.Data)), nil
	case len(c.Data) == 0:
		return fmt.Sprintf("[%s, %s: empty]", what, c.MIME), nil
	case len(c.Data) > l.ResultDataBytes:
		return fmt.Sprintf("[%s, %s, %d bytes: larger than the %d bytes that can be shown]", what, c.MIME, len(c.Data), l.ResultDataBytes), nil
	}
	return "", &llm.Part{MIME: c.MIME, Data: c.Data}
}
