package config

import (
	"fmt"
	"strings"
	"time"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// LLM is the model that a run uses, and the profiles that it may use instead.
type LLM struct {
	Profile                 // the default profile
	Profiles []NamedProfile // in the order of the settings

	Currency   string  // of all prices, a code of ISO 4217
	Prices     []Price // in the order of the settings
	Budget     RunBudget
	Embeddings *Embeddings // nil: texts are not embedded
}

// Price is what a million tokens cost, in millionths of the currency.
type Price struct {
	Pattern string // a model's name, in which * stands for any letters
	Input   int64
	Output  int64
	// Nil: as Input, and for reasoning as Output.
	CacheRead, CacheWrite, Reasoning *int64
}

// RunBudget bounds what the models of one run use together.
type RunBudget struct {
	Cost   *int64 // in millionths of the currency; nil: no bound
	Tokens int    // 0: no bound
	Pos    strict.Pos
}

// Embeddings says how texts are embedded.
type Embeddings struct {
	Profile        // its Model is the embedding model
	Dimensions int // of the vectors; 0: the model's own
}

// NamedProfile is a profile with its id.
type NamedProfile struct {
	ID string
	Profile
}

// Select returns the profile of an id, whatever its case; "" and "default" are
// the default profile. A profile stands alone: what it does not set is unset,
// and not as the default profile has it.
func (l LLM) Select(id string) (Profile, error) {
	if id == "" || strings.EqualFold(id, DefaultProfile) {
		return l.Profile, nil
	}
	known := []string{DefaultProfile}
	for _, p := range l.Profiles {
		if strings.EqualFold(p.ID, id) {
			return p.Profile, nil
		}
		known = append(known, p.ID)
	}
	return Profile{}, fmt.Errorf("the settings have no LLM profile %s; known: %s", strict.Quote(id), strings.Join(known, ", "))
}

// DefaultProfile is the id of the profile that no other replaces.
const DefaultProfile = "default"

// The providers that the settings treat apart; [Providers] are all of them.
const (
	ProviderOpenAI      = "openai" // and, with a base_url, what answers like it
	ProviderAnthropic   = "anthropic"
	ProviderAzure       = "azure" // needs the resource's URL
	ProviderAzureOpenAI = "azure-openai"
	ProviderOllama      = "ollama"
	ProviderCompatible  = "openai-compatible" // any endpoint, which must be named
	ProviderReplay      = "replay"            // a recorded tape
	ProviderEcho        = "echo"              // gives the prompt back
)

// Providers returns the names of all providers. What they mean is the table's of
// package runner/llm/provider.
func Providers() []string {
	return []string{
		ProviderOpenAI, ProviderAnthropic, "gemini", ProviderAzure, ProviderAzureOpenAI, ProviderOllama, "openrouter", "mistral", "deepseek",
		"groq", "together", "xai", "grok", "fireworks", "cerebras", "moonshot", "kimi", "qwen", "zai", "minimax", "huggingface",
		"docker-model-runner", "lmstudio", "vllm", ProviderCompatible, ProviderReplay, ProviderEcho,
	}
}

// What schemas of tools a model's server takes.
const (
	SchemasFull  = "full"
	SchemasPlain = "plain"
)

// How a model calls tools.
const (
	CallsNative = "native" // by the API's own calls
	CallsText   = "text"   // in its text, as the prompt tells it
)

// Profile is one way to reach one model. Zero fields are unset.
type Profile struct {
	Provider    string // one of the providers; empty where no model is configured
	Model       string
	BaseURL     secret.Text
	APIKey      secret.Ref // resolved when a model is made, not before
	Tape        string     // file of the replay provider, absolute
	TapePos     strict.Pos // of Tape
	Timeout     time.Duration
	MaxRetries  *int
	Temperature *float64
	TopP        *float64
	MaxTokens   int
	// ToolSchemas is SchemasPlain where the model's server takes but plain
	// schemas of tools: without references, among others.
	ToolSchemas string
	// ToolCalls is CallsText for a model that has no calls of its own.
	ToolCalls string

	// Deployment and APIVersion are Azure's; empty: the model's name, and the API
	// that needs no version.
	Deployment, APIVersion string
	ContextTokens          int           // Ollama's: how long a conversation may be; 0: as the server has it
	StreamIdle             time.Duration // silence within a stream that ends it; 0: the adapter's
	Thinking               *Thinking     // nil: not asked for
	Cache                  *Cache        // nil: not asked for
	// AvailableModels are the only models that crews may name, each with * for
	// any letters; empty: any.
	AvailableModels []string
	Rate            Rate
	Capabilities    Capabilities
	Pos             strict.Pos
}

// Vendor reports whether the profile's model is asked over a network.
func (p Profile) Vendor() bool {
	return p.Provider != "" && p.Provider != ProviderReplay && p.Provider != ProviderEcho
}

// Thinking is how much a reasoning model thinks, where no crew says otherwise.
type Thinking struct {
	Enabled      *bool  // nil: true
	Effort       string // low, medium, high, max
	BudgetTokens int
}

// Cache is which parts of a prompt are marked for caching.
type Cache struct {
	System, Tools bool
	TTL           string // 5m, 1h, or empty: the vendor's own
}

// Rate bounds how fast the models of a profile are asked, all agents together.
// Zero fields are no bound.
type Rate struct {
	Requests   int // a minute
	Tokens     int // a minute, of input and output
	Concurrent int // requests under way at a time
}

// Capabilities are what the settings know better than the provider's table.
// Empty fields leave it as it is.
type Capabilities struct {
	ParallelCalls  *bool
	Thinking       string // effort, budget, switch, template, none
	ResponseFormat string // json_schema, json_object, none
	Cache          string // marked, automatic
}
