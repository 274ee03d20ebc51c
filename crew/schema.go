package crew

import (
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"crewhost/config/strict"
)

// The structs of this file are the keys of a crew file as they are written:
// camelCase here, snake_case as well in the files. The [builder] turns them into
// the exported types.

// crewDoc is the top level. Agents and tasks have the keys of their format.
type crewDoc struct {
	Pos            Pos                   `key:"@"`
	Format         Text                  `key:"format"`
	Name           Text                  `key:"name,required"`
	Goal           Text                  `key:"goal"`
	Process        Text                  `key:"process"`
	Verbose        bool                  `key:"verbose"`
	Memory         bool                  `key:"memory"`
	MemoryProvider Text                  `key:"memoryProvider"`
	Planning       bool                  `key:"planning"`
	ManagerAgent   Text                  `key:"managerAgent"`
	MaxRPM         strict.At[int]        `key:"maxRpm"`
	LLM            *llmDoc               `key:"llm"`
	MaxConcurrency strict.At[int]        `key:"maxConcurrency"`
	MaxDuration    seconds               `key:"maxDuration"`
	GraphConfig    *graphDoc             `key:"graphConfig"`
	Hierarchical   *hierarchicalDoc      `key:"hierarchical"`
	Consensus      *consensusDoc         `key:"consensus"`
	Autonomous     *autonomousDoc        `key:"autonomous"`
	Links          []linkDoc             `key:"links"`
	Mounts         []Text                `key:"mounts"`
	RAG            *ragDoc               `key:"rag"`
	Inputs         []strict.Named[loose] `key:"inputs"`
	Agents         *strict.Node          `key:"agents"`
	Tasks          *strict.Node          `key:"tasks"`
	Anchors        *strict.Node          `key:"anchors"` // in another form than the text pass reads
}

type agentDoc struct {
	Pos              Pos            `key:"@"`
	Role             Text           `key:"role"`
	Goal             Text           `key:"goal,required"`
	Backstory        Text           `key:"backstory"`
	Tools            []toolDoc      `key:"tools"`
	Servers          serversDoc     `key:"mcpServers"`
	AllowDelegation  *bool          `key:"allowDelegation"`
	MaxIter          strict.At[int] `key:"maxIter"`
	MaxRPM           strict.At[int] `key:"maxRpm"`
	Verbose          bool           `key:"verbose"`
	LLM              *llmDoc        `key:"llm"`
	Guardrails       *guardrailsDoc `key:"guardrails"`
	Knowledge        []knowledgeDoc `key:"knowledge"`
	MaxExecutionTime seconds        `key:"maxExecutionTime"`
}

type taskDoc struct {
	Pos            Pos             `key:"@"`
	Description    Text            `key:"description,required"`
	ExpectedOutput Text            `key:"expectedOutput,required"`
	Agent          Text            `key:"agent"`
	Dependencies   []Text          `key:"dependencies"`
	AsyncExecution bool            `key:"asyncExecution"`
	HumanInput     bool            `key:"humanInput"`
	Context        contextDoc      `key:"context"`
	Tools          []Text          `key:"tools"`
	Deliverable    *deliverableDoc `key:"deliverable"`
	LLM            *llmDoc         `key:"llmOverride|llm"`
	Guardrails     *guardrailsDoc  `key:"guardrails"`
	Timeout        seconds         `key:"timeout"`
}

// llmDoc is the block of a model. The CrewAI format has a word as well.
type llmDoc struct {
	Pos            Pos                `key:"@"`
	Profile        Text               `key:"profile"`
	Model          Text               `key:"model"`
	Temperature    strict.At[float64] `key:"temperature"`
	MaxTokens      strict.At[int]     `key:"maxTokens"`
	TopP           strict.At[float64] `key:"topP"`
	Thinking       *thinkingDoc       `key:"thinking"`
	ResponseFormat Text               `key:"responseFormat"`
	ResponseSchema *schemaDoc         `key:"responseSchema"`
	Cache          *cacheDoc          `key:"cache"`

	provider Text
}

type llmBlock llmDoc

// UnmarshalNode explains what a lone word cannot say.
func (l *llmDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind == strict.String {
		d.Fail(n.Pos, strict.CodeWrongType, d.Path()+" must be a mapping, not a string",
			"write {profile: "+short(n.Text)+"} for a profile of the settings, or {model: "+short(n.Text)+"}")
		return
	}
	d.Decode(n, (*llmBlock)(l), "")
}

type thinkingDoc struct {
	Enabled      *bool          `key:"enabled"`
	Effort       Text           `key:"effort"`
	BudgetTokens strict.At[int] `key:"budgetTokens"`
}

type schemaDoc struct {
	Pos    Pos      `key:"@"`
	Name   Text     `key:"name"`
	Schema jsonText `key:"schema"`
	Strict *bool    `key:"strict"`
}

type cacheDoc struct {
	System bool `key:"system"`
	Tools  bool `key:"tools"`
	TTL    Text `key:"ttl"`
}

type guardrailsDoc struct {
	Preset    Text                   `key:"preset"`
	Header    Text                   `key:"header"`
	Rules     []Text                 `key:"rules"`
	ToolRules []strict.Named[[]Text] `key:"toolRules"`
}

type deliverableDoc struct {
	Pos          Pos      `key:"@"`
	Path         Text     `key:"path"`
	Source       Text     `key:"source"`
	Format       Text     `key:"format"`
	Sanitize     *bool    `key:"sanitize"`
	SchemaPath   Text     `key:"schemaPath"`
	SchemaInline jsonText `key:"schemaInline"`
}

type graphDoc struct {
	Pos                     Pos            `key:"@"`
	MaxRetryCycles          strict.At[int] `key:"maxRetryCycles"`
	CircuitBreakerPreset    Text           `key:"circuitBreakerPreset"`
	MaxTransitions          strict.At[int] `key:"maxTransitions"`
	MaxStateVisits          strict.At[int] `key:"maxStateVisits"`
	MaxTotalDurationSeconds strict.At[int] `key:"maxTotalDurationSeconds"`
}

type linkDoc struct {
	Pos           Pos    `key:"@"`
	To            Text   `key:"to,required"`
	Direction     Text   `key:"direction"`
	AllowedTopics []Text `key:"allowedTopics"`
}

type ragDoc struct {
	Pos         Pos                           `key:"@"`
	Provider    Text                          `key:"provider"`
	Collections []strict.Named[collectionDoc] `key:"collections"`
	Defaults    struct {
		Profile Text `key:"profile"`
	} `key:"defaults"`
}

type collectionDoc struct {
	Pos      Pos    `key:"@"`
	Sources  []Text `key:"sources"`
	Chunking struct {
		Strategy  Text           `key:"strategy"`
		MaxTokens strict.At[int] `key:"maxTokens"`
		Overlap   strict.At[int] `key:"overlap"`
	} `key:"chunking"`
}

// knowledgeDoc is a collection by name, or with its settings.
type knowledgeDoc struct {
	Pos              Pos                `key:"@"`
	Collection       Text               `key:"collection,required"`
	TopK             strict.At[int]     `key:"topK"`
	MinScore         strict.At[float64] `key:"minScore"`
	Profile          Text               `key:"profile"`
	MaxContextTokens strict.At[int]     `key:"maxContextTokens"`
}

type knowledgeBlock knowledgeDoc

func (k *knowledgeDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind == strict.String {
		k.Pos, k.Collection = n.Pos, Text{Pos: n.Pos, V: n.Text, Set: true}
		return
	}
	d.Decode(n, (*knowledgeBlock)(k), "")
}

// entities are the agents or the tasks: a mapping from id to T.
type entities[T any] struct {
	list  []strict.Named[T]
	wrong bool // it is no mapping, or one of its values is none
}

// decodeEntities decodes the value of "agents" or "tasks".
func decodeEntities[T any](b *builder, key string, n *strict.Node) entities[T] {
	if n == nil {
		return entities[T]{}
	}
	var one []strict.Named[entities[T]]
	b.add(strict.Decode(&strict.Node{
		Pos: n.Pos, Kind: strict.Map,
		Entries: []strict.Entry{{Key: key, KeyPos: n.Pos, Value: n}},
	}, &one))
	return one[0].V
}

func (e *entities[T]) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch n.Kind {
	case strict.Null:
	case strict.List:
		e.wrong = true
		d.Fail(n.Pos, strict.CodeWrongType, d.Path()+" must be a mapping, not a list",
			"write each under its id, without a dash: "+d.Path()+": {first-id: {…}, second-id: {…}}")
	case strict.Map:
		for _, entry := range n.Entries {
			if !isID(entry.Key) {
				d.Fail(entry.KeyPos, strict.CodeBadValue, d.Path()+": "+strict.Quote(entry.Key)+" is no id",
					"at least one letter, at most 128 characters, all printable")
				e.wrong = true
				continue
			}
			if entry.Value.Kind == strict.Null {
				d.Fail(entry.KeyPos, strict.CodeMissing, d.Path()+"."+entry.Key+" is empty", "")
				e.wrong = true
				continue
			}
			item := strict.Named[T]{Key: entry.Key, KeyPos: entry.KeyPos}
			d.Decode(entry.Value, &item.V, entry.Key)
			e.list = append(e.list, item)
		}
	default:
		e.wrong = true
		d.WrongType(n, strict.Map.String())
	}
}

// isID reports whether an agent or a task may be called so: ids stand in
// messages, events and reports, each on one line.
func isID(id string) bool {
	return strings.TrimSpace(id) != "" && utf8.RuneCountInString(id) <= 128 &&
		!strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}

// contextDoc is a task's context: texts by name.
type contextDoc struct{ list []strict.Named[loose] }

func (c *contextDoc) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	switch {
	case n.Kind == strict.Map:
		d.Decode(n, &c.list, "")
	case n.Kind == strict.Null, n.Kind == strict.List && len(n.Items) == 0:
	default:
		d.Fail(n.Pos, strict.CodeWrongType, d.Path()+" must be a mapping of names to texts, not "+n.Kind.String(),
			"tasks that come before are dependencies: [id]")
	}
}

// loose is any value as a text: a scalar as it is written, all else as JSON.
type loose struct{ Text }

func (l *loose) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	l.Pos, l.Set = n.Pos, n.Kind != strict.Null
	switch n.Kind {
	case strict.List, strict.Map:
		l.V = string(n.JSON())
	default:
		l.V = n.Text
	}
	if n.Kind == strict.Null {
		l.V = ""
	}
}

// jsonText is a JSON object, written as a text or as a mapping.
type jsonText struct{ Text }

func (j *jsonText) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	j.Pos, j.Set = n.Pos, true
	switch n.Kind {
	case strict.Null:
		j.Set = false
	case strict.Map:
		j.V = string(n.JSON())
	case strict.String:
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(n.Text), &object); err != nil || object == nil {
			message := d.Path() + ": not a JSON object"
			var se *json.SyntaxError
			if errors.As(err, &se) {
				message += ": " + se.Error()
			}
			d.Fail(n.Pos, strict.CodeBadValue, message, "")
		}
		j.V = n.Text
	default:
		d.WrongType(n, "a JSON object as a text or a mapping")
	}
}

// seconds is a duration, written with a unit or as a number of seconds.
type seconds struct {
	Pos
	V   time.Duration
	Set bool
}

func (s *seconds) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if s.Pos = n.Pos; n.Kind == strict.Null {
		return
	}
	s.Set = true
	if n.Kind != strict.Int {
		d.Decode(n, &s.V, "")
		return
	}
	var number int
	d.Decode(n, &number, "")
	if number <= 0 || number > 1e9 {
		d.Fail(n.Pos, CodeOutOfRange, d.Path()+": "+n.Text+" is not a number of seconds above zero", "")
		return
	}
	s.V = time.Duration(number) * time.Second
}

func short(text string) string {
	if text = strings.TrimSpace(text); len(text) > 40 || strings.ContainsAny(text, "\n{}") {
		return "…"
	}
	return text
}
