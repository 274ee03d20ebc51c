package crew

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Inputs are the variables of a run by name: {topic} in a text is replaced by
// the value of "topic".
//
// Names are compared without regard to case, and a hyphen is an underscore
// (K59): {flight-info} and {Flight_Info} are both the input flight_info.
//
// A placeholder is a brace, a name of letters, digits, underscores and hyphens
// that begins with a letter or an underscore, and a brace, with nothing between
// them. All other braces are text (K57): { topic }, {{topic}}, ${topic}, JSON
// and CSS stay as they are. \{topic} is the text {topic}. Values are put in as
// they are, in one pass: a placeholder inside a value is text.
type Inputs map[string]string

// InitialContext is the input that holds the context a run begins with. It may
// go unused.
const InitialContext = "initial_context"

var placeholder = regexp.MustCompile(`\{[A-Za-z_][A-Za-z0-9_-]*\}`)

// foldName returns the form in which names of variables are compared.
func foldName(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "-", "_")
}

// expand replaces the placeholders of a text by what value returns for their
// names. Where value knows none, the placeholder stays.
func expand(text string, value func(name string) (string, bool)) string {
	var b strings.Builder
	last := 0
	for _, m := range placeholder.FindAllStringIndex(text, -1) {
		start, end := m[0], m[1]
		var before, after byte
		if start > 0 {
			before = text[start-1]
		}
		if end < len(text) {
			after = text[end]
		}
		if before == '$' || before == '{' && after == '}' {
			continue
		}
		if before == '\\' {
			b.WriteString(text[last:start-1] + text[start:end])
			last = end
			continue
		}
		if v, ok := value(text[start+1 : end-1]); ok {
			b.WriteString(text[last:start] + v)
			last = end
		}
	}
	return b.String() + text[last:]
}

// variables returns the names of the placeholders of a text, in order, each
// once.
func variables(text string) []string {
	var names []string
	seen := map[string]bool{}
	expand(text, func(name string) (string, bool) {
		if folded := foldName(name); !seen[folded] {
			seen[folded] = true
			names = append(names, name)
		}
		return "", false
	})
	return names
}

// over returns the inputs laid over others, whose values they replace.
func (in Inputs) over(base Inputs) Inputs {
	given := in.folded()
	all := maps.Clone(in)
	if all == nil {
		all = Inputs{}
	}
	for name, value := range base {
		if _, ok := given[foldName(name)]; !ok {
			all[name] = value
		}
	}
	return all
}

// folded returns the values by folded name. Of two names that are one variable
// the first in order counts; [Crew.Validate] refuses such a pair.
func (in Inputs) folded() map[string]string {
	values := make(map[string]string, len(in))
	for _, name := range in.names() {
		if _, ok := values[foldName(name)]; !ok {
			values[foldName(name)] = in[name]
		}
	}
	return values
}

func (in Inputs) names() []string { return slices.Sorted(maps.Keys(in)) }
