package vault

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"crewhost/config/secret"
)

// version is that of the format.
const version = 1

// stored is a vault as it is written, before it is sealed.
type stored struct {
	Version     int      `json:"version"`
	Credentials []record `json:"credentials"`
}

type record struct {
	Name        string    `json:"name,omitempty"`
	Kind        string    `json:"kind"`
	URL         string    `json:"url"`
	Set         time.Time `json:"set"`
	Token       string    `json:"token,omitempty"`
	Header      string    `json:"header,omitempty"`
	Value       string    `json:"value,omitempty"`
	AccessToken string    `json:"access_token,omitempty"`
	ExpiresAt   time.Time `json:"expires_at,omitzero"`
	Refresh     *renewal  `json:"refresh,omitempty"`
}

type renewal struct {
	TokenEndpoint string   `json:"token_endpoint"`
	ClientID      string   `json:"client_id"`
	RefreshToken  string   `json:"refresh_token"`
	Auth          string   `json:"token_endpoint_auth,omitempty"`
	ClientSecret  string   `json:"client_secret,omitempty"`
	Scopes        []string `json:"scopes,omitempty"`
}

// encode writes credentials with their secrets.
func encode(all []Credential) ([]byte, error) {
	s := stored{Version: version, Credentials: []record{}}
	for _, c := range all {
		r := record{Name: c.Name, Kind: c.Kind, URL: c.URL, Set: c.Set, ExpiresAt: c.Expiry}
		switch c.Kind {
		case StaticBearer:
			r.Token = c.Secret.Reveal()
		case Header:
			r.Header, r.Value = c.Header, c.Secret.Reveal()
		case OAuth:
			r.AccessToken = c.Secret.Reveal()
		}
		if f := c.Refresh; f != nil {
			r.Refresh = &renewal{f.TokenEndpoint, f.ClientID, f.Token.Reveal(), f.Auth, f.ClientSecret.Reveal(), f.Scopes}
		}
		s.Credentials = append(s.Credentials, r)
	}
	return json.Marshal(s)
}

// decode reads credentials, and has the redactor know them. An error names the file
// and shows nothing of it.
func (v *Vault) decode(data []byte) ([]Credential, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("reading %s: %s", v.file.Path, fmt.Sprintf(format, args...))
	}
	var head struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(data, &head) != nil || head.Version == 0 {
		return nil, bad("what is sealed in it is no vault")
	}
	if head.Version != version {
		return nil, bad("it is of version %d, and this crewhost knows version %d", head.Version, version)
	}
	var s stored
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&s) != nil {
		return nil, bad("what is sealed in it is no vault of version %d", version)
	}
	all := make([]Credential, len(s.Credentials))
	urls, names := map[string]bool{}, map[string]bool{}
	for i, r := range s.Credentials {
		c, err := r.credential()
		if err != nil {
			return nil, bad("credential %d: %v", i+1, err)
		}
		if urls[c.URL] || c.Name != "" && names[c.Name] {
			return nil, bad("credential %d: its url or its name is there twice", i+1)
		}
		urls[c.URL], names[c.Name] = true, true
		v.know(c)
		all[i] = c
	}
	return all, nil
}

func (r record) credential() (Credential, error) {
	c := Credential{Name: r.Name, Kind: r.Kind, URL: r.URL, Set: r.Set, Header: r.Header, Expiry: r.ExpiresAt}
	given := map[string]string{StaticBearer: r.Token, Header: r.Value, OAuth: r.AccessToken}
	c.Secret = secret.New(given[r.Kind])
	for kind, text := range given {
		if kind != r.Kind && text != "" {
			return c, fmt.Errorf("it has what is of another kind than %q", r.Kind)
		}
	}
	if f := r.Refresh; f != nil {
		c.Refresh = &Refresh{f.TokenEndpoint, f.ClientID, secret.New(f.RefreshToken), f.Auth, secret.New(f.ClientSecret), f.Scopes}
	}
	if bound, err := Bind(c.URL); err != nil || bound != c.URL {
		return c, fmt.Errorf("its url is not as it would have been written")
	}
	return c, c.check()
}
