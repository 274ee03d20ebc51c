package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"crewhost/tools/native"
)

const (
	maxFaults = 20
	// maxExponent is beyond what numbers of any use have. What reckons exactly with
	// larger ones takes memory without end.
	maxExponent = 400
)

// alone is a schema's loader: no other document is read for it.
type alone struct{}

// Load implements [jsonschema.URLLoader].
func (alone) Load(string) (any, error) {
	return nil, errors.New("a schema refers to nothing but itself here")
}

// checkSchema holds a document against a JSON Schema, of the draft that it names or else
// 2020-12. It returns what is wrong, a line each.
func checkSchema(doc, schema []byte) ([]string, error) {
	if err := checkJSON(schema); err != nil {
		return nil, fmt.Errorf("the schema is not valid JSON: %w", err)
	}
	rules, err := decodeForSchema(schema)
	if err != nil {
		return nil, fmt.Errorf("the schema: %w", err)
	}
	value, err := decodeForSchema(doc)
	if err != nil {
		return nil, err
	}
	const name = "urn:schema"
	c := jsonschema.NewCompiler()
	c.UseLoader(alone{})
	c.AssertFormat()
	if err := c.AddResource(name, rules); err != nil {
		return nil, fmt.Errorf("the schema can't be used: %w", err)
	}
	compiled, err := c.Compile(name)
	var bad *jsonschema.SchemaValidationError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("the schema is no JSON Schema: %s", strings.Join(faultsOf(bad.Err), "; "))
	}
	if err != nil {
		return nil, fmt.Errorf("the schema can't be used: %s", oneLine(err.Error()))
	}
	return faultsOf(compiled.Validate(value)), nil
}

func decodeForSchema(doc []byte) (any, error) {
	dec := json.NewDecoder(strings.NewReader(string(doc)))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			break // the syntax was checked
		}
		n, ok := token.(json.Number)
		if !ok {
			continue
		}
		if _, exponent, ok := strings.Cut(strings.ToLower(n.String()), "e"); ok || len(n) > maxDigits {
			if e, err := strconv.Atoi(strings.TrimLeft(exponent, "+-")); err != nil || e > maxExponent {
				return nil, fmt.Errorf("the number %s is too long to judge", native.Shorten(n.String()))
			}
		}
	}
	return jsonschema.UnmarshalJSON(strings.NewReader(string(doc)))
}

// faultsOf lists what a validator found wrong.
func faultsOf(err error) []string {
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return []string{oneLine(err.Error())}
	}
	var all []string
	for _, cause := range invalid.Causes {
		all = append(all, faultsOf(cause)...)
	}
	if len(invalid.Causes) == 0 {
		at := "the whole document"
		if len(invalid.InstanceLocation) > 0 {
			at = ""
			for _, step := range invalid.InstanceLocation {
				at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
			}
		}
		text := []rune(oneLine(invalid.DetailedOutput().Error.String()))
		return []string{at + ": " + string(text[:min(len(text), 300)])}
	}
	return all
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
