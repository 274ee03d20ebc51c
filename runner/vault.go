package runner

import (
	"context"
	"strings"
	"time"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
	"crewhost/mcp/gateway"
)

// VaultKeyVariable is the variable of the environment that opens the vault, an age
// identity, where the settings name no other key.
const VaultKeyVariable = "CREWHOST_VAULT_KEY"

const (
	vaultService = "crewhost-vault" // in the keyring
	vaultKey     = "key"
)

// OpenVault makes the vault of the settings. Nothing is read before somebody asks
// for a credential.
func OpenVault(settings config.Vault, environ []string, redactor *secret.Redactor) *vault.Vault {
	environ = append([]string{}, environ...) // nil would be this process's own
	env := secret.Env(environ)
	ring := sealed.Ring{Service: vaultService}
	var key sealed.Key
	switch ref := settings.Key; ref.Source {
	case "":
		key = sealed.Auto(ring, vaultKey, settings.KeyFile)
		for _, line := range environ {
			if value, ok := strings.CutPrefix(line, VaultKeyVariable+"="); ok && value != "" {
				key = sealed.From(secret.Ref{Source: secret.FromEnv, Name: VaultKeyVariable}, env)
			}
		}
	case config.KeyringKey:
		key = sealed.InKeyring(ring, vaultKey)
	case secret.FromFile:
		key = sealed.KeyFile(ref.Name)
	default:
		key = sealed.From(ref, env, secret.Command{Environ: environ})
	}
	return vault.New(vault.Config{File: settings.File, Key: key, Redactor: redactor})
}

// CheckCredential tries the credential that the vault has for the server at a URL, by
// the way that a run's requests take. It sends a ping with it, and, where an access
// token has expired, asks its token endpoint for another before.
func CheckCredential(ctx context.Context, settings *config.Settings, v *vault.Vault, target string, redactor *secret.Redactor) (gateway.Verdict, error) {
	lock, own, err := lockOf(settings, target)
	if err != nil {
		return gateway.Verdict{}, err
	}
	defer own.CloseIdleConnections()
	keys := gateway.NewKeys(v, redactor, nil)
	defer keys.Close(renewalGrace)
	return keys.Check(ctx, lock, own)
}

// renewalGrace is how long the renewal of a token may take that nobody waits for.
const renewalGrace = 5 * time.Second
