package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/config/strict"
)

// files writes files below a new folder, which it returns.
func files(t testing.TB, contents map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// problems returns the issues of a failed load, a line each, without the folder.
func problems(t testing.TB, err error, dir string) string {
	t.Helper()
	var issues strict.Issues
	if err != nil && !errors.As(err, &issues) {
		t.Fatalf("the error is no list of issues: %v", err)
	}
	return strings.ReplaceAll(issues.Error(), dir+string(filepath.Separator), "")
}

// load reads one crewhost.yaml, which must be right.
func load(t testing.TB, text string, environ ...string) *Settings {
	t.Helper()
	s, err := Load(Source{CrewDir: files(t, map[string]string{"crewhost.yaml": text}), Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// faults reads one crewhost.yaml, which must be wrong, and returns its issues.
func faults(t testing.TB, text string, environ ...string) string {
	t.Helper()
	dir := files(t, map[string]string{"crewhost.yaml": text})
	_, err := Load(Source{CrewDir: dir, Environ: environ})
	return problems(t, err, dir)
}

func TestDefaults(t *testing.T) {
	s, err := Load(Source{CrewDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		LLM: LLM{Currency: "USD"},
		MCP: MCP{
			Enabled: true, ConnectTimeout: 30 * time.Second, ProbeTimeout: 2 * time.Second,
			ToolTimeout: time.Minute, ShutdownTimeout: 5 * time.Second, MaxStarting: 8, MaxCalls: 16, Reconnect: Reconnect{MaxAttempts: 5, Initial: 500 * time.Millisecond, Max: 30 * time.Second}, TokenStore: "auto",
			Limits: Limits{
				Tools: 10_000, Pages: 1000, NameLength: 256, DescriptionLength: 32 << 10, SchemaBytes: 1 << 20,
				MessageBytes: 16 << 20, ArgumentsBytes: 4 << 20, ResultBytes: 16 << 20, TextChars: 16 << 20,
			},
			Serving: Serving{
				RequestBytes: 1 << 20, ConcurrentRequests: 32, ResponseBytes: 4 << 20, MetadataBytes: 64 << 10, PageSize: 50, Grace: 5 * time.Second,
				SubscriptionBuffer: 64, Subscribers: 1024, SubscribedURIs: 64, Keepalive: 15 * time.Second,
				SearchResults: 20, SearchCalls: 5, SearchBytes: 256 << 10,
			},
		},
		Permissions: Permissions{Default: "ask", Headless: "deny", CrewGrants: true},
		Memory:      Memory{Entries: 10_000, Bytes: 64 << 20, Recall: 5, Chars: 4_000},
		Knowledge:   Knowledge{Files: 2_000, Bytes: 64 << 20, Chunks: 20_000},
		Audit:       Audit{MaxBytes: 16 << 20, Keep: 20, Required: true},
		Journal:     Journal{Runs: 100},
		Tools: Tools{
			Web:      WebTools{Timeout: 30 * time.Second, Bytes: 8 << 20},
			Database: Databases{Timeout: 30 * time.Second, Rows: 200},
			Shell:    Shell{Timeout: time.Minute, Bytes: 1 << 20, Confine: ConfineRequire, Allow: s.Tools.Shell.Allow},
		},
	}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

// whole is a settings file with every key.
const wholeYAML = `
llm:
  provider: anthropic
  model: m
  base_url: https://llm.example.com/v1
  api_key: ${KEY}
  timeout: 2m
  max_retries: 0
  temperature: 0.5
  top_p: 1
  max_tokens: 1000
  profiles:
    cheap: {provider: replay, tape: tapes/a.jsonl}
    local: {model: x, api_key: {file: keys/k}}
mcp:
  enabled: false
  connect_timeout: 10s
  probe_timeout: 1s
  tool_timeout: 20s
  shutdown_timeout: 3s
  max_starting: 2
  max_calls: 3
  keepalive: 15s
  reconnect: {max_attempts: 0, initial: 1s, max: 4s}
  limits: {tools: 1, pages: 2, name_length: 3, description_length: 4, schema_bytes: 5, message_bytes: 6, arguments_bytes: 7, result_bytes: 8, text_chars: 9}
  servers:
    zeta: {command: z, args: [-p, 8080, 1.50, true], env: {B: x, A: 5}, cwd: work, required: true, connect_timeout: 7s}
    alpha: {type: http, url: https://a.example.com/mcp, headers: {X-A: b}, enabled_tools: [t], disabled_tools: [u], tool_timeout: 9s, max_calls: 4}
permissions: {default: allow, allow: [a], ask: [b], deny: [c], headless: allow}
mounts: ["./out:/output:rw"]
`

const wholeTOML = `
mounts = ["./out:/output:rw"]
[llm]
provider = "anthropic"
model = "m"
base_url = "https://llm.example.com/v1"
api_key = "${KEY}"
timeout = "2m"
max_retries = 0
temperature = 0.5
top_p = 1
max_tokens = 1000
[llm.profiles.cheap]
provider = "replay"
tape = "tapes/a.jsonl"
[llm.profiles.local]
model = "x"
api_key = {file = "keys/k"}
[mcp]
enabled = false
connect_timeout = "10s"
probe_timeout = "1s"
tool_timeout = "20s"
shutdown_timeout = "3s"
max_starting = 2
max_calls = 3
keepalive = "15s"
reconnect = {max_attempts = 0, initial = "1s", max = "4s"}
[mcp.limits]
tools = 1
pages = 2
name_length = 3
description_length = 4
schema_bytes = 5
message_bytes = 6
arguments_bytes = 7
result_bytes = 8
text_chars = 9
[mcp.servers.zeta]
command = "z"
args = ["-p", "8080", "1.50", true]
env = {B = "x", A = 5}
cwd = "work"
required = true
startup_timeout = "7s"
[mcp.servers.alpha]
type = "http"
url = "https://a.example.com/mcp"
headers = {X-A = "b"}
enabled_tools = ["t"]
disabled_tools = ["u"]
tool_timeout = "9s"
max_calls = 4
[permissions]
default = "allow"
allow = ["a"]
ask = ["b"]
deny = ["c"]
headless = "allow"
`

const wholeJSON = `{
  // comments and trailing commas are fine
  "llm": {
    "provider": "anthropic", "model": "m", "base_url": "https://llm.example.com/v1", "api_key": "${KEY}", "timeout": "2m",
    "max_retries": 0, "temperature": 0.5, "top_p": 1, "max_tokens": 1000,
    "profiles": {"cheap": {"provider": "replay", "tape": "tapes/a.jsonl"}, "local": {"model": "x", "api_key": {"file": "keys/k"}}},
  },
  "mcp": {
    "enabled": false, "connect_timeout": "10s", "probe_timeout": "1s", "tool_timeout": "20s", "shutdown_timeout": "3s", "max_starting": 2, "max_calls": 3, "keepalive": "15s", "reconnect": {"max_attempts": 0, "initial": "1s", "max": "4s"},
    "limits": {"tools": 1, "pages": 2, "name_length": 3, "description_length": 4, "schema_bytes": 5, "message_bytes": 6, "arguments_bytes": 7, "result_bytes": 8, "text_chars": 9},
    "servers": {
      "zeta": {"command": "z", "args": ["-p", 8080, 1.50, true], "env": {"B": "x", "A": 5}, "cwd": "work", "required": true, "connect_timeout": "7s"},
      "alpha": {"type": "http", "url": "https://a.example.com/mcp", "headers": {"X-A": "b"}, "enabled_tools": ["t"], "disabled_tools": ["u"], "tool_timeout": "9s", "max_calls": 4},
    },
  },
  "permissions": {"default": "allow", "allow": ["a"], "ask": ["b"], "deny": ["c"], "headless": "allow"},
  "mounts": ["./out:/output:rw"],
}`

// TestFormats: one document in three formats is one set of settings, in the
// order of the document (O12), with paths taken from the file's folder.
func TestFormats(t *testing.T) {
	for name, text := range map[string]string{"crewhost.yaml": wholeYAML, "crewhost.yml": wholeYAML, "crewhost.json": wholeJSON, "crewhost.toml": wholeTOML} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, map[string]string{name: text})
			s, err := Load(Source{CrewDir: dir})
			if err != nil {
				t.Fatal(err)
			}
			if s.Path != filepath.Join(dir, name) || len(s.Warnings) > 0 {
				t.Errorf("path %s, warnings %q", s.Path, s.Warnings)
			}
			l := s.LLM
			if l.Provider != "anthropic" || l.Model != "m" || l.BaseURL.Reveal() != "https://llm.example.com/v1" || l.APIKey.String() != "env:KEY" ||
				l.Timeout != 2*time.Minute || *l.MaxRetries != 0 || *l.Temperature != 0.5 || *l.TopP != 1 || l.MaxTokens != 1000 {
				t.Errorf("llm: %+v", l)
			}
			if len(l.Profiles) != 2 || l.Profiles[0].ID != "cheap" || l.Profiles[0].Tape != filepath.Join(dir, "tapes", "a.jsonl") ||
				l.Profiles[1].Provider != "openai" || l.Profiles[1].APIKey.Name != filepath.Join(dir, "keys", "k") || l.Profiles[1].MaxRetries != nil {
				t.Errorf("profiles: %+v", l.Profiles)
			}
			m := s.MCP
			if m.Enabled || m.ConnectTimeout != 10*time.Second || m.ProbeTimeout != time.Second || m.ToolTimeout != 20*time.Second ||
				m.ShutdownTimeout != 3*time.Second || m.MaxStarting != 2 || m.MaxCalls != 3 || m.Keepalive != 15*time.Second || m.Reconnect != (Reconnect{Initial: time.Second, Max: 4 * time.Second}) ||
				m.Limits != (Limits{Tools: 1, Pages: 2, NameLength: 3, DescriptionLength: 4, SchemaBytes: 5, MessageBytes: 6, ArgumentsBytes: 7, ResultBytes: 8, TextChars: 9}) || len(m.Servers) != 2 {
				t.Fatalf("mcp: %+v", m)
			}
			z, a := m.Servers[0], m.Servers[1]
			if z.Name != "zeta" || a.Name != "alpha" {
				t.Fatalf("the order is %s, %s", z.Name, a.Name)
			}
			var args []string
			for _, arg := range z.Args {
				args = append(args, arg.Reveal())
			}
			if diff := cmp.Diff([]string{"-p", "8080", "1.50", "true"}, args); diff != "" {
				t.Error(diff)
			}
			if z.Transport != TransportStdio || z.Command.Reveal() != "z" || z.Cwd != filepath.Join(dir, "work") || !z.Required ||
				z.ConnectTimeout != 7*time.Second || z.ToolTimeout != 20*time.Second || z.Env[0].Name != "B" || z.Env[1].Value.Reveal() != "5" {
				t.Errorf("zeta: %+v", z)
			}
			if a.Transport != TransportHTTP || a.URL.Reveal() != "https://a.example.com/mcp" || a.Headers[0].Value.Reveal() != "b" ||
				a.ConnectTimeout != 10*time.Second || a.ToolTimeout != 9*time.Second || a.MaxCalls != 4 || a.EnabledTools[0] != "t" || a.DisabledTools[0] != "u" || a.Pos.Line == 0 {
				t.Errorf("alpha: %+v", a)
			}
			p := s.Permissions
			if p.Default != "allow" || p.Headless != "allow" || p.Allow[0].Pattern != "a" || p.Ask[0].Pattern != "b" || p.Deny[0].Pattern != "c" || p.Deny[0].Pos.Line == 0 {
				t.Errorf("permissions: %+v", p)
			}
			if s.Mounts[0].Spec != "./out:/output:rw" || s.Mounts[0].Base != dir {
				t.Errorf("mounts: %+v", s.Mounts)
			}
		})
	}
}

// TestEveryProblemAtOnce holds the lines of a file with every kind of fault.
func TestEveryProblemAtOnce(t *testing.T) {
	got := faults(t, `llm:
  provider: opnai
  modle: x
  base_url: ftp://x
  timeout: 30
  max_retries: -1
  temperature: 3
  top_p: lots
  max_tokens: 0
  api_key: [a]
  profiles:
    default: {model: x}
    "a b": {model: x}
    empty:
    Cheap: {model: x}
    cheap: {provider: replay, profiles: {}}
mcp:
  conect_timeout: 30s
  probe_timeout: 0s
  max_starting: 0
  limits: {tools: 0, page: 1, text_chars: 1e9}
  import: [1, "", gone.json]
  serve: {}
  servers:
    "a b": {command: x}
    both: {command: x, url: "http://x/"}
    neither: {required: true}
    mixed: {command: x, headers: {A: b}, cwd: 5}
    mixed2: {url: "http://x/", args: [a], env: {A: b}, cwd: /}
    typed: {type: http, command: x}
    typed2: {type: stdio, url: "http://x/"}
    old: {type: sse, command: x}
    odd: {type: htpp, url: "http://x/"}
    url: {url: "x y"}
    host: {url: "http:///x"}
    array: {command: [npx, -y]}
    env: {command: x, env: {A: [], B: , "C=D": x}}
    headers: {url: "http://x/", headers: {"a b": c, X-a: 1, x-A: 2, N: "a\nb"}}
    unknown: {command: x, timeout: 5s, enabled_tools: [""]}
    switched: {command: x, enabled: true, disabled: true}
permissions: {default: sometimes, headless: ask, allow: mcp, deny: [~]}
mounts: out
extra: 1
`)
	want := `crewhost.yaml:2:13: llm.provider: "opnai" is not known (did you mean "openai"?) [bad-value]
crewhost.yaml:3:3: unknown key "modle" in llm (did you mean "model"?) [unknown-key]
crewhost.yaml:4:13: llm.base_url is not an http or https URL (http://HOST/… or https://HOST/…) [bad-value]
crewhost.yaml:5:12: llm.timeout must be a duration such as 30s, not an integer (write it with a unit: "30s") [wrong-type]
crewhost.yaml:6:16: llm.max_retries must be at least 0, not -1 [bad-value]
crewhost.yaml:7:16: llm.temperature must be from 0 to 2, not 3 [bad-value]
crewhost.yaml:8:10: llm.top_p must be a number, not a string [wrong-type]
crewhost.yaml:9:15: llm.max_tokens must be at least 1, not 0 [bad-value]
crewhost.yaml:10:12: llm.api_key must be a text or a mapping with env, file or command, not a list [wrong-type]
crewhost.yaml:12:5: the profile id "default" means the section llm itself (give it another id) [bad-name]
crewhost.yaml:13:5: the profile id "a b" is not valid (letters, digits, _ . and -, at most 64, the first a letter or digit) [bad-name]
crewhost.yaml:14:5: llm.profiles.empty sets nothing (a profile stands alone, and takes nothing from llm) [missing]
crewhost.yaml:16:5: the profiles "Cheap" and "cheap" differ in case only [duplicate-key]
crewhost.yaml:16:23: llm.profiles.cheap: the provider replay needs a tape (tape: FILE) [missing]
crewhost.yaml:16:31: unknown key "profiles" in llm.profiles.cheap [unknown-key]
crewhost.yaml:18:3: unknown key "conect_timeout" in mcp (did you mean "connect_timeout"?) [unknown-key]
crewhost.yaml:19:18: mcp.probe_timeout: "0s" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]
crewhost.yaml:20:17: mcp.max_starting must be at least 1, not 0 [bad-value]
crewhost.yaml:21:19: mcp.limits.tools must be at least 1, not 0 [bad-value]
crewhost.yaml:21:22: unknown key "page" in mcp.limits (did you mean "pages"?) [unknown-key]
crewhost.yaml:21:43: mcp.limits.text_chars must be an integer, not a number [wrong-type]
crewhost.yaml:22:12: mcp.import.0 must be a string, not an integer (write it in quotes: "1") [wrong-type]
crewhost.yaml:22:15: mcp.import.1 is empty [missing]
crewhost.yaml:22:19: the imported file "gone.json" does not exist [settings-file]
crewhost.yaml:23:3: unknown key "serve" in mcp (did you mean "served"?) [unknown-key]
crewhost.yaml:25:5: the server name "a b" is not valid (letters, digits, _ . and -, at most 64, the first a letter or digit) [bad-name]
crewhost.yaml:26:5: the server "both": it has both a command and a url (a server is started or is called, keep one) [bad-server]
crewhost.yaml:27:5: the server "neither": it has neither a command nor a url [bad-server]
crewhost.yaml:28:35: the server "mixed": headers belongs to an HTTP server, and this one has a command [bad-server]
crewhost.yaml:29:39: the server "mixed2": args belongs to a stdio server, and this one has a url [bad-server]
crewhost.yaml:29:49: the server "mixed2": env belongs to a stdio server, and this one has a url [bad-server]
crewhost.yaml:29:61: the server "mixed2": cwd belongs to a stdio server, and this one has a url [bad-server]
crewhost.yaml:30:19: the server "typed": it is http and has no url [bad-server]
crewhost.yaml:31:20: the server "typed2": it is stdio and has no command [bad-server]
crewhost.yaml:32:17: the server "old": it is sse and has no url [bad-server]
crewhost.yaml:33:17: the server "odd": the transport "htpp" is not known (did you mean "http"?) [bad-value]
crewhost.yaml:34:16: the server "url": url is not an http or https URL (http://HOST/… or https://HOST/…) [bad-value]
crewhost.yaml:35:17: the server "host": url names no host (http://HOST/… or https://HOST/…) [bad-value]
crewhost.yaml:36:22: mcp.servers.array.command must be a string, not a list [wrong-type]
crewhost.yaml:37:32: mcp.servers.env.env.A must be a string, not a list [wrong-type]
crewhost.yaml:37:39: the server "env": env.B has no value (write "" for an empty one) [missing]
crewhost.yaml:37:41: the server "env": env: "C=D" is not the name of a variable [bad-name]
crewhost.yaml:38:43: the server "headers": headers: "a b" is not the name of a header [bad-name]
crewhost.yaml:38:61: the server "headers": headers: "X-a" and "x-A" are the same header (keep one) [duplicate-key]
crewhost.yaml:38:72: the server "headers": headers.N holds a line break [bad-value]
crewhost.yaml:39:27: unknown key "timeout" in mcp.servers.unknown [unknown-key]
crewhost.yaml:39:56: mcp.servers.unknown.enabled_tools.0 is empty [missing]
crewhost.yaml:40:5: the server "switched": enabled and disabled contradict each other (keep one) [bad-server]
crewhost.yaml:41:24: permissions.default: "sometimes" is not known (known: allow, ask, deny) [bad-value]
crewhost.yaml:41:45: permissions.headless: "ask" is not known (known: allow, deny) [bad-value]
crewhost.yaml:41:57: permissions.allow must be a list, not a string (write a list: [mcp]) [wrong-type]
crewhost.yaml:41:69: permissions.deny.0 is empty [missing]
crewhost.yaml:42:9: mounts must be a list, not a string (write a list: [out]) [wrong-type]
crewhost.yaml:43:1: unknown key "extra" (known: audit, journal, knowledge, llm, mcp, memory, mounts, permissions, tools, vault) [unknown-key]`
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Error(diff)
	}
}

// TestExplicitFile is K53: a file that is named and cannot be used is an issue
// with path and reason, and nothing else is read.
func TestExplicitFile(t *testing.T) {
	dir := files(t, map[string]string{
		"crewhost.yaml": "llm: {model: x}\n", "empty.yaml": "", "comment.yaml": "# nothing\n", "null.yaml": "null\n", "null.json": "null",
		"list.yaml": "- a\n", "text.json": `"x"`, "closed.yaml": "a: 1\n", "folder/x": "", "broken.toml": "a = \n",
		"servers.json": `{"mcpServers": {}}`,
	})
	if err := os.Chmod(filepath.Join(dir, "closed.yaml"), 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop.yaml", filepath.Join(dir, "loop.yaml")); err != nil {
		t.Skip("no symbolic links here")
	}
	for name, want := range map[string]string{
		"loop.yaml":    "loop.yaml: the settings file cannot be read: too many levels of symbolic links [settings-file]",
		"nope.json":    "nope.json: the settings file does not exist [settings-file]",
		"folder":       "folder: the settings file is a directory, not a file [settings-file]",
		"closed.yaml":  "closed.yaml: the settings file may not be read: permission denied [settings-file]",
		"empty.yaml":   "empty.yaml: the settings file is empty [settings-file]",
		"comment.yaml": "comment.yaml: the settings file is empty [settings-file]",
		"null.yaml":    "null.yaml: the settings file holds nothing but null [settings-file]",
		"null.json":    "null.json: the settings file holds nothing but null [settings-file]",
		"list.yaml":    "list.yaml:1:1: the settings file must be a mapping, not a list [wrong-type]",
		"text.json":    "text.json:1:1: the settings file must be a mapping, not a string [wrong-type]",
		"broken.toml":  "broken.toml:1:5: unexpected character U+000A at start of value [syntax]",
		"servers.json": "servers.json:1:16: mcpServers is the key of a file of MCP servers, which this is not (name it in a crewhost.yaml: mcp: {import: [servers.json]}) [unknown-key]",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "closed.yaml" && (os.Geteuid() == 0 || runtime.GOOS == "windows") {
				t.Skip("every file may be read")
			}
			s, err := Load(Source{Explicit: filepath.Join(dir, name), CrewDir: dir})
			if s != nil || err == nil {
				t.Fatalf("loaded: %+v", s)
			}
			if got := problems(t, err, dir); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	const other = "llm: {model: other}\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // the path, or the issues
		warn  string
	}{
		{"none", nil, "", ""},
		{"beside the crew", map[string]string{"a/b/crewhost.toml": "", "a/crewhost.yaml": other}, "a/b/crewhost.toml: the settings file is empty [settings-file]", ""},
		{"Orkeon's beside the crew", map[string]string{"a/b/appsettings.json": "{}", "a/crewhost.yaml": other}, "a/b/appsettings.json", ""},
		{"both beside the crew", map[string]string{"a/b/appsettings.json": "{}", "a/b/crewhost.yaml": other}, "a/b/crewhost.yaml", "a/b/appsettings.json: not read: crewhost.yaml takes precedence"},
		{"two beside the crew", map[string]string{"a/b/crewhost.json": "{}", "a/b/crewhost.yaml": other, "a/crewhost.yml": other},
			"a/b/crewhost.yaml: the folder has more than one settings file: crewhost.yaml, crewhost.json (keep one, or name one with --settings) [settings-file]", ""},
		{"above", map[string]string{"a/crewhost.yml": other, "crewhost.yaml": other}, "a/crewhost.yml", ""},
		{"far above", map[string]string{"crewhost.yaml": other, "user/crewhost/crewhost.yaml": other}, "crewhost.yaml", ""},
		{"Orkeon's above", map[string]string{"a/appsettings/appsettings.json": "{}", "a/appsettings.json": "{}"}, "a/appsettings/appsettings.json", ""},
		{"Orkeon's in a folder beside", map[string]string{"a/b/appsettings/appsettings.json": "{}"}, "a/b/appsettings/appsettings.json", ""},
		{"Orkeon's above is no candidate by its name alone", map[string]string{"a/appsettings.json": "{}"}, "", ""},
		{"the user's", map[string]string{"user/crewhost/crewhost.yaml": other}, "user/crewhost/crewhost.yaml", ""},
		{"the user's, two", map[string]string{"user/crewhost/crewhost.yaml": other, "user/crewhost/crewhost.yml": other},
			"user/crewhost/crewhost.yaml: the folder has more than one settings file: crewhost.yaml, crewhost.yml (keep one, or name one with --settings) [settings-file]", ""},
		{"a list of servers is offered", map[string]string{"a/b/crewhost.yaml": other, "a/b/.mcp.json": "{"}, "a/b/crewhost.yaml",
			"a/b/.mcp.json: not read; to use its servers, write mcp: {import: [.mcp.json]} in the settings"},
		{"a list of servers is offered without settings", map[string]string{"a/b/.mcp.json": "{"}, "",
			"a/b/.mcp.json: not read; to use its servers, write mcp: {import: [.mcp.json]} in the settings"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := files(t, c.files)
			crew := filepath.Join(dir, "a", "b")
			if err := os.MkdirAll(crew, 0o755); err != nil {
				t.Fatal(err)
			}
			s, err := Load(Source{CrewDir: crew, UserConfigDir: filepath.Join(dir, "user")})
			if err != nil {
				if got := problems(t, err, dir); got != c.want {
					t.Errorf("\n got %s\nwant %s", got, c.want)
				}
				return
			}
			path := filepath.ToSlash(strings.TrimPrefix(s.Path, dir+string(filepath.Separator)))
			if path != c.want {
				t.Errorf("read %q, want %q", path, c.want)
			}
			if got := strings.ReplaceAll(strings.Join(s.Warnings, "\n"), dir+string(filepath.Separator), ""); got != c.warn {
				t.Errorf("warnings %q, want %q", got, c.warn)
			}
		})
	}
}

// TestNoStrangersSettings: a file in a folder above that anybody may write to
// could name any command.
func TestNoStrangersSettings(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such bits")
	}
	dir := files(t, map[string]string{"crewhost.yaml": "llm: {model: x}\n", "own/crew.yaml": ""})
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	s, err := Load(Source{CrewDir: filepath.Join(dir, "own")})
	if err != nil || s.Path != "" || len(s.Warnings) != 1 || !strings.Contains(s.Warnings[0], "anybody may write") {
		t.Errorf("%+v %v", s, err)
	}
	if s, err = Load(Source{CrewDir: dir}); err != nil || s.Path == "" {
		t.Errorf("beside the crew: %+v %v", s, err)
	}
}

func TestLayers(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.yaml": `
llm: {model: file, max_retries: 1, temperature: 0.1, profiles: {Big-One: {model: b}}}
mcp:
  tool_timeout: 10s
  connect_timeout:
  servers:
    my-server: {command: x, env: {Token: file, Other: o}}
    last: {command: y}
permissions: {allow: [a, b], default: deny}
mounts: ["a:/a:ro"]
`})
	s, err := Load(Source{
		CrewDir: dir,
		Environ: []string{
			"CREWHOST_LLM__MODEL=env", "CREWHOST_LLM__MAX_RETRIES=2", "CREWHOST_LLM__TEMPERATURE=0.2", "CREWHOST_LLM__API_KEY=sk-env-1",
			"CREWHOST_LLM__PROFILES__BIG_ONE__MODEL=b2", "CREWHOST_MCP__CONNECT_TIMEOUT=5s", "CREWHOST_MCP__ENABLED=false",
			"CREWHOST_MCP__SERVERS__MY_SERVER__ENV__TOKEN=env", "CREWHOST_MCP__SERVERS__MY_SERVER__ENV__New=n",
			"CREWHOST_MCP__SERVERS__MY_SERVER__ARGS=[a, 'b c']", "CREWHOST_MCP__SERVERS__ZZ__COMMAND=zz", "CREWHOST_MCP__SERVERS__AA__URL=http://aa/",
			"CREWHOST_PERMISSIONS__ALLOW=[c]", "CREWHOST_PERMISSIONS__HEADLESS=", "CREWHOST_RUN_ID=reserved", "crewhost_llm__model=another name",
		},
		Reserved:  []string{"CREWHOST_RUN_ID"},
		Overrides: []Override{{"--model", "llm.model", "flag"}, {"--approve", "permissions.headless", "allow"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if s.LLM.Model != "flag" || *s.LLM.MaxRetries != 2 || *s.LLM.Temperature != 0.2 || s.LLM.APIKey.Value.Reveal() != "sk-env-1" {
		t.Errorf("llm: %+v", s.LLM)
	}
	if len(s.LLM.Profiles) != 1 || s.LLM.Profiles[0].ID != "Big-One" || s.LLM.Profiles[0].Model != "b2" {
		t.Errorf("profiles: %+v", s.LLM.Profiles)
	}
	if s.MCP.ConnectTimeout != 5*time.Second || s.MCP.ToolTimeout != 10*time.Second || s.MCP.ProbeTimeout != 2*time.Second || s.MCP.Enabled {
		t.Errorf("mcp: %+v", s.MCP)
	}
	var names []string
	for _, server := range s.MCP.Servers {
		names = append(names, server.Name)
	}
	if diff := cmp.Diff([]string{"my-server", "last", "aa", "zz"}, names); diff != "" {
		t.Errorf("order: %s", diff)
	}
	env := map[string]string{}
	for _, v := range s.MCP.Servers[0].Env {
		env[v.Name] = v.Value.Reveal()
	}
	if diff := cmp.Diff(map[string]string{"Token": "env", "Other": "o", "New": "n"}, env); diff != "" {
		t.Errorf("env: %s", diff)
	}
	if args := s.MCP.Servers[0].Args; len(args) != 2 || args[1].Reveal() != "b c" {
		t.Errorf("args: %v", args)
	}
	if p := s.Permissions; len(p.Allow) != 1 || p.Allow[0].Pattern != "c" || p.Default != "deny" || p.Headless != "allow" {
		t.Errorf("permissions: %+v", p)
	}
	if p := s.Permissions.Allow[0].Pos.String(); p != "environment variable CREWHOST_PERMISSIONS__ALLOW" {
		t.Errorf("place: %s", p)
	}
	if len(s.Warnings) > 0 {
		t.Errorf("warnings: %q", s.Warnings)
	}
}

func TestFaultsOfVariablesNameThem(t *testing.T) {
	got := faults(t, "llm: {model: x}\nmcp: {servers: {a: {command: x}}}\npermissions: word\n",
		"CREWHOST_LLM__MODLE=x", "CREWHOST_FOO=1", "CREWHOST_MCP__MAX_STARTING=none", "CREWHOST_MCP__CONNECT_TIMEOUT=0s", "CREWHOST_LLM____X=1",
		"CREWHOST_MOUNTS=[a", "CREWHOST_LLM=x", "CREWHOST_MCP__SERVERS__A__URL=http://x/", "CREWHOST_PERMISSIONS__DEFAULT=ask")
	want := []string{
		`crewhost.yaml:2:17: the server "a": it has both a command and a url (a server is started or is called, keep one) [bad-server]`,
		`crewhost.yaml:3:14: permissions must be a mapping, not a string [wrong-type]`,
		`environment variable CREWHOST_FOO: unknown key "foo" (known: audit, journal, knowledge, llm, mcp, memory, mounts, permissions, tools, vault) [unknown-key]`,
		`environment variable CREWHOST_LLM__MODLE: llm is set as a whole and in parts (the other is environment variable CREWHOST_LLM) [duplicate-key]`,
		`environment variable CREWHOST_LLM____X: a level of its name is empty (levels are parted by two underscores: CREWHOST_LLM__MODEL) [unknown-key]`,
		`environment variable CREWHOST_MCP__CONNECT_TIMEOUT: mcp.connect_timeout: "0s" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]`,
		`environment variable CREWHOST_MCP__MAX_STARTING: mcp.max_starting: "none" is not an integer [bad-value]`,
	}
	lines := strings.Split(got, "\n")
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("missing: %s", w)
		}
	}
	if !strings.Contains(got, "environment variable CREWHOST_MOUNTS:") || len(lines) != len(want)+2 {
		t.Errorf("got:\n%s", got)
	}
	got = faults(t, "llm: {model: x}\n", "CREWHOST_LLM__MODLE=x")
	if got != `environment variable CREWHOST_LLM__MODLE: unknown key "modle" in llm (did you mean "model"?) [unknown-key]` {
		t.Error(got)
	}
}

// TestForeignKeys: keys are shown on one line, whatever is in them, and those
// with a NUL, which JSON can write, are refused.
func TestForeignKeys(t *testing.T) {
	dir := files(t, map[string]string{"crewhost.json": `{"mcp": {"servers": {"a\nb": {"command": "x", "env": {"C\nD": null}}}, "import": [{"k\u0000": 1}]}, "\u0000place": 1, "llm": {"profiles": {"a b": {"modle": 1}}}}`})
	_, err := Load(Source{CrewDir: dir})
	if diff := cmp.Diff([]string{
		`crewhost.json:1:22: the server name "a\nb" is not valid (letters, digits, _ . and -, at most 64, the first a letter or digit) [bad-name]`,
		`crewhost.json:1:63: the server "a\nb": env."C\nD" has no value (write "" for an empty one) [missing]`,
		`crewhost.json:1:83: mcp.import.0 must be a string, not a mapping [wrong-type]`,
		`crewhost.json:1:84: the key "k\x00" holds a NUL character [bad-value]`,
		`crewhost.json:1:101: the key "\x00place" holds a NUL character [bad-value]`,
		`crewhost.json:1:140: the profile id "a b" is not valid (letters, digits, _ . and -, at most 64, the first a letter or digit) [bad-name]`,
		`crewhost.json:1:148: unknown key "modle" in llm.profiles.a b (did you mean "model"?) [unknown-key]`,
	}, strings.Split(problems(t, err, dir), "\n")); diff != "" {
		t.Error(diff)
	}
	if got := faults(t, "mcpServers: {}\nllm: {model: x}\n"); !strings.HasSuffix(got, "(write mcp: {servers: …}) [unknown-key]") {
		t.Error(got)
	}
}

func TestSelect(t *testing.T) {
	s := load(t, "llm: {model: a, temperature: 1, profiles: {Cheap: {model: b}}}\n")
	for id, model := range map[string]string{"": "a", "default": "a", "DEFAULT": "a", "cheap": "b"} {
		if p, err := s.LLM.Select(id); err != nil || p.Model != model || model == "b" && p.Temperature != nil {
			t.Errorf("%q: %+v %v", id, p, err)
		}
	}
	if _, err := s.LLM.Select("nope"); err == nil || err.Error() != `the settings have no LLM profile "nope"; known: default, Cheap` {
		t.Error(err)
	}
}
