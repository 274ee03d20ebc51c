package llm

// Capabilities say what a vendor's API, or a model behind it, cannot do, so that
// who asks knows before it is refused. The zero value is that of an API which
// takes every [Request] as it is.
type Capabilities struct {
	// TextCalls: the model calls tools in the text of its answers, because it,
	// or its API, knows no calls of its own. Requests then carry no Tools; who
	// asks describes them in the prompt and reads the calls out of the text.
	TextCalls bool
	// OneCall: at most one tool is called in an answer, and the API is told so.
	OneCall bool
	// Thinking is in which terms thinking can be asked for.
	Thinking ThinkingSupport
	// TopEffort is the greatest effort that the API knows; empty: max.
	TopEffort string
	// ThinkingAlone: neither temperature nor top_p may be set beside thinking.
	ThinkingAlone bool
	// Formats are the response formats that the API knows.
	Formats FormatSupport
	// StrictSubset: a schema may be strict only where each of its objects
	// forbids further properties and requires all of its own.
	StrictSubset bool
	// JSONWord: the format json_object wants the word JSON in the prompt.
	JSONWord bool
	// FormatAlone: a response format may not stand beside tools.
	FormatAlone bool
	// Cache says whether parts of a prompt can be marked for caching.
	Cache CacheSupport
}

// ThinkingSupport is the terms in which an API is asked to think.
type ThinkingSupport string

// The terms. What a request says in others is translated: an effort into a
// budget, or a budget into an effort.
const (
	ThinkAny    ThinkingSupport = ""       // both are taken
	ThinkEffort ThinkingSupport = "effort" // low, medium, high, …
	ThinkBudget ThinkingSupport = "budget" // a number of tokens
	ThinkSwitch ThinkingSupport = "switch" // on or off
	ThinkNone   ThinkingSupport = "none"   // it cannot be asked for
)

// FormatSupport is the best response format that an API knows.
type FormatSupport string

// The formats, each with those below it.
const (
	FormatSchema FormatSupport = ""            // json_schema
	FormatObject FormatSupport = "json_object" // any JSON object
	FormatNone   FormatSupport = "none"        // the prompt alone asks for JSON
)

// CacheSupport is how prompts are cached.
type CacheSupport string

// The ways.
const (
	CacheMarked    CacheSupport = ""          // by marks in the request
	CacheAutomatic CacheSupport = "automatic" // as the vendor sees fit; marks are not sent
)

// Capable is a [Model] that knows its capabilities. A model that wraps another
// has the capabilities of that one.
type Capable interface {
	Capabilities() Capabilities
}

// CapabilitiesOf returns the capabilities of m, which are the zero ones where m
// knows none.
func CapabilitiesOf(m Model) Capabilities {
	if c, ok := m.(Capable); ok {
		return c.Capabilities()
	}
	return Capabilities{}
}
