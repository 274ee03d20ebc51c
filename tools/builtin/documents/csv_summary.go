package documents

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"crewhost/tools/native"
)

// csvColumn is what the values of a column have in common.
type csvColumn struct {
	name  string
	rows  int
	empty int
	kinds map[string]int
	first string // its first value that is not empty

	low, high         float64
	lowText, highText string // the least and the greatest as they are written
}

// kindOfValue is the narrowest type that a value is of.
func kindOfValue(v []byte) (kind string, number float64) {
	const longest = 40
	if len(v) == 0 || len(v) > longest {
		return "text", 0
	}
	text := string(v)
	switch {
	case isInteger(text):
		n, _ := strconv.ParseFloat(text, 64)
		return "integer", n
	case text[0] == '+' || text[0] == '-' || text[0] == '.' || '0' <= text[0] && text[0] <= '9':
		if n, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xX_") {
			return "number", n
		}
		if n, err := strconv.ParseFloat(strings.Replace(strings.ReplaceAll(text, ".", ""), ",", ".", 1), 64); err == nil && strings.Count(text, ",") == 1 && decimalComma(text) {
			return "number (decimal comma)", n
		}
	}
	switch strings.ToLower(text) {
	case "true", "false":
		return "boolean", 0
	}
	if len(text) >= len("2006-01-02") && text[4] == '-' && text[7] == '-' && isoDate.MatchString(text) {
		return "date", 0
	}
	return "text", 0
}

// isInteger takes no leading zeros: those are codes, not numbers.
func isInteger(s string) bool {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 1 && digits[0] == '0' {
		return false
	}
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// decimalComma reports that points, if any, group the digits before the comma by three.
func decimalComma(s string) bool {
	whole, _, _ := strings.Cut(strings.TrimLeft(s, "+-"), ",")
	groups := strings.Split(whole, ".")
	for i, g := range groups {
		if i > 0 && len(g) != 3 || len(g) == 0 {
			return false
		}
	}
	return true
}

var isoDate = regexp.MustCompile(`^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|[+-]\d\d(:?\d\d)?))?)?$`) //nolint:gochecknoglobals // compiled once

func (c *csvColumn) add(v []byte) {
	c.rows++
	if len(v) == 0 {
		c.empty++
		return
	}
	if c.first == "" {
		c.first = string(v[:min(len(v), 200)])
	}
	kind, n := kindOfValue(v)
	c.kinds[kind]++
	switch {
	case strings.HasPrefix(kind, "number") || kind == "integer":
		if c.lowText == "" || n < c.low {
			c.low, c.lowText = n, string(v)
		}
		if c.highText == "" || n > c.high {
			c.high, c.highText = n, string(v)
		}
	case kind == "date": // those of one form are in the order of their texts
		if c.lowText == "" || string(v) < c.lowText {
			c.lowText = string(v)
		}
		if string(v) > c.highText {
			c.highText = string(v)
		}
	}
}

// kind is the type that fits all values of the column.
func (c *csvColumn) kind() string {
	numbers := c.kinds["integer"] + c.kinds["number"]
	commas := c.kinds["integer"] + c.kinds["number (decimal comma)"]
	switch all := c.rows - c.empty; {
	case all == 0:
		return "empty"
	case c.kinds["integer"] == all:
		return "integer"
	case numbers == all:
		return "number"
	case commas == all:
		return "number (decimal comma)"
	case c.kinds["date"] == all:
		return "date"
	case c.kinds["boolean"] == all:
		return "boolean"
	}
	return "text"
}

func (c *csvColumn) String() string {
	kind := c.kind()
	text := fmt.Sprintf("%s: %s", c.name, kind)
	if kind != "text" && kind != "boolean" && kind != "empty" {
		text += fmt.Sprintf(", from %s to %s", c.lowText, c.highText)
	} else if kind == "text" {
		text += fmt.Sprintf(", such as %q", native.Shorten(c.first))
	}
	if c.empty > 0 && kind != "empty" {
		text += fmt.Sprintf(", %d empty", c.empty)
	}
	return text
}
