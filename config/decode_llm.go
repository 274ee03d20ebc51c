package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"crewhost/config/strict"
)

// llmDocument is the section llm: the default profile and the others. Those are
// decoded one by one, since a profile has no profiles.
type llmDocument struct {
	ProfileDocument
	Profiles   []strict.Named[*strict.Node]  `key:"profiles"`
	Currency   strict.At[string]             `key:"currency"`
	Prices     []strict.Named[priceDocument] `key:"prices"`
	Budget     runBudgetDocument             `key:"budget"`
	Embeddings strict.At[*strict.Node]       `key:"embeddings"`
}

// ProfileDocument is a profile as it is written. It is exported for reflection.
type ProfileDocument struct {
	Pos         strict.Pos             `key:"@"`
	Provider    strict.At[string]      `key:"provider"`
	Model       strict.At[string]      `key:"model"`
	BaseURL     strict.At[scalar]      `key:"base_url"`
	APIKey      strict.At[apiKey]      `key:"api_key"`
	Tape        strict.At[string]      `key:"tape"`
	Timeout     time.Duration          `key:"timeout"`
	MaxRetries  strict.At[natural]     `key:"max_retries"`
	Temperature strict.At[temperature] `key:"temperature"`
	TopP        strict.At[share]       `key:"top_p"`
	MaxTokens   count                  `key:"max_tokens"`
	ToolSchemas strict.At[string]      `key:"tool_schemas"`
	ToolCalls   strict.At[string]      `key:"tool_calls"`

	Deployment      strict.At[string]    `key:"deployment"`
	APIVersion      strict.At[string]    `key:"api_version"`
	ContextTokens   strict.At[count]     `key:"context_tokens"`
	StreamIdle      time.Duration        `key:"stream_idle"`
	Thinking        *thinkingDocument    `key:"thinking"`
	Cache           *cacheDocument       `key:"cache"`
	AvailableModels []strict.At[word]    `key:"available_models"`
	Rate            rateDocument         `key:"rate"`
	Capabilities    capabilitiesDocument `key:"capabilities"`
}

type thinkingDocument struct {
	Enabled      *bool             `key:"enabled"`
	Effort       strict.At[string] `key:"effort"`
	BudgetTokens count             `key:"budget_tokens"`
}

type cacheDocument struct {
	System bool              `key:"system"`
	Tools  bool              `key:"tools"`
	TTL    strict.At[string] `key:"ttl"`
}

type rateDocument struct {
	Requests   count `key:"requests_per_minute"`
	Tokens     count `key:"tokens_per_minute"`
	Concurrent count `key:"concurrent"`
}

type capabilitiesDocument struct {
	ParallelCalls  *bool             `key:"parallel_calls"`
	Thinking       strict.At[string] `key:"thinking"`
	ResponseFormat strict.At[string] `key:"response_format"`
	Cache          strict.At[string] `key:"cache"`
}

type priceDocument struct {
	Pos        strict.Pos         `key:"@"`
	Input      strict.At[decimal] `key:"input"`
	Output     strict.At[decimal] `key:"output"`
	CacheRead  strict.At[decimal] `key:"cache_read"`
	CacheWrite strict.At[decimal] `key:"cache_write"`
	Reasoning  strict.At[decimal] `key:"reasoning"`
}

type runBudgetDocument struct {
	Cost   strict.At[decimal] `key:"cost"`
	Tokens count              `key:"tokens"`
}

// embeddingsDocument is the section llm.embeddings: a profile of its own, or the
// id of one.
type embeddingsDocument struct {
	ProfileDocument
	Profile    strict.At[string] `key:"profile"`
	Dimensions count             `key:"dimensions"`
}

func (l *loader) llm(x *expander, doc llmDocument) LLM {
	llm := LLM{Profile: l.profile(x, doc.ProfileDocument, "llm")}
	for i, e := range doc.Profiles {
		where := "llm.profiles." + shown(e.Key)
		var p ProfileDocument
		x.d.Decode(e.V, &p, where)
		switch {
		case strings.EqualFold(e.Key, DefaultProfile):
			x.d.Fail(e.KeyPos, CodeName, "the profile id "+strict.Quote(e.Key)+" means the section llm itself", "give it another id")
		case !named(serverName, e.Key, 64):
			x.d.Fail(e.KeyPos, CodeName, "the profile id "+strict.Quote(e.Key)+" is not valid", nameRule)
		case e.V.Kind == strict.Null || e.V.Kind == strict.Map && len(e.V.Entries) == 0:
			x.d.Fail(e.KeyPos, strict.CodeMissing, where+" sets nothing", "a profile stands alone, and takes nothing from llm")
		}
		for _, before := range doc.Profiles[:i] {
			if strings.EqualFold(before.Key, e.Key) {
				x.d.Fail(e.KeyPos, strict.CodeDuplicateKey, "the profiles "+strict.Quote(before.Key)+" and "+strict.Quote(e.Key)+" differ in case only", "")
			}
		}
		llm.Profiles = append(llm.Profiles, NamedProfile{ID: e.Key, Profile: l.profile(x, p, where)})
	}
	for _, e := range doc.Prices {
		llm.Prices = append(llm.Prices, price(x.d, e))
	}
	llm.Currency = cmp.Or(doc.Currency.V, "USD")
	if !currency.MatchString(llm.Currency) {
		x.d.Fail(doc.Currency.Pos, strict.CodeBadValue, "llm.currency: "+strict.Quote(doc.Currency.V)+" is no currency code", "three capital letters, such as USD or EUR")
	}
	if doc.Budget.Cost.Set {
		llm.Budget.Cost = (*int64)(&doc.Budget.Cost.V)
	}
	llm.Budget.Tokens = int(doc.Budget.Tokens)
	llm.Budget.Pos = doc.Budget.Cost.Pos
	if doc.Embeddings.Set {
		llm.Embeddings = l.embeddings(x, doc.Embeddings.V, llm)
	}
	return llm
}

// currency is a code of ISO 4217.
var currency = regexp.MustCompile(`^[A-Z]{3}$`)

func price(d *strict.Decoder, e strict.Named[priceDocument]) Price {
	where := "llm.prices." + shown(e.Key)
	for _, needed := range []struct {
		key string
		set bool
	}{{"input", e.V.Input.Set}, {"output", e.V.Output.Set}} {
		if !needed.set {
			d.Fail(e.KeyPos, strict.CodeMissing, where+" has no "+needed.key+" price", needed.key+": 1.25, for a million tokens; 0 where it costs nothing")
		}
	}
	p := Price{Pattern: e.Key, Input: int64(e.V.Input.V), Output: int64(e.V.Output.V)}
	for _, price := range []struct {
		into **int64
		from strict.At[decimal]
	}{{&p.CacheRead, e.V.CacheRead}, {&p.CacheWrite, e.V.CacheWrite}, {&p.Reasoning, e.V.Reasoning}} {
		if price.from.Set {
			*price.into = new(int64(price.from.V))
		}
	}
	return p
}

// embeddings reads how texts are embedded: through the profile that is named, or
// as the section itself says.
func (l *loader) embeddings(x *expander, n *strict.Node, llm LLM) *Embeddings {
	const where = "llm.embeddings"
	var doc embeddingsDocument
	x.d.Decode(n, &doc, where)
	e := &Embeddings{Dimensions: int(doc.Dimensions)}
	own := doc.Provider.Set || doc.BaseURL.Set || doc.APIKey.Set
	if doc.Model.V == "" {
		x.d.Fail(n.Pos, strict.CodeMissing, where+" names no model", "model: text-embedding-3-small")
	}
	switch {
	case own && doc.Profile.Set:
		x.d.Fail(doc.Profile.Pos, strict.CodeBadValue, where+" has a profile and says itself how a model is reached", "keep one")
	case own:
		e.Profile = l.profile(x, doc.ProfileDocument, where)
	default:
		p, err := llm.Select(doc.Profile.V)
		if err != nil {
			x.d.Fail(doc.Profile.Pos, strict.CodeBadValue, where+".profile: "+err.Error(), "")
		}
		e.Profile = p
		e.Model = doc.Model.V
		e.Deployment = cmp.Or(doc.Deployment.V, doc.Model.V) // that of the profile is of another model
	}
	e.Pos = n.Pos
	return e
}

func (l *loader) profile(x *expander, doc ProfileDocument, where string) Profile {
	d := x.d
	p := Profile{
		Provider:  doc.Provider.V,
		Model:     doc.Model.V,
		BaseURL:   x.text(doc.BaseURL, where+".base_url", plainText),
		APIKey:    l.key(x, doc.APIKey, where+"."+keyAPIKey),
		Timeout:   doc.Timeout,
		MaxTokens: int(doc.MaxTokens),
		Pos:       doc.Pos,

		ToolSchemas: doc.ToolSchemas.V,
		ToolCalls:   doc.ToolCalls.V,

		Deployment: doc.Deployment.V,
		APIVersion: doc.APIVersion.V,
		StreamIdle: doc.StreamIdle,

		ContextTokens: int(doc.ContextTokens.V),
		Rate:          Rate{Requests: int(doc.Rate.Requests), Tokens: int(doc.Rate.Tokens), Concurrent: int(doc.Rate.Concurrent)},
		Capabilities: Capabilities{
			ParallelCalls: doc.Capabilities.ParallelCalls, Thinking: doc.Capabilities.Thinking.V,
			ResponseFormat: doc.Capabilities.ResponseFormat.V, Cache: doc.Capabilities.Cache.V,
		},
	}
	for _, m := range texts(d, doc.AvailableModels, where+".available_models") {
		p.AvailableModels = append(p.AvailableModels, string(m.V))
	}
	if t := doc.Thinking; t != nil {
		p.Thinking = &Thinking{Enabled: t.Enabled, Effort: t.Effort.V, BudgetTokens: int(t.BudgetTokens)}
		oneOf(d, t.Effort, where+".thinking.effort", "low", "medium", "high", "max")
	}
	if c := doc.Cache; c != nil {
		p.Cache = &Cache{System: c.System, Tools: c.Tools, TTL: c.TTL.V}
		oneOf(d, c.TTL, where+".cache.ttl", "5m", "1h")
	}
	oneOf(d, doc.Capabilities.Thinking, where+".capabilities.thinking", "effort", "budget", "switch", "template", "none")
	oneOf(d, doc.Capabilities.ResponseFormat, where+".capabilities.response_format", "json_schema", "json_object", "none")
	oneOf(d, doc.Capabilities.Cache, where+".capabilities.cache", "marked", "automatic")
	if !p.BaseURL.IsZero() {
		checkURL(d, doc.BaseURL.Pos, where+".base_url", p.BaseURL)
	}
	if doc.Tape.V != "" {
		p.Tape, p.TapePos = l.absolute(doc.Tape.V, doc.Tape.Pos), doc.Tape.Pos
	}
	if doc.MaxRetries.Set {
		p.MaxRetries = (*int)(&doc.MaxRetries.V)
	}
	if doc.Temperature.Set {
		p.Temperature = (*float64)(&doc.Temperature.V)
	}
	if doc.TopP.Set {
		p.TopP = (*float64)(&doc.TopP.V)
	}
	oneOf(d, doc.ToolSchemas, where+".tool_schemas", SchemasFull, SchemasPlain)
	oneOf(d, doc.ToolCalls, where+".tool_calls", CallsNative, CallsText)
	l.checkProvider(d, doc, &p, where)
	return p
}

// checkProvider judges what a profile says by what its provider needs.
func (l *loader) checkProvider(d *strict.Decoder, doc ProfileDocument, p *Profile, where string) {
	oneOf(d, doc.Provider, where+".provider", Providers()...)
	if p.Provider == "" && (p.Model != "" || !p.BaseURL.IsZero()) {
		p.Provider = ProviderOpenAI
	}
	vendor := p.Vendor()
	switch {
	case p.Provider == "" && p.Tape != "":
		d.Fail(doc.Tape.Pos, strict.CodeMissing, where+".tape is of no use without a provider", "provider: "+ProviderReplay)
	case p.Provider == ProviderReplay && p.Tape == "":
		d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+ProviderReplay+" needs a tape", "tape: FILE")
	case vendor && slices.Contains(Providers(), p.Provider) && p.Model == "":
		d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+p.Provider+" needs a model", "model: NAME")
	}
	if p.BaseURL.IsZero() {
		switch p.Provider {
		case ProviderAzure, ProviderAzureOpenAI:
			d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+p.Provider+" needs a base_url", "base_url: https://RESOURCE.openai.azure.com")
		case ProviderCompatible:
			d.Fail(doc.Provider.Pos, strict.CodeMissing, where+": the provider "+p.Provider+" needs a base_url", "base_url: http://HOST/v1")
		}
	}
	if doc.ContextTokens.Set && p.Provider != ProviderOllama {
		d.Fail(doc.ContextTokens.Pos, strict.CodeBadValue, where+".context_tokens is a key of the provider "+ProviderOllama+" alone", "")
	}
	if azure := p.Provider == ProviderAzure || p.Provider == ProviderAzureOpenAI; !azure {
		for _, own := range []struct {
			key string
			at  strict.At[string]
		}{{"deployment", doc.Deployment}, {"api_version", doc.APIVersion}} {
			if own.at.Set {
				d.Fail(own.at.Pos, strict.CodeBadValue, where+"."+own.key+" is a key of the provider "+ProviderAzure+" alone", "")
			}
		}
	}
}
