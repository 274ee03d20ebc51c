package runner

import (
	"encoding/json"
	"fmt"

	"crewhost/crew"
	"crewhost/runner/llm"
	"crewhost/runner/process"
)

// CodeSchema marks a JSON Schema of a crew that is none, or can't be read.
const CodeSchema = "schema"

// judgeSchemas finds the schemas of a crew that no answer could be judged by.
func judgeSchemas(c *crew.Crew) crew.Issues {
	var issues crew.Issues
	check := func(pos crew.Pos, at, schema string) {
		if schema == "" {
			return
		}
		if _, err := process.FormOf(llm.ResponseFormat{Type: "json_schema", Schema: json.RawMessage(schema)}); err != nil {
			issues = append(issues, crew.Issue{Pos: pos, Code: CodeSchema, Message: fmt.Sprintf("%s: %v", at, err)})
		}
	}
	form := func(at string, l *crew.LLM) {
		if l != nil && l.ResponseSchema != nil {
			check(l.ResponseSchema.Pos, at+".responseSchema", l.ResponseSchema.Schema)
		}
	}
	form("llm", c.LLM)
	for _, a := range c.Agents {
		form("agents."+a.Key+".llm", a.LLM)
	}
	for _, t := range c.Tasks {
		form("tasks."+t.Key+".llmOverride", t.LLM)
		d := t.Deliverable
		switch {
		case d == nil || d.Source != "structured_output":
		case d.SchemaInline.V != "":
			check(d.SchemaInline.Pos, "tasks."+t.Key+".deliverable.schemaInline", d.SchemaInline.V)
		case d.SchemaPath.V != "":
			at := "tasks." + t.Key + ".deliverable.schemaPath"
			text, err := readSchema(c.Path, d.SchemaPath.V)
			if err != nil {
				issues = append(issues, crew.Issue{Pos: d.SchemaPath.Pos, Code: CodeSchema, Message: fmt.Sprintf("%s: %v", at, err)})
				continue
			}
			check(d.SchemaPath.Pos, at, string(text))
		}
	}
	return issues
}
