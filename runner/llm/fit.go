package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

// Budgets that stand for efforts where an API knows only the one or the other,
// in tokens. A budget is taken for the least effort that covers it.
var efforts = [...]struct {
	name   string
	budget int
}{{"low", 2048}, {"medium", 8192}, {"high", 24576}, {"max", 32768}}

// BudgetOf returns the thinking budget, in tokens, that stands for an effort, and
// 0 for an effort that is not known.
func BudgetOf(effort string) int {
	for _, e := range efforts {
		if e.name == effort {
			return e.budget
		}
	}
	return 0
}

// EffortOf returns the effort that stands for a thinking budget.
func EffortOf(budget int) string {
	for _, e := range efforts[:3] {
		if budget <= e.budget {
			return e.name
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

// Fitted returns m behind [Capabilities.Fit], with one more chance for a request
// that the vendor refuses because of a field that can be done without: models of
// one API differ in what they take (a reasoning model no temperature, a small one
// less max_tokens), and no table of them stays true. The field is left out, or, if
// it is max_tokens and the refusal names the most, lowered to that; the request
// is sent again, and the model of that name is not asked for it any more. The
// logger gets a line for each such field, once; nil discards.
func Fitted(m Model, c Capabilities, log *slog.Logger) Model {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &fitted{model: m, caps: c, log: log, learned: map[string]concession{}}
}

type fitted struct {
	model Model
	caps  Capabilities
	log   *slog.Logger

	mu      sync.Mutex
	learned map[string]concession // by model name
}

// concession is what one model is not asked for, since it refuses it.
type concession struct {
	without map[string]bool // names of fields of a Request
	most    int             // max tokens; 0: no bound is known
}

// manyModels bounds what is learned: names of models come from crews.
const manyModels = 1000

// SchemaDialect implements [Dialectal].
func (f *fitted) SchemaDialect() SchemaDialect { return DialectOf(f.model) }

// Capabilities implements [Capable].
func (f *fitted) Capabilities() Capabilities { return f.caps }

// Generate implements [Model].
func (f *fitted) Generate(ctx context.Context, req Request) (*Response, error) {
	for {
		fit, _ := f.caps.Fit(req)
		fit = f.known(fit)
		res, err := f.model.Generate(ctx, fit)
		if err == nil || !f.learn(ctx, fit, err) {
			return res, err
		}
	}
}

// known leaves out what the model of the request is known to refuse.
func (f *fitted) known(req Request) Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.learned[req.Model]
	for _, field := range optional {
		if c.without[field.name] {
			req = field.drop(req)
		}
	}
	if c.most > 0 && req.MaxTokens > c.most {
		req.MaxTokens = c.most
	}
	return req
}

// learn makes a concession of a refusal, and reports whether there is one to
// make. Each field is given up once for each model, so requests end.
func (f *fitted) learn(ctx context.Context, req Request, err error) bool {
	var api *APIError
	if !errors.As(err, &api) || api.Status != http.StatusBadRequest && api.Status != http.StatusUnprocessableEntity ||
		api.Code == "context_length_exceeded" { // it names the fields, but they are not the trouble
		return false
	}
	for _, field := range optional {
		if !field.set(req) || !api.concerns(field.wire) {
			continue
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		c, had := f.learned[req.Model]
		if !had && len(f.learned) >= manyModels {
			return false
		}
		if c.without == nil {
			c.without = map[string]bool{}
		}
		if most := api.most(req.MaxTokens); field.name == fieldMaxTokens && most > 0 && c.most == 0 {
			c.most = most
			f.log.WarnContext(ctx, "the vendor refuses max_tokens; its own limit is used", "provider", api.Provider, "model", req.Model, "asked", req.MaxTokens, "limit", most)
		} else {
			c.without[field.name] = true
			f.log.WarnContext(ctx, "the vendor refuses a field; it is left out", "provider", api.Provider, "model", req.Model, "field", field.name, "reason", api.Message)
		}
		f.learned[req.Model] = c
		return true
	}
	return false
}

const fieldMaxTokens = "max_tokens"

// optional are the fields of a request that can be done without, in the order
// in which they are given up, with the names that vendors have for them.
var optional = [...]struct {
	name string
	wire []string
	set  func(Request) bool
	drop func(Request) Request
}{
	{fieldMaxTokens, []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"},
		func(r Request) bool { return r.MaxTokens > 0 }, func(r Request) Request { r.MaxTokens = 0; return r }},
	{"temperature", []string{"temperature"},
		func(r Request) bool { return r.Temperature != nil }, func(r Request) Request { r.Temperature = nil; return r }},
	{"top_p", []string{"top_p", "topP"},
		func(r Request) bool { return r.TopP != nil }, func(r Request) Request { r.TopP = nil; return r }},
	{"thinking", []string{"reasoning_effort", "thinking", "reasoning", "enable_thinking", "thinking_budget", "thinking_config", "effort", "output_config.effort"},
		func(r Request) bool { return r.Thinking != nil }, func(r Request) Request { r.Thinking = nil; return r }},
	{"response_format", []string{"response_format", "output_config", "output_format", "json_schema", "json_object"},
		func(r Request) bool { return r.Format != nil }, Request.promptFormatIfSet},
	{"cache", []string{"cache_control"},
		func(r Request) bool { return r.Cache != nil }, func(r Request) Request { r.Cache = nil; return r }},
	{"one_call", []string{"parallel_tool_calls", "disable_parallel_tool_use"},
		func(r Request) bool { return r.OneCall }, func(r Request) Request { r.OneCall = false; return r }},
}

func (r Request) promptFormatIfSet() Request {
	if r.Format == nil {
		return r
	}
	return r.promptFormat()
}

// concerns reports whether the vendor names one of the fields as what it refuses:
// in the field of the refusal that is there for it or, as most vendors do, in
// its text alone.
func (e *APIError) concerns(fields []string) bool {
	for _, field := range fields {
		if e.Param != "" {
			if e.Param == field || strings.HasPrefix(e.Param, field+".") {
				return true
			}
			continue
		}
		for rest := e.Message; ; {
			at := strings.Index(rest, field)
			if at < 0 {
				break
			}
			before, after := rest[:at], rest[at+len(field):]
			if !endsWord(before) && !beginsWord(after) {
				return true
			}
			rest = after
		}
	}
	return false
}

func endsWord(s string) bool {
	return s != "" && isWord(rune(s[len(s)-1]))
}

func beginsWord(s string) bool {
	return s != "" && isWord(rune(s[0]))
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

var wholeNumber = regexp.MustCompile(`[0-9]+`)

// most is the greatest whole number below asked that the refusal names, which is
// what the vendor allows; 0 where there is none.
func (e *APIError) most(asked int) int {
	most := 0
	for _, digits := range wholeNumber.FindAllString(strings.ReplaceAll(e.Message, ",", ""), -1) {
		if n, err := strconv.Atoi(digits); err == nil && n < asked && n > most {
			most = n
		}
	}
	if most < leastMost { // a version, or the number of a message
		return 0
	}
	return most
}

// leastMost is the least number that is taken for a bound of an answer.
const leastMost = 256
