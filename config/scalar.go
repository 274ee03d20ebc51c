package config

import (
	"regexp"
	"strconv"
	"strings"

	"crewhost/config/strict"
)

// scalar is text, or a number or boolean that is meant as text: args: [--port,
// 8080]. It keeps the digits as they were written.
type scalar string

// UnmarshalNode implements [strict.Unmarshaler].
func (s *scalar) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch n.Kind {
	case strict.String, strict.Untyped, strict.Int, strict.Float, strict.Bool:
		*s = scalar(n.Text)
	default:
		d.WrongType(n, strict.String.String())
	}
}

// word is text that is not blank. It stays empty where an issue says what is
// wrong.
type word string

// UnmarshalNode implements [strict.Unmarshaler].
func (w *word) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch {
	case n.Kind != strict.String && n.Kind != strict.Untyped:
		d.WrongType(n, strict.String.String())
	case strings.TrimSpace(n.Text) == "":
		d.Fail(n.Pos, strict.CodeMissing, d.Path()+" is empty", "")
	default:
		*w = word(n.Text)
	}
}

// count is an integer from 1: a budget (I13).
type count int

// UnmarshalNode implements [strict.Unmarshaler].
func (c *count) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*c = count(number(d, n, 1, 0))
}

// natural is an integer from 0.
type natural int

// UnmarshalNode implements [strict.Unmarshaler].
func (c *natural) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*c = natural(number(d, n, 0, 0))
}

// temperature is a number from 0 to 2.
type temperature float64

// UnmarshalNode implements [strict.Unmarshaler].
func (t *temperature) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*t = temperature(number(d, n, 0.0, 2.0))
}

// share is a number from 0 to 1.
type share float64

// UnmarshalNode implements [strict.Unmarshaler].
func (s *share) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*s = share(number(d, n, 0.0, 1.0))
}

// decimal is a sum of money from 0, in millionths. It is read digit by digit, so
// that no price is a little more or less than it was written.
type decimal int64

// UnmarshalNode implements [strict.Unmarshaler].
func (v *decimal) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch n.Kind {
	case strict.Int, strict.Float, strict.Untyped:
	default:
		d.WrongType(n, "a number")
		return
	}
	parts := decimalForm.FindStringSubmatch(n.Text)
	if parts == nil {
		d.Fail(n.Pos, strict.CodeBadValue, d.Path()+" must be a sum of money below a million, with at most six digits behind the point, not "+strict.Quote(n.Text), "")
		return
	}
	sum, _ := strconv.ParseInt(parts[1]+(parts[2] + "000000")[:6], 10, 64) // twelve digits
	*v = decimal(sum)
}

var decimalForm = regexp.MustCompile(`^([0-9]{1,6})(?:\.([0-9]{0,6}))?$`)

// number decodes a number and reports one below least or, unless most is 0,
// above most.
func number[T int | float64](d *strict.Decoder, n *strict.Node, least, most T) T {
	var v T
	before := len(d.Issues())
	d.Decode(n, &v, "")
	if len(d.Issues()) > before {
		return 0
	}
	if v < least || most != 0 && v > most {
		rule := "at least " + strconv.FormatFloat(float64(least), 'g', -1, 64)
		if most != 0 {
			rule = "from " + strconv.FormatFloat(float64(least), 'g', -1, 64) + " to " + strconv.FormatFloat(float64(most), 'g', -1, 64)
		}
		d.Fail(n.Pos, strict.CodeBadValue, d.Path()+" must be "+rule+", not "+n.Text, "")
		return 0
	}
	return v
}
