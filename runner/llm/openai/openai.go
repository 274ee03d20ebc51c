// Package openai speaks the Chat Completions API: of OpenAI itself, and of the
// many servers that offer it (vLLM, Ollama, llama.cpp, LM Studio, OpenRouter, …)
// behind any base URL.
//
//	model, err := openai.New(openai.Config{
//		BaseURL: "http://127.0.0.1:11434/v1",
//		Model:   "qwen3",
//	})
//
// Requests are built and sent with OpenAI's own SDK. Answers are decoded here and
// not by the SDK, because compatible servers bend their form: content as null or
// as a list of parts, reasoning in fields of their own or in <think> tags, calls
// without index or with one index for all, arguments as an object (K73, K75).
package openai

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	openai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"crewhost/runner/llm"
)

// DefaultBaseURL is OpenAI's own API.
const DefaultBaseURL = "https://api.openai.com/v1"

// TokensField is the name of the field that bounds an answer.
type TokensField string

// The two names in use. OpenAI refuses the older one for reasoning models; many
// compatible servers ignore the newer one.
const (
	MaxCompletionTokens TokensField = "max_completion_tokens"
	MaxTokens           TokensField = "max_tokens"
)

// ThinkingField is how a request says how much to think.
type ThinkingField string

// The fields in use.
const (
	ReasoningEffort ThinkingField = ""                // reasoning_effort: low
	Gemini          ThinkingField = "gemini"          // the same, none, or a budget in extra_body
	Reasoning       ThinkingField = "reasoning"       // reasoning: {effort, max_tokens, enabled}
	EnableThinking  ThinkingField = "enable_thinking" // enable_thinking: true, thinking_budget: N
	TypedThinking   ThinkingField = "thinking"        // thinking: {type: enabled}
	TemplateSwitch  ThinkingField = "template"        // chat_template_kwargs: {enable_thinking: true}
)

// Config says which model to speak to, and how. Nothing else is consulted: the
// environment variables that OpenAI's SDK knows (OPENAI_API_KEY,
// OPENAI_BASE_URL, …) have no effect.
type Config struct {
	BaseURL string // up to and without /chat/completions; empty: DefaultBaseURL
	APIKey  string // sent as a bearer token unless KeyHeader is set; empty: none is sent
	Model   string // of requests that name none

	// Timeout, IdleTimeout and MaxRetries are those of [llm.Exchange].
	Timeout     time.Duration
	IdleTimeout time.Duration
	MaxRetries  *int

	// TokensField is where a request's MaxTokens goes. Empty: the newer
	// field for the hosts api.openai.com and *.openai.azure.com, the older
	// one for every other. Where MaxTokens is 0 neither is sent.
	TokensField TokensField
	// KeyHeader is the header that holds the key as it is; empty: Authorization.
	KeyHeader string
	// Thinking is how thinking is asked for.
	Thinking ThinkingField
	// ReasoningBack says that a turn with calls is handed back with its
	// reasoning, in reasoning_content, without which the server refuses it.
	ReasoningBack bool
	// NoStreamOptions says that the server refuses stream_options, and sends the
	// usage of a stream without.
	NoStreamOptions bool
	// Billed is the currency in which the usage of an answer states its cost;
	// empty: it states none.
	Billed string

	// Batch is how many texts are embedded in a request; 0: DefaultBatch. Of the
	// [Embedder] alone, as is Dimensions.
	Batch int
	// Dimensions is the length of vectors that is asked for and demanded; 0: the
	// model's own.
	Dimensions int

	// PlainSchemas says that the server takes no references in schemas of
	// tools, no lists of types, and no names of properties but plain ones.
	PlainSchemas bool

	ProviderName string       // begins every error; empty: "openai"
	HTTPClient   *http.Client // nil: the default client; redirects are never followed
	Logger       *slog.Logger // nil: discard
}

// Model speaks to one server. It is safe for concurrent use.
type Model struct {
	chat     openai.ChatCompletionService
	exchange llm.Exchange
	model    string
	tokens   TokensField
	thinking ThinkingField
	plain    bool
	back     bool
	noUsage  bool
	billed   string
}

// New returns the model that c describes. Nothing is sent yet.
func New(c Config) (*Model, error) {
	options, base, err := c.options()
	if err != nil {
		return nil, err
	}
	switch host := base.Hostname(); {
	case c.TokensField == MaxTokens, c.TokensField == MaxCompletionTokens:
	case c.TokensField != "":
		return nil, fmt.Errorf("openai: tokens field %q: want %s or %s", c.TokensField, MaxTokens, MaxCompletionTokens)
	case host == "api.openai.com", strings.HasSuffix(host, ".openai.azure.com"):
		c.TokensField = MaxCompletionTokens
	default:
		c.TokensField = MaxTokens
	}
	return &Model{
		// The service, not openai.NewClient, which reads the environment.
		chat:     openai.NewChatCompletionService(options...),
		exchange: c.exchange(),
		model:    c.Model,
		tokens:   c.TokensField,
		thinking: c.Thinking,
		plain:    c.PlainSchemas,
		back:     c.ReasoningBack,
		noUsage:  c.NoStreamOptions,
		billed:   c.Billed,
	}, nil
}

// options are those of every request to c's server.
func (c Config) options() ([]option.RequestOption, *url.URL, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := llm.ParseBaseURL(c.BaseURL)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.name(), err)
	}
	query := base.Query()
	base.RawQuery, base.Fragment = "", ""
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(base.String(), "/") + "/"),
		option.WithHTTPClient(llm.HTTPClient(c.HTTPClient)),
		option.WithMaxRetries(0), // the exchange repeats
	}
	for name, values := range query { // an API version, for example
		for _, v := range values {
			options = append(options, option.WithQueryAdd(name, v))
		}
	}
	switch {
	case c.APIKey == "":
	case c.KeyHeader != "":
		options = append(options, option.WithHeader(c.KeyHeader, c.APIKey))
	default:
		options = append(options, option.WithAPIKey(c.APIKey))
	}
	return options, base, nil
}

func (c Config) exchange() llm.Exchange {
	return llm.Exchange{
		Provider:    c.name(),
		Secret:      c.APIKey,
		Timeout:     c.Timeout,
		IdleTimeout: c.IdleTimeout,
		MaxRetries:  c.MaxRetries,
		Logger:      c.Logger,
	}
}

func (c Config) name() string { return cmp.Or(c.ProviderName, "openai") }

// TokensField returns where a request's MaxTokens goes.
func (m *Model) TokensField() TokensField { return m.tokens }

// SchemaDialect implements [llm.Dialectal]. The API wants schemas "with type
// object and not oneOf, anyOf, allOf, enum or not at the top level".
func (m *Model) SchemaDialect() llm.SchemaDialect {
	return llm.SchemaDialect{
		RootKeywords: []string{"allOf", "anyOf", "enum", "not", "oneOf"},
		PlainKeys:    m.plain,
		NoReferences: m.plain,
		OneType:      m.plain,
	}
}

// Generate sends req and returns the answer. See [llm.Model] and
// [llm.Exchange.Do] for errors and repetitions.
//
// An answer without choices is an [*llm.APIError], and so is a stream that ends
// before its finish_reason or [DONE]. Calls arrive whole or not at all: parts
// that belong to no call, or go on after one's end, are an error and never
// glued together (K73).
func (m *Model) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	params, err := m.params(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.exchange.Provider, err)
	}
	fixed := think(&params, m.thinking, req.Thinking)
	return m.exchange.Do(ctx, req.OnDelta, func(ctx context.Context, a *llm.Attempt) (*llm.Response, error) {
		var raw *http.Response
		options := append(slices.Clip(fixed), option.WithMiddleware(a.Middleware), option.WithResponseBodyInto(&raw))
		if req.OnDelta != nil {
			options = append(options, option.WithJSONSet("stream", true))
		}
		if _, err := m.chat.New(ctx, params, options...); err != nil {
			return nil, err
		}
		defer raw.Body.Close()
		// Some servers answer whole although a stream was asked for.
		if kind, _, _ := mime.ParseMediaType(raw.Header.Get("Content-Type")); req.OnDelta != nil && kind != "application/json" {
			return m.readStream(raw, a.Deliver)
		}
		return m.readWhole(raw.Body, a.Deliver)
	})
}
