package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"crewhost/config/secret"
	"crewhost/config/vault"
	"crewhost/mcp/gateway"
	"crewhost/runner"
)

const (
	kindFlag          = "kind"
	nameFlag          = "name"
	headerFlag        = "header"
	tokenEndpointFlag = "token-endpoint"
	clientIDFlag      = "client-id"
	clientAuthFlag    = "token-endpoint-auth"
	scopeFlag         = "scope"
	expiresFlag       = "expires-at"
)

// vaultCommand is what a person does with the credentials of servers. No part of it
// prints one.
func vaultCommand(c *console) *cli.Command {
	return &cli.Command{
		Name:  "vault",
		Usage: "keep the credentials of servers, sealed, and check them; nothing prints one",
		Subcommands: []*cli.Command{
			{
				Name:      "set",
				Usage:     "put the credential of a server into the vault; its secrets are asked for, or read from stdin",
				ArgsUsage: "URL",
				Flags: append(settingsFlags(),
					&cli.StringFlag{Name: kindFlag, Usage: "the `KIND`: " + vault.StaticBearer + ", " + vault.Header + " or " + vault.OAuth + "; by default what the other flags say"},
					&cli.StringFlag{Name: nameFlag, Usage: "a `NAME` that tools ask for it by"},
					&cli.StringFlag{Name: headerFlag, Usage: "the `HEADER` that carries it, of the kind " + vault.Header},
					&cli.StringFlag{Name: tokenEndpointFlag, Usage: "the `URL` that renews tokens, of the kind " + vault.OAuth},
					&cli.StringFlag{Name: clientIDFlag, Usage: "the `ID` of the client at that endpoint"},
					&cli.StringFlag{Name: clientAuthFlag, Usage: "how the client authenticates itself there: `none|client_secret_basic|client_secret_post`"},
					&cli.StringSliceFlag{Name: scopeFlag, Usage: "a `SCOPE` that was granted; may repeat"},
					&cli.StringFlag{Name: expiresFlag, Usage: "when the access token expires, a `TIME` as 2026-01-02T15:04:05Z"}),
				Action: func(ctx *cli.Context) error { return withVault(ctx, c, 1, 1, vaultSet) },
			},
			{
				Name:   "list",
				Usage:  "say what credentials there are, and never what they are",
				Flags:  append(settingsFlags(), formatFlagOf(formatText, formatJSON)),
				Action: func(ctx *cli.Context) error { return withVault(ctx, c, 0, 0, vaultList) },
			},
			{
				Name:      "delete",
				Usage:     "forget the credential of a server",
				ArgsUsage: "URL|NAME",
				Flags:     settingsFlags(),
				Action:    func(ctx *cli.Context) error { return withVault(ctx, c, 1, 1, vaultDelete) },
			},
			{
				Name:      "check",
				Usage:     "try credentials: renew what has expired, and send each server a ping",
				ArgsUsage: "[URL|NAME]",
				Flags:     append(settingsFlags(), formatFlagOf(formatText, formatJSON)),
				Action:    func(ctx *cli.Context) error { return withVault(ctx, c, 0, 1, vaultCheck) },
			},
		},
		Action: func(ctx *cli.Context) error {
			if word := ctx.Args().First(); word != "" {
				return unknownCommand(ctx, word, "it knows set, list, delete and check")
			}
			return cli.ShowSubcommandHelp(ctx)
		},
	}
}

// withVault makes the vault of the settings for a command that takes so many words.
// The words are not repeated: one of them may be a secret in the wrong place.
func withVault(ctx *cli.Context, c *console, least, most int, do func(*cli.Context, *session, *vault.Vault) error) error {
	switch n := ctx.NArg(); {
	case n > most && ctx.Command.Name == "set":
		return usagef("vault set takes the URL of one server; the secret is asked for, or read from stdin, and never an argument, which others can read")
	case n < least, n > most:
		takes := "no argument"
		if ctx.Command.ArgsUsage != "" {
			takes = ctx.Command.ArgsUsage
		}
		return usagef("%s takes %s", strings.TrimPrefix(ctx.Command.HelpName, "crewhost "), takes)
	}
	anchor, err := anchorOf("")
	if err != nil {
		return err
	}
	s, err := newSession(ctx, c, anchor)
	if err != nil {
		return err
	}
	return do(ctx, s, runner.OpenVault(s.settings.Vault, c.environ, c.redactor))
}

func vaultSet(ctx *cli.Context, s *session, v *vault.Vault) error {
	credential, err := credentialOf(ctx)
	if err != nil {
		return err
	}
	if _, err := vault.Bind(credential.URL); err != nil {
		return usageError{err.Error()}
	}
	if v.Path() == "" {
		return usageError{vault.ErrNowhere.Error()}
	}
	// A vault that can't be read is known before anybody is asked for a secret.
	if _, err := v.List(ctx.Context); err != nil {
		return damaged(err, v)
	}
	if err := s.fill(ctx, &credential); err != nil {
		return err
	}
	replaced, err := v.Set(ctx.Context, credential)
	if err != nil {
		return usagef("vault set: %v", err)
	}
	done := "Set"
	if replaced {
		done = "Replaced"
	}
	bound, _ := vault.Bind(credential.URL) // it was just now
	_, err = fmt.Fprintf(s.console.out, "%s the %s for %s in %s.\n", done, credential.Kind, bound, v.Path())
	return err
}

// damaged says what to do about a vault that can't be read. It is never overwritten.
func damaged(err error, v *vault.Vault) error {
	return fmt.Errorf("%w; nothing was changed: bring back its key, or move %s away to begin a new vault", err, v.Path())
}

// credentialOf is what the command line says of a credential: all but its secrets.
func credentialOf(ctx *cli.Context) (vault.Credential, error) {
	c := vault.Credential{URL: ctx.Args().First(), Name: ctx.String(nameFlag), Kind: ctx.String(kindFlag), Header: ctx.String(headerFlag)}
	var given []string
	for _, f := range []string{tokenEndpointFlag, clientIDFlag, clientAuthFlag, scopeFlag, expiresFlag} {
		if ctx.IsSet(f) {
			given = append(given, "--"+f)
		}
	}
	if c.Kind == "" {
		switch {
		case ctx.IsSet(headerFlag):
			c.Kind = vault.Header
		case len(given) > 0:
			c.Kind = vault.OAuth
		default:
			c.Kind = vault.StaticBearer
		}
	}
	switch {
	case c.Kind != vault.StaticBearer && c.Kind != vault.Header && c.Kind != vault.OAuth:
		return c, usagef("--kind %q: it takes %s, %s, %s", c.Kind, vault.StaticBearer, vault.Header, vault.OAuth)
	case c.Kind == vault.Header && c.Header == "":
		return c, usagef("vault set: --kind header needs --header: the name of the header")
	case c.Kind != vault.Header && c.Header != "":
		return c, usagef("vault set: --header is of no use to the kind %s", c.Kind)
	case c.Kind != vault.OAuth && len(given) > 0:
		return c, usagef("vault set: %s is of no use to the kind %s", given[0], c.Kind)
	}
	if text := ctx.String(expiresFlag); text != "" {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return c, usagef("--expires-at %q is no time: 2026-01-02T15:04:05Z", text)
		}
		c.Expiry = at.UTC()
	}
	if ctx.IsSet(tokenEndpointFlag) || ctx.IsSet(clientIDFlag) || ctx.IsSet(clientAuthFlag) || ctx.IsSet(scopeFlag) {
		c.Refresh = &vault.Refresh{
			TokenEndpoint: ctx.String(tokenEndpointFlag), ClientID: ctx.String(clientIDFlag),
			Auth: ctx.String(clientAuthFlag), Scopes: ctx.StringSlice(scopeFlag),
		}
	}
	return c, nil
}

// fill asks for the secrets of a credential, or reads them from stdin.
func (s *session) fill(ctx *cli.Context, c *vault.Credential) (err error) {
	_, person := s.console.asks()
	ask := func(what string) (v secret.Value) {
		if err == nil {
			v, err = s.console.hidden(ctx.Context, what)
		}
		return v
	}
	switch {
	case person && c.Kind == vault.StaticBearer:
		c.Secret = ask("The token")
	case person && c.Kind == vault.Header:
		c.Secret = ask("The value of " + c.Header)
	case person:
		c.Secret = ask("The access token")
		if c.Refresh != nil {
			c.Refresh.Token = ask("The refresh token")
			if c.Refresh.Auth != "" && c.Refresh.Auth != vault.AuthNone {
				c.Refresh.ClientSecret = ask("The secret of the client")
			}
		}
	case c.Kind == vault.OAuth:
		var v secret.Value
		if v, err = s.console.piped("the credential"); err == nil {
			err = s.granted(c, v)
		}
	default:
		c.Secret, err = s.console.piped("the secret")
	}
	return err
}

// grantDocument is a credential of the kind mcp_oauth as stdin has it: an answer of
// a token endpoint, or a credential as vaults of others write it.
type grantDocument struct {
	AccessToken  string       `json:"access_token"`
	TokenType    string       `json:"token_type"`
	ExpiresIn    *json.Number `json:"expires_in"`
	ExpiresAt    *time.Time   `json:"expires_at"`
	RefreshToken string       `json:"refresh_token"`
	Scope        string       `json:"scope"`
	ClientSecret string       `json:"client_secret"`
	Refresh      *struct {
		TokenEndpoint string   `json:"token_endpoint"`
		ClientID      string   `json:"client_id"`
		RefreshToken  string   `json:"refresh_token"`
		Auth          string   `json:"token_endpoint_auth"`
		ClientSecret  string   `json:"client_secret"`
		Scopes        []string `json:"scopes"`
	} `json:"refresh"`
}

// granted reads a grant of stdin into a credential; flags go before.
func (s *session) granted(c *vault.Credential, text secret.Value) error {
	var doc grantDocument
	d := json.NewDecoder(bytes.NewReader([]byte(text.Reveal())))
	d.DisallowUnknownFields()
	if d.Decode(&doc) != nil || d.More() {
		// Why is not said: that would show some of it.
		return usagef("vault set: stdin is not the JSON object of a grant: access_token, token_type, expires_in or expires_at, refresh_token, scope, " +
			"client_secret, refresh {token_endpoint, client_id, refresh_token, token_endpoint_auth, client_secret, scopes}")
	}
	if doc.TokenType != "" && !strings.EqualFold(doc.TokenType, "bearer") {
		return usagef("vault set: the token_type on stdin is not Bearer")
	}
	c.Secret = s.console.keep(doc.AccessToken)
	switch {
	case !c.Expiry.IsZero():
	case doc.ExpiresAt != nil:
		c.Expiry = doc.ExpiresAt.UTC()
	case doc.ExpiresIn != nil:
		seconds, err := doc.ExpiresIn.Float64()
		if err != nil || seconds <= 0 || seconds > 1e9 {
			return usagef("vault set: the expires_in on stdin is no number of seconds")
		}
		c.Expiry = time.Now().Add(time.Duration(seconds) * time.Second).UTC().Truncate(time.Second)
	}
	refresh := vault.Refresh{}
	if c.Refresh != nil {
		refresh = *c.Refresh
	}
	token, client := doc.RefreshToken, doc.ClientSecret
	if r := doc.Refresh; r != nil {
		refresh.TokenEndpoint = first(refresh.TokenEndpoint, r.TokenEndpoint)
		refresh.ClientID, refresh.Auth = first(refresh.ClientID, r.ClientID), first(refresh.Auth, r.Auth)
		token, client = first(token, r.RefreshToken), first(client, r.ClientSecret)
		if len(refresh.Scopes) == 0 {
			refresh.Scopes = r.Scopes
		}
	}
	if len(refresh.Scopes) == 0 && doc.Scope != "" {
		refresh.Scopes = strings.Fields(doc.Scope)
	}
	refresh.Token, refresh.ClientSecret = s.console.keep(token), s.console.keep(client)
	if c.Refresh != nil || doc.Refresh != nil || token != "" {
		c.Refresh = &refresh
	}
	return nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// jsonCredential is what may be seen of a credential.
type jsonCredential struct {
	URL     string    `json:"url"`
	Kind    string    `json:"kind"`
	Name    string    `json:"name,omitempty"`
	Header  string    `json:"header,omitempty"`
	Set     time.Time `json:"set"`
	Expires time.Time `json:"expires,omitzero"`
	Renews  bool      `json:"renews,omitempty"`
}

func vaultList(ctx *cli.Context, s *session, v *vault.Vault) error {
	out, err := outputOf(ctx, s.console)
	if err != nil {
		return err
	}
	entries, err := v.List(ctx.Context)
	if err != nil {
		return err
	}
	if out.json {
		list := []jsonCredential{}
		for _, e := range entries {
			list = append(list, jsonCredential{e.URL, e.Kind, e.Name, e.Header, e.Set, e.Expiry, e.Renews})
		}
		return out.encode(map[string]any{"vault": v.Path(), "credentials": list})
	}
	table := tabwriter.NewWriter(out.out, 0, 4, 2, ' ', 0)
	for _, e := range entries {
		fmt.Fprintf(table, "%s\t%s\t%s\tset %s\t%s\n", e.URL, kindOf(e), e.Name, day(e.Set), lifetime(e))
	}
	return table.Flush()
}

func kindOf(e vault.Entry) string {
	if e.Header != "" {
		return e.Kind + " " + e.Header
	}
	return e.Kind
}

// lifetime says how long a credential is good for, as far as anybody knows.
func lifetime(e vault.Entry) string {
	switch {
	case e.Kind != vault.OAuth:
		return ""
	case e.Renews && (e.Missing || e.Expiry.IsZero()):
		return "renewed when it has to be"
	case e.Expiry.IsZero():
		return "not renewed"
	case e.Renews:
		return "until " + day(e.Expiry) + ", then renewed"
	}
	return "until " + day(e.Expiry) + ", not renewed"
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

func vaultDelete(ctx *cli.Context, s *session, v *vault.Vault) error {
	ok, err := v.Delete(ctx.Context, ctx.Args().First())
	switch {
	case err != nil:
		return damaged(err, v)
	case !ok:
		return usagef("the vault has no such credential; crewhost vault list shows what there is")
	}
	_, err = fmt.Fprintln(s.console.out, "Forgot it. The server may go on taking it: revoke it there, too.")
	return err
}

// vaultCheck tries credentials, and says for each until when it is good, or what to
// do.
func vaultCheck(ctx *cli.Context, s *session, v *vault.Vault) error {
	out, err := outputOf(ctx, s.console)
	if err != nil {
		return err
	}
	entries, err := v.List(ctx.Context)
	if err != nil {
		return err
	}
	if word := ctx.Args().First(); word != "" {
		bound, _ := vault.Bind(word) // else it is a name
		var one []vault.Entry
		for _, e := range entries {
			if e.URL == bound || e.Name == word {
				one = append(one, e)
			}
		}
		if entries = one; len(one) == 0 {
			return usagef("the vault has no such credential; crewhost vault list shows what there is")
		}
	}
	type result struct {
		URL     string    `json:"url"`
		Kind    string    `json:"kind"`
		OK      bool      `json:"ok"`
		Status  int       `json:"status,omitempty"` // of the server's answer
		Renewed bool      `json:"renewed,omitempty"`
		Expires time.Time `json:"expires,omitzero"`
		Error   string    `json:"error,omitempty"`
	}
	results := []result{}
	bad := 0
	for _, e := range entries {
		s.log.Info("checking a credential", "url", e.URL, "sends", gateway.Question)
		verdict, err := runner.CheckCredential(ctx.Context, s.settings, v, e.URL, s.console.redactor)
		if ctx.Context.Err() != nil {
			return ctx.Context.Err()
		}
		r := result{URL: e.URL, Kind: e.Kind, OK: err == nil, Status: verdict.Status, Renewed: verdict.Renewed, Expires: verdict.Valid}
		if err != nil {
			r.Error = out.reason(err)
			bad++
		}
		results = append(results, r)
		if out.json {
			continue
		}
		text := r.Error
		if errors.Is(err, gateway.ErrRefused) {
			text += `: run "crewhost vault set ` + e.URL + `"`
		}
		if err == nil {
			text = fmt.Sprintf("good: the server answered a %s with HTTP status %d", gateway.Question, r.Status)
			if r.Renewed {
				text += "; the token was renewed"
			}
			if !r.Expires.IsZero() {
				text += "; valid until " + day(r.Expires)
			}
		}
		if err := out.text("%s (%s): %s\n", r.URL, r.Kind, text); err != nil {
			return err
		}
	}
	if out.json {
		if err := out.encode(map[string]any{"credentials": results}); err != nil {
			return err
		}
	}
	if bad > 0 {
		return &runner.RunError{Err: fmt.Errorf("%d of %s of no use", bad, count(len(entries), "credential"))}
	}
	return nil
}
