package agent

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// arrows reads what stands in [TOOL_CALL]…[/TOOL_CALL]: tool => "x", args =>
// {--k "v" --n 5}. Commas are optional.
type arrows struct {
	text string
	at   int
}

var arrowWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}`)

func (r *arrows) skip(set string) {
	r.at = len(r.text) - len(strings.TrimLeft(r.text[r.at:], set))
}

// take reports whether the text goes on with word, and steps over it.
func (r *arrows) take(word string) bool {
	rest, ok := strings.CutPrefix(r.text[r.at:], word)
	r.at = len(r.text) - len(rest)
	return ok
}

func (r *arrows) word() string {
	w := arrowWord.FindString(r.text[r.at:])
	r.at += len(w)
	return w
}

// call reads what stands behind the first brace, up to the last one.
func (r *arrows) call() (textCall, string) {
	c := textCall{args: noArguments}
	for {
		r.skip(" \t\r\n,")
		if r.take("}") {
			break
		}
		key := r.word()
		r.skip(" \t\r\n")
		if key == "" || !r.take("=>") {
			return c, "=> is missing"
		}
		r.skip(" \t\r\n")
		switch key {
		case "tool", "name":
			if c.name != "" {
				return c, "there are two names"
			}
			if !strings.HasPrefix(r.text[r.at:], `"`) {
				c.name = r.word()
				break
			}
			name, fault := r.quoted()
			if fault != "" {
				return c, fault
			}
			c.name = name
		case "args", "arguments", "parameters":
			if !r.take("{") {
				return c, key + " => is not followed by {"
			}
			if fault := r.arguments(&c); fault != "" {
				return c, fault
			}
		default:
			return c, fmt.Sprintf("%q is not known", key)
		}
	}
	if c.name == "" {
		return c, "it names no tool"
	}
	return c, ""
}

// arguments reads --k "v" up to the closing brace, or a JSON object.
func (r *arrows) arguments(c *textCall) string {
	r.skip(" \t\r\n")
	if strings.HasPrefix(r.text[r.at:], `"`) {
		start := strings.LastIndexByte(r.text[:r.at], '{')
		dec := json.NewDecoder(strings.NewReader(r.text[start:]))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return "the arguments are not JSON: " + jsonFault(err)
		}
		c.args = string(value)
		r.at = start + int(dec.InputOffset())
		return ""
	}
	for {
		r.skip(" \t\r\n,")
		if r.take("}") {
			break
		}
		if !r.take("--") {
			return "an argument does not begin with --"
		}
		f := field{name: r.word()}
		if f.name == "" {
			return "an argument has no name"
		}
		r.skip(" \t=")
		var fault string
		if f.text, f.json, fault = r.value(); fault != "" {
			return fault
		}
		c.fields = append(c.fields, f)
	}
	if len(c.fields) > 0 {
		c.args = ""
	}
	return ""
}

// value reads a quoted text, an object or a list in JSON, or bare words up to the
// end of the line, the next argument or the closing brace.
func (r *arrows) value() (text string, isJSON bool, fault string) {
	rest := r.text[r.at:]
	switch {
	case strings.HasPrefix(rest, `"`):
		text, fault = r.quoted()
		return text, false, fault
	case strings.HasPrefix(rest, "{"), strings.HasPrefix(rest, "["):
		dec := json.NewDecoder(strings.NewReader(rest))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return "", false, "an argument is not JSON: " + jsonFault(err)
		}
		r.at += int(dec.InputOffset())
		return string(value), true, ""
	}
	end := strings.IndexAny(rest, "\r\n}")
	if end < 0 {
		return "", false, "its end is missing"
	}
	if i := strings.Index(rest[:end], " --"); i >= 0 {
		end = i
	}
	r.at += end
	return strings.TrimRight(strings.TrimSpace(rest[:end]), ","), false, ""
}

// quoted reads a JSON string, in which line breaks may stand as they are.
func (r *arrows) quoted() (string, string) {
	from := r.at
	for i := from + 1; i < len(r.text); i++ {
		switch r.text[i] {
		case '\\':
			i++
		case '"':
			r.at = i + 1
			var out string
			if err := json.Unmarshal(escapeControls(r.text[from:r.at]), &out); err != nil {
				return "", "a text in quotation marks is not as in JSON: " + jsonFault(err)
			}
			return out, ""
		}
	}
	return "", "the end of a text in quotation marks is missing"
}

// escapeControls writes the control characters of a text as JSON wants them.
func escapeControls(text string) []byte {
	out := make([]byte, 0, len(text)+16)
	for i := range len(text) {
		if c := text[i]; c < ' ' {
			out = fmt.Appendf(out, `\u%04x`, c)
			continue
		}
		out = append(out, text[i])
	}
	return out
}
