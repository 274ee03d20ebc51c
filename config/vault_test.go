package config

import (
	"path/filepath"
	"testing"

	"crewhost/config/secret"
)

// TestVault: where the vault is and what opens it.
func TestVault(t *testing.T) {
	for text, want := range map[string]secret.Ref{
		"vault: {}\n":                                    {},
		"vault: {key: auto}\n":                           {},
		"vault: {key: keyring}\n":                        {Source: KeyringKey, Name: KeyringKey},
		"vault: {key: \"${K}\"}\n":                       {Source: secret.FromEnv, Name: "K"},
		"vault: {key: {env: K}}\n":                       {Source: secret.FromEnv, Name: "K"},
		"vault: {key: {file: /k/v}}\n":                   {Source: secret.FromFile, Name: "/k/v"},
		"vault: {key: {command: [pass, show, vault]}}\n": {Source: secret.FromCommand, Name: "pass", Args: []string{"show", "vault"}},
	} {
		got := load(t, text).Vault.Key
		if got.String() != want.String() || len(got.Args) != len(want.Args) {
			t.Errorf("%s: %v", text, got)
		}
	}
	dir := t.TempDir()
	s, err := Load(Source{CrewDir: dir, UserConfigDir: filepath.Join(dir, "c")})
	if err != nil || s.Vault.File != filepath.Join(dir, "c", "crewhost", "vault.age") || s.Vault.KeyFile != filepath.Join(dir, "c", "crewhost", "vault.key") {
		t.Error(err, s.Vault)
	}
	s, err = Load(Source{CrewDir: dir, Environ: []string{"CREWHOST_VAULT__FILE=v.age"}})
	if err != nil || s.Vault.File != filepath.Join(dir, "v.age") || s.Vault.KeyFile != filepath.Join(dir, "v.age.key") {
		t.Error(err, s.Vault)
	}
}

// TestVaultFaults: a key that is written out is refused, and not shown.
func TestVaultFaults(t *testing.T) {
	for text, want := range map[string]string{
		"vault: {key: AGE-SECRET-KEY-1CANARY}\n": "crewhost.yaml:1:14: vault.key is neither auto nor keyring, and no place where a key is (${NAME}, or a mapping with env, file or command) [bad-value]",
		"vault: {key: \"${K:-AGE-SECRET}\"}\n":   "crewhost.yaml:1:14: vault.key is neither auto nor keyring, and no place where a key is (${NAME}, or a mapping with env, file or command) [bad-value]",
		"vault: {key: \"\"}\n":                   "crewhost.yaml:1:14: vault.key is empty (auto, keyring, or a mapping with env, file or command) [missing]",
		"vault: {key: {env: A, file: b}}\n":      "crewhost.yaml:1:14: vault.key has more than one of env, file and command (keep one) [bad-value]",
		"vault: {path: v}\n":                     `crewhost.yaml:1:9: unknown key "path" in vault (known: file, key) [unknown-key]`,
	} {
		if got := faults(t, text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
