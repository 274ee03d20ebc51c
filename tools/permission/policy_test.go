package permission_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/tools/permission"
)

func rules(patterns ...string) []permission.Rule {
	var rs []permission.Rule
	for i, p := range patterns {
		rs = append(rs, permission.Rule{Pattern: p, Place: fmt.Sprintf("crewhost.yaml:%d", i+1)})
	}
	return rs
}

func mustPolicy(t testing.TB, c permission.Config) *permission.Policy {
	t.Helper()
	p, err := permission.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func builtin(tool, args string) permission.Request {
	return permission.Request{Tool: tool, Arguments: json.RawMessage(args)}
}

func hosted(server, tool string) permission.Request {
	return permission.Request{Tool: tool, Server: server, ServerTool: tool}
}

func scoped(server, tool string) permission.Request {
	return permission.Request{Tool: "mcp__" + server + "__" + tool, Server: server, ServerTool: tool}
}

func TestDenyOverAskOverAllow(t *testing.T) {
	for _, tt := range []struct {
		name             string
		allow, ask, deny []string
		tool             string
		want             permission.Verdict
		rule             string
	}{
		{"nothing said", nil, nil, nil, "x", permission.Ask, ""},
		{"allowed", []string{"x"}, nil, nil, "x", permission.Allow, "x"},
		{"the wider deny wins over the exact allow", []string{"file_read"}, nil, []string{"*"}, "file_read", permission.Deny, "*"},
		{"the wider ask wins over the exact allow", []string{"file_read"}, []string{"file_*"}, nil, "file_read", permission.Ask, "file_*"},
		{"deny wins over ask", nil, []string{"x"}, []string{"?"}, "x", permission.Deny, "?"},
		{"the first of a class is reported", []string{"y", "x*", "x"}, nil, nil, "x", permission.Allow, "x*"},
		{"names are case-sensitive", []string{"Shell"}, nil, nil, "shell", permission.Ask, ""},
		{"a name is matched as a whole", nil, nil, []string{"shell"}, "shell_command", permission.Ask, ""},
		{"a star crosses slashes in names K23", nil, nil, []string{"files*"}, "files/list", permission.Deny, "files*"},
		{"a name with a colon", []string{`GET\:/items/\{id\}`}, nil, nil, "GET:/items/{id}", permission.Allow, `GET\:/items/\{id\}`},
		{"a name beyond ASCII", []string{"größe_?ndern"}, nil, nil, "größe_ändern", permission.Allow, "größe_?ndern"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustPolicy(t, permission.Config{Allow: rules(tt.allow...), Ask: rules(tt.ask...), Deny: rules(tt.deny...)})
			d := p.Decide(builtin(tt.tool, ""))
			got := ""
			if d.Rule != nil {
				got = d.Rule.Pattern
			}
			if d.Verdict != tt.want || got != tt.rule {
				t.Errorf("got %s by %q, want %s by %q", d.Verdict, got, tt.want, tt.rule)
			}
		})
	}
}

func TestDecisionNamesRuleAndPlace(t *testing.T) {
	p := mustPolicy(t, permission.Config{Deny: []permission.Rule{{Pattern: "shell", Place: "crewhost.yaml:12"}}})
	want := permission.Decision{
		Verdict: permission.Deny,
		Rule:    &permission.Rule{Pattern: "shell", Place: "crewhost.yaml:12"},
		Reason:  `deny rule "shell" (crewhost.yaml:12)`,
	}
	if diff := cmp.Diff(want, p.Decide(builtin("shell", ""))); diff != "" {
		t.Error(diff)
	}
	want = permission.Decision{Verdict: permission.Ask, Reason: "no rule matches, and the default is ask"}
	if diff := cmp.Diff(want, p.Decide(builtin("other", ""))); diff != "" {
		t.Error(diff)
	}
}

func TestZeroPolicyAsksAndDeniesHeadless(t *testing.T) {
	var none *permission.Policy
	for _, p := range []*permission.Policy{none, {}, mustPolicy(t, permission.Config{})} {
		if d := p.Decide(builtin("x", "{}")); d.Verdict != permission.Ask {
			t.Errorf("got %s, want ask", d.Verdict)
		}
		if h := p.Headless(); h != permission.Deny {
			t.Errorf("headless answer is %s, want deny", h)
		}
	}
	p := mustPolicy(t, permission.Config{Default: permission.Deny, Headless: permission.Allow})
	if d := p.Decide(builtin("x", "")); d.Verdict != permission.Deny {
		t.Errorf("got %s, want deny", d.Verdict)
	}
	if h := p.Headless(); h != permission.Allow {
		t.Errorf("headless answer is %s, want allow", h)
	}
}

// TestServerPatternsA9 holds the mcp__ form for agent-scoped and host-level
// tools, and against names that are built to be mistaken.
func TestServerPatternsA9(t *testing.T) {
	for _, tt := range []struct {
		name    string
		pattern string
		request permission.Request
		allow   bool // an allow rule matches
		deny    bool // a deny rule matches
	}{
		{"agent-scoped", "mcp__files__read", scoped("files", "read"), true, true},
		{"host-level under its plain name", "mcp__files__read", hosted("files", "read"), true, true},
		{"host-level, registered under another name", "mcp__files__read",
			permission.Request{Tool: "files_read", Server: "files", ServerTool: "read"}, true, true},
		{"whole server by star", "mcp__files__*", hosted("files", "read"), true, true},
		{"whole server by name", "mcp__files", hosted("files", "read"), true, true},
		{"whole server, agent-scoped", "mcp__files", scoped("files", "read"), true, true},
		{"every server", "mcp__*", hosted("files", "read"), true, true},
		{"every server, by parts", "mcp__*__*", hosted("files", "read"), true, true},
		{"one verb on every server", "mcp__*__delete_*", hosted("files", "delete_all"), true, true},
		{"glob over servers", "mcp__git*__read", hosted("github", "read"), true, true},
		{"another server", "mcp__files__*", hosted("mail", "read"), false, false},
		{"a server with the same beginning", "mcp__files", hosted("files2", "read"), false, false},
		{"a plain name also matches a server's tool", "read", hosted("files", "read"), true, true},
		{"mcp__* is no built-in", "mcp__*", builtin("read", ""), false, false},

		// A server whose own name holds the separator.
		{"mcp__a__* does not open a__evil", "mcp__a__*", scoped("a__evil", "x"), false, true},
		{"mcp__a__b__* speaks of server a", "mcp__a__b__*", scoped("a__b", "x"), false, true},
		{"and of its tool b__c", "mcp__a__b__*", scoped("a", "b__c"), true, true},
		{"an escape keeps the separator in the server", `mcp__a_\_b__*`, scoped("a__b", "x"), true, true},
		{"a server's name with a trailing underscore", "mcp__a___x", scoped("a_", "x"), false, true},
		// A server that gives its tool another server's name.
		{"a borrowed name opens nothing", "mcp__trusted__*", hosted("evil", "mcp__trusted__read"), false, true},
		{"nor does a built-in's", "mcp__trusted__*", builtin("mcp__trusted__read", ""), false, true},
		{"a tool of an empty name", "mcp__files__?*", hosted("files", ""), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			allow := mustPolicy(t, permission.Config{Default: permission.Ask, Allow: rules(tt.pattern)})
			if got := allow.Decide(tt.request).Verdict == permission.Allow; got != tt.allow {
				t.Errorf("allow rule %s matches: %t, want %t", tt.pattern, got, tt.allow)
			}
			deny := mustPolicy(t, permission.Config{Deny: rules(tt.pattern)})
			if got := deny.Decide(tt.request).Verdict == permission.Deny; got != tt.deny {
				t.Errorf("deny rule %s matches: %t, want %t", tt.pattern, got, tt.deny)
			}
		})
	}
}

// TestConditions holds argument conditions for both kinds of class: what can't
// be judged must not be allowed, and must be denied.
func TestConditions(t *testing.T) {
	big, err := json.Marshal(map[string]string{"path": "/output/" + strings.Repeat("x", 65<<10)})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pattern, args string
		allow, deny   bool
	}{
		// Globs.
		{"w:path=/output/**", `{"path":"/output/a/b.md"}`, true, true},
		{"w:path=/output/**", `{"path":"/outputs/a"}`, false, false},
		{"w:path=/output/**", `{"path":"/output"}`, true, true},
		{"w:path=/output/**", `{"path":"/output/"}`, true, true},
		{"w:path=/output/*", `{"path":"/output/a"}`, true, true},
		{"w:path=/output/*", `{"path":"/output/a/b"}`, false, false},
		{"w:path=/output/?.md", `{"path":"/output/a.md"}`, true, true},
		{"w:path=/output/?.md", `{"path":"/output//.md"}`, false, false},
		{"w:path=/**/*.md", `{"path":"/a/b/c.md"}`, true, true},
		{"w:path=/**", `{"path":"/"}`, true, true},
		{"w:path=*.md", `{"path":"a.md"}`, true, true},
		{"w:path=*.md", `{"path":"/etc/a.md"}`, false, true},
		{"w:cmd=rm *", `{"cmd":"rm -rf /"}`, false, true},
		{"w:cmd=rm **", `{"cmd":"rm -rf /"}`, true, true},

		// Paths that only look right.
		{"w:path=/output/**", `{"path":"/output/../etc/passwd"}`, false, true}, // as written it is below /output
		{"w:path=/etc/**", `{"path":"/output/../etc/passwd"}`, true, true},
		{"w:path=/etc/**", `{"path":"/output/x"}`, false, false},
		{"w:path=/output/**", `{"path":"/output/./a//b"}`, true, true},
		{"w:path=/output/**", `{"path":"/output/..\\..\\etc\\passwd"}`, false, true},
		{"w:path=/etc/**", `{"path":"\\etc\\passwd"}`, false, true},
		{"w:path=/etc/**", `{"path":"//etc//passwd"}`, true, true},
		{"w:path=/etc/**", `{"path":" /etc/passwd"}`, false, true},
		{"w:path=/etc/**", `{"path":"FILE:///etc/passwd"}`, false, true},
		{"w:path=/output/**", `{"path":"/output/a\u0000/../../etc"}`, false, true},
		{"w:path=/output/**", `{"path":"/output/a\nb"}`, false, true},
		// Relative to what, only the tool knows.
		{"w:path=/etc/**", `{"path":"passwd"}`, false, true},
		{"w:path=/etc/passwd", `{"path":"../../etc/passwd"}`, false, true},
		{"w:path=/etc/passwd", `{"path":"report.md"}`, false, false},
		{"w:path=/etc/**", `{"path":".."}`, false, true},
		{"w:path=secret/*", `{"path":"secret/a"}`, true, true},
		{"w:path=secret/*", `{"path":"/output/secret/a"}`, false, true},
		{"w:path=secret/**", `{"path":"secret/../a"}`, false, true},

		// URLs.
		{"w:url=https://example.com/**", `{"url":"https://example.com/a?b=c"}`, true, true},
		{"w:url=https://example.com/**", `{"url":"HTTPS://Example.COM:443/a"}`, true, true},
		{"w:url=https://example.com/**", `{"url":"https://example.com"}`, true, true},
		{"w:url=https://example.com/**", `{"url":"https://example.com.evil.net/"}`, false, false},
		{"w:url=https://example.com/**", `{"url":"https://example.com@evil.net/"}`, false, false},
		{"w:url=https://evil.net/**", `{"url":"https://example.com@evil.net/"}`, false, true},
		{"w:url=https://*.example.com/**", `{"url":"https://evil.net?x=.example.com/"}`, false, true}, // a text that might
		{"w:url=https://*.example.com/**", `{"url":"https://evil.net\\.example.com/"}`, false, true},
		{"w:url=https://*.example.com/**", `{"url":"https://a.example.com/x"}`, true, true},
		{"w:url=https://example.com/a/**", `{"url":"https://example.com/a/../b"}`, false, true},
		{"w:url=https://example.com/a/**", `{"url":"https://example.com/a/%2e%2e/b"}`, false, true},
		{"w:url=https://example.com/**", `{"url":"example.com/x"}`, false, true},

		{"w:url=HTTPS://Example.COM/**", `{"url":"https://example.com/a"}`, true, true},
		{"w:url=https://example.com", `{"url":"https://example.com"}`, true, true},
		{"w:url=https://example.com/?q=*", `{"url":"https://example.com/xq=1"}`, false, false},
		{"w:url=file:///docs/**", `{"url":"file:///docs/a"}`, true, true}, // no host is needed here
		{"w:url=file:///docs/**", `{"url":"file:/docs/a"}`, true, true},
		{"w:url=file:///docs/**", `{"url":"file://localhost/docs/a"}`, true, true},
		{"w:url=file:///docs/**", `{"url":"file://elsewhere/docs/a"}`, false, false},
		{"w:url=file:///docs/**", `{"url":"file:///docs/../etc/a"}`, false, true},
		{"w:url=file:///etc/**", `{"url":"file:///docs/../etc/a"}`, true, true},
		{"w:url=notes:///a", `{"url":"notes:///b"}`, false, false},
		{"w:url=notes:///a", `{"url":"notes:b"}`, false, true},
		{"w:url=https://example.com/**", `{"url":"https:///example.com/"}`, false, true},
		{"w:url=https://evil.net/Admin/**", `{"url":"https://evil.net/admin/x"}`, false, true},

		// Letter case, which file systems may ignore.
		{"w:path=/src/.env", `{"path":"/SRC/.Env"}`, false, true},
		{"w:path=/SRC/**", `{"path":"/src/a"}`, false, true},
		{"w:name=Admin", `{"name":"admin"}`, false, false},
		{"w:cmd=git *", `{"cmd":"git status\nrm x"}`, false, true},

		// Kinds of value.
		{"w:n=5", `{"n":5}`, true, true},
		{"w:n=5", `{"n":"5"}`, true, true},
		{"w:n=5", `{"n":5.0}`, false, true},
		{"w:n=725653563933458433", `{"n":725653563933458433}`, true, true}, // K31
		{"w:n=725653563933458433", `{"n":725653563933458432}`, false, false},
		{"w:b=true", `{"b":true}`, true, true},
		{"w:b=true", `{"b":false}`, false, false},
		{"w:path=/etc/**", `{"path":["/output/a"]}`, false, true},
		{"w:path=/etc/**", `{"path":{"a":1}}`, false, true},
		{"w:path=**", `{"path":{"a":1}}`, false, true},
		{"w:path=/output/**", string(big), false, true},
		{"w:path=/output/**", `{"path":"\ud800"}`, false, true}, // decoded leniently: relative

		// Absent members, and arguments that are no object.
		{"w:path=**", `{}`, false, false},
		{"w:path=**", ``, false, false},
		{"w:path=**", `null`, false, false},
		{"w:path=**", `{"path":null}`, false, false},
		{"w:path=**", `{"path":""}`, true, true},
		{"w:path=", `{"path":""}`, true, true},
		{"w:path=/x", `["/x"]`, false, true},
		{"w:path=/x", `"/x"`, false, true},
		{"w:path=/x", `{"path":"/y"`, false, true},
		{"w:path=/x", `{"path":"/y"}{}`, false, true},
		{"w", `{bad`, true, true},

		// Members that one reader takes and another does not.
		{"w:path=/output/**", `{"path":"/output/a","path":"/etc/passwd"}`, false, true},
		{"w:path=/etc/**", `{"path":"/output/a","path":"/etc/passwd"}`, false, true},
		{"w:path=/output/**", `{"path":"/output/a","Path":"/etc/passwd"}`, false, true},
		{"w:path=/etc/**", `{"PATH":"/etc/passwd"}`, false, true},
		{`w:path=/x`, `{"p\u0061th":"/x"}`, true, true},

		// Several conditions, and escapes.
		{"w:path=/output/**,append=true", `{"path":"/output/a","append":true}`, true, true},
		{"w:path=/output/**,append=true", `{"path":"/output/a","append":false}`, false, false},
		{"w:path=/output/**,append=true", `{"path":"/output/a"}`, false, false},
		{`w:cmd=a\,b`, `{"cmd":"a,b"}`, true, true},
		{`w:cmd=a\*`, `{"cmd":"a*"}`, true, true},
		{`w:cmd=a\*`, `{"cmd":"ab"}`, false, false},
		{`w:cmd=a=b:c`, `{"cmd":"a=b:c"}`, true, true},
	} {
		t.Run(tt.pattern+" "+tt.args[:min(len(tt.args), 60)], func(t *testing.T) {
			r := permission.Request{Tool: "w", Server: "s", ServerTool: "w", Arguments: json.RawMessage(tt.args)}
			allow := mustPolicy(t, permission.Config{Allow: rules(tt.pattern)})
			if got := allow.Decide(r).Verdict == permission.Allow; got != tt.allow {
				t.Errorf("allow rule matches: %t, want %t", got, tt.allow)
			}
			for _, c := range []permission.Config{{Deny: rules(tt.pattern)}, {Default: permission.Allow, Ask: rules(tt.pattern)}} {
				if got := mustPolicy(t, c).Decide(r).Rule != nil; got != tt.deny {
					t.Errorf("strict rule matches: %t, want %t", got, tt.deny)
				}
			}
		})
	}
}

func TestBaseAnswersForBuiltins(t *testing.T) {
	for _, tt := range []struct {
		pattern, value string
		server         string
		allow, deny    bool
	}{
		{"w:path=/output/**", "report.md", "", true, true},
		{"w:path=/output/**", "../etc/passwd", "", false, false},
		{"w:path=/etc/**", "../etc/passwd", "", true, true},
		{"w:path=/etc/**", "report.md", "", false, false},
		{"w:path=/output/secret/**", "secret/key", "", true, true},
		{"w:path=/output/**", "report.md", "files", false, true}, // a server has a folder of its own
	} {
		args, err := json.Marshal(map[string]string{"path": tt.value})
		if err != nil {
			t.Fatal(err)
		}
		r := permission.Request{Tool: "w", Server: tt.server, ServerTool: "w", Arguments: args}
		allow := mustPolicy(t, permission.Config{Base: "/output", Allow: rules(tt.pattern)})
		if got := allow.Decide(r).Verdict == permission.Allow; got != tt.allow {
			t.Errorf("%s, %q: allow matches: %t, want %t", tt.pattern, tt.value, got, tt.allow)
		}
		deny := mustPolicy(t, permission.Config{Base: "/output", Deny: rules(tt.pattern)})
		if got := deny.Decide(r).Verdict == permission.Deny; got != tt.deny {
			t.Errorf("%s, %q: deny matches: %t, want %t", tt.pattern, tt.value, got, tt.deny)
		}
	}
}

func TestBadRulesAllAtOnce(t *testing.T) {
	bad := map[string]string{
		"":                        "empty",
		" x":                      "space",
		"!shell":                  "does not negate",
		"file_write(/output/**)":  "tool:argument=pattern",
		"file_[rw]*":              "no meaning",
		"{a,b}":                   "no meaning",
		`x\`:                      "escapes nothing",
		":path=/x":                "no tool name",
		"x:":                      "argument=pattern",
		"x:path":                  "argument=pattern",
		"mcp:github:*":            "argument=pattern",
		"x:=v":                    "argument=pattern",
		"x:p*=v":                  "wildcard",
		"x:a=1,":                  "argument=pattern",
		"mcp__":                   "no server",
		"mcp__files__":            "no tool is named",
		"x:path=/output/../etc/*": "not clean",
		"x:path=/output/":         "not clean",
		"x:u=https://a:443/**":    "default port",
		"x:u=https://b@a/**":      "without a user",
		"x:u=https://a/b/../c/**": "not clean",
		strings.Repeat("x", 1025): "longer than",
	}
	c := permission.Config{Default: "maybe", Headless: permission.Ask}
	place := 0
	want := map[string]string{}
	for p, msg := range bad {
		place++
		at := fmt.Sprintf("f.yaml:%d", place)
		want[at] = msg
		c.Deny = append(c.Deny, permission.Rule{Pattern: p, Place: at})
		c.Allow = append(c.Allow, permission.Rule{Pattern: p, Place: "allow." + at})
	}
	_, err := permission.New(c)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2+2*len(bad) {
		t.Errorf("%d problems, want %d:\n%s", len(lines), 2+2*len(bad), err)
	}
	for at, msg := range want {
		for _, place := range []string{"(" + at + ")", "(allow." + at + ")"} {
			found := false
			for _, l := range lines {
				found = found || strings.Contains(l, place) && strings.Contains(l, msg)
			}
			if !found {
				t.Errorf("no line names %s with %q", place, msg)
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	var allow, deny []permission.Rule
	for i := range 50 {
		allow = append(allow, permission.Rule{Pattern: fmt.Sprintf("mcp__server%d__*", i)})
		deny = append(deny, permission.Rule{Pattern: fmt.Sprintf("tool_%d:path=/etc/%d/**", i, i)})
	}
	allow = append(allow, permission.Rule{Pattern: "file_write:path=/output/**"})
	p := mustPolicy(b, permission.Config{Allow: allow, Deny: deny})
	r := builtin("file_write", `{"path":"/output/reports/2026/summary.md","content":"`+strings.Repeat("x", 4000)+`"}`)
	b.ReportAllocs()
	for b.Loop() {
		if p.Decide(r).Verdict != permission.Allow {
			b.Fatal("not allowed")
		}
	}
}

func FuzzPolicy(f *testing.F) {
	for _, s := range [][3]string{
		{"file_*", "file_read", `{}`},
		{"mcp__a__b__*", "mcp__a__b__c", `{"x":1}`},
		{"w:path=/output/**,n=5", "w", `{"path":"/output/../x","n":5e0}`},
		{`w:url=https://*.example.com/**`, "w", `{"url":"https://a.example.com:443/%2e%2e/"}`},
		{`\*\?\\`, `*?\`, `[]`},
		{"**a**b**c**d**e**", strings.Repeat("abcde", 100), ``},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, pattern, name, args string) {
		allow, err := permission.New(permission.Config{Allow: rules(pattern)})
		deny, err2 := permission.New(permission.Config{Deny: rules(pattern)})
		if (err == nil) != (err2 == nil) {
			t.Fatalf("%q is a pattern for one class only: %v, %v", pattern, err, err2)
		}
		if err != nil {
			return
		}
		for _, server := range []string{"", "a", name} {
			r := permission.Request{Tool: name, Server: server, ServerTool: name, Arguments: json.RawMessage(args)}
			// Whatever an allow rule matches, the same rule as a deny matches.
			if allow.Decide(r).Verdict == permission.Allow && deny.Decide(r).Verdict != permission.Deny {
				t.Errorf("%q matches %+v as an allow rule and not as a deny rule", pattern, r)
			}
		}
	})
}

// What a server calls its tool makes it none of the host's.
func TestRuleOfTheHostAlone(t *testing.T) {
	p := mustPolicy(t, permission.Config{Allow: []permission.Rule{{Pattern: "delegate", Host: true}}})
	for _, tt := range []struct {
		request permission.Request
		want    permission.Verdict
	}{
		{permission.Request{Tool: "delegate"}, permission.Allow},
		{permission.Request{Tool: "delegate", Server: "s", ServerTool: "delegate"}, permission.Ask},
	} {
		if d := p.Decide(tt.request); d.Verdict != tt.want {
			t.Errorf("%+v: %+v", tt.request, d)
		}
		if o := p.Outlook(tt.request); o.Best() != tt.want {
			t.Errorf("%+v: %+v", tt.request, o)
		}
	}
}

// A rule that fits no tool is found, whatever its conditions; one that fits by its
// server is not.
func TestIdleRules(t *testing.T) {
	p := mustPolicy(t, permission.Config{
		Deny:  rules("shel", "shell:command=rm *"),
		Ask:   rules("mcp__files__delete_*", "mcp__gone__*"),
		Allow: rules("mcp__files", "file_*:path=/x/**", "raed"),
	})
	var idle []string
	for _, r := range p.Idle([]permission.Request{
		{Tool: "shell"}, {Tool: "file_read"},
		{Tool: "delete_all", Server: "files", ServerTool: "delete_all"},
	}) {
		idle = append(idle, r.Pattern)
	}
	if want := []string{"shel", "mcp__gone__*", "raed"}; !slices.Equal(idle, want) {
		t.Errorf("idle %q, want %q", idle, want)
	}
	if idle := (*permission.Policy)(nil).Idle(nil); idle != nil {
		t.Errorf("a nil policy has %v", idle)
	}
}
