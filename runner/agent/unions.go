package agent

// unite writes each list of types as anyOf, for APIs in whose schemas a type is one word:
// {"type": ["string", "array"], "items": X} becomes {"anyOf": [{"type": "string"},
// {"type": "array", "items": X}]}. It changes s in place and reports whether it did.
func unite(s map[string]any) bool {
	changed := false
	inside := func(v any) {
		if inner, ok := v.(map[string]any); ok {
			changed = unite(inner) || changed
		}
	}
	for key, value := range s {
		switch kindOf(key) {
		case aSchema:
			inside(value)
		case schemas:
			list, _ := value.([]any)
			for _, v := range list {
				inside(v)
			}
		case schemasBy:
			byName, _ := value.(map[string]any)
			for _, v := range byName {
				inside(v)
			}
		}
	}
	kinds, ok := s["type"].([]any)
	if !ok {
		return changed
	}
	delete(s, "type")
	if len(kinds) == 1 {
		s["type"] = kinds[0]
		return true
	}
	if s["anyOf"] != nil {
		return true // which says more than the types do
	}
	var branches []any
	for _, kind := range kinds {
		name, _ := kind.(string)
		branch := map[string]any{"type": name}
		for _, key := range keywordsOf(name) {
			if v, ok := s[key]; ok {
				branch[key] = v
			}
		}
		branches = append(branches, branch)
	}
	for _, kind := range kinds {
		name, _ := kind.(string)
		for _, key := range keywordsOf(name) {
			delete(s, key)
		}
	}
	s["anyOf"] = branches
	return true
}

// keywordsOf are the keywords that speak of values of one type alone.
func keywordsOf(kind string) []string {
	switch kind {
	case "object":
		return []string{"properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties", "maxProperties"}
	case "array":
		return []string{"items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"}
	case "string":
		return []string{"minLength", "maxLength", "pattern", "format"}
	case "number", "integer":
		return []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	}
	return nil
}
