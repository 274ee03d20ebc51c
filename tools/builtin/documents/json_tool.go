package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"crewhost/tools"
	"crewhost/tools/builtin/charset"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Bounds of a document for json_tool, in bytes.
const (
	maxJSON     = 4 << 20 // as an argument
	maxJSONFile = 16 << 20
)

const jsonToolSchema = `{
  "type": "object",
  "properties": {
    "operation": {
      "type": "string", "enum": ["parse", "query", "format", "validate"],
      "description": "parse checks the document and returns it in one line; format indents it; query returns the parts that query selects; validate holds it against schema and lists what is wrong."
    },
    "input": {
      "type": ["string", "object", "array"], "items": {},
      "description": "The JSON document: its text, or the document itself. Give this or path."
    },
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of a JSON file, such as /data/orders.json, of at most 16 MiB. Give this or input."
    },
    "query": {
      "type": "string", "maxLength": 1000,
      "description": "For the operation query: a JSONPath such as $.items[?@.price < 10].name, a plain path such as items.0.name, or with language jq a jq query such as '.items | map(.price) | add'."
    },
    "language": {
      "type": "string", "enum": ["jsonpath", "jq"], "default": "jsonpath",
      "description": "Language of query. jsonpath selects parts; jq can also compute, group, sort and build new values."
    },
    "schema": {
      "type": ["object", "string", "boolean"],
      "description": "For the operation validate: the JSON Schema, such as {\"type\": \"object\", \"required\": [\"id\"]}. Draft 2020-12 unless its $schema names another."
    },
    "lines": {
      "type": "boolean",
      "description": "The document is JSON Lines, one value a line, and is worked on as the list of them. Default: true for files named .jsonl or .ndjson."
    },
    "offset": {
      "type": "integer", "minimum": 1, "default": 1,
      "description": "The first character of the result to return, to go on with a long one."
    },
    "max_chars": {
      "type": "integer", "minimum": 1, "maximum": 30000, "default": 8000,
      "description": "The most characters of the result to return."
    }
  },
  "required": ["operation"],
  "additionalProperties": false
}`

func jsonTool(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "json_tool", Title: "JSON",
		Description: "Checks, formats, queries or validates a JSON document or file. Numbers keep every digit, except those that jq computes.",
		Schema:      jsonToolSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			call := jsonCall{
				path:   args.Text("path", ""),
				query:  args.Text("query", ""),
				offset: args.Integer("offset", 1, 1, math.MaxInt32),
				most:   args.Integer("max_chars", defaultChars, 1, maxChars),
			}
			call.operation = args.OneOf("operation", "", "parse", "query", "format", "validate")
			call.language = args.OneOf("language", "jsonpath", "jsonpath", "jq")
			call.lines = args.Flag("lines") || !args.Has("lines") && linesByName(call.path)
			switch {
			case !args.Has("operation"):
				args.Note("the argument %q is missing", "operation")
			case call.operation == "query" && call.query == "":
				args.Note("the operation query needs the argument %q", "query")
			case call.operation == "validate" && !args.Has("schema"):
				args.Note("the operation validate needs the argument %q", "schema")
			case len(call.query) > maxQuery:
				args.Note("the argument %q is longer than %d bytes", "query", maxQuery)
			}
			if args.Has("schema") {
				call.schema = document(args, "schema")
			}
			switch {
			case args.Has("input") == args.Has("path"):
				args.Note("give the document either as %q or as %q", "input", "path")
			case args.Has("input"):
				call.doc = document(args, "input")
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			out, err := call.run(ctx, fsys)
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "json_tool")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(out), nil
		},
	}
}

// jsonCall is one call of json_tool.
type jsonCall struct {
	operation, path, query, language string
	doc, schema                      []byte
	lines                            bool
	offset, most                     int
}

func (c jsonCall) run(ctx context.Context, fsys *mount.FS) (string, error) {
	what := "the input"
	if c.path != "" {
		what = c.path
		data, err := readFile(ctx, fsys, c.path, maxJSONFile)
		if err != nil {
			return "", err
		}
		text, _, err := charset.Decode(data, "")
		if err != nil {
			return "", fmt.Errorf("%s can't be read: %w", c.path, err)
		}
		c.doc = []byte(text)
	} else if len(c.doc) > maxJSON {
		return "", fmt.Errorf("the document has %d bytes, and at most %d can be worked on; put it into a file and give its path", len(c.doc), maxJSON)
	}
	if c.lines {
		list, err := linesOf(c.doc)
		if err != nil {
			return "", fmt.Errorf("%s is not valid: %w", what, err)
		}
		c.doc = list
	}
	if err := checkJSON(c.doc); err != nil {
		return "", fmt.Errorf("%s is not valid JSON: %w", what, err)
	}
	out, err := c.work(ctx)
	if err != nil {
		return "", err
	}
	return excerpt(string(out), c.offset, c.most)
}

func (c jsonCall) work(ctx context.Context) ([]byte, error) {
	var b bytes.Buffer
	switch {
	case c.operation == "parse":
		err := json.Compact(&b, c.doc)
		return b.Bytes(), err
	case c.operation == "format":
		err := json.Indent(&b, bytes.TrimSpace(c.doc), "", "  ")
		return b.Bytes(), err
	case c.operation == "validate":
		faults, err := checkSchema(c.doc, c.schema)
		if err != nil || len(faults) == 0 {
			return []byte("The document is valid."), err
		}
		fmt.Fprintf(&b, "The document is not valid: %s.", native.Plural(len(faults), "fault", "faults"))
		for i, f := range faults {
			if i == maxFaults {
				fmt.Fprintf(&b, "\n[%d more]", len(faults)-i)
				break
			}
			b.WriteString("\n" + f)
		}
		return b.Bytes(), nil
	case c.language == "jq":
		return queryJQ(ctx, c.doc, c.query)
	}
	return queryJSON(ctx, c.doc, c.query)
}

// document takes a JSON document, as text or as itself.
func document(a *native.Arguments, name string) []byte {
	raw := a.Raw(name)
	switch {
	case raw == nil:
		a.Note("the argument %q is missing", name)
		return nil
	case raw[0] == '{' || raw[0] == '[' || name == "schema" && (raw[0] == 't' || raw[0] == 'f'):
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
