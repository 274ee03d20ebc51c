package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"crewhost/tools"
	"crewhost/tools/native"
)

// maxJSON bounds a document for json_tool, in bytes.
const maxJSON = 4 << 20

const jsonToolSchema = `{
  "type": "object",
  "properties": {
    "input": {
      "type": ["string", "object", "array"],
      "description": "The JSON document: its text, or the document itself."
    },
    "operation": {
      "type": "string", "enum": ["parse", "query", "format"],
      "description": "parse checks the document and returns it in one line; format indents it; query returns the parts that query selects."
    },
    "query": {
      "type": "string", "maxLength": 1000,
      "description": "For the operation query: a JSONPath such as $.items[?@.price < 10].name, or a plain path such as items.0.name."
    }
  },
  "required": ["input", "operation"],
  "additionalProperties": false
}`

func jsonTool() native.Tool {
	return native.Tool{
		Name: "json_tool", Title: "JSON",
		Description: "Checks, formats or queries a JSON document. Numbers keep every digit.",
		Schema:      jsonToolSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			doc := document(args, "input")
			if !args.Has("operation") {
				args.Note("the argument %q is missing", "operation")
			}
			operation := args.OneOf("operation", "", "parse", "query", "format")
			query := args.Text("query", "")
			switch {
			case operation == "query" && query == "":
				args.Note("the operation query needs the argument %q", "query")
			case len(query) > maxQuery:
				args.Note("the argument %q is longer than %d bytes", "query", maxQuery)
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			if len(doc) > maxJSON {
				return native.Failuref("The document has %d bytes, and at most %d can be worked on.", len(doc), maxJSON), nil
			}
			if err := checkJSON(doc); err != nil {
				return native.Failuref("The input is not valid JSON: %v.", err), nil
			}
			var out []byte
			var err error
			switch operation {
			case "parse":
				var b bytes.Buffer
				err = json.Compact(&b, doc)
				out = b.Bytes()
			case "format":
				var b bytes.Buffer
				err = json.Indent(&b, bytes.TrimSpace(doc), "", "  ")
				out = b.Bytes()
			case "query":
				out, err = queryJSON(ctx, doc, query)
			}
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "json_tool")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(tools.Truncate(string(out), native.MaxText)), nil
		},
	}
}

// document takes a JSON document, as text or as itself.
func document(a *native.Arguments, name string) []byte {
	raw := a.Raw(name)
	switch {
	case raw == nil:
		a.Note("the argument %q is missing", name)
		return nil
	case raw[0] == '{' || raw[0] == '[':
		return raw
	}
	return []byte(a.Text(name, ""))
}

// maxNesting bounds how deep documents may be nested: some steps take one level
// of the stack for each.
const maxNesting = 200

// checkJSON says what is wrong with doc and where.
func checkJSON(doc []byte) error {
	if len(bytes.TrimSpace(doc)) == 0 {
		return errors.New("it is empty")
	}
	var any json.RawMessage
	if err := json.Unmarshal(doc, &any); err != nil {
		var syntax *json.SyntaxError
		if !errors.As(err, &syntax) {
			return err
		}
		at := min(max(int(syntax.Offset)-1, 0), len(doc))
		before := doc[:at]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:]))) + 1
		return fmt.Errorf("line %d, column %d: %s (near %q)", line, column, syntax.Error(), near(doc, at))
	}
	if depth(doc) > maxNesting {
		return fmt.Errorf("it is nested more than %d levels deep", maxNesting)
	}
	return nil
}

// near is the text around an offset.
func near(doc []byte, at int) string {
	return strings.ToValidUTF8(string(doc[max(0, at-15):min(len(doc), at+15)]), "")
}

// depth is how deep valid JSON is nested.
func depth(doc []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
