package llm

// SchemaDialect says what a vendor's API refuses in the schemas of tools although
// JSON Schema allows it. One tool that it refuses costs the whole request, so who
// asks a model adapts the schemas first, and changes the arguments of calls back.
// The zero SchemaDialect is that of an API which takes all.
type SchemaDialect struct {
	// RootKeywords may not stand at the root of a schema.
	RootKeywords []string `json:"root_keywords,omitempty"`
	// PlainKeys: the names of the root's properties are [a-zA-Z0-9_.-]{1,64}.
	PlainKeys bool `json:"plain_keys,omitempty"`
	// NoReferences: there is no $ref.
	NoReferences bool `json:"no_references,omitempty"`
	// OneType: a type is one word, and no list.
	OneType bool `json:"one_type,omitempty"`
}

// Dialectal is a [Model] that knows the dialect of its API. A model that wraps
// another has the dialect of that one.
type Dialectal interface {
	SchemaDialect() SchemaDialect
}

// DialectOf returns the dialect of m, which is the zero one where m knows none.
func DialectOf(m Model) SchemaDialect {
	if d, ok := m.(Dialectal); ok {
		return d.SchemaDialect()
	}
	return SchemaDialect{}
}
