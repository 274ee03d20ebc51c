package database

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"crewhost/tools/native"
)

// arg is one value of a statement: nil, a bool, an int64, a float64 or a string.
type arg any

// parameters are the values of a call, by place or by name.
type parameters struct {
	list  []arg
	named map[string]arg
}

func (p parameters) size() int { return len(p.list) + len(p.named) }

// readParameters reads a list or an object. Numbers lose no digit: one that is neither an
// int64 nor told by a float64 becomes a text.
func readParameters(raw json.RawMessage) (parameters, error) {
	const most = 1000
	raw = bytes.TrimSpace(raw)
	if text := ""; json.Unmarshal(raw, &text) == nil && raw[0] == '"' {
		raw = bytes.TrimSpace([]byte(text)) // models write the JSON as a text
	}
	var p parameters
	switch {
	case len(raw) == 0:
		return p, nil
	case raw[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return p, refusal("the argument \"parameters\" is no JSON list")
		}
		for _, item := range items {
			p.list = append(p.list, value(item))
		}
	case raw[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return p, refusal("the argument \"parameters\" is no JSON object")
		}
		p.named = map[string]arg{}
		for name, item := range members {
			p.named[strings.TrimLeft(name, "@:$")] = value(item)
		}
	default:
		return p, refusal("the argument \"parameters\" must be a list or an object, as [5, \"x\"] or {\"id\": 5}")
	}
	if p.size() > most {
		return p, refusal(fmt.Sprintf("there are %d parameters, and may be %d", p.size(), most))
	}
	return p, nil
}

// value is what a JSON value is to a database. A list or an object is its JSON.
func value(raw json.RawMessage) arg {
	text := string(raw)
	switch {
	case text == "null":
		return nil
	case text == "true", text == "false":
		return text == "true"
	case text[0] == '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	case text[0] == '-' || text[0] >= '0' && text[0] <= '9':
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(text, 64); err == nil && strconv.FormatFloat(f, 'g', 15, 64) == strconv.FormatFloat(f, 'g', -1, 64) && len(strings.Trim(text, "-0.")) <= 17 {
			return f
		}
	}
	return text
}

// ready is the statement with the placeholders of its database, and the values in their
// order. A text is never put together from values.
func (p parameters) ready(s statement) (query, error) {
	if p.size() == 0 {
		if i := slices.IndexFunc(s.tokens, func(t token) bool { return t.kind == markToken && isValueMark(s.provider, t) }); i >= 0 {
			return query{}, refusal(fmt.Sprintf("the query has the placeholder %s at %s, and there are no parameters", native.Shorten(s.mark(s.tokens[i])), place(s.text, s.tokens[i].at)))
		}
		return query{text: s.text}, nil
	}
	var q query
	var text strings.Builder
	used := map[string]bool{}
	places := map[string]int{} // of PostgreSQL, where one value has one number
	done, questions := 0, 0
	numbered := slices.ContainsFunc(s.tokens, func(t token) bool { return t.kind == markToken && isNumbered(t) })
	for _, t := range s.tokens {
		if t.kind != markToken {
			continue
		}
		key, v, found, err := p.find(s, t, numbered, &questions)
		if err != nil {
			return query{}, err
		}
		if !found {
			continue // a variable, or an operator
		}
		used[key] = true
		text.WriteString(s.text[done:t.at])
		done = t.end
		if s.provider != postgresProvider {
			text.WriteString("?")
			q.args = append(q.args, v)
			continue
		}
		if places[key] == 0 {
			q.args = append(q.args, v)
			places[key] = len(q.args)
		}
		text.WriteString("$" + strconv.Itoa(places[key]))
	}
	if len(used) < p.size() {
		return query{}, refusal(p.unused(used))
	}
	text.WriteString(s.text[done:])
	q.text = text.String()
	return q, nil
}

// find is the value of a placeholder, and what it is known by.
func (p parameters) find(s statement, t token, numbered bool, questions *int) (key string, v arg, found bool, err error) {
	mark := s.mark(t)
	switch {
	case p.named != nil && !isNumbered(t) && len(t.text) > 1:
		name := t.text[1:]
		if v, found = p.named[name]; !found && isValueMark(s.provider, t) {
			err = refusal(fmt.Sprintf("there is no parameter for %s%s", native.Shorten(mark), native.DidYouMean(name, slices.Sorted(maps.Keys(p.named)))))
		}
		return name, v, found, err
	case p.named != nil:
		if s.provider == postgresProvider && t.text == "?" {
			return "", nil, false, nil
		}
		return "", nil, false, refusal(fmt.Sprintf("the query has the placeholder %s, and parameters is an object; give a list, or write :name", native.Shorten(mark)))
	case isNumbered(t):
		n, convErr := strconv.Atoi(t.text[1:])
		if convErr != nil || n < 1 || n > len(p.list) {
			return "", nil, false, refusal(fmt.Sprintf("the query has the placeholder %s, and parameters has %s", native.Shorten(mark), native.Plural(len(p.list), "value", "values")))
		}
		return strconv.Itoa(n), p.list[n-1], true, nil
	case t.text == "?" && numbered && s.provider == postgresProvider:
		return "", nil, false, nil // the operator of jsonb
	case t.text == "?":
		*questions++
		if *questions > len(p.list) {
			return "", nil, false, refusal(fmt.Sprintf("the query has more placeholders ? than parameters has values, %d%s", len(p.list), operatorHint(s.provider)))
		}
		return strconv.Itoa(*questions), p.list[*questions-1], true, nil
	case isValueMark(s.provider, t):
		return "", nil, false, refusal(fmt.Sprintf("the query has the placeholder %s, and parameters is a list; give an object, as {%q: ...}", native.Shorten(mark), t.text[1:]))
	}
	return "", nil, false, nil
}

func operatorHint(provider string) string {
	if provider == postgresProvider {
		return "; where ? is an operator, write placeholders as $1"
	}
	return ""
}

// unused says which values no placeholder takes.
func (p parameters) unused(used map[string]bool) string {
	if p.named == nil {
		return fmt.Sprintf("the query has placeholders for %s, and parameters has %d", native.Plural(len(used), "value", "values"), len(p.list))
	}
	for _, name := range slices.Sorted(maps.Keys(p.named)) {
		if !used[name] {
			return fmt.Sprintf("the query has no placeholder :%s for the parameter %q", native.Shorten(name), native.Shorten(name))
		}
	}
	return ""
}

// mark is the placeholder as it stands in the query.
func (s statement) mark(t token) string { return s.text[t.at:t.end] }

// isNumbered reports whether a placeholder has the number of its value: $1 or ?1.
func isNumbered(t token) bool {
	return len(t.text) > 1 && (t.text[0] == '$' || t.text[0] == '?') && digits(t.text[1:]) == len(t.text)-1
}

// isValueMark reports whether a placeholder can be nothing else: MySQL has variables
// like @name, and PostgreSQL operators ? and @.
func isValueMark(provider string, t token) bool {
	switch t.text[0] {
	case '@':
		return provider == sqliteProvider
	case '?':
		return provider != postgresProvider || isNumbered(t)
	case '$':
		return provider != mysqlProvider
	}
	return true
}
