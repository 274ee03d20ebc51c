package agent

import (
	"encoding/json"
	"strings"
)

// Bounds on looking for calls in a text.
const (
	maxCallText  = 4 << 20 // bytes of an answer; a longer one holds none
	maxSpan      = 4 << 10 // bytes of a code span
	maxTextCalls = 32      // of one answer; what follows them is not looked at
)

// A textCall is a call that a model wrote into its text, as models do that have
// no calls of their own, or forget that they have.
type textCall struct {
	name   string
	args   string  // a JSON object, or what was to be one; "" where there are fields
	fields []field // arguments by name, whose kinds the tool's schema decides
	fault  string  // why it can't be understood; the model reads it
	wrote  string  // as it stands in the text
}

// field is an argument as a text.
type field struct {
	name string
	text string
	json bool // the text is a JSON value; otherwise it is what it says
}

// textCalls finds the calls in a text, and the text without them. Understood are:
//
//	<tool_call>{"name": "x", "arguments": {…}}</tool_call>    also <function_call>, and lists in <tool_calls>
//	<tool_call>x<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>
//	<invoke name="x"><parameter name="k">v</parameter></invoke>    also with ｜DSML｜ before each tag's name
//	<function=x><parameter=k>v</parameter></function>    also with a JSON object in it
//	<｜tool▁call▁begin｜>x<｜tool▁sep｜>{…}<｜tool▁call▁end｜>
//	[TOOL_CALL]{tool => "x", args => {--k "v"}}[/TOOL_CALL]    also with JSON in it
//
// What stands in a code fence, in a code span, in a quotation or in an answer that
// is JSON speaks of a call and is none. A call whose end is missing has a fault and takes the rest of the
// text, since nobody knows where it was to end.
func textCalls(text string) (calls []textCall, prose string) {
	if len(text) > maxCallText || isJSON(text) {
		return nil, text
	}
	var kept strings.Builder
	from := 0 // of what is kept next
	for at := 0; at < len(text) && len(calls) < maxTextCalls; {
		i := strings.IndexAny(text[at:], "`~><[")
		if i < 0 {
			break
		}
		at += i
		switch text[at] {
		case '`', '~':
			at = afterQuoted(text, at)
		case '>':
			at++
			if startsLine(text, at-1) {
				at = endOfLine(text, at)
			}
		default:
			found, n := callAt(text[at:])
			if n == 0 {
				at++
				continue
			}
			for i := range found {
				found[i].wrote = text[at : at+n]
			}
			calls = append(calls, found...)
			kept.WriteString(text[from:at])
			at += n
			from = at
		}
	}
	if len(calls) == 0 {
		return nil, text
	}
	kept.WriteString(text[from:])
	return calls[:min(len(calls), maxTextCalls)], strings.TrimSpace(kept.String())
}

// isJSON reports whether a text is a JSON object or list and nothing else.
func isJSON(text string) bool {
	text = strings.TrimSpace(text)
	return text != "" && (text[0] == '{' || text[0] == '[') && json.Valid([]byte(text))
}

// afterQuoted is where the code ends whose marks stand at at, or where the marks
// end if they open none.
func afterQuoted(text string, at int) int {
	mark := text[at : at+1]
	size := len(text[at:]) - len(strings.TrimLeft(text[at:], mark))
	end := at + size
	if size >= 3 && startsLine(text, at) {
		for end = endOfLine(text, end); end < len(text); end = endOfLine(text, end) {
			line, _, _ := strings.Cut(text[end:], "\n")
			line = strings.TrimSpace(line)
			if len(line) >= size && strings.Trim(line, mark) == "" {
				return endOfLine(text, end)
			}
		}
		return end
	}
	if mark == "~" {
		return end
	}
	// A span ends at marks of the same number, on the same line and not far.
	for next := end; next < min(len(text), end+maxSpan); {
		i := strings.IndexAny(text[next:min(len(text), end+maxSpan)], "`\n")
		if i < 0 || text[next+i] == '\n' {
			break
		}
		next += i
		n := len(text[next:]) - len(strings.TrimLeft(text[next:], "`"))
		next += n
		if n == size {
			return next
		}
	}
	return end
}

// startsLine reports whether nothing but blanks stands before at on its line.
func startsLine(text string, at int) bool {
	for at > 0 && (text[at-1] == ' ' || text[at-1] == '\t') {
		at--
	}
	return at == 0 || text[at-1] == '\n'
}

// endOfLine is where the line after that of at begins.
func endOfLine(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// quotesCall reports whether a text is nothing but a call in a code fence: what
// some models write who mean to call.
func quotesCall(text string) bool {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "```") || !strings.HasSuffix(text, "```") || len(text) < 6 {
		return false
	}
	_, inner, ok := strings.Cut(text, "\n")
	if !ok {
		return false
	}
	inner = strings.TrimSpace(strings.TrimRight(inner, "`"))
	if inner == "" || strings.Contains(inner, "\n```") {
		return false
	}
	calls, prose := textCalls(inner)
	return len(calls) > 0 && calls[0].fault == "" && prose == ""
}
