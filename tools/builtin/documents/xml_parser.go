package documents

import (
	"context"
	"fmt"
	"math"
	"strings"

	"crewhost/tools"
	"crewhost/tools/mount"
	"crewhost/tools/native"
)

const xmlParserSchema = `{
  "type": "object",
  "properties": {
    "input": {
      "type": "string",
      "description": "The XML document as text. Give this or path."
    },
    "path": {
      "type": "string", "minLength": 1,
      "description": "Path of an XML file, such as /data/feed.xml, of at most 16 MiB. Give this or input."
    },
    "operation": {
      "type": "string", "enum": ["parse", "query", "format", "validate", "to_json"],
      "description": "parse checks the document and returns its outline: which elements it has, how many, with which attributes; query returns what xpath selects; format indents it; validate only says whether it is well-formed, and if not, where; to_json turns it into JSON. Default: query where xpath is given, else parse."
    },
    "xpath": {
      "type": "string", "maxLength": 1000,
      "description": "For the operation query: an XPath 1.0 such as //book[@lang='en']/title or count(//item). Names match as they are written in the document, with their prefixes: //dc:title. A number that follows another condition, as in //x[@a][2], counts all that was found, not what each parent has."
    },
    "namespaces": {
      "type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 50,
      "description": "Prefixes of your own for xpath, such as {\"a\": \"http://www.w3.org/2005/Atom\"}: //a:entry then matches whatever prefix the document has for it."
    },
    "output": {
      "type": "string", "enum": ["xml", "text"], "default": "xml",
      "description": "For the operation query: elements as XML, or their text alone."
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
  "additionalProperties": false
}`

func xmlTool(fsys *mount.FS) native.Tool {
	return native.Tool{
		Name: "xml_parser", Title: "XML",
		Description: "Checks, outlines, queries (XPath) or formats an XML document or file, or turns it into JSON. " +
			"Documents with entities of their own are refused; nothing that a document refers to is read.",
		Schema: xmlParserSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			call := xmlCall{
				input:      args.Text("input", ""),
				path:       args.Text("path", ""),
				xpath:      args.Text("xpath", ""),
				namespaces: args.Object("namespaces"),
				asText:     args.OneOf("output", "xml", "xml", "text") == "text",
				offset:     args.Integer("offset", 1, 1, math.MaxInt32),
				most:       args.Integer("max_chars", defaultChars, 1, maxChars),
			}
			fallback := "parse"
			if call.xpath != "" {
				fallback = "query"
			}
			call.operation = args.OneOf("operation", fallback, "parse", "query", "format", "validate", "to_json")
			switch {
			case call.operation == "query" && call.xpath == "":
				args.Note("the operation query needs the argument %q", "xpath")
			case call.operation != "query" && call.xpath != "":
				args.Note("the argument %q is for the operation query", "xpath")
			case len(call.xpath) > maxQuery:
				args.Note("the argument %q is longer than %d bytes", "xpath", maxQuery)
			}
			if args.Has("input") == args.Has("path") {
				args.Note("give the document either as %q or as %q", "input", "path")
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			out, err := call.run(ctx, fsys)
			switch {
			case ctx.Err() != nil:
				return tools.Result{}, native.Ended(ctx, "xml_parser")
			case err != nil:
				return native.Failuref("%v.", err), nil
			}
			return tools.Text(out), nil
		},
	}
}

// xmlCall is one call of xml_parser.
type xmlCall struct {
	input, path, operation, xpath string
	namespaces                    []native.Member
	asText                        bool
	offset, most                  int
}

func (c xmlCall) run(ctx context.Context, fsys *mount.FS) (string, error) {
	what, text := "The input", c.input
	if c.path != "" {
		what = c.path
		data, err := readFile(ctx, fsys, c.path, maxXMLFile)
		if err != nil {
			return "", err
		}
		if text, err = xmlText(data); err != nil {
			return "", fmt.Errorf("%s can't be read: %w", c.path, err)
		}
	} else if len(text) > maxXML {
		return "", fmt.Errorf("the document has %d bytes, and at most %d can be worked on; put it into a file and give its path", len(text), maxXML)
	}
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%s is empty", what)
	}
	doc, err := parseXML(ctx, strings.TrimPrefix(text, "\ufeff"))
	if err != nil {
		return "", fmt.Errorf("%s is not well-formed XML: %w", what, err)
	}
	var out string
	switch c.operation {
	case "query":
		if out, err = queryXML(ctx, doc, c.xpath, c.namespaces, c.asText); err != nil {
			return "", err
		}
		if out == "" {
			out = "[an empty text]"
		}
	case "format":
		out = formatXML(doc)
	case "to_json":
		out = jsonOfXML(doc)
	case "validate":
		out = fmt.Sprintf("Well-formed: %s below <%s>.", native.Plural(doc.elements, "element", "elements"), doc.first().name())
	default:
		out = outlineXML(doc)
	}
	if len(doc.undeclared) > 0 && (c.operation == "validate" || c.operation == "parse") {
		out += "\n[declared nowhere: the prefix " + strings.Join(doc.undeclared, ", ") + "]"
	}
	return excerpt(out, c.offset, c.most)
}
