package llm

import (
	"encoding/json"
	"fmt"
	"strings"
)

// BudgetOf returns the thinking budget, in tokens, that stands for an effort where
// an API knows budgets alone, and 0 for an effort that is not known.
func BudgetOf(effort string) int {
	switch effort {
	case "low":
		return 2048
	case "medium":
		return 8192
	case "high":
		return 24576
	case "max":
		return 32768
	}
	return 0
}

// EffortOf returns the effort that stands for a thinking budget where an API knows
// efforts alone: the least that covers it.
func EffortOf(budget int) string {
	for _, effort := range []string{"low", "medium", "high"} {
		if budget <= BudgetOf(effort) {
			return effort
		}
	}
	return "max"
}

// Fit returns req as an API of these capabilities takes it, and what of it had to
// change, a few words each for a warning: "the effort max is asked for as high".
// What was asked for in a way that the API doesn't know is asked for in another
// where there is one (a schema in the prompt, a budget for an effort), and else
// left out. req itself is not changed.
func (c Capabilities) Fit(req Request) (Request, []string) {
	var changes []string
	note := func(format string, args ...any) { changes = append(changes, fmt.Sprintf(format, args...)) }
	if c.OneCall {
		req.OneCall = true
	}
	if req.Cache != nil && c.Cache == CacheAutomatic {
		req.Cache = nil
		note("the vendor caches prompts by itself, so no mark is sent")
	}
	if t := req.Thinking; t != nil {
		fitted, change := c.think(*t)
		req.Thinking = fitted
		if change != "" {
			note("%s", change)
		}
	}
	if t := req.Thinking; t != nil && t.Enabled && c.ThinkingAlone && (req.Temperature != nil || req.TopP != nil) {
		req.Temperature, req.TopP = nil, nil
		note("temperature and topP are not sent beside thinking")
	}
	if f := req.Format; f != nil {
		switch {
		case c.FormatAlone && len(req.Tools) > 0:
			req = req.promptFormat()
			note("the response format is asked for in the prompt, since the API takes none beside tools")
		case f.Type == "json_schema" && c.Formats != FormatSchema:
			req = req.promptFormat()
			if c.Formats == FormatObject {
				req.Format = &ResponseFormat{Type: "json_object"}
				note("the response schema is put into the prompt, and any JSON object asked for")
			} else {
				note("the response schema is put into the prompt")
			}
		case f.Type == "json_object" && c.Formats == FormatNone:
			req = req.promptFormat()
			note("JSON is asked for in the prompt")
		case f.Type == "json_schema" && f.Strict && c.StrictSubset && !strictable(f.Schema, 0):
			loose := *f
			loose.Strict = false
			req.Format = &loose
			note("the response schema can't be strict, since not all of its objects require all of their properties and forbid others")
		}
	}
	if f := req.Format; f != nil && f.Type == "json_object" && c.JSONWord && !req.says("json") {
		req = req.promptFormat()
		req.Format = f
	}
	return req, changes
}

// think translates what is asked of thinking.
func (c Capabilities) think(t Thinking) (*Thinking, string) {
	if c.Thinking == ThinkNone {
		if !t.Enabled {
			return nil, ""
		}
		return nil, "thinking can't be asked for, so the model decides"
	}
	change := ""
	switch {
	case !t.Enabled:
		t.Effort, t.BudgetTokens = "", 0
	case c.Thinking == ThinkSwitch:
		if t.Effort != "" || t.BudgetTokens > 0 {
			change = "thinking is switched on, without effort or budget"
		}
		t.Effort, t.BudgetTokens = "", 0
	case c.Thinking == ThinkEffort && t.BudgetTokens > 0:
		if t.Effort == "" {
			t.Effort = EffortOf(t.BudgetTokens)
		}
		change = fmt.Sprintf("the thinking budget of %d tokens is asked for as the effort %s", t.BudgetTokens, t.Effort)
		t.BudgetTokens = 0
	case c.Thinking == ThinkBudget && t.Effort != "":
		if t.BudgetTokens == 0 {
			t.BudgetTokens = BudgetOf(t.Effort)
		}
		change = fmt.Sprintf("the thinking effort %s is asked for as a budget of %d tokens", t.Effort, t.BudgetTokens)
		t.Effort = ""
	}
	if t.Effort == "max" && c.TopEffort != "" && c.TopEffort != "max" {
		t.Effort = c.TopEffort
		if change == "" {
			change = "the thinking effort max is asked for as " + c.TopEffort
		}
	}
	return &t, change
}

// promptFormat moves the response format into the system prompt.
func (r Request) promptFormat() Request {
	text := "Answer with exactly one JSON object and nothing around it."
	if r.Format.Type == "json_schema" {
		text = "Answer with exactly one JSON value that is valid against this JSON Schema, and nothing around it:\n" + string(r.Format.Schema)
	}
	r.System = strings.TrimSpace(r.System + "\n\n" + text)
	r.Format = nil
	return r
}

// says reports whether the prompt holds a word, whatever its case.
func (r Request) says(word string) bool {
	if strings.Contains(strings.ToLower(r.System), word) {
		return true
	}
	for _, m := range r.Messages {
		if strings.Contains(strings.ToLower(m.Text()), word) {
			return true
		}
	}
	return false
}

const maxSchemaDepth = 100

// strictable reports whether every object of a schema requires all of its
// properties and forbids others.
func strictable(raw json.RawMessage, depth int) bool {
	var s map[string]json.RawMessage
	if depth > maxSchemaDepth {
		return false
	}
	if json.Unmarshal(raw, &s) != nil {
		return true // true, false: no object
	}
	_, hasProperties := s["properties"]
	var kind string
	_ = json.Unmarshal(s["type"], &kind) // a list of types has none
	if hasProperties || kind == "object" {
		var properties map[string]json.RawMessage
		var required []string
		var further bool
		if json.Unmarshal(s["additionalProperties"], &further) != nil || further {
			return false
		}
		_ = json.Unmarshal(s["properties"], &properties) // none is none
		_ = json.Unmarshal(s["required"], &required)
		needed := map[string]bool{}
		for _, name := range required {
			needed[name] = true
		}
		for name := range properties {
			if !needed[name] {
				return false
			}
		}
	}
	return holdsForParts(s, depth)
}

// holdsForParts is strictable for all schemas within a schema.
func holdsForParts(s map[string]json.RawMessage, depth int) bool {
	for _, key := range []string{"properties", "$defs", "definitions"} {
		var parts map[string]json.RawMessage
		_ = json.Unmarshal(s[key], &parts)
		for _, part := range parts {
			if !strictable(part, depth+1) {
				return false
			}
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf", "prefixItems"} {
		var parts []json.RawMessage
		_ = json.Unmarshal(s[key], &parts)
		for _, part := range parts {
			if !strictable(part, depth+1) {
				return false
			}
		}
	}
	items := s["items"]
	return isAbsent(items) || strictable(items, depth+1)
}

func isAbsent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }
