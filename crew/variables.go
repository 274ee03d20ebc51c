package crew

import (
	"slices"
	"strings"
)

// Variable is a variable that the texts of a crew mention.
type Variable struct {
	Name    string // as names are compared: lower case, with "_" for "-"
	Default string // the crew's own value
	Given   bool   // the crew has a value of its own
}

// Variables returns the variables that the texts of the crew mention, sorted by
// name, each once. A run needs a value for each that the crew gives none.
func (c *Crew) Variables() []Variable {
	values := c.Inputs.folded()
	seen := map[string]bool{}
	var all []Variable
	c.texts(func(_ string, t *Text) {
		for _, name := range variables(t.V) {
			name = foldName(name)
			if seen[name] {
				continue
			}
			seen[name] = true
			value, given := values[name]
			all = append(all, Variable{Name: name, Default: value, Given: given})
		}
	})
	slices.SortFunc(all, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return all
}
