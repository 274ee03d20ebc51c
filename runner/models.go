package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/anthropic"
	"crewhost/runner/llm/openai"
	"crewhost/runner/llm/replay"
)

// Providers are the names that a profile's provider may have.
func Providers() []string { return []string{"anthropic", "echo", "openai", "replay"} }

// Credentials finds the secrets that profiles name.
type Credentials interface {
	// Resolve returns the secret, or an error that names where it was looked for.
	Resolve(ctx context.Context, ref secret.Ref) (secret.Value, error)
}

// NewModel makes the model of a profile. This is the last moment: a key that is
// named but nowhere to be found is an error here and not before, so that judging
// a crew needs no key.
func NewModel(ctx context.Context, p config.Profile, credentials Credentials) (llm.Model, error) {
	var key secret.Value
	if !p.APIKey.IsZero() {
		var err error
		if key, err = credentials.Resolve(ctx, p.APIKey); err != nil {
			return nil, fmt.Errorf("finding the API key: %w", err)
		}
	}
	switch p.Provider {
	case "openai":
		return openai.New(openai.Config{
			BaseURL: p.BaseURL.Reveal(), APIKey: key.Reveal(), Model: p.Model,
			Timeout: p.Timeout, MaxRetries: p.MaxRetries,
		})
	case "anthropic":
		return anthropic.New(anthropic.Config{
			BaseURL: p.BaseURL.Reveal(), APIKey: key.Reveal(), Model: p.Model,
			Timeout: p.Timeout, MaxRetries: p.MaxRetries,
		})
	case "replay":
		return replay.Open(p.Tape)
	case "echo":
		return llm.Echo{}, nil
	case "":
		return nil, errors.New("no model: the settings name no llm.provider; crewhost init writes a settings file")
	default:
		return nil, fmt.Errorf("unknown provider %q; known: %s", p.Provider, strings.Join(Providers(), ", "))
	}
}

// models makes each profile's model once, when it is first asked for.
type models struct {
	profiles []config.NamedProfile // the default one first, with the empty id
	make     func(context.Context, config.Profile, Credentials) (llm.Model, error)
	creds    Credentials

	mu   sync.Mutex
	made map[string]llm.Model
}

func newModels(cfg Config) (*models, error) {
	m := &models{make: cfg.Models, creds: credentials{cfg.Environ, cfg.Redactor}, made: map[string]llm.Model{}}
	if m.make == nil {
		m.make = NewModel
	}
	m.profiles = append(m.profiles, config.NamedProfile{Profile: cfg.Settings.LLM.Profile})
	m.profiles = append(m.profiles, cfg.Settings.LLM.Profiles...)
	if cfg.Profile == "" || cfg.Profile == defaultProfile {
		return m, nil
	}
	elected, ok := m.find(cfg.Profile)
	if !ok {
		return nil, unknownProfile(cfg.Profile, m.ids())
	}
	m.profiles[0].Profile = elected
	return m, nil
}

// defaultProfile is the name by which crews and flags may call the profile of the
// llm section itself.
const defaultProfile = "default"

func (m *models) ids() []string {
	ids := []string{defaultProfile}
	for _, p := range m.profiles[1:] {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	return ids
}

func (m *models) find(id string) (config.Profile, bool) {
	if id == defaultProfile {
		id = ""
	}
	for _, p := range m.profiles {
		if p.ID == id {
			return p.Profile, true
		}
	}
	return config.Profile{}, false
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

func (m *models) model(ctx context.Context, id string) (llm.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if made, ok := m.made[id]; ok {
		return made, nil
	}
	p, ok := m.find(id)
	if !ok {
		return nil, unknownProfile(id, m.ids())
	}
	made, err := m.make(ctx, p, m.creds)
	if err != nil {
		if id == "" {
			id = defaultProfile
		}
		return nil, fmt.Errorf("making the model of profile %q: %w", id, err)
	}
	m.made[id] = made
	return made, nil
}

// vendors warns where a crew names a vendor ("openai/gpt-5", as CrewAI's crews
// do) and the profile that its model is asked through is of another one: the
// settings decide whom a key is sent to, not the crew.
func (m *models) vendors(c *crew.Crew) crew.Issues {
	var warnings crew.Issues
	check := func(l *crew.LLM) {
		if l == nil || !l.Provider.Set {
			return
		}
		p, ok := m.find(l.Profile.V)
		if !ok || p.Provider == l.Provider.V || p.Provider == "replay" || p.Provider == "echo" {
			return
		}
		warnings = append(warnings, crew.Issue{
			Pos: l.Provider.Pos, Code: CodeVendor,
			Message: fmt.Sprintf("the crew names the vendor %q; the settings' provider %q is used", l.Provider.V, p.Provider),
		})
	}
	check(c.LLM)
	for _, a := range c.Agents {
		check(a.LLM)
	}
	for _, t := range c.Tasks {
		check(t.LLM)
	}
	return warnings
}

// settings are what a profile says of requests.
func (m *models) settings(id string) agent.Settings {
	p, _ := m.find(id)
	return agent.Settings{Model: p.Model, Temperature: p.Temperature, TopP: p.TopP, MaxTokens: p.MaxTokens}
}

// credentials resolves refs in the environment that the host was given, and has
// the redactor know what it found.
type credentials struct {
	environ  []string
	redactor *secret.Redactor
}

func (c credentials) Resolve(ctx context.Context, ref secret.Ref) (secret.Value, error) {
	v, err := secret.Resolve(ctx, ref, secret.Env(c.environ), secret.File{}, secret.Command{})
	if err != nil {
		return secret.Value{}, err
	}
	c.redactor.Add(v)
	return v, nil
}
