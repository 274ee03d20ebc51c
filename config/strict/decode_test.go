package strict

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type server struct {
	Pos     Pos           `key:"@"`
	Command At[string]    `key:"command,required"`
	Args    []At[string]  `key:"args"`
	Wait    time.Duration `key:"connectTimeout|startup_timeout"`
	Retries *int          `key:"maxRetries"`
	Heat    *float64      `key:"heat"`
	On      bool          `key:"enabled"`
}

type document struct {
	Servers []Named[server] `key:"servers"`
	Extra   *Node           `key:"extra"`
	Word    word            `key:"word"`
}

// word is written as a text or as {word: text}.
type word string

func (w *word) UnmarshalNode(d *Decoder, n *Node) {
	if n.Kind == Map {
		n = n.Get("word")
	}
	if n == nil || n.Kind != String {
		d.Fail(Pos{}, "word", d.Path()+" is no word", "")
		return
	}
	*w = word(n.Text)
}

func decode(t *testing.T, file, text string) (document, Issues) {
	t.Helper()
	n, issues := Parse(file, []byte(text), Limits{})
	var doc document
	return doc, append(issues, Decode(n, &doc)...)
}

func TestDecode(t *testing.T) {
	n, issues := Parse("t.yaml", []byte(`
servers:
  b: {command: x, args: [p, q], startup_timeout: 1m30s, max_retries: 0, heat: 1, enabled: true}
  a: {command: y}
extra: {k: [1]}
word: {word: w}
`), Limits{})
	var doc document
	issues = append(issues, Decode(n, &doc)...)
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	if len(doc.Servers) != 2 || doc.Servers[0].Key != "b" || doc.Servers[1].Key != "a" {
		t.Fatalf("order lost: %+v", doc.Servers)
	}
	b := doc.Servers[0]
	if b.KeyPos.String() != "t.yaml:3:3" || b.V.Pos.String() != "t.yaml:3:6" || b.V.Command.String() != "t.yaml:3:16" {
		t.Errorf("places: %s %s %s", b.KeyPos, b.V.Pos, b.V.Command.Pos)
	}
	if b.V.Wait != 90*time.Second || b.V.Retries == nil || *b.V.Retries != 0 || *b.V.Heat != 1 || !b.V.On || b.V.Args[1].V != "q" {
		t.Errorf("values: %+v", b.V)
	}
	if doc.Servers[1].V.Retries != nil || string(doc.Extra.JSON()) != `{"k":[1]}` || doc.Word != "w" {
		t.Errorf("values: %+v", doc)
	}
}

// TestDecodeReportsEverything is K63 for any document: all faults at once, each
// with its place and the nearest known word.
func TestDecodeReportsEverything(t *testing.T) {
	_, issues := decode(t, "t.yaml", `servers:
  a:
    comand: x
    args: search
    connect_timeout: 30
    maxRetries: many
    heat: .nan
    enabled: yes
  b:
    command:
    connectTimeout: 1s
    startup_timeout: 2s
    maxRetries: 010
  c: [command]
  d: {command: 5, connectTimeout: -1s}
wrod: x
somethingelse: 1
word: 5
`)
	issues.Sort()
	if diff := cmp.Diff(`word is no word [word]
t.yaml:3:5: "command" is missing in servers.a [missing]
t.yaml:3:5: unknown key "comand" in servers.a (did you mean "command"?) [unknown-key]
t.yaml:4:11: servers.a.args must be a list, not a string (write a list: [search]) [wrong-type]
t.yaml:5:22: servers.a.connect_timeout must be a duration such as 30s, not an integer (write it with a unit: "30s") [wrong-type]
t.yaml:6:17: servers.a.maxRetries must be an integer, not a string [wrong-type]
t.yaml:7:11: servers.a.heat: ".nan" is not a finite number [bad-value]
t.yaml:8:14: servers.a.enabled must be a boolean, not a string (write true or false) [wrong-type]
t.yaml:10:5: "command" in servers.b is empty (give it a value) [missing]
t.yaml:12:5: "connectTimeout" and "startup_timeout" are the same key in servers.b (keep one) [duplicate-key]
t.yaml:13:17: servers.b.maxRetries: "010" begins with a zero (write it without, or 0o… for an octal number) [bad-value]
t.yaml:14:6: servers.c must be a mapping, not a list (write keys with values, not a list with dashes) [wrong-type]
t.yaml:15:16: servers.d.command must be a string, not an integer (write it in quotes: "5") [wrong-type]
t.yaml:15:35: servers.d.connectTimeout: "-1s" is not a duration above zero (write a number with a unit: 500ms, 30s, 2m) [bad-value]
t.yaml:16:1: unknown key "wrod" (did you mean "word"?) [unknown-key]
t.yaml:17:1: unknown key "somethingelse" (known: extra, servers, word) [unknown-key]`, issues.Error()); diff != "" {
		t.Errorf("issues (-want +got):\n%s", diff)
	}
}

// TestUntypedValues: a value from a source without types is what its field is.
func TestUntypedValues(t *testing.T) {
	text := func(s string) *Node { return &Node{Kind: Untyped, Text: s} }
	n := &Node{Kind: Map, Entries: []Entry{{Key: "servers", Value: &Node{Kind: Map, Entries: []Entry{{Key: "a", Value: &Node{Kind: Map, Entries: []Entry{
		{Key: "command", Value: text("5")}, {Key: "connect_timeout", Value: text("5s")}, {Key: "max_retries", Value: text("7")},
		{Key: "heat", Value: text("0.5")}, {Key: "enabled", Value: text("true")},
	}}}}}}}}
	var doc document
	if issues := Decode(n, &doc); len(issues) > 0 {
		t.Fatal(issues)
	}
	a := doc.Servers[0].V
	if a.Command.V != "5" || a.Wait != 5*time.Second || *a.Retries != 7 || *a.Heat != 0.5 || !a.On {
		t.Errorf("%+v", a)
	}
	for key, bad := range map[string]string{"connect_timeout": "5", "max_retries": "x", "heat": "Inf", "enabled": "maybe"} {
		n := &Node{Kind: Map, Entries: []Entry{{Key: "command", Value: text("x")}, {Key: key, Value: text(bad)}}}
		var s server
		if issues := Decode(n, &s); len(issues) != 1 || issues[0].Code != CodeBadValue {
			t.Errorf("%s=%s: %v", key, bad, issues)
		}
	}
}

// Common is embedded: its fields are those of what it is in.
type Common struct {
	Pos   Pos    `key:"@"`
	Model string `key:"modelName|model,required"`
}

func TestEmbeddedFields(t *testing.T) {
	type section struct {
		Common
		Extra At[int] `key:"extra"`
	}
	if diff := cmp.Diff([]string{"modelName", "model_name", "model", "extra"}, Keys[section]()); diff != "" {
		t.Error(diff)
	}
	n, _ := Parse("t.yaml", []byte("\nmodel: x\nextra: 2\n"), Limits{})
	var s section
	if issues := Decode(n, &s); len(issues) > 0 || s.Model != "x" || s.Extra.V != 2 || s.Common.Pos.Line != 2 {
		t.Errorf("%+v %v", s, issues)
	}
	n, _ = Parse("t.yaml", []byte("model: x\nmodel_name: y\nmodell: z\n"), Limits{})
	if got := Decode(n, &s).Error(); got != `t.yaml:2:1: "model" and "model_name" are the same key (keep one) [duplicate-key]
t.yaml:3:1: unknown key "modell" (did you mean "model"?) [unknown-key]` {
		t.Error(got)
	}
	if got := Decode(nil, &s).Error(); got != `"modelName" is missing [missing]` {
		t.Error(got)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"expectedOutput", "description", "agent", "tools", "y"}
	for word, want := range map[string]string{
		"expectedOuput": "expectedOutput", "expected_output": "expectedOutput", "EXPECTED-OUTPUT": "expectedOutput",
		"agnet": "agent", "tool": "tools", "xyz": "", "": "", "x": "", "descripton": "description",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := DidYouMean("xyz", known); got != "known: agent, description, expectedOutput, tools, y" {
		t.Error(got)
	}
}

func TestIssueLine(t *testing.T) {
	i := Issue{Pos: Pos{"f.yaml", 3, 7}, Code: "c", Message: "m", Hint: "h"}
	if got := i.Error(); got != "f.yaml:3:7: m (h) [c]" {
		t.Error(got)
	}
	if got := (Issue{Pos: Pos{File: "environment variable X"}, Message: "m"}).Error(); got != "environment variable X: m" {
		t.Error(got)
	}
	if got := Quote("a\nb\x00" + string(make([]byte, 5000))); len(got) > 400 {
		t.Error(len(got))
	}
	if (Issues{}).Err() != nil || (Issues{i}).Err() == nil {
		t.Error("Err")
	}
}
