// Package provider is the table of vendors: by what name each is chosen, where its
// API is, in which dialect it is spoken to, and what it can't do.
//
// Nothing is guessed: the name alone decides, never a URL or the name of a model.
// A vendor is a row of the table over one of three adapters; an endpoint that is in
// no row is reached as "openai-compatible" with its base URL.
//
//	row, ok := provider.Find("deepseek")
//	model, err := row.Model(provider.Config{Key: key, Model: "deepseek-chat"})
package provider

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/ollama"
	"crewhost/runner/llm/openai"
)

// Provider is a vendor, or a kind of server.
type Provider struct {
	Name    string
	Aliases []string
	// BaseURL is where the API is unless the settings say otherwise; empty where
	// they must.
	BaseURL string
	// KeyVariable is the environment variable that usually holds a key, for
	// advice: it is not read. Empty where none is needed.
	KeyVariable string
	// Embeddings says whether there is an endpoint for them.
	Embeddings bool
	// Capabilities are what it takes, unless a model of it takes less.
	Capabilities llm.Capabilities

	anthropic       bool // it speaks Anthropic's API, else OpenAI's
	azure           bool
	ollama          bool // its own API, but OpenAI's for embeddings
	tokens          openai.TokensField
	thinking        openai.ThinkingField
	plainSchemas    bool
	reasoningBack   bool
	noStreamOptions bool
	billed          string // currency of the cost that answers state
	batch           int    // texts of a request for embeddings
}

// Find returns the row of a name or alias.
func Find(name string) (Provider, bool) {
	for _, p := range table() {
		if p.Name == name || slices.Contains(p.Aliases, name) {
			return p, true
		}
	}
	return Provider{}, false
}

// All returns the table, in its order.
func All() []Provider { return table() }

// StatesCost reports whether the vendor's answers say what they cost.
func (p Provider) StatesCost() bool { return p.billed != "" }

// Overrides are what the settings know better of a profile's capabilities. Empty
// fields leave the row as it is.
type Overrides struct {
	ToolCalls      string // native or text
	ParallelCalls  *bool
	Thinking       string // effort, budget, switch, template or none
	ResponseFormat string // json_schema, json_object or none
	Cache          string // marked or automatic
}

// With returns p with the overrides.
func (p Provider) With(o Overrides) Provider {
	if o.ToolCalls != "" {
		p.Capabilities.TextCalls = o.ToolCalls == "text"
	}
	if o.ParallelCalls != nil {
		p.Capabilities.OneCall = !*o.ParallelCalls
	}
	switch o.Thinking {
	case "effort":
		p.Capabilities.Thinking, p.thinking = llm.ThinkEffort, openai.ReasoningEffort
	case "budget":
		p.Capabilities.Thinking, p.thinking = llm.ThinkBudget, openai.EnableThinking
	case "switch":
		p.Capabilities.Thinking, p.thinking = llm.ThinkSwitch, openai.TypedThinking
	case "template":
		p.Capabilities.Thinking, p.thinking = llm.ThinkSwitch, openai.TemplateSwitch
	case "none":
		p.Capabilities.Thinking = llm.ThinkNone
	}
	switch o.ResponseFormat {
	case "json_schema":
		p.Capabilities.Formats = llm.FormatSchema
	case "json_object":
		p.Capabilities.Formats = llm.FormatObject
	case "none":
		p.Capabilities.Formats = llm.FormatNone
	}
	switch o.Cache {
	case "marked":
		p.Capabilities.Cache = llm.CacheMarked
	case "automatic":
		p.Capabilities.Cache = llm.CacheAutomatic
	}
	return p
}

// Config says how a provider is reached, and which of its models.
type Config struct {
	BaseURL string // empty: the row's
	Key     string // empty: none is sent
	Model   string // of requests that name none

	// Deployment and APIVersion are Azure's. An empty deployment is the model's
	// name; without a version the API is the one that needs none.
	Deployment, APIVersion string

	// ContextTokens is how long a conversation may be, where that can be said
	// (Ollama's).
	ContextTokens int

	// Timeout, IdleTimeout and MaxRetries are those of [llm.Exchange].
	Timeout, IdleTimeout time.Duration
	MaxRetries           *int

	// PlainSchemas says that the server takes but plain schemas of tools.
	PlainSchemas bool
	Dimensions   int // of an embedder's vectors; 0: the model's own

	HTTPClient *http.Client // nil: the default client
	Logger     *slog.Logger // nil: discard
}

// Model returns the model that c describes, whose requests are fitted to what the
// provider can. Nothing is sent yet.
func (p Provider) Model(c Config) (llm.Model, error) {
	if p.anthropic {
		m, err := anthropic.New(anthropic.Config{
			BaseURL: cmp.Or(c.BaseURL, p.BaseURL), APIKey: c.Key, Model: c.Model,
			Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, MaxRetries: c.MaxRetries,
			PlainSchemas: c.PlainSchemas, ProviderName: p.Name, HTTPClient: c.HTTPClient, Logger: c.Logger,
		})
		if err != nil {
			return nil, err
		}
		return llm.Fitted(m, p.Capabilities, c.Logger), nil
	}
	if p.ollama {
		m, err := ollama.New(ollama.Config{
			BaseURL: cmp.Or(c.BaseURL, p.BaseURL), APIKey: c.Key, Model: c.Model, ContextTokens: c.ContextTokens,
			Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, MaxRetries: c.MaxRetries,
			ProviderName: p.Name, HTTPClient: c.HTTPClient, Logger: c.Logger,
		})
		if err != nil {
			return nil, err
		}
		return llm.Fitted(m, p.Capabilities, c.Logger), nil
	}
	settings, err := p.settings(c)
	if err != nil {
		return nil, err
	}
	m, err := openai.New(settings)
	if err != nil {
		return nil, err
	}
	return llm.Fitted(m, p.Capabilities, c.Logger), nil
}

// Embedder returns the embedder that c describes. It fails where the provider has
// none.
func (p Provider) Embedder(c Config) (llm.Embedder, error) {
	if !p.Embeddings {
		return nil, fmt.Errorf("the provider %s has no embeddings", p.Name)
	}
	settings, err := p.settings(c)
	if err != nil {
		return nil, err
	}
	return openai.NewEmbedder(settings)
}

// settings are those of the OpenAI adapter.
func (p Provider) settings(c Config) (openai.Config, error) {
	s := openai.Config{
		BaseURL: cmp.Or(c.BaseURL, p.BaseURL), APIKey: c.Key, Model: c.Model,
		Timeout: c.Timeout, IdleTimeout: c.IdleTimeout, MaxRetries: c.MaxRetries,
		TokensField: p.tokens, Thinking: p.thinking, ReasoningBack: p.reasoningBack, NoStreamOptions: p.noStreamOptions, Billed: p.billed,
		Batch: p.batch, Dimensions: c.Dimensions, PlainSchemas: p.plainSchemas || c.PlainSchemas,
		ProviderName: p.Name, HTTPClient: c.HTTPClient, Logger: c.Logger,
	}
	if s.BaseURL == "" {
		return s, fmt.Errorf("the provider %s needs a base_url", p.Name)
	}
	if base := strings.TrimRight(s.BaseURL, "/"); p.ollama && !strings.HasSuffix(base, "/v1") {
		s.BaseURL = base + "/v1"
	}
	if p.azure {
		s.KeyHeader = "api-key"
		base, err := azureURL(s.BaseURL, cmp.Or(c.Deployment, c.Model), c.APIVersion)
		if err != nil {
			return s, fmt.Errorf("%s: %w", p.Name, err)
		}
		s.BaseURL = base
		if c.APIVersion == "" { // the deployment is named as the model is
			s.Model = cmp.Or(c.Deployment, c.Model)
		}
	}
	return s, nil
}

// azureURL is where a resource's API is: with a version, the deployment's own
// endpoint, else the one of all deployments. A URL that has a path already is
// taken as it is.
func azureURL(endpoint, deployment, version string) (string, error) {
	base, err := llm.ParseBaseURL(endpoint)
	if err != nil {
		return "", err
	}
	if strings.Trim(base.Path, "/") == "" {
		switch {
		case version == "":
			base.Path = "/openai/v1"
		case deployment == "":
			return "", errors.New("an api_version needs a deployment, or a model of that name")
		default:
			base = base.JoinPath("openai", "deployments", url.PathEscape(deployment))
		}
	}
	if version != "" {
		query := base.Query()
		query.Set("api-version", version)
		base.RawQuery = query.Encode()
	}
	return base.String(), nil
}
