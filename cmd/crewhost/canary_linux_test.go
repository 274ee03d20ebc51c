package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"filippo.io/age"
	"golang.org/x/sync/errgroup"

	"crewhost/config/secret"
	"crewhost/config/secret/sealed"
	"crewhost/config/vault"
	"crewhost/mcp/mcptest"
	"crewhost/mcp/oauth"
)

// What this file is about: every place where a secret can come from, and everything
// that a program leaves behind. A {{name}} in the texts below is a canary: a secret of
// its own, planted there. Another source is another {{name}}; another artefact is
// another line of canaryUses, or a file that one of them writes.

// canarySettings are the settings. ROOT is the URL of the world, DATABASE the address of
// its database, COMMAND a program that is an MCP server.
const canarySettings = `
llm:
  provider: openai
  model: m
  base_url: ROOT/v1
  api_key: { file: model.key }
  max_retries: 0
  profiles:
    by_variable: { provider: openai, model: m, base_url: "ROOT/v1?k=${URL_KEY}", api_key: "${MODEL_KEY}", max_retries: 0 }
    by_command: { provider: openai, model: m, base_url: ROOT/v1, api_key: { command: [cat, printed.key] }, max_retries: 0 }
    refused: { provider: openai, model: m, base_url: ROOT/refuses, api_key: { file: model.key }, max_retries: 0 }
mcp:
  token_store: file
  keepalive: 1s
  servers:
    process:
      command: COMMAND
      args: [mcptest-server, standard, -tools, "env,fail,sleep", -stderr, "my token is ${ARG_VARIABLE}", --, "--api-key={{argument}}", --password, "{{password argument}}"]
      env: { MARK: mark-of-process, TOKEN: "{{env literal}}", INDIRECT: "a ${ENV_VARIABLE} b", DEFAULTED: "${UNSET:-{{env default}}}" }
    dies:
      command: COMMAND
      args: [mcptest-server, exit, --token, "${ARG_VARIABLE}"]
      env: { MARK: mark-of-dies, TOKEN: "{{env of a server that dies}}" }
    asker:
      command: COMMAND
      args: [mcptest-server, standard, -tools, ask]
      env: { MARK: mark-of-asker }
      answers: { password: "${ANSWER}", pin: "{{answer}}" }
    headers:
      url: "ROOT/mcp/headers?q={{url query}}&v=${QUERY_VARIABLE}"
      headers: { X-Api-Key: "{{header literal}}", Authorization: "Bearer ${HEADER_VARIABLE}" }
    refuses: { url: "ROOT/mcp/refuses?q={{refused query}}", headers: { X-Api-Key: "{{refused header}}" } }
    user: { url: "USERROOT/mcp/refuses" }
    vault_bearer: { url: ROOT/mcp/vault_bearer }
    vault_header: { url: ROOT/mcp/vault_header }
    vault_oauth: { url: ROOT/mcp/vault_oauth }
    vault_refused: { url: ROOT/mcp/refuses/vault }
    stored: { url: ROOT/mcp/stored }
    robot:
      url: ROOT/mcp/robot
      oauth: { grant: client_credentials, client_id: robot, client_secret: { file: client.secret } }
  served:
    all: { tools: ["*"], http: { listen: "127.0.0.1:0", tokens: { ci: "${SERVED_TOKEN}" } } }
  gateway: { allow: [127.0.0.1] }
tools:
  web: { credentials: [echo] }
  web_search: { provider: tavily, url: ROOT/engine, api_key: "${SEARCH_KEY}" }
  github: { url: ROOT/hub, credential: hub }
  database:
    enabled: true
    connections: { shop: { url: "postgresql://me:${DATABASE_PASSWORD}@DATABASE/shop?sslmode=disable" } }
  shell: { enabled: true, allow: [printenv], env: { TOKEN: "{{env of a program}}", INDIRECT: "a ${PROGRAM_VARIABLE} b" } }
mounts: ["./out:/out:rw"]
permissions: { default: allow }
vault: { file: vault.age, key: { file: vault.key } }
audit: true
`

// canaryFiles are further inputs; canaryEnviron is the environment.
func canaryFiles() map[string]string {
	return map[string]string{
		"crewhost.yaml": canarySettings,
		"model.key":     "{{model key of a file}}\n",
		"printed.key":   "{{model key of a command}}\n",
		"client.secret": "{{client secret}}\n",
		"crew.yaml":     canaryCrew,
		"refused.yaml":  strings.ReplaceAll(canaryCrew, "role: One\n", "role: One\n    llm: { profile: refused }\n"),
		"tells.yaml":    strings.ReplaceAll(canaryCrew, "Try everything", "Try {{what is no secret to the program}}"),
	}
}

func canaryEnviron() []string {
	return []string{
		"MODEL_KEY={{model key of a variable}}", "URL_KEY={{key in the url of a model}}",
		"ARG_VARIABLE={{argument variable}}", "ENV_VARIABLE={{env variable}}", "HEADER_VARIABLE={{header variable}}",
		"QUERY_VARIABLE={{query variable}}", "ANSWER={{answer variable}}", "SERVED_TOKEN={{served token}}",
		"SEARCH_KEY={{search key}}", "DATABASE_PASSWORD={{database password}}", "PROGRAM_VARIABLE={{env variable of a program}}",
		"CREWHOST_TOKEN_KEY={{age token key}}", "NOBODYS={{a variable of nobody}}",
		"OTEL_EXPORTER_OTLP_ENDPOINT=ROOT/otlp", "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_EXPORTER_OTLP_HEADERS=X-Api-Key={{header of telemetry}}",
	}
}

const canaryCrew = `
name: Canaries
goal: Try everything
agents:
  one:
    role: One
    goal: Try
    mcp_servers: [{ name: brought, type: url, url: ROOT/mcp/brought }]
    tools: [TOOLS, { type: mcp_toolset, mcp_server_name: brought, default_config: { permission_policy: { type: always_allow } } }]
  two: { role: Two, goal: Say, llm: { profile: by_variable } }
  three: { role: Three, goal: Say, llm: { profile: by_command } }
tasks:
  first: { description: Call every tool, expectedOutput: What they say, agent: one }
  second: { description: Say it again, expectedOutput: The same, agent: two, dependencies: [first] }
  third: { description: Say it again, expectedOutput: The same, agent: three, dependencies: [first] }
`

// canaryTools are called one after another.
func canaryTools() []string {
	return []string{
		"env", "fail", "ask", "parrot_headers", "parrot_headers_fails", "parrot_vault_bearer", "parrot_vault_header", "parrot_vault_oauth",
		"parrot_stored", "parrot_robot", "mcp__brought__parrot_brought",
		"web_search", "github", "http_api", "web_scrape", "relational_database_query", "shell_command",
	}
}

// canaryArguments are what a tool is called with.
func (w *canaryWorld) canaryArguments(tool string) string {
	switch tool {
	case "ask":
		return `{"message":"Who?","schema":{"type":"object","required":["password","pin"],"properties":{"password":{"type":"string"},"pin":{"type":"string"}}}}`
	case "web_search":
		return `{"query":"birds"}`
	case "github":
		return `{"action":"get_repo","repo":"o/r"}`
	case "http_api": // and what it answers is left in a file, if it may be
		return `{"url":"` + w.URL + `/echo/a","save_to":"/out/echo.txt"}`
	case "web_scrape":
		return `{"url":"` + w.URL + `/echo/b"}`
	case "relational_database_query":
		return `{"connection":"shop","query":"SELECT 1"}`
	case "shell_command":
		return `{"command":"printenv","working_directory":"/out"}`
	}
	return `{}`
}

// brought reports whether a tool is of a server that an agent brings along.
func brought(tool string) bool { return strings.HasPrefix(tool, "mcp__") }

// canaryChildren are the secrets that a child may have, by its MARK.
func canaryChildren() map[string][]string {
	return map[string][]string{
		"process": {"argument", "password argument", "argument variable", "env literal", "env variable", "env default"},
	}
}

// wild are canaries whose text every encoding changes; those of tokens and headers
// can't be.
func wild(name string) bool {
	return strings.HasPrefix(name, "env ") || strings.HasPrefix(name, "answer") || name == "password argument"
}

// An aviary has the canaries of one test.
type aviary struct {
	values map[string]string
}

// value is the canary of a name.
func (a *aviary) value(name string) string {
	if v, ok := a.values[name]; ok {
		return v
	}
	sum := sha256.Sum256([]byte(name))
	v := "cnry" + hex.EncodeToString(sum[:10])
	switch {
	case strings.HasPrefix(name, "age "):
		id, err := age.GenerateX25519Identity()
		if err != nil {
			panic(err)
		}
		v = id.String()
	case wild(name):
		v += `"\&<ü/+% z`
	}
	a.values[name] = v
	return v
}

var canaryMark = regexp.MustCompile(`\{\{([^}]+)\}\}`)

// plant replaces the marks of a text by their canaries, as encode writes them.
func (a *aviary) plant(text string, encode func(string) string) string {
	return canaryMark.ReplaceAllStringFunc(text, func(mark string) string { return encode(a.value(strings.Trim(mark, "{}"))) })
}

func asIs(s string) string { return s }

func asJSON(s string) string { return strings.Trim(strconv.Quote(s), `"`) }

// leaks returns the canaries that are in a text, however they are spelled, or in part.
func (a *aviary) leaks(text string, allowed ...string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(a.values)) {
		if slices.Contains(allowed, name) {
			continue
		}
		if how := spelled(text, a.values[name]); how != "" {
			found = append(found, name+" ("+how+")")
		}
	}
	return found
}

// spelled says how a secret is in a text, or nothing.
func spelled(text, s string) string {
	jsonText, _ := json.Marshal(s)
	all := map[string]string{
		"plain": s, "in JSON": strings.Trim(string(jsonText), `"`), "quoted": asJSON(s), "in ASCII": strings.Trim(strconv.QuoteToASCII(s), `"`),
		"in a query": url.QueryEscape(s), "in a path": url.PathEscape(s), "in hexadecimal": hex.EncodeToString([]byte(s)),
	}
	for before := range 3 {
		for name, enc := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "base64url": base64.RawURLEncoding} {
			whole := enc.EncodeToString([]byte("xx"[:before] + s))
			all[fmt.Sprint(name, before)] = whole[2*before : len(whole)-2]
		}
	}
	// What was cut is a leak, too: any ten letters of a canary's own.
	for i := 4; i+10 <= min(len(s), 24); i++ {
		all["in part"] = s[i : i+10]
		if strings.Contains(text, s[i:i+10]) {
			return "in part: " + s[i:i+10]
		}
	}
	for _, how := range slices.Sorted(maps.Keys(all)) {
		if strings.Contains(text, all[how]) {
			return how
		}
	}
	return ""
}

// A world is all that the program talks to: a model, servers that take one credential
// each and repeat what they got, and a token endpoint.
type canaryWorld struct {
	*aviary
	*httptest.Server
	database net.Listener
	parrots  map[string]http.Handler
	wants    map[string]string // by server: "Header: value"

	mu   sync.Mutex
	seen bytes.Buffer  // all that was sent here
	told bytes.Buffer  // of that, what telemetry has
	held chan struct{} // closed when a model is asked for its last word
	free chan struct{} // closed when it may say it
}

func newCanaryWorld(t *testing.T, a *aviary) *canaryWorld {
	w := &canaryWorld{aviary: a, parrots: map[string]http.Handler{}}
	w.wants = map[string]string{
		"headers":      "Authorization: Bearer " + a.value("header variable"),
		"vault_bearer": "Authorization: Bearer " + a.value("vault bearer"),
		"vault_header": "X-Vault-Key: " + a.value("vault header"),
		"vault_oauth":  "Authorization: Bearer " + a.value("renewed access"),
		"stored":       "Authorization: Bearer " + a.value("stored access"),
		"brought":      "Authorization: Bearer " + a.value("vault bearer of an agent's server"),
		"robot":        "Authorization: Bearer " + a.value("granted access"),
	}
	for name := range w.wants {
		tools := "parrot_" + name
		if name == "headers" {
			tools += ",parrot_headers_fails"
		}
		h, err := mcptest.Handler("-tools", tools)
		if err != nil {
			t.Fatal(err)
		}
		w.parrots[name] = h
	}
	w.Server = httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(func() {
		w.CloseClientConnections()
		w.Close()
	})
	var err error
	if w.database, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(w.serveDatabase)
	t.Cleanup(func() {
		_ = w.database.Close()
		serving.Wait()
	})
	return w
}

// serveDatabase is a PostgreSQL server that asks for a password in the clear, and says
// it back to whom it refuses.
func (w *canaryWorld) serveDatabase() {
	for {
		conn, err := w.database.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		message := func(head int) string { // a length of four bytes, which it counts, and what follows
			length := make([]byte, head+4)
			if _, err := io.ReadFull(conn, length); err != nil {
				return ""
			}
			body := make([]byte, min(binary.BigEndian.Uint32(length[head:]), 1<<16)-4)
			_, _ = io.ReadFull(conn, body)
			return strings.TrimRight(string(body), "\x00")
		}
		message(0)
		_, _ = conn.Write([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 3})
		password := message(1)
		w.mu.Lock()
		w.seen.WriteString(password)
		w.mu.Unlock()
		refusal := "SFATAL\x00C28P01\x00Mnot with the password " + password + "\x00\x00"
		_, _ = conn.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(len(refusal)+4)), refusal...))
		_ = conn.Close()
	}
}

func (w *canaryWorld) serve(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	query, _ := url.QueryUnescape(r.URL.RawQuery)
	said := fmt.Sprintf("%s %s %v %s", r.URL, query, r.Header, body)
	w.mu.Lock()
	w.seen.WriteString(said)
	if strings.HasPrefix(r.URL.Path, "/otlp") {
		w.told.Write(body)
	}
	w.mu.Unlock()
	answer := func(status int, v any) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(status)
		_ = json.NewEncoder(rw).Encode(v)
	}
	name, server := strings.CutPrefix(r.URL.Path, "/mcp/")
	switch {
	case r.URL.Path == "/v1/chat/completions":
		answer(http.StatusOK, w.think(r.Header.Get("Authorization"), body))
	case r.URL.Path == "/engine/search":
		answer(http.StatusOK, map[string]any{"results": []any{map[string]any{"title": said, "url": w.URL, "content": said}}})
	case strings.HasPrefix(r.URL.Path, "/hub/"):
		answer(http.StatusOK, map[string]any{"full_name": "o/r", "description": said, "homepage": r.Header.Get("Authorization")})
	case strings.HasPrefix(r.URL.Path, "/echo/"):
		rw.Header().Set("Content-Type", "text/plain")
		rw.Header().Set("X-Request-Id", r.Header.Get("Authorization"))
		_, _ = io.WriteString(rw, said)
	case r.URL.Path == "/token":
		_ = r.ParseForm()
		grant := map[string]any{"access_token": w.value("granted access"), "token_type": "Bearer", "expires_in": 3600}
		if r.PostForm.Get("grant_type") == "refresh_token" {
			grant["access_token"], grant["refresh_token"] = w.value("renewed access"), w.value("renewed refresh")
		}
		answer(http.StatusOK, grant)
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource/"):
		answer(http.StatusOK, map[string]any{"resource": w.URL + strings.TrimPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"), "authorization_servers": []string{w.URL}})
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		answer(http.StatusOK, map[string]any{"issuer": w.URL, "token_endpoint": w.URL + "/token", "authorization_endpoint": w.URL + "/authorize", "code_challenge_methods_supported": []string{"S256"}})
	case server && w.parrots[name] != nil && w.takes(name, r):
		w.parrots[name].ServeHTTP(rw, r)
	case server && w.parrots[name] != nil:
		rw.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+w.URL+`/.well-known/oauth-protected-resource`+r.URL.Path+`"`)
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, said)
	default: // whoever is refused is told all that they said
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, said+base64.StdEncoding.EncodeToString([]byte(said)))
	}
}

func (w *canaryWorld) takes(server string, r *http.Request) bool {
	name, value, _ := strings.Cut(w.wants[server], ": ")
	return r.Header.Get(name) == value
}

// think is the model: it calls every tool, one a turn, and then repeats what they said,
// and the key that it was asked with.
func (w *canaryWorld) think(key string, body []byte) map[string]any {
	var asked struct {
		Messages []struct {
			Role    string `json:"role"`
			Content any    `json:"content"`
		} `json:"messages"`
		Tools []any `json:"tools"`
	}
	_ = json.Unmarshal(body, &asked)
	turn, said := 0, "I was asked with "+key+base64.StdEncoding.EncodeToString([]byte(key))
	for _, m := range asked.Messages {
		if m.Role == "tool" {
			turn++
		}
		said += fmt.Sprintf("\n%v", m.Content)
	}
	message := map[string]any{"role": "assistant"}
	finish := "stop"
	switch tools := canaryTools(); {
	case len(asked.Tools) == 0 || turn >= len(tools):
		w.hold()
		message["content"] = said
	default:
		args := w.canaryArguments(tools[turn])
		finish = "tool_calls"
		message["tool_calls"] = []any{map[string]any{"id": fmt.Sprint("c", turn), "type": "function", "function": map[string]any{"name": tools[turn], "arguments": args}}}
	}
	return map[string]any{
		"id": "x", "object": "chat.completion", "created": 1, "model": "m",
		"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": message}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	}
}

// hold waits, if the test wants to look at a run before it ends.
func (w *canaryWorld) hold() {
	w.mu.Lock()
	held, free := w.held, w.free
	w.held = nil
	w.mu.Unlock()
	if held != nil {
		close(held)
		<-free
	}
}

func (w *canaryWorld) holdNext() (held <-chan struct{}, free func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held, w.free = make(chan struct{}), make(chan struct{})
	return w.held, sync.OnceFunc(func() { close(w.free) })
}

// A nest is a folder with everything planted, and the environment for a program there.
type nest struct {
	*canaryWorld
	dir     string
	program string
	environ []string
	planted []string // files that were there before
}

func newNest(t *testing.T) *nest {
	t.Helper()
	a := &aviary{values: map[string]string{}}
	n := &nest{canaryWorld: newCanaryWorld(t, a), dir: t.TempDir()}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	n.program = filepath.Join(t.TempDir(), "crewhost")
	if err := os.Symlink(self, n.program); err != nil {
		t.Fatal(err)
	}
	command, _ := mcptest.Command(mcptest.Standard)
	home := filepath.Join(n.dir, "home")
	for name, text := range canaryFiles() {
		encode := asIs
		if strings.HasSuffix(name, ".yaml") {
			encode = asJSON
		}
		text = strings.NewReplacer(
			"USERROOT", strings.Replace(n.URL, "://", "://somebody:{{url password}}@", 1),
			"ROOT", n.URL, "@DATABASE/", "@"+n.database.Addr().String()+"/", "COMMAND", command, "TOOLS", strings.Join(slices.DeleteFunc(canaryTools(), brought), ", "),
		).Replace(text)
		write(t, n.dir, name, a.plant(text, encode))
		n.planted = append(n.planted, name)
		if filepath.Ext(name) != ".yaml" {
			if err := os.Chmod(filepath.Join(n.dir, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, line := range canaryEnviron() {
		n.environ = append(n.environ, a.plant(strings.ReplaceAll(line, "ROOT", n.URL), asIs))
	}
	n.environ = append(n.environ, "PATH="+os.Getenv("PATH"), "HOME="+home, "GORACE="+noSleepAtExit, "TMPDIR="+t.TempDir())
	n.fillVault(t)
	n.fillTokens(t, filepath.Join(home, ".config", "crewhost"))
	return n
}

func (n *nest) fillVault(t *testing.T) {
	t.Helper()
	v := vault.New(vault.Config{File: filepath.Join(n.dir, "vault.age"), Key: sealed.KeyFile(filepath.Join(n.dir, "vault.key"))})
	of := func(name string) secret.Value { return secret.New(n.value(name)) }
	for _, c := range []vault.Credential{
		{Name: "echo", Kind: vault.StaticBearer, URL: n.URL + "/echo", Secret: of("vault bearer of http_api")},
		{Name: "hub", Kind: vault.StaticBearer, URL: n.URL + "/hub", Secret: of("vault bearer of github")},
		{Kind: vault.StaticBearer, URL: n.URL + "/mcp/vault_bearer", Secret: of("vault bearer")},
		{Kind: vault.StaticBearer, URL: n.URL + "/mcp/refuses/vault", Secret: of("vault bearer that is refused")},
		{Kind: vault.StaticBearer, URL: n.URL + "/mcp/brought", Secret: of("vault bearer of an agent's server")},
		{Kind: vault.Header, URL: n.URL + "/mcp/vault_header", Header: "X-Vault-Key", Secret: of("vault header")},
		{
			Kind: vault.OAuth, URL: n.URL + "/mcp/vault_oauth", Secret: of("vault access"), Expiry: time.Now().Add(-time.Hour),
			Refresh: &vault.Refresh{TokenEndpoint: n.URL + "/token", ClientID: "me", Token: of("vault refresh"), Auth: vault.AuthPost, ClientSecret: of("vault client secret")},
		},
	} {
		if _, err := v.Set(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	key, err := os.ReadFile(filepath.Join(n.dir, "vault.key"))
	if err != nil {
		t.Fatal(err)
	}
	n.values["vault key"] = strings.TrimSpace(string(key))
	n.planted = append(n.planted, "vault.key")
}

func (n *nest) fillTokens(t *testing.T, dir string) {
	t.Helper()
	store, err := oauth.Open(oauth.StoreFile, dir, secret.New(n.value("age token key")))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), oauth.Record{
		URL: n.URL + "/mcp/stored", Resource: n.URL + "/mcp/stored", Issuer: n.URL, TokenEndpoint: n.URL + "/token", ClientID: "c",
		ClientSecret: secret.New(n.value("stored client secret")), Auth: "post",
		Access: secret.New(n.value("stored access")), Refresh: secret.New(n.value("stored refresh")),
	}); err != nil {
		t.Fatal(err)
	}
}

// start starts the program.
func (n *nest) start(t *testing.T, env []string, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.Command(n.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.dir, append(slices.Clone(n.environ), env...), stdout, stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, stdout, stderr
}

// left are the files that programs have left in the nest, but for those that were
// planted.
func (n *nest) left(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(n.dir, path)
		if err != nil || slices.Contains(n.planted, name) {
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = name + "\n" + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// A use is one of the program, with its exit code.
type use struct {
	args string
	code int
}

// canaryUses are those that are searched. Those of a row may go on side by side; each
// row has what the ones before left behind.
func canaryUses() [][]use {
	return [][]use{
		{
			{"run crew.yaml -v 2", exitOK},
			{"run crew.yaml -v 2 --log-format json --events jsonl", exitOK},
			{"run crew.yaml -v 2 --format json", exitOK},
			{"run crew.yaml -v 2 --record recorded.tape", exitOK},
			{"run refused.yaml -v 2 --format json", exitFailed},
			{"run refused.yaml -v 2 --log-format json --events jsonl", exitFailed},
			{"run --validate crew.yaml -v 2", exitOK},
			{"run --validate crew.yaml -v 2 --format json", exitOK},
			{"run --validate crew.yaml -v 2 --format junit", exitOK},
			{"run --validate crew.yaml -v 2 --format sarif", exitOK},
			{"run --list-tools -v 2 --format json", exitOK},
			{"doctor -v 2 --format json", exitOK},
			{"mcp call env -v 2", exitOK},
			{"mcp call parrot_headers_fails -v 2 --format json", exitFailed},
			{"mcp ping -v 2", exitFailed},
			{"tools list -v 2", exitOK},
			{"tools call github action=get_repo repo=o/r -v 2 --format json", exitOK},
			{"tools call relational_database_query connection=shop query=SELECT -v 2", exitFailed},
			{"mcp login refuses --timeout 1s -v 2", exitFailed},
			{"vault check -v 2", exitFailed},
			{"vault check -v 2 --format json", exitFailed},
			{"policy explain -v 2 --format json", exitOK},
			{"lock --partial -v 2", exitOK},
		}, {
			{"run crew.yaml -v 2 --replay recorded.tape", exitOK},
			{"lock --check -v 2", exitUsage}, // the servers that can't be connected
			{"run --validate --locked crew.yaml -v 2 --format junit", exitUsage},
			{"mcp list -v 2", exitOK},
			{"vault list -v 2 --format json", exitOK},
			{"audit verify -v 2", exitOK},
			{"audit show -v 2 --format json", exitOK},
			{"runs list -v 2", exitOK},
		},
	}
}

// crewhost is one use of the program, to its end.
func (n *nest) crewhost(u use) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.Command(n.program, strings.Fields(u.args)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = n.dir, n.environ, &out, &errs
	err = cmd.Run()
	if err == nil || errors.As(err, new(*exec.ExitError)) {
		err = nil
		if code := cmd.ProcessState.ExitCode(); code != u.code {
			err = fmt.Errorf("exit code %d, want %d\n%s%s", code, u.code, &out, &errs)
		}
	}
	return out.String(), errs.String(), err
}

// TestCanaries is K55 for the whole program: no secret, wherever it came from, is in
// anything that a run prints, writes or hands to a process that it is not for.
func TestCanaries(t *testing.T) {
	n := newNest(t)
	artefacts := map[string]string{}
	for _, row := range canaryUses() {
		var mu sync.Mutex
		var all errgroup.Group
		all.SetLimit(4)
		for _, u := range row {
			all.Go(func() error {
				stdout, stderr, err := n.crewhost(u)
				if err != nil {
					t.Errorf("crewhost %s: %v", u.args, err)
				}
				mu.Lock()
				defer mu.Unlock()
				artefacts[u.args+": stdout"], artefacts[u.args+": stderr"] = stdout, stderr
				return nil
			})
		}
		_ = all.Wait() // each has told the test
	}
	maps.Copy(artefacts, n.live(t))
	maps.Copy(artefacts, n.crash(t))
	resume := use{"run --resume last -v 2", exitOK} // what has crashed
	stdout, stderr, err := n.crewhost(resume)
	if err != nil {
		t.Errorf("crewhost %s: %v", resume.args, err)
	}
	artefacts["resume: stdout"], artefacts["resume: stderr"] = stdout, stderr
	maps.Copy(artefacts, n.served(t))
	maps.Copy(artefacts, n.left(t))
	artefacts["telemetry"] = n.told.String()
	if n.told.Len() == 0 {
		t.Error("no telemetry came")
	}
	for _, name := range slices.Sorted(maps.Keys(artefacts)) {
		if found := n.leaks(artefacts[name]); len(found) > 0 {
			t.Errorf("%s has %s", name, strings.Join(found, ", "))
		}
	}
	// A canary that went nowhere shows nothing.
	for _, name := range slices.Sorted(maps.Keys(n.values)) {
		if slices.Contains(canaryElsewhere(), name) {
			continue
		}
		if how := spelled(n.seen.String(), n.values[name]); how == "" {
			t.Errorf("%s did not reach the world", name)
		}
	}
	if len(n.values) < 41 {
		t.Errorf("%d canaries", len(n.values))
	}
}

// canaryElsewhere are canaries that are not sent over HTTP: to a child, in a browser's
// hands, or kept.
func canaryElsewhere() []string {
	return []string{
		"age token key", "vault key", "a variable of nobody", "what is no secret to the program", "served token", "wrong served token",
		"env of a server that dies", "answer", "answer variable", "vault access", "stored refresh", "stored client secret", "renewed refresh",
		"argument", "password argument", "argument variable", "env literal", "env variable", "env default", "url password",
		"env of a program", "env variable of a program",
	}
}

// live looks at the processes of a run that is not over: their arguments, their
// names and their environments.
func (n *nest) live(t *testing.T) map[string]string {
	t.Helper()
	held, free := n.holdNext()
	defer free()
	cmd, stdout, stderr := n.start(t, nil, "run", "crew.yaml", "-v", "2")
	wait(t, held, stderr)
	artefacts := map[string]string{}
	for _, part := range []string{"cmdline", "comm"} {
		artefacts["the program's "+part] = proc(t, cmd.Process.Pid, part)
	}
	marks := []string{}
	for _, pid := range descendants(t, cmd.Process.Pid) {
		environ, cmdline := proc(t, pid, "environ"), proc(t, pid, "cmdline")
		mark := ""
		for line := range strings.SplitSeq(environ, "\x00") {
			if m, ok := strings.CutPrefix(line, "MARK=mark-of-"); ok {
				mark = m
			}
		}
		marks = append(marks, mark)
		if found := n.leaks(environ+cmdline+proc(t, pid, "comm"), canaryChildren()[mark]...); len(found) > 0 {
			t.Errorf("the child %q (%s) has %s", mark, strings.ReplaceAll(cmdline, "\x00", " ")[:40], strings.Join(found, ", "))
		}
		if mark == "process" {
			for _, name := range canaryChildren()[mark] {
				if spelled(environ+cmdline, n.values[name]) == "" {
					t.Errorf("the child %q has no %s", mark, name)
				}
			}
		}
	}
	if !slices.Contains(marks, "process") || !slices.Contains(marks, "asker") || !slices.Contains(marks, "") {
		t.Errorf("children %q, and the guard", marks)
	}
	free()
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, stderr)
	}
	artefacts["live: stdout"], artefacts["live: stderr"] = stdout.String(), stderr.String()
	return artefacts
}

// crash is what a program says that breaks down in the middle of a run.
func (n *nest) crash(t *testing.T) map[string]string {
	t.Helper()
	held, free := n.holdNext()
	defer free()
	cmd, stdout, stderr := n.start(t, []string{"GOTRACEBACK=all"}, "run", "crew.yaml", "-v", "2")
	wait(t, held, stderr)
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if !strings.Contains(stderr.String(), "goroutine ") {
		t.Errorf("no crash:\n%s", stderr)
	}
	return map[string]string{"crash: stdout": stdout.String(), "crash: stderr": stderr.String()}
}

// served is what the program says of clients over HTTP, one of which has a wrong token.
func (n *nest) served(t *testing.T) map[string]string {
	t.Helper()
	cmd := exec.Command(n.program, "mcp", "start", "all", "--http", "-v", "2")
	cmd.Dir, cmd.Env = n.dir, n.environ
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	log := newSeen(pipe)
	line := log.until(t, "http://127.0.0.1", "serving")
	address := strings.TrimSuffix(strings.Fields(line[strings.Index(line, "http://"):])[0], ":")
	answers := ""
	for token, want := range map[string]int{n.value("served token"): http.StatusOK, n.value("wrong served token"): http.StatusUnauthorized} {
		for _, body := range []string{initialize, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"env","arguments":{}}}`} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Authorization", "Bearer "+token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if body == initialize && resp.StatusCode != want {
				t.Errorf("%s, want %d: %s", resp.Status, want, text)
			}
			answers += fmt.Sprint(resp.Header) + string(text)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest := log.rest()
	_ = cmd.Wait()
	return map[string]string{"mcp start: stdout": stdout.String(), "mcp start: stderr": rest, "mcp start: answers": answers}
}

// seen is what comes on a pipe, line by line.
type seenLines struct {
	pipe io.Reader
	text bytes.Buffer
}

func newSeen(pipe io.Reader) *seenLines { return &seenLines{pipe: pipe} }

func (s *seenLines) until(t *testing.T, words ...string) string {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		n, err := s.pipe.Read(buf)
		s.text.Write(buf[:n])
		for line := range strings.Lines(s.text.String()) {
			if strings.HasSuffix(line, "\n") && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return line
			}
		}
		if err != nil {
			t.Fatalf("no line with %q in\n%s", words, &s.text)
		}
	}
}

func (s *seenLines) rest() string {
	_, _ = io.Copy(&s.text, s.pipe)
	return s.text.String()
}

func wait(t *testing.T, held <-chan struct{}, stderr *bytes.Buffer) {
	t.Helper()
	select {
	case <-held:
	case <-time.After(patience):
		t.Fatalf("the model was not asked for its last word")
	}
}

func proc(t *testing.T, pid int, part string) string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, part))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

// descendants are the processes that a process has started, and those that they have.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(data), ") ")
		fields := strings.Fields(after)
		parent, _ := strconv.Atoi(fields[1])
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		children[parent] = append(children[parent], child)
	}
	var all []int
	for next := []int{pid}; len(next) > 0; next = next[1:] {
		all = append(all, children[next[0]]...)
		next = append(next, children[next[0]]...)
	}
	return all
}

// TestCanariesCanBeFound: a secret that the program does not know to be one is in what
// it leaves behind, and the search for it finds it there; and it finds every spelling.
func TestCanariesCanBeFound(t *testing.T) {
	n := newNest(t)
	const told = "what is no secret to the program"
	cmd, stdout, stderr := n.start(t, nil, "run", "tells.yaml", "-v", "2", "--events", "jsonl")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	for name, text := range map[string]string{"stdout": stdout.String(), "what was left": strings.Join(slices.Collect(maps.Values(n.left(t))), "\n")} {
		if found := n.leaks(text); !slices.ContainsFunc(found, func(s string) bool { return strings.HasPrefix(s, told) }) {
			t.Errorf("%s: found %q", name, found)
		}
	}
	const s = `cnry0123456789"\&<ü/+% z`
	quoted, _ := json.Marshal(s)
	for _, text := range []string{
		s, string(quoted), fmt.Sprintf("%q", s), url.QueryEscape(s), hex.EncodeToString([]byte(s)), s[:16],
		base64.StdEncoding.EncodeToString([]byte("u:" + s)), base64.URLEncoding.EncodeToString([]byte("us:" + s + "more")), base64.StdEncoding.EncodeToString([]byte(s)),
	} {
		if spelled("before"+text+"after", s) == "" {
			t.Errorf("not found: %s", text)
		}
	}
	if how := spelled("nothing of the kind, cnry012345678", s); how != "" {
		t.Error(how)
	}
}
