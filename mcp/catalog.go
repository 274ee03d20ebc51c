package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/tools"
)

// anyObject is the schema of a tool that gave none which could be used.
const anyObject = `{"type":"object"}`

// A catalog is what a server offers, as far as it can be used: the definitions
// in order of name, what was left out, and what there is to say about it.
type catalog struct {
	defs     []tools.Definition
	skipped  []Skip
	warnings []string
	until    time.Time // when it is to be read again; zero: when it has changed
}

// catalogue reads the tools of a server's list, in the order in which they came.
// Each tool stands for itself: what is wrong with one loses that one. Those in
// refused are lost anyway.
func catalogue(server config.Server, limits config.Limits, listed []json.RawMessage, refused map[string]bool) catalog {
	b := builder{server: server, limits: limits, refused: refused, seen: make(map[string]bool, len(listed))}
	for _, raw := range listed {
		b.add(raw)
	}
	b.reportHidden()
	b.unmatched("enabled_tools", server.EnabledTools)
	b.unmatched("disabled_tools", server.DisabledTools)
	slices.SortFunc(b.defs, func(x, y tools.Definition) int { return strings.Compare(x.Name, y.Name) })
	return b.catalog
}

// builder makes a catalog.
type builder struct {
	catalog
	server  config.Server
	limits  config.Limits
	refused map[string]bool // names that must not be used
	seen    map[string]bool // names of the list
	schemas int             // bytes so far
	hiding  []string        // tools whose texts hide something
	hidden  int             // characters that they hide
}

func (b *builder) add(raw json.RawMessage) {
	var t struct {
		Name         string          `json:"name"`
		Title        json.RawMessage `json:"title"`
		Description  json.RawMessage `json:"description"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema"`
		Annotations  json.RawMessage `json:"annotations"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		var named struct{ Name any }
		_ = json.Unmarshal(raw, &named) // it is malformed: any name will do
		b.skip(fmt.Sprint(named.Name), ReasonMalformed)
		return
	}
	switch {
	case strings.TrimSpace(t.Name) == "":
		b.skip("", ReasonNameless)
		return
	case len(t.Name) > b.limits.NameLength:
		b.skip(cut(t.Name, 64), ReasonTooLarge)
		return
	case strings.ContainsFunc(t.Name, unprintable), b.refused[t.Name]:
		b.skip(oneLine(t.Name, b.limits.NameLength), ReasonMalformed)
		return
	case b.seen[t.Name]:
		b.skip(t.Name, ReasonDuplicate)
		return
	}
	b.seen[t.Name] = true
	if b.excluded(t.Name) {
		return
	}
	given := tools.Definition{
		Name: t.Name, Title: text(t.Title), Description: text(t.Description),
		InputSchema: b.schema(t.Name, t.InputSchema), Annotations: annotations(t.Annotations),
	}
	if isObject(t.OutputSchema) {
		given.OutputSchema = t.OutputSchema
	}
	title, inTitle := unhide(given.Title)
	description, inDescription := unhide(given.Description)
	input, inInput := unhideSchema(given.InputSchema)
	var output json.RawMessage
	inOutput := 0
	if given.OutputSchema != nil {
		output, inOutput = unhideSchema(given.OutputSchema)
	}
	if n := inTitle + inDescription + inInput + inOutput; n > 0 {
		b.hiding = append(b.hiding, t.Name)
		b.hidden += n
	}
	def := tools.Definition{
		Name:         t.Name,
		Title:        oneLine(title, maxName),
		Description:  b.description(t.Name, description),
		InputSchema:  input,
		OutputSchema: output,
		Annotations:  given.Annotations,
		Server:       b.server.Name,
	}
	if def.Title != given.Title || def.Description != given.Description ||
		!bytes.Equal(def.InputSchema, given.InputSchema) || !bytes.Equal(def.OutputSchema, given.OutputSchema) {
		whole := given.Digests()
		def.Given = &whole
	}
	size := len(def.InputSchema) + len(def.OutputSchema)
	if len(def.InputSchema) > b.limits.SchemaBytes || len(def.OutputSchema) > b.limits.SchemaBytes || b.schemas+size > maxSchemas {
		b.skip(t.Name, ReasonTooLarge)
		return
	}
	if len(b.server.Agents) > 0 { // the name is out of reach of all other servers (A9)
		def.Name, def.Original = agentToolName(b.server.Name, t.Name), t.Name
	}
	b.schemas += size
	b.defs = append(b.defs, def)
}

func (b *builder) skip(tool string, reason Reason) {
	b.skipped = append(b.skipped, Skip{Server: b.server.Name, Tool: tool, Reason: reason})
}

func (b *builder) warn(format string, args ...any) {
	switch n := len(b.warnings); {
	case n < maxWarnings:
		b.warnings = append(b.warnings, fmt.Sprintf(format, args...))
	case n == maxWarnings:
		b.warnings = append(b.warnings, "there is more to warn about in its list of tools")
	}
}

// reportHidden warns, in one line and before all else, of tools whose texts hid
// something (R4).
func (b *builder) reportHidden() {
	const shown = 5
	names := b.hiding
	if len(names) == 0 {
		return
	}
	list := make([]string, 0, shown)
	for _, name := range names[:min(len(names), shown)] {
		list = append(list, strconv.Quote(name))
	}
	more := ""
	if n := len(names) - shown; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	line := fmt.Sprintf("hides %d characters that can't be seen in the texts of %d of its tools, which are shown without them: %s%s",
		b.hidden, len(names), strings.Join(list, ", "), more)
	b.warnings = slices.Insert(b.warnings, 0, line)
}

// excluded reports whether the settings leave a tool out, by the server's own name.
func (b *builder) excluded(name string) bool {
	if b.server.EnabledTools != nil && !slices.Contains(b.server.EnabledTools, name) {
		return true
	}
	return slices.Contains(b.server.DisabledTools, name)
}

// unmatched warns of names in the settings that the server doesn't list.
func (b *builder) unmatched(key string, names []string) {
	for _, name := range names {
		if !b.seen[name] {
			b.warn("%s names %q, which the server does not offer", key, name)
		}
	}
}

// schema is an input schema as it came, byte for byte, or one that allows any
// object where there is none.
func (b *builder) schema(tool string, schema json.RawMessage) json.RawMessage {
	if isObject(schema) {
		return schema
	}
	what := "no input schema"
	if len(schema) > 0 && string(schema) != "null" {
		what = "an input schema that is not an object"
	}
	b.warn("the tool %q has %s: any object is taken", tool, what)
	return json.RawMessage(anyObject)
}

// description is the text within its limit.
func (b *builder) description(tool, s string) string {
	if len(s) > b.limits.DescriptionLength {
		b.warn("the description of the tool %q was cut: it has %d bytes", tool, len(s))
	}
	return cut(s, b.limits.DescriptionLength)
}

// text is a JSON string, or nothing.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func isObject(raw json.RawMessage) bool { return bytes.HasPrefix(raw, []byte{'{'}) }

// annotations are the hints of a tool; what is no boolean is not said.
func annotations(raw json.RawMessage) tools.Annotations {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return tools.Annotations{}
	}
	hint := func(name string) *bool {
		var v *bool
		if json.Unmarshal(members[name], &v) != nil {
			return nil
		}
		return v
	}
	return tools.Annotations{
		ReadOnly:    hint("readOnlyHint"),
		Destructive: hint("destructiveHint"),
		Idempotent:  hint("idempotentHint"),
		OpenWorld:   hint("openWorldHint"),
	}
}

// size is what a definition takes of a model's context, in bytes.
func size(d tools.Definition) int {
	return len(d.Name) + len(d.Description) + len(d.InputSchema)
}
