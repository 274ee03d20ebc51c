package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds on schemas and on what is said of a value that does not hold to one.
const (
	maxSchema = 1 << 20 // bytes
	maxFaults = 10
	maxFault  = 300 // characters of one
)

// schemaURL is what a schema is called among its own references.
const schemaURL = "urn:schema"

// alone is a schema's loader: no other document is read for it.
type alone struct{}

// Load implements [jsonschema.URLLoader].
func (alone) Load(string) (any, error) {
	return nil, errors.New("a schema refers to nothing but itself")
}

// resolve makes a JSON Schema (2020-12 unless it says another draft) ready to
// judge by. Formats count.
func resolve(text string) (*jsonschema.Schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes; at most %d are read", len(text), maxSchema)
	}
	doc, err := decode(text)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(alone{})
	c.AssertFormat()
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	s, err := c.Compile(schemaURL)
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		return nil, faultsOf(invalid.Err)
	}
	if err != nil {
		return nil, err
	}
	return s, circular(s)
}

// circular reports that a schema leads back to itself for a value of some kind:
// no answer could hold to it.
func circular(s *jsonschema.Schema) error {
	for _, value := range []any{nil, false, json.Number("0"), "", []any{}, map[string]any{}} {
		var invalid *jsonschema.ValidationError
		if errors.As(s.Validate(value), &invalid) && hasCycle(invalid) {
			return fmt.Errorf("a reference in it leads back to itself: %w", faultsOf(invalid))
		}
	}
	return nil
}

func hasCycle(e *jsonschema.ValidationError) bool {
	if _, ok := e.ErrorKind.(*kind.RefCycle); ok {
		return true
	}
	return slices.ContainsFunc(e.Causes, hasCycle)
}

// validate judges a JSON text, whose numbers count to the last digit. What its
// error says is all that is wrong with it, as far as it is not too much.
func validate(s *jsonschema.Schema, text string) error {
	value, err := decode(text)
	if err != nil {
		return err
	}
	return faultsOf(s.Validate(value))
}

// maxExponent is beyond what numbers of any use have. What reckons exactly with
// larger ones takes memory without end.
const maxExponent = 400

// decode reads JSON with its numbers as they are written.
func decode(text string) (any, error) {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err != nil {
			break // what is wrong, if anything, is found below
		}
		if n, ok := token.(json.Number); ok && exponent(n.String()) > maxExponent {
			return nil, fmt.Errorf("the number %s is out of range", shorten(n.String(), 40))
		}
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	return value, nil
}

// exponent is the exponent of a number, without its sign.
func exponent(number string) int {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimLeft(number[i+1:], "+-"))
	if err != nil {
		return math.MaxInt
	}
	return n
}

// faultsOf makes one error of all that a validator found wrong.
func faultsOf(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	all := faults(invalid)
	text := strings.Join(all[:min(len(all), maxFaults)], "; ")
	if n := len(all) - maxFaults; n > 0 {
		text += fmt.Sprintf("; and %d more faults", n)
	}
	return errors.New(text)
}

// faults are what is wrong, each with its place in the value. That a value fits
// none of several schemas is one fault.
func faults(e *jsonschema.ValidationError) []string {
	at := ""
	for _, step := range e.InstanceLocation {
		at += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step)
	}
	if at != "" {
		at += ": "
	}
	if len(e.Causes) == 0 {
		return []string{at + shorten(oneLine(e.DetailedOutput().Error.String()), maxFault)}
	}
	var all []string
	for _, cause := range e.Causes {
		all = append(all, faults(cause)...)
	}
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return []string{at + "it fits none of the alternatives (" + shorten(strings.Join(all, "; or "), maxFault) + ")"}
	}
	return all
}
