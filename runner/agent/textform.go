package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// callAt reads the calls at the beginning of a text and how many bytes they take:
// 0 where it begins with none.
func callAt(text string) ([]textCall, int) {
	for _, form := range []func(string) ([]textCall, int){jsonCall, invokeCall, functionCall, tokenCall, bracketCall} {
		if calls, n := form(text); n > 0 {
			return calls, n
		}
	}
	return nil, 0
}

// broken is a call that can't be understood and takes n bytes.
func broken(n int, format string, args ...any) ([]textCall, int) {
	return []textCall{{fault: fmt.Sprintf(format, args...)}}, n
}

// blank is the white space at the beginning of a text, in bytes.
func blank(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }

// jsonCall reads <tool_call>{…}</tool_call>. The end tag may be missing where the
// text ends: servers take it for the end of the answer and leave it out.
func jsonCall(text string) ([]textCall, int) {
	for _, tag := range []string{"tool_call", "tool_calls", "function_call"} {
		body, ok := strings.CutPrefix(text, "<"+tag+">")
		if !ok {
			continue
		}
		at := len(text) - len(body)
		at += blank(body)
		end := "</" + tag + ">"
		switch {
		case strings.HasPrefix(text[at:], "{"), strings.HasPrefix(text[at:], "["):
			return jsonBody(text, at, end, tag)
		case tag == "tool_call":
			return pairedCall(text, at, end)
		}
	}
	return nil, 0
}

// jsonBody reads the JSON at at and the end tag behind it.
func jsonBody(text string, at int, end, tag string) ([]textCall, int) {
	dec := json.NewDecoder(strings.NewReader(text[at:]))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		n := len(text)
		if i := strings.Index(text[at:], end); i >= 0 {
			n = at + i + len(end)
		}
		return broken(n, "what stands in <%s> is not JSON: %s", tag, jsonFault(err))
	}
	at += int(dec.InputOffset())
	at += blank(text[at:])
	rest, closed := strings.CutPrefix(text[at:], end)
	if !closed && rest != "" {
		n := len(text)
		if i := strings.Index(rest, end); i >= 0 {
			n = at + i + len(end)
		}
		return broken(n, "something follows the JSON in <%s>", tag)
	}
	return callsOf(value), len(text) - len(rest)
}

func jsonFault(err error) string {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Sprintf("%v, at byte %d", err, syntax.Offset)
	}
	return "it ends too early"
}

// callsOf reads a call, or a list of calls, in JSON.
func callsOf(value json.RawMessage) []textCall {
	if value[0] != '[' {
		return []textCall{callOf(value)}
	}
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil || len(list) == 0 {
		return []textCall{{fault: "the list of calls is empty"}}
	}
	var calls []textCall
	for _, v := range list[:min(len(list), maxTextCalls)] {
		calls = append(calls, callOf(v))
	}
	return calls
}

// callOf reads {"name": "x", "arguments": {…}}, which may stand in an envelope
// {"type": "function", "function": {…}}.
func callOf(value json.RawMessage) textCall {
	const want = `a call is {"name": "TOOL", "arguments": {…}}`
	members, ok := membersOf(value)
	if !ok {
		return textCall{fault: want}
	}
	var c textCall
	named, given := false, false
	for _, m := range members {
		switch m.name {
		case "name", "tool", "tool_name", "function":
			if m.name == "function" && m.value[0] == '{' {
				return callOf(m.value)
			}
			if named || json.Unmarshal(m.value, &c.name) != nil {
				return textCall{fault: want}
			}
			named = true
		case "arguments", "args", "parameters", "input":
			if given {
				return textCall{fault: want}
			}
			given = true
			c.args = string(m.value)
			var text string
			if m.value[0] == '"' && json.Unmarshal(m.value, &text) == nil {
				c.args = text // JSON in JSON, as vendors' APIs have it
			}
		}
	}
	if c.name == "" {
		return textCall{fault: want}
	}
	if c.args == "" {
		c.args = noArguments
	}
	return c
}

// toolName is a name at the beginning of a text.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.:/-]{1,128}`)

// pairedCall reads a name and pairs of <arg_key> and <arg_value>.
func pairedCall(text string, at int, end string) ([]textCall, int) {
	name := toolName.FindString(text[at:])
	if name == "" {
		return nil, 0
	}
	c := textCall{name: name, args: noArguments}
	for at += len(name); ; {
		at += blank(text[at:])
		if rest, ok := strings.CutPrefix(text[at:], end); ok {
			return []textCall{c}, len(text) - len(rest)
		}
		rest, ok := strings.CutPrefix(text[at:], "<arg_key>")
		if !ok {
			if len(c.fields) == 0 {
				return nil, 0
			}
			return broken(len(text), "something else than <arg_key> or %s follows an argument", end)
		}
		key, rest, ok := strings.Cut(rest, "</arg_key>")
		rest = rest[blank(rest):]
		rest, opened := strings.CutPrefix(rest, "<arg_value>")
		value, rest, closed := strings.Cut(rest, "</arg_value>")
		if !ok || !opened || !closed {
			return broken(len(text), "an argument is not <arg_key>…</arg_key><arg_value>…</arg_value>")
		}
		c.args = ""
		c.fields = append(c.fields, field{name: strings.TrimSpace(key), text: inTags(value)})
		at = len(text) - len(rest)
	}
}

// inTags is a value as it stands between tags: a line break behind the first tag
// and one before the last are the layout's, where both are there.
func inTags(value string) string {
	inner, opened := strings.CutPrefix(strings.Replace(value, "\r\n", "\n", 1), "\n")
	inner, closed := strings.CutSuffix(inner, "\n")
	if opened && closed {
		return strings.TrimSuffix(inner, "\r")
	}
	return value
}

// The tags of the forms that name arguments one by one.
var (
	invokeTag    = regexp.MustCompile(`^<(｜DSML｜)?invoke((?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))+)\s*(/?)>`)
	parameterTag = regexp.MustCompile(`^<(?:｜DSML｜)?parameter((?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<>]*"|'[^'<>]*'))+)\s*>`)
	attribute    = regexp.MustCompile(`([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')`)
	functionTag  = regexp.MustCompile(`^<function=\s*([A-Za-z0-9_.:/-]{1,128})\s*>`)
	equalsTag    = regexp.MustCompile(`^<parameter=\s*([^<>\s]{1,128})\s*>`)
)

// attributes are those of a tag, in order.
func attributes(tag string) []field {
	var out []field
	for _, m := range attribute.FindAllStringSubmatch(tag, -1) {
		out = append(out, field{name: m[1], text: m[2] + m[3]})
	}
	return out
}

// invokeCall reads <invoke name="x"><parameter name="k">v</parameter></invoke>.
// Arguments may be attributes, too.
func invokeCall(text string) ([]textCall, int) {
	if !strings.HasPrefix(text, "<invoke") && !strings.HasPrefix(text, "<｜DSML｜invoke") {
		return nil, 0
	}
	m := invokeTag.FindStringSubmatch(text)
	if m == nil {
		return nil, 0
	}
	c := textCall{args: noArguments}
	for _, a := range attributes(m[2]) {
		if a.name == "name" && c.name == "" {
			c.name = a.text
			continue
		}
		c.fields = append(c.fields, a)
	}
	if c.name == "" {
		return nil, 0
	}
	at := len(m[0])
	if m[3] == "" {
		var fault string
		if at, fault = c.parameters(text, at, m[1]+"parameter", m[1]+"invoke", func(tag string) (field, int) {
			m := parameterTag.FindStringSubmatch(tag)
			if m == nil {
				return field{}, 0
			}
			var f field
			for _, a := range attributes(m[1]) {
				switch a.name {
				case "name":
					f.name = a.text
				case "string":
					f.json = a.text == "false"
				}
			}
			return f, len(m[0])
		}); fault != "" {
			return broken(at, "the call of %q: %s", c.name, fault)
		}
	}
	if len(c.fields) > 0 {
		c.args = ""
	}
	return []textCall{c}, at
}

// functionCall reads <function=x><parameter=k>v</parameter></function>, and a
// JSON object in the place of the parameters.
func functionCall(text string) ([]textCall, int) {
	if !strings.HasPrefix(text, "<function=") {
		return nil, 0
	}
	m := functionTag.FindStringSubmatch(text)
	if m == nil {
		return nil, 0
	}
	c := textCall{name: m[1], args: noArguments}
	at := len(m[0])
	at += blank(text[at:])
	if strings.HasPrefix(text[at:], "{") {
		dec := json.NewDecoder(strings.NewReader(text[at:]))
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return broken(len(text), "the arguments of %q are not JSON: %s", c.name, jsonFault(err))
		}
		c.args = string(value)
		at += int(dec.InputOffset())
		at += blank(text[at:])
		if rest, ok := strings.CutPrefix(text[at:], "</function>"); ok || rest == "" {
			return []textCall{c}, len(text) - len(rest)
		}
		return broken(len(text), "something follows the arguments of %q", c.name)
	}
	at, fault := c.parameters(text, at, "parameter", "function", func(tag string) (field, int) {
		m := equalsTag.FindStringSubmatch(tag)
		if m == nil {
			return field{}, 0
		}
		return field{name: m[1]}, len(m[0])
	})
	if fault != "" {
		return broken(at, "the call of %q: %s", c.name, fault)
	}
	if len(c.fields) > 0 {
		c.args = ""
	}
	return []textCall{c}, at
}

// parameters reads parameters up to the tag that ends the call. A value ends at
// the first end tag behind which the next parameter, or the end of the call,
// stands. It returns where the call ends, and what is wrong with it.
func (c *textCall) parameters(text string, at int, parameter, call string, open func(string) (field, int)) (int, string) {
	endOf, endCall := "</"+parameter+">", "</"+call+">"
	for {
		at += blank(text[at:])
		if rest, ok := strings.CutPrefix(text[at:], endCall); ok {
			return len(text) - len(rest), ""
		}
		f, n := open(text[at:])
		if n == 0 || f.name == "" {
			if i := strings.Index(text[at:], endCall); i >= 0 {
				return at + i + len(endCall), fmt.Sprintf("where a <%s> or its end was to come there is %q", parameter, excerpt(text[at:at+i], 40))
			}
			return len(text), endCall + " is missing"
		}
		at += n
		from := at
		for {
			i := strings.Index(text[at:], endOf)
			if i < 0 {
				return len(text), fmt.Sprintf("the end of the parameter %q is missing", f.name)
			}
			value := text[from : at+i]
			at += i + len(endOf)
			behind := text[at+blank(text[at:]):]
			_, next := open(behind)
			if next > 0 || strings.HasPrefix(behind, endCall) {
				f.text = inTags(value)
				break
			}
		}
		c.fields = append(c.fields, f)
	}
}

// tokenCall reads <｜tool▁call▁begin｜>x<｜tool▁sep｜>{…}<｜tool▁call▁end｜>. The
// older form has the word function and the name change places, and a fence around
// the arguments.
func tokenCall(text string) ([]textCall, int) {
	const begin, sep, end = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
	rest, ok := strings.CutPrefix(text, begin)
	if !ok {
		return nil, 0
	}
	n := len(text)
	if i := strings.Index(rest, end); i >= 0 {
		n = len(begin) + i + len(end)
	}
	name, body, ok := strings.Cut(rest, sep)
	name = strings.TrimSpace(name)
	if name == "function" {
		name, body, _ = strings.Cut(body, "\n")
		name = strings.TrimSpace(name)
	}
	if !ok || name == "" || toolName.FindString(name) != name {
		return broken(n, "%s does not name a tool", begin)
	}
	body = body[blank(body):]
	if fenced, ok := strings.CutPrefix(body, "```json"); ok {
		body = fenced[blank(fenced):]
	}
	dec := json.NewDecoder(strings.NewReader(body))
	var value json.RawMessage
	if err := dec.Decode(&value); err != nil {
		return broken(n, "the arguments of %q are not JSON: %s", name, jsonFault(err))
	}
	body = body[dec.InputOffset():]
	body = body[blank(body):]
	body = strings.TrimPrefix(body, "```")
	body = body[blank(body):]
	if body, ok = strings.CutPrefix(body, end); !ok && body != "" {
		return broken(n, "something follows the arguments of %q", name)
	}
	return []textCall{{name: name, args: string(value)}}, len(text) - len(body)
}

// bracketCall reads [TOOL_CALL]{tool => "x", args => {--k "v"}}[/TOOL_CALL].
func bracketCall(text string) ([]textCall, int) {
	const begin, end = "[TOOL_CALL]", "[/TOOL_CALL]"
	rest, ok := strings.CutPrefix(text, begin)
	if !ok {
		return nil, 0
	}
	at := len(begin) + blank(rest)
	if !strings.HasPrefix(text[at:], "{") {
		return nil, 0
	}
	if inner := text[at+1:]; strings.HasPrefix(inner[blank(inner):], `"`) {
		return jsonBody(text, at, end, strings.Trim(begin, "[]"))
	}
	r := arrows{text: text, at: at + 1}
	c, fault := r.call()
	if fault == "" {
		r.skip(" \t\r\n")
		if rest, ok := strings.CutPrefix(text[r.at:], end); ok || rest == "" {
			return []textCall{c}, len(text) - len(rest)
		}
		fault = "something stands before " + end
	}
	n := len(text)
	if i := strings.Index(text[at:], end); i >= 0 {
		n = at + i + len(end)
	}
	return broken(n, "a call is %s{tool => \"TOOL\", args => {--name \"value\"}}%s: %s", begin, end, fault)
}
