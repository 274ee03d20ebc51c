// Package vault keeps the credentials of servers, each bound to the URL of one (A8).
//
// A [Vault] is one sealed file. What is in it goes out in two ways only: to the
// server that it is bound to, by [Vault.Lookup], and to a tool that asks for it by
// its name, by [Vault.Named]. [Vault.List] says what there is, and never what it is:
// no command prints a value.
//
//	v := vault.New(vault.Config{File: path, Key: sealed.KeyFile(key), Redactor: redactor})
//	replaced, err := v.Set(ctx, vault.Credential{
//		Kind: vault.StaticBearer, URL: "https://mcp.example.com/mcp", Secret: token,
//	})
//	c, ok, err := v.Lookup(ctx, "https://MCP.example.com:443/mcp/")
//
// There is at most one credential for a URL. The redactor knows every value from
// the moment it is read. A file that can't be read, or is of another version, is an
// error and stays as it is.
package vault
