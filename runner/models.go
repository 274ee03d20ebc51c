package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/provider"
	"crewhost/runner/llm/replay"
)

// Credentials finds the secrets that profiles name.
type Credentials interface {
	// Resolve returns the secret, or an error that names where it was looked for.
	Resolve(ctx context.Context, ref secret.Ref) (secret.Value, error)
}

// NewModel makes the model of a profile, within the profile's rate. This is the
// last moment: a key that is named but nowhere to be found is an error here and
// not before, so that judging a crew needs no key. The logger is told of requests
// that are repeated; nil discards.
func NewModel(ctx context.Context, p config.Profile, credentials Credentials, log *slog.Logger) (llm.Model, error) {
	switch p.Provider {
	case config.ProviderReplay:
		return replay.Open(p.Tape)
	case config.ProviderEcho:
		return llm.Echo{}, nil
	}
	row, c, err := reach(ctx, p, credentials, log)
	if err != nil {
		return nil, err
	}
	m, err := row.Model(c)
	if err != nil {
		return nil, err
	}
	m = discreetly(m, append(p.BaseURL.Secrets(), secret.New(c.Key))...)
	return llm.Limited(m, llm.Limits{Requests: p.Rate.Requests, Tokens: p.Rate.Tokens, Concurrent: p.Rate.Concurrent}), nil
}

// NewEmbedder makes what embeds texts as the settings say. It fails where the
// provider has no embeddings, or its key is not found.
func NewEmbedder(ctx context.Context, e config.Embeddings, credentials Credentials, log *slog.Logger) (llm.Embedder, error) {
	row, c, err := reach(ctx, e.Profile, credentials, log)
	if err != nil {
		return nil, err
	}
	c.Dimensions = e.Dimensions
	return row.Embedder(c)
}

// Embedder makes what embeds texts as the settings of the host say, by the model
// that they name. It is nil where they say nothing.
func (h *Host) Embedder(ctx context.Context) (llm.Embedder, error) {
	e := h.cfg.Settings.LLM.Embeddings
	switch {
	case e == nil:
		return nil, nil
	case h.replays():
		return mute{}, nil
	}
	embedder, err := NewEmbedder(ctx, *e, h.models.creds, h.log)
	if err != nil {
		return nil, fmt.Errorf("llm.embeddings: %w", err)
	}
	return embedder, nil
}

// reach is how a profile's provider is reached, key and all.
func reach(ctx context.Context, p config.Profile, credentials Credentials, log *slog.Logger) (provider.Provider, provider.Config, error) {
	row, ok := rowOf(p)
	c := provider.Config{
		BaseURL: p.BaseURL.Reveal(), Model: p.Model, Deployment: p.Deployment, APIVersion: p.APIVersion, ContextTokens: p.ContextTokens,
		Timeout: p.Timeout, IdleTimeout: p.StreamIdle, MaxRetries: p.MaxRetries,
		PlainSchemas: p.ToolSchemas == config.SchemasPlain, Logger: log,
	}
	switch {
	case ok:
	case p.Provider == "":
		return row, c, errors.New("no model: the settings name no llm.provider; crewhost init writes a settings file")
	case !p.Vendor():
		return row, c, fmt.Errorf("the provider %s is no vendor", p.Provider)
	default:
		return row, c, fmt.Errorf("unknown provider %q", p.Provider)
	}
	if !p.APIKey.IsZero() {
		key, err := credentials.Resolve(ctx, p.APIKey)
		if err != nil {
			return row, c, fmt.Errorf("finding the API key: %w", err)
		}
		c.Key = key.Reveal()
	}
	// A server of one's own may want no key.
	if c.Key == "" && row.KeyVariable != "" && (p.BaseURL.IsZero() || row.BaseURL == "") {
		return row, c, fmt.Errorf("no API key: the provider %s wants one (llm.api_key: ${%s})", row.Name, row.KeyVariable)
	}
	return row, c, nil
}

// rowOf is the table's row of a profile, with what the settings know better. It
// is false for a profile that asks no vendor.
func rowOf(p config.Profile) (provider.Provider, bool) {
	row, ok := provider.Find(p.Provider)
	c := p.Capabilities
	return row.With(provider.Overrides{
		ToolCalls: p.ToolCalls, ParallelCalls: c.ParallelCalls, Thinking: c.Thinking, ResponseFormat: c.ResponseFormat, Cache: c.Cache,
	}), ok
}

// models makes each profile's model once, when it is first asked for.
type models struct {
	llm     config.LLM // its default profile is the elected one
	elected string     // its id; "": the settings' own default
	make    func(context.Context, config.Profile, Credentials) (llm.Model, error)
	creds   Credentials
	taped   *tapedLLM // nil: models are made

	mu   sync.Mutex
	made map[string]llm.Model // by canonical id
}

// newModels elects the default profile, which nothing but an unknown id fails.
func newModels(cfg Config) (*models, error) {
	m := &models{
		llm: cfg.Settings.LLM, make: cfg.Models, made: map[string]llm.Model{},
		creds: credentials{cfg.Environ, cfg.Redactor, cfg.Logger},
	}
	if m.make == nil {
		m.make = func(ctx context.Context, p config.Profile, c Credentials) (llm.Model, error) {
			return NewModel(ctx, p, c, cfg.Logger)
		}
	}
	elected, err := m.llm.Select(cfg.Profile)
	if err != nil {
		return nil, strict.Issues{{
			Code: CodeUnknownProfile, Message: fmt.Sprintf("unknown model profile %q", cfg.Profile), Hint: strict.DidYouMean(cfg.Profile, m.ids()),
		}}
	}
	m.llm.Profile, m.elected = elected, cfg.Profile
	return m, nil
}

// named is what the settings call a profile that a crew may call the default one.
func (m *models) named(id string) string {
	if strings.EqualFold(id, config.DefaultProfile) && m.elected != "" {
		return m.elected
	}
	return id
}

// ids returns what crews and flags may call the profiles, sorted.
func (m *models) ids() []string {
	ids := []string{config.DefaultProfile}
	for _, p := range m.llm.Profiles {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	return ids
}

// prepare makes the models of the profiles, so that a missing key is found
// before the first task and not in the middle of the run.
func (m *models) prepare(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		if _, err := m.model(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// model returns the model of a profile. However the default profile is named,
// it has one model: a second one of a tape would begin anew.
func (m *models) model(ctx context.Context, id string) (llm.Model, error) {
	if id == "" {
		id = config.DefaultProfile
	}
	key := strings.ToLower(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	if made, ok := m.made[key]; ok {
		return made, nil
	}
	p, err := m.llm.Select(id)
	if err != nil {
		return nil, err
	}
	if m.taped != nil {
		return m.taped.model(key), nil
	}
	made, err := m.make(ctx, p, m.creds)
	if err != nil {
		return nil, fmt.Errorf("making the model of profile %q: %w", m.named(id), err)
	}
	m.made[key] = made
	return made, nil
}

// vendors warns where a crew names a vendor ("openai/gpt-5", as CrewAI's crews
// do) and the profile that its model is asked through is of another one: the
// settings decide whom a key is sent to, not the crew.
func (m *models) vendors(c *crew.Crew) crew.Issues {
	var warnings crew.Issues
	for _, l := range modelsOf(c) {
		if !l.Provider.Set {
			continue
		}
		p, err := m.llm.Select(l.Profile.V)
		named, _ := provider.Find(l.Provider.V)
		used, _ := provider.Find(p.Provider)
		if err != nil || p.Provider == l.Provider.V || named.Name != "" && named.Name == used.Name || !p.Vendor() {
			continue
		}
		warnings = append(warnings, crew.Issue{
			Pos: l.Provider.Pos, Code: CodeVendor,
			Message: fmt.Sprintf("the crew names the vendor %q; the settings' provider %q is used", l.Provider.V, p.Provider),
		})
	}
	return warnings
}

// profile returns the profile of an id, whose model is there already.
func (m *models) profile(id string) config.Profile {
	p, _ := m.llm.Select(id)
	return p
}

// gives reports whether the profile that l names is of that provider.
func (m *models) gives(l *crew.LLM, provider string) bool {
	id := ""
	if l != nil {
		id = l.Profile.V
	}
	p, err := m.llm.Select(id)
	return err == nil && p.Provider == provider
}

// settings are what a profile says of requests.
func (m *models) settings(id string) agent.Settings {
	p := m.profile(id)
	s := agent.Settings{Provider: p.Provider, Model: p.Model, Temperature: p.Temperature, TopP: p.TopP, MaxTokens: p.MaxTokens, TextCalls: p.ToolCalls == config.CallsText}
	if row, ok := rowOf(p); ok {
		s.TextCalls = row.Capabilities.TextCalls
	}
	if t := p.Thinking; t != nil {
		s.Thinking = &llm.Thinking{Enabled: t.Enabled == nil || *t.Enabled, Effort: t.Effort, BudgetTokens: t.BudgetTokens}
	}
	if c := p.Cache; c != nil {
		s.Cache = &llm.Cache{System: c.System, Tools: c.Tools, TTL: c.TTL}
	}
	return s
}

// unsetError says which variable is missing, and nothing more: its cause has the
// same to say of any source.
type unsetError struct {
	name  string
	cause error
}

func (e *unsetError) Error() string { return "the variable " + e.name + " is not set" }
func (e *unsetError) Unwrap() error { return e.cause }

// credentials resolves refs in the environment that the host was given, and has
// the redactor know what it found.
type credentials struct {
	environ  []string
	redactor *secret.Redactor
	log      *slog.Logger
}

// Resolve implements [Credentials].
func (c credentials) Resolve(ctx context.Context, ref secret.Ref) (secret.Value, error) {
	v, err := secret.Resolve(ctx, ref, secret.Env(c.environ), secret.File{Logger: c.log}, secret.Command{Environ: c.environ})
	switch {
	case errors.Is(err, secret.ErrNotFound) && ref.Source == secret.FromEnv:
		return secret.Value{}, &unsetError{ref.Name, err}
	case err != nil:
		return secret.Value{}, err
	}
	c.redactor.Add(v)
	return v, nil
}
