// Package anthropic speaks Anthropic's Messages API with Anthropic's own SDK.
//
//	model, err := anthropic.New(anthropic.Config{APIKey: key, Model: "claude-sonnet-4-5"})
//
// What the API wants otherwise than the neutral messages say it: the results of
// the tools of one turn go into one user's message, an answer always has a bound
// (the model's own, see [DefaultMaxTokens]), models differ in how they think, and a turn with thinking is handed back block for block
// with its signatures, which travel in [llm.Message.Opaque].
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	anthropic "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"crewhost/runner/llm"
)

// DefaultBaseURL is Anthropic's own API.
const DefaultBaseURL = "https://api.anthropic.com"

// Config says which model to speak to, and how. Nothing else is consulted: the
// environment variables and profiles that Anthropic's SDK knows
// (ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, …) have no effect.
type Config struct {
	BaseURL string // with or without the ending /v1; empty: DefaultBaseURL
	APIKey  string // sent as X-Api-Key; empty: none is sent
	Model   string // of requests that name none

	// Timeout, IdleTimeout and MaxRetries are those of [llm.Exchange].
	Timeout     time.Duration
	IdleTimeout time.Duration
	MaxRetries  *int

	// PlainSchemas says that the server takes no references in schemas of
	// tools.
	PlainSchemas bool

	ProviderName string       // begins every error; empty: "anthropic"
	HTTPClient   *http.Client // nil: the default client; redirects are never followed
	Logger       *slog.Logger // nil: discard
}

// Model speaks to one server. It is safe for concurrent use.
type Model struct {
	messages anthropic.MessageService
	exchange llm.Exchange
	model    string
	plain    bool
}

// New returns the model that c describes. Nothing is sent yet.
func New(c Config) (*Model, error) {
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := llm.ParseBaseURL(c.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	base.RawQuery, base.Fragment = "", ""
	if c.ProviderName == "" {
		c.ProviderName = "anthropic"
	}
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimSuffix(strings.TrimRight(base.String(), "/"), "/v1") + "/"),
		option.WithHTTPClient(llm.HTTPClient(c.HTTPClient)),
		option.WithMaxRetries(0), // the exchange repeats
		option.WithoutOpenTelemetry(),
	}
	if c.APIKey != "" {
		// The header that the API's reference names and that compatible
		// servers look for; the SDK's own option sends a bearer token.
		options = append(options, option.WithHeader("X-Api-Key", c.APIKey))
	}
	return &Model{
		// The service, not anthropic.NewClient, which reads the environment.
		messages: anthropic.NewMessageService(options...),
		exchange: llm.Exchange{
			Provider:    c.ProviderName,
			Secret:      c.APIKey,
			Timeout:     c.Timeout,
			IdleTimeout: c.IdleTimeout,
			MaxRetries:  c.MaxRetries,
			Logger:      c.Logger,
		},
		model: c.Model,
		plain: c.PlainSchemas,
	}, nil
}

// SchemaDialect implements [llm.Dialectal]. The API refuses oneOf, allOf and anyOf
// at the top level of a schema, and names of its properties but plain ones.
func (m *Model) SchemaDialect() llm.SchemaDialect {
	return llm.SchemaDialect{
		RootKeywords: []string{"allOf", "anyOf", "oneOf"},
		PlainKeys:    true,
		NoReferences: m.plain,
	}
}

// Generate sends req and returns the answer. See [llm.Model] and
// [llm.Exchange.Do] for errors and repetitions.
//
// A response format with a schema uses the API's structured outputs, as far as
// those can say it; else, and for the format json_object, which the API does not
// have, the system prompt asks for it.
func (m *Model) Generate(ctx context.Context, req llm.Request) (*llm.Response, error) {
	params, options, err := m.params(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.exchange.Provider, err)
	}
	return m.exchange.Do(ctx, req.OnDelta, func(ctx context.Context, a *llm.Attempt) (*llm.Response, error) {
		options := append(options[:len(options):len(options)], option.WithMiddleware(a.Middleware))
		if req.OnDelta != nil {
			return readStream(m.messages.NewStreaming(ctx, params, options...), a.Deliver)
		}
		var raw *http.Response
		// The SDK refuses large answers that are not streamed unless it is
		// given a time; the attempt's own ends first.
		options = append(options, option.WithResponseBodyInto(&raw), option.WithRequestTimeout(24*time.Hour))
		if _, err := m.messages.New(ctx, params, options...); err != nil {
			return nil, err
		}
		defer raw.Body.Close()
		return readWhole(raw.Body)
	})
}

// readWhole reads an answer that is not streamed.
func readWhole(body io.Reader) (*llm.Response, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	var msg anthropic.Message
	if err := json.Unmarshal(text, &msg); err != nil {
		return nil, malformed("the answer is not the JSON of a message: " + err.Error())
	}
	if msg.Type != "message" {
		return nil, malformed("the answer is no message")
	}
	return response(&msg, nil), nil
}

// malformed is an answer that cannot be used. It is not asked for again: the
// server would be paid for the same once more.
func malformed(what string) error { return &llm.APIError{Message: what} }
