package runner_test

import (
	"context"
	"testing"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/runner"
	"crewhost/runner/llm"
)

// noCredentials are those of profiles that name none.
type noCredentials struct{}

func (noCredentials) Resolve(context.Context, secret.Ref) (secret.Value, error) {
	return secret.Value{}, nil
}

// keyring has a key for everything.
type keyring struct{}

func (keyring) Resolve(context.Context, secret.Ref) (secret.Value, error) {
	return secret.New("key"), nil
}

// A profile's model takes references in schemas of tools unless the profile says
// that its server doesn't.
func TestDialectOfAProfile(t *testing.T) {
	for _, provider := range []string{config.ProviderOpenAI, config.ProviderAnthropic} {
		for schemas, want := range map[string]bool{"": false, config.SchemasFull: false, config.SchemasPlain: true} {
			model, err := runner.NewModel(t.Context(), config.Profile{Provider: provider, Model: "m", ToolSchemas: schemas, BaseURL: secret.Literal("http://127.0.0.1:1")}, noCredentials{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := llm.DialectOf(model)
			if d.NoReferences != want || len(d.RootKeywords) == 0 {
				t.Errorf("%s, %q: %+v", provider, schemas, d)
			}
		}
	}
}
