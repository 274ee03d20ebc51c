package crew

import (
	"fmt"
	"regexp"
	"strings"

	"crewhost/config/strict"
)

func (b *builder) llm(doc *llmDoc, at string) *LLM {
	if doc == nil {
		return nil
	}
	l := &LLM{
		Pos: doc.Pos, Profile: b.text(doc.Profile, at+".profile"), Provider: doc.provider, Model: b.text(doc.Model, at+".model"),
		Temperature: b.between(doc.Temperature, 0, 2, at+".temperature"),
		MaxTokens:   pointer(b.atLeast(doc.MaxTokens, 1, at+".maxTokens")),
		TopP:        b.between(doc.TopP, 0, 1, at+".topP"),
	}
	l.ResponseFormat = doc.ResponseFormat
	l.ResponseFormat.V = b.enum(doc.ResponseFormat, at+".responseFormat", "", "text", "json_object", "json_schema")
	if t := doc.Thinking; t != nil {
		l.Thinking = &Thinking{Enabled: t.Enabled, Effort: t.Effort, BudgetTokens: pointer(b.atLeast(t.BudgetTokens, 1, at+".thinking.budgetTokens"))}
		l.Thinking.Effort.V = b.enum(t.Effort, at+".thinking.effort", "", "low", "medium", "high", "max")
	}
	switch s := doc.ResponseSchema; {
	case s == nil && l.ResponseFormat.V == "json_schema":
		b.warn(l.ResponseFormat.Pos, CodeNoEffect, at+".responseFormat is json_schema and there is no responseSchema beside it",
			"any JSON object is accepted unless another level gives the schema")
	case s != nil:
		l.ResponseSchema = &ResponseSchema{Name: "response", Schema: s.Schema.V, Strict: or(s.Strict, true), Pos: s.Pos}
		if b.text(s.Name, at+".responseSchema.name").Set {
			l.ResponseSchema.Name = s.Name.V
		}
		if !s.Schema.Set {
			b.fail(s.Pos, strict.CodeMissing, `"schema" is missing in `+at+".responseSchema", "a JSON Schema, as a mapping or as JSON in quotes")
		}
		if f := l.ResponseFormat.V; f == "text" || f == "json_object" {
			b.fail(l.ResponseFormat.Pos, CodeConflict, at+".responseFormat is "+f+" and responseSchema asks for json_schema", "leave one out")
		}
	}
	if c := doc.Cache; c != nil {
		l.Cache = &Cache{System: c.System, Tools: c.Tools, TTL: b.enum(c.TTL, at+".cache.ttl", "", "5m", "1h")}
	}
	return l
}

func (b *builder) guardrails(doc *guardrailsDoc, at string) *Guardrails {
	if doc == nil {
		return nil
	}
	g := &Guardrails{Preset: doc.Preset, Header: doc.Header.V, Rules: b.texts(doc.Rules, at+".rules")}
	g.Preset.V = b.enum(doc.Preset, at+".preset", "", "analysis", "strict", "creative")
	if doc.Preset.Set && doc.Header.Set {
		b.warn(doc.Header.Pos, CodeNoEffect, at+".header is not used, as a preset brings its own", "")
	}
	for _, r := range doc.ToolRules {
		g.ToolRules = append(g.ToolRules, ToolRules{
			Tool:  Text{Pos: r.KeyPos, V: r.Key, Set: true},
			Rules: b.texts(r.V, at+".toolRules."+word(r.Key)),
		})
	}
	return g
}

func (b *builder) deliverable(doc *deliverableDoc, at string) *Deliverable {
	if doc == nil {
		return nil
	}
	d := &Deliverable{
		Pos: doc.Pos, Path: b.text(doc.Path, at+".path"), Format: "markdown", Sanitize: or(doc.Sanitize, true),
		SchemaPath: b.text(doc.SchemaPath, at+".schemaPath"), SchemaInline: doc.SchemaInline.Text,
		Source: b.enum(doc.Source, at+".source", "tool_call", "final_message", "structured_output", "tool_call", "none"),
	}
	if doc.Format.Set {
		d.Format = strings.ToLower(strings.TrimSpace(doc.Format.V))
		formats := []string{"markdown", "yaml", "json", "text"}
		known := false
		for _, f := range formats {
			known = known || f == d.Format
		}
		if !known {
			b.warn(doc.Format.Pos, CodeUnknownFormat, fmt.Sprintf("%s.format: %s is not known and is treated as text", at, strict.Quote(doc.Format.V)),
				strict.DidYouMean(doc.Format.V, formats))
		}
	}
	if !doc.Path.Set && d.Source != "none" {
		b.fail(doc.Pos, strict.CodeMissing, `"path" is missing in `+at, "")
	}
	if d.Source == "structured_output" && !doc.SchemaPath.Set && !doc.SchemaInline.Set {
		b.fail(doc.Source.Pos, strict.CodeMissing, at+": structured_output needs a schema", "give schemaInline or schemaPath")
	}
	return d
}

func (b *builder) graph(doc *graphDoc) *GraphConfig {
	if doc == nil {
		return nil
	}
	return &GraphConfig{
		MaxRetryCycles:  orDefault(b.atLeast(doc.MaxRetryCycles, 0, "graphConfig.maxRetryCycles"), 2),
		Preset:          b.enum(doc.CircuitBreakerPreset, "graphConfig.circuitBreakerPreset", "strict", "strict", "default", "permissive"),
		MaxTransitions:  pointer(b.atLeast(doc.MaxTransitions, 1, "graphConfig.maxTransitions")),
		MaxStateVisits:  pointer(b.atLeast(doc.MaxStateVisits, 1, "graphConfig.maxStateVisits")),
		MaxTotalSeconds: pointer(b.atLeast(doc.MaxTotalDurationSeconds, 1, "graphConfig.maxTotalDurationSeconds")),
	}
}

// word returns a key that the file chose as a part of a path, on one line.
func word(key string) string {
	if quoted := strict.Quote(key); quoted != `"`+key+`"` {
		return quoted
	}
	return key
}

// mountItem is a virtual root, with the id of a mount of the settings or without.
var mountItem = regexp.MustCompile(`^(?:([0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{26})\|)?(/[^|]*)$`)

func (b *builder) mounts(list []Text) []Text {
	first := map[string]string{}
	var mounts []Text
	for _, m := range b.texts(list, "mounts") {
		parts := mountItem.FindStringSubmatch(m.V)
		if parts == nil {
			b.fail(m.Pos, strict.CodeBadValue, "mounts: "+strict.Quote(m.V)+" is no virtual root", `write /name, or "<id>|/name" with the 26 letters and digits of an id`)
			continue
		}
		switch before, twice := first[parts[2]]; {
		case twice && before == m.V:
			b.fail(m.Pos, CodeDuplicateReference, "mounts: "+strict.Quote(m.V)+" is there twice", "")
		case twice:
			b.fail(m.Pos, CodeConflict, fmt.Sprintf("mounts: %s is selected twice: %s and %s", parts[2], strict.Quote(before), strict.Quote(m.V)), "keep one")
		default:
			first[parts[2]] = m.V
			mounts = append(mounts, m)
		}
	}
	return mounts
}

func (b *builder) rag(doc *ragDoc) *RAG {
	if doc == nil {
		return nil
	}
	r := &RAG{Pos: doc.Pos, Profile: doc.Defaults.Profile.V}
	if doc.Provider.Set {
		b.warn(doc.Provider.Pos, CodeNoEffect, "rag.provider changes nothing in a crew", "the settings choose the provider")
	}
	for _, c := range doc.Collections {
		at := "rag.collections." + word(c.Key)
		collection := Collection{
			Name: c.Key, Sources: b.texts(c.V.Sources, at+".sources"), Strategy: "recursive",
			MaxTokens: orDefault(b.atLeast(c.V.Chunking.MaxTokens, 1, at+".chunking.maxTokens"), 512),
			Overlap:   orDefault(b.atLeast(c.V.Chunking.Overlap, 0, at+".chunking.overlap"), 64),
		}
		if b.text(c.V.Chunking.Strategy, at+".chunking.strategy").Set {
			collection.Strategy = c.V.Chunking.Strategy.V
		}
		if collection.Overlap >= collection.MaxTokens && collection.MaxTokens > 0 {
			pos := c.V.Chunking.Overlap.Pos
			if !c.V.Chunking.Overlap.Set {
				pos = c.V.Chunking.MaxTokens.Pos
			}
			b.fail(pos, CodeOutOfRange, fmt.Sprintf("%s.chunking: the overlap, %d, must be below maxTokens, %d", at, collection.Overlap, collection.MaxTokens), "")
		}
		if len(c.V.Sources) == 0 {
			b.fail(c.KeyPos, strict.CodeMissing, at+" has no sources", "")
		}
		r.Collections = append(r.Collections, collection)
	}
	return r
}

// memoryProvider returns the one spelling of a provider's name.
func (b *builder) memoryProvider(t Text) string {
	name := b.enum(t, "memoryProvider", "", "in-memory", "redis", "sqlite", "chroma", "chromadb", "pinecone", "lance", "lancedb")
	return strings.TrimSuffix(name, "db")
}
