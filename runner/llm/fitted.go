package llm

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
)

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
	for _, field := range optional() {
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
		api.TooLong() { // it may name fields, but they are not the trouble
		return false
	}
	for _, field := range optional() {
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
		if c.without[field.name] || field.name == fieldMaxTokens && c.most > 0 && req.MaxTokens > c.most {
			return true // learned meanwhile, of a request that was sent beside this one
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

// field is a part of a request that can be done without.
type field struct {
	name string
	wire []string // the names that vendors have for it
	set  func(Request) bool
	drop func(Request) Request
}

// optional returns the fields in the order in which they are given up.
func optional() []field {
	return []field{
		{fieldMaxTokens, []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"},
			func(r Request) bool { return r.MaxTokens > 0 }, func(r Request) Request { r.MaxTokens = 0; return r }},
		{"temperature", []string{"temperature"},
			func(r Request) bool { return r.Temperature != nil }, func(r Request) Request { r.Temperature = nil; return r }},
		{"top_p", []string{"top_p", "topP"},
			func(r Request) bool { return r.TopP != nil }, func(r Request) Request { r.TopP = nil; return r }},
		{"thinking", []string{"reasoning_effort", "think", "thinking", "reasoning", "enable_thinking", "thinking_budget", "thinking_config", "effort", "output_config.effort"},
			func(r Request) bool { return r.Thinking != nil }, func(r Request) Request { r.Thinking = nil; return r }},
		{"response_format", []string{"response_format", "output_config", "output_format", "json_schema", "json_object"},
			func(r Request) bool { return r.Format != nil }, Request.promptFormatIfSet},
		{"cache", []string{"cache_control"},
			func(r Request) bool { return r.Cache != nil }, func(r Request) Request { r.Cache = nil; return r }},
		{"one_call", []string{"parallel_tool_calls", "disable_parallel_tool_use"},
			func(r Request) bool { return r.OneCall }, func(r Request) Request { r.OneCall = false; return r }},
	}
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
