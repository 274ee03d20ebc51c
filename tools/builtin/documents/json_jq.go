package documents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/itchyny/gojq"
)

// Bounds of a jq query. A few characters of jq can loop for ever, or make a value of any
// size; see [jqMeter] and [jqChecks] for how each is kept.
const (
	maxDigits     = 1000    // of one number
	maxJQNested   = 1000    // levels of a value
	maxJQNodes    = 500_000 // parts of a value that a step works on
	maxJQBytes    = 32 << 20
	maxJQProduct  = 100_000_000 // pairs of parts that a step compares
	maxJQIndex    = 1_000_000
	maxJQString   = 8 << 20   // bytes of a text made by repetition
	maxMatched    = 256 << 10 // bytes of a text that an expression is held against
	maxJQOut      = 8 << 20
	jqNoMoreParts = "makes a value that is too large to work on; make it more specific"
)

// queryJQ returns the values that a jq query gives, a line each.
//
// A value that the query hands on keeps its numbers as they are written. Sums, differences
// and products of whole numbers are exact; other arithmetic is done in float64.
func queryJQ(ctx context.Context, doc []byte, query string) (out []byte, err error) {
	defer func() {
		// A fault of the library ends the query, not the host.
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("the query %q can't be used (%s)", query, oneLine(fmt.Sprint(r)))
		}
	}()
	return runJQ(ctx, doc, query)
}

func runJQ(ctx context.Context, doc []byte, query string) ([]byte, error) {
	tree, err := gojq.Parse(query)
	if err != nil {
		return nil, fmt.Errorf("the query %q can't be read (%w)", query, placeOf(query, err))
	}
	if err := checkJQ(tree); err != nil {
		return nil, fmt.Errorf("the query %q %w", query, err)
	}
	root, err := decodeJQ(doc)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	meter := newJQMeter(ctx)
	checks := jqChecks{meter}
	code, err := gojq.Compile(tree, checks.options()...)
	if err != nil {
		return nil, fmt.Errorf("the query %q can't be used (%w)", query, err)
	}
	var out bytes.Buffer
	values := code.RunWithContext(meter, root) //nolint:contextcheck // the meter is ctx, and counts
	for n := 0; ; n++ {
		value, more := values.Next()
		if err, failed := value.(error); more && failed {
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				break
			}
			return nil, fmt.Errorf("the query %q %w", query, checks.explain(err))
		}
		if !more {
			break
		}
		if n == maxSelected {
			return nil, fmt.Errorf("the query %q gives more than %d values; make it more specific", query, maxSelected)
		}
		if err := checks.size(value); err != nil {
			return nil, fmt.Errorf("the query %q %w", query, err)
		}
		line, err := gojq.Marshal(value)
		if err != nil {
			return nil, err
		}
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		if out.Write(line); out.Len() > maxJQOut {
			return nil, fmt.Errorf("the query %q %s", query, jqNoMoreParts)
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("the query %q gives nothing; %s", query, outline(root))
	}
	return out.Bytes(), nil
}

// placeOf adds where a query can't be read.
func placeOf(query string, err error) error {
	var parse *gojq.ParseError
	if !errors.As(err, &parse) {
		return err
	}
	before := query[:min(max(parse.Offset-len(parse.Token), 0), len(query))]
	return fmt.Errorf("%w at character %d", err, utf8.RuneCountInString(before)+1)
}

// decodeJQ reads a document with its numbers as they are written. Those of more digits
// than any use has would take arithmetic for ever.
func decodeJQ(doc []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var root any
	if err := dec.Decode(&root); err != nil {
		return nil, err
	}
	return root, longNumber(root)
}

func longNumber(value any) error {
	switch v := value.(type) {
	case json.Number:
		if len(v) > maxDigits {
			return fmt.Errorf("a number in the document has more than %d digits, which jq can't work on", maxDigits)
		}
	case []any:
		for _, item := range v {
			if err := longNumber(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, item := range v {
			if err := longNumber(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// outsideJQ says of the functions of jq that read something other than the document that
// they do: a query gives the same for the same document, always.
func outsideJQ(name string) bool {
	switch name {
	case "env", "$ENV", "input", "inputs", "input_filename", "input_line_number", "now", "localtime", "strflocaltime",
		"debug", "stderr", "modulemeta", "get_search_list":
		return true
	}
	return false
}

// checkJQ refuses what reaches beyond the document, and puts the checks of [jqChecks]
// before the steps that need them.
func checkJQ(tree *gojq.Query) error {
	r := rewriting{}
	r.walk(tree)
	return r.err
}

// explain says why a query ended.
func (c jqChecks) explain(err error) error {
	if c.meter.why != nil {
		return c.meter.why
	}
	var thrown gojq.ValueError
	if !errors.As(err, &thrown) {
		return fmt.Errorf("fails (%w)", err)
	}
	value := thrown.Value()
	if err := c.size(value); err != nil {
		return err
	}
	text, err := gojq.Marshal(value)
	if err != nil {
		return err
	}
	return fmt.Errorf("fails (%s)", strings.ToValidUTF8(string(text[:min(len(text), 300)]), ""))
}

// linesOf makes one list of JSON Lines. An empty line is passed over.
func linesOf(doc []byte) ([]byte, error) {
	out := []byte{'['}
	n := 0
	for line := range bytes.Lines(doc) {
		n++
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		if err := checkJSON(text); err != nil {
			return nil, fmt.Errorf("line %d of the JSON Lines: %w", n, err)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, text...)
	}
	return append(out, ']'), nil
}

// linesByName reports that a file's name is one of JSON Lines.
func linesByName(path string) bool {
	path = strings.ToLower(path)
	return slices.ContainsFunc([]string{".jsonl", ".ndjson"}, func(end string) bool { return strings.HasSuffix(path, end) })
}
