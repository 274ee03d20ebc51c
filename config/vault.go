package config

import (
	"path/filepath"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// Vault is where the credentials of servers are kept (A8).
type Vault struct {
	// File is the sealed file, absolute; empty where the user has no configuration
	// folder. It need not exist.
	File string
	// Key opens it: [secret.FromEnv] or [secret.FromCommand], a [secret.FromFile] or
	// [KeyringKey] that is made where there is none. The zero Ref leaves it to what
	// there is.
	Key secret.Ref
	// KeyFile is the file of a key that nothing is said about, absolute.
	KeyFile string
	Pos     strict.Pos
}

// KeyringKey is the source of a vault's key in the keyring of the system.
const KeyringKey = "keyring"

type vaultDocument struct {
	Pos  strict.Pos        `key:"@"`
	File strict.At[word]   `key:"file"`
	Key  strict.At[apiKey] `key:"key"`
}

// vault reads where the vault is. A key that is written out would lie beside what it
// is for, and is refused.
func (l *loader) vault(x *expander, doc vaultDocument) Vault {
	v := Vault{Pos: doc.Pos}
	if dir := l.source.UserConfigDir; dir != "" {
		v.File = filepath.Join(dir, "crewhost", "vault.age")
		v.KeyFile = filepath.Join(dir, "crewhost", "vault.key")
	}
	if doc.File.V != "" {
		v.File = l.absolute(string(doc.File.V), doc.File.Pos)
		if v.KeyFile == "" {
			v.KeyFile = v.File + ".key"
		}
	}
	switch key := doc.Key; {
	case !key.Set || key.V.wrong || key.V.text == "auto":
	case key.V.text == KeyringKey:
		v.Key = secret.Ref{Source: KeyringKey, Name: KeyringKey}
	case key.V.text == "" && !key.V.ref.Env.Set && !key.V.ref.File.Set && len(key.V.ref.Command) == 0:
		x.d.Fail(key.Pos, strict.CodeMissing, "vault.key is empty", "auto, keyring, or a mapping with env, file or command")
	case key.V.text != "":
		parts, problem := parse(key.V.text)
		if problem != "" || len(parts) != 1 || parts[0].name == "" || parts[0].fallback != "" {
			// Not shown: it may be the key itself.
			x.d.Fail(key.Pos, strict.CodeBadValue, "vault.key is neither auto nor keyring, and no place where a key is", "${NAME}, or a mapping with env, file or command")
			break
		}
		v.Key = secret.Ref{Source: secret.FromEnv, Name: parts[0].name}
	default:
		v.Key = l.key(x, key, "vault.key")
	}
	return v
}
