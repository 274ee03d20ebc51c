package mcp

import (
	"bytes"
	"encoding/json"
)

// FormSchema returns the JSON Schema of a form, as far as whoever shows it needs
// it; what is answered is held against [Field.Parse], which knows more. The
// answers that settings declare are not in it: they may be secrets.
func FormSchema(fields []Field) json.RawMessage {
	var properties bytes.Buffer
	required := []string{}
	for _, f := range fields {
		name, nameErr := json.Marshal(f.Name)
		property, err := json.Marshal(f.schema())
		if err != nil || nameErr != nil {
			continue // plain texts
		}
		if properties.Len() > 0 {
			properties.WriteByte(',')
		}
		properties.Write(name)
		properties.WriteByte(':')
		properties.Write(property)
		if f.Required {
			required = append(required, f.Name)
		}
	}
	names, err := json.Marshal(required)
	if err != nil {
		names = []byte("[]") // plain texts
	}
	return json.RawMessage(`{"type":"object","properties":{` + properties.String() + `},"required":` + string(names) + `}`)
}

// schema is the schema of one field.
func (f Field) schema() map[string]any {
	p := map[string]any{"type": "string"}
	if f.Title != "" {
		p["title"] = f.Title
	}
	if f.Description != "" {
		p["description"] = f.Description
	}
	switch f.Kind {
	case FieldInteger, FieldNumber, FieldBoolean:
		p["type"] = string(f.Kind)
	case FieldChoice:
		p["oneOf"] = f.choices()
	case FieldChoices:
		p["type"], p["items"] = "array", map[string]any{"anyOf": f.choices()}
	}
	if f.HasDefault {
		if value, err := f.Parse(f.Default); err == nil {
			p["default"] = value
		}
	}
	return p
}

func (f Field) choices() []map[string]string {
	list := make([]map[string]string, len(f.Choices))
	for i, c := range f.Choices {
		list[i] = map[string]string{"const": c.Value, "title": c.Title}
		if c.Title == "" {
			list[i]["title"] = c.Value
		}
	}
	return list
}
