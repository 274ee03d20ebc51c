package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"crewhost/config"
	"crewhost/config/secret"
	"crewhost/config/strict"
	"crewhost/crew"
	"crewhost/mcp"
	"crewhost/runner"
	"crewhost/runner/process"
	"crewhost/tools"
)

// holds SCHEMA FILE wants the file to hold to a schema of the folder schema.
func holds(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: holds SCHEMA FILE")
	}
	if err := holdsTo(args[0], []byte(ts.ReadFile(args[1]))); err != nil {
		ts.Fatalf("%v\nin\n%s", err, ts.ReadFile(args[1]))
	}
}

// holdsTo holds a text against a schema of this folder.
func holdsTo(schema string, text []byte) error {
	path := filepath.Join("schema", schema)
	if strings.HasSuffix(schema, ".xsd") {
		xsd, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return holdsToXSD(xsd, text)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiled, err := compiler.Compile(path)
	if err != nil {
		return err
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return compiled.Validate(value)
}

// node is an element of an XML document.
type node struct {
	XMLName xml.Name
	Attrs   []xml.Attr `xml:",any,attr"`
	Nodes   []node     `xml:",any"`
	Text    string     `xml:",chardata"`
}

func (n node) attr(name string) string {
	for _, a := range n.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// holdsToXSD knows as much of XML Schema as schema/junit.xsd uses.
func holdsToXSD(xsd, text []byte) error {
	var schema, doc node
	if err := errors.Join(xml.Unmarshal(xsd, &schema), xml.Unmarshal(text, &doc)); err != nil {
		return err
	}
	named := func(kind, name string) node {
		for _, n := range schema.Nodes {
			if n.XMLName.Local == kind && n.attr("name") == name {
				return n
			}
		}
		return node{}
	}
	root := named("element", doc.XMLName.Local)
	if root.XMLName.Local == "" {
		return fmt.Errorf("the root is %s", doc.XMLName.Local)
	}
	var check func(element, is node) error
	check = func(element, is node) error {
		at := is.XMLName.Local
		kind := named("complexType", element.attr("type"))
		for _, n := range element.Nodes {
			if n.XMLName.Local == "complexType" {
				kind = n
			}
		}
		if kind.XMLName.Local == "" { // a text
			if len(is.Nodes)+len(is.Attrs) > 0 || element.attr("type") != "xs:string" {
				return fmt.Errorf("%s is no text", at)
			}
			return nil
		}
		var attributes []node
		var particles []node
		for _, n := range kind.Nodes {
			switch n.XMLName.Local {
			case "attribute":
				attributes = append(attributes, n)
			case "attributeGroup":
				attributes = append(attributes, named("attributeGroup", n.attr("ref")).Nodes...)
			case "sequence":
				particles = n.Nodes
			default:
				return fmt.Errorf("the schema has a %s, which this test does not know", n.XMLName.Local)
			}
		}
		given := map[string]bool{}
		for _, a := range is.Attrs {
			i := slices.IndexFunc(attributes, func(n node) bool { return n.attr("name") == a.Name.Local })
			if i < 0 {
				return fmt.Errorf("%s has the attribute %s", at, a.Name.Local)
			}
			given[a.Name.Local] = true
			form := map[string]string{"xs:string": "(?s)^.*$", "xs:nonNegativeInteger": `^\d+$`, "xs:positiveInteger": `^0*[1-9]\d*$`, "xs:decimal": `^-?\d+(\.\d+)?$`}[attributes[i].attr("type")]
			if form == "" || !regexp.MustCompile(form).MatchString(a.Value) {
				return fmt.Errorf("%s: the attribute %s is %q", at, a.Name.Local, a.Value)
			}
		}
		for _, a := range attributes {
			if a.attr("use") == "required" && !given[a.attr("name")] {
				return fmt.Errorf("%s has no attribute %s", at, a.attr("name"))
			}
		}
		if kind.attr("mixed") != "true" && strings.TrimSpace(is.Text) != "" {
			return fmt.Errorf("%s has a text", at)
		}
		next := 0
		for _, p := range particles {
			choices := []node{p}
			if p.XMLName.Local == "choice" {
				choices = p.Nodes
			}
			least, most := 1, 1
			if v := p.attr("minOccurs"); v != "" {
				least, _ = strconv.Atoi(v)
			}
			if p.attr("maxOccurs") == "unbounded" {
				most = 1 << 30
			}
			n := 0
			for ; n < most && next < len(is.Nodes); n++ {
				i := slices.IndexFunc(choices, func(c node) bool { return c.attr("name") == is.Nodes[next].XMLName.Local })
				if i < 0 {
					break
				}
				if err := check(choices[i], is.Nodes[next]); err != nil {
					return err
				}
				next++
			}
			if n < least {
				return fmt.Errorf("%s lacks %s", at, choices[0].attr("name"))
			}
		}
		if next < len(is.Nodes) {
			return fmt.Errorf("%s has a %s in that place", at, is.Nodes[next].XMLName.Local)
		}
		return nil
	}
	return check(root, doc)
}

// What does not hold to a schema is found: the tests above it can fail.
func TestSchemasRefuse(t *testing.T) {
	junit := `<testsuites name="n" tests="1" failures="0" errors="0" skipped="0"><testsuite name="s" tests="1" failures="0" errors="0" skipped="0"><testcase classname="c" name="n"/></testsuite></testsuites>`
	if err := holdsTo("junit.xsd", []byte(junit)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`name="n" tests`, `tests`}, {`tests="1"`, `tests="-1"`}, {`classname="c" `, ``}, {`"c" name`, `"c" nome="" name`},
		{`<testcase classname="c" name="n"/>`, `<testcase classname="c" name="n"><failure/><skipped/></testcase>`},
		{`<testcase classname="c" name="n"/>`, `<testcase classname="c" name="n"><system-out/><failure/></testcase>`},
		{`<testcase classname="c" name="n"/>`, `text`}, {`testsuites`, `testsweets`},
	} {
		if err := holdsTo("junit.xsd", []byte(strings.ReplaceAll(junit, change[0], change[1]))); err == nil {
			t.Errorf("%q in place of %q holds to the schema", change[1], change[0])
		}
	}
	good := mustJSON(t, sarifOf([]sarifResult{{RuleID: "a", Level: levelError, Message: sarifText{"m"}, Locations: []sarifLocation{{location("/w", crew.Pos{File: "/w/a b:c.yaml", Line: 3, Column: 4})}}}}))
	if err := holdsTo("sarif.schema.json", good); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"a%20b:c.yaml"`, `"/a"`}, {`"./a%20b:c.yaml"`, `"../a"`}, {`"startLine":3`, `"startLine":0`}, {`"error"`, `"fatal"`}, {`"2.1.0"`, `"2.0.0"`}, {`"text":"m"`, `"text":""`},
	} {
		if bad := bytes.ReplaceAll(good, []byte(change[0]), []byte(change[1])); holdsTo("sarif.schema.json", bad) == nil && !bytes.Equal(bad, good) {
			t.Errorf("%q in place of %q holds to the schema", change[1], change[0])
		}
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// hostileReport is of a crew and servers that do their worst in every text, a secret
// of the settings in each.
func hostileReport(t *testing.T, dir string) (report, *output) {
	t.Helper()
	const nasty = "s3cret-canary \x1b[31m<b>&\"'\x00\u2028\u202e]]>\xff\n::error::"
	redactor := &secret.Redactor{}
	redactor.Add(secret.New("s3cret-canary"))
	settings := &config.Settings{Path: filepath.Join(dir, "crewhost.yaml"), Warnings: []string{filepath.Join(dir, "crewhost.yaml") + ":7:3: " + nasty}}
	settings.MCP.Servers = []config.Server{{Name: "a", Pos: strict.Pos{File: settings.Path, Line: 4, Column: 3}}}
	pos := strict.Pos{File: filepath.Join(dir, "cr ew.yaml"), Line: 2, Column: 5}
	r := report{
		path: pos.File, approve: "ask", settings: settings,
		crew:   &crew.Crew{Path: pos.File, Agents: []*crew.Agent{{Key: "one", Servers: []crew.Server{{Name: crew.Text{V: "b"}, Pos: pos}}}}},
		policy: &runner.Effective{Default: "ask", Headless: "deny", Idle: []string{"rule " + nasty}},
		weights: &runner.Weights{Providers: []runner.ProviderWeight{{
			Provider: "openai", Profiles: []string{"default"}, Tools: 1, Tokens: 9, Servers: []runner.ServerWeight{{Server: "a", Tools: 1, Tokens: 9}},
		}}},
		verdict: runner.Verdict{
			Issues:   crew.Issues{{Pos: pos, Code: "bad-value", Message: nasty, Hint: nasty}, {Code: "bad-mount", Message: nasty}},
			Warnings: crew.Issues{{Pos: strict.Pos{File: "/elsewhere/x y.yaml", Line: 1}, Code: "unused", Message: nasty}},
			Servers: []mcp.ServerReport{
				{Name: "a", State: mcp.StateFailed, Required: true, Transport: "stdio", Err: &tools.Error{Code: tools.CodeTransportFailed, Server: "a", Detail: nasty}},
				{Name: "b", State: mcp.StateFailed, Transport: "http", Err: &tools.Error{Code: tools.CodeConnectTimeout, Server: "b", Detail: nasty}},
				{Name: "c", State: mcp.StateConnected, Transport: "http", Protocol: "2025-11-25", Era: mcp.Legacy, Tools: []string{"t"}, Warnings: []string{nasty},
					Skipped: []mcp.Skip{{Server: "c", Tool: nasty, Reason: mcp.ReasonCollision, Holder: nasty}}},
			},
		},
	}
	return r, &output{console: &console{err: io.Discard}, mask: redactor.Redact}
}

// Every format holds to its schema whatever stands in texts, tells no secret, and is
// the same each time.
func TestReportsOfHostileTexts(t *testing.T) {
	dir := t.TempDir()
	for format, schema := range map[string]string{formatJSON: "validate.schema.json", formatJUnit: "junit.xsd", formatSARIF: "sarif.schema.json"} {
		t.Run(format, func(t *testing.T) {
			r, o := hostileReport(t, dir)
			var texts []string
			for range 2 {
				var b bytes.Buffer
				o.out, o.format, o.json = &b, format, format == formatJSON
				if err := o.verdict(r, true); !errors.As(err, new(errReported)) {
					t.Fatal(err)
				}
				texts = append(texts, b.String())
			}
			if texts[0] != texts[1] {
				t.Error("it differs from time to time")
			}
			if err := holdsTo(schema, []byte(texts[0])); err != nil {
				t.Errorf("%v\n%s", err, texts[0])
			}
			if strings.Contains(texts[0], "s3cret-canary") {
				t.Errorf("a secret shows:\n%s", texts[0])
			}
			if strings.ContainsAny(texts[0], "\x1b\x00") {
				t.Errorf("a control character shows: %q", texts[0])
			}
		})
	}
}

// Where a result of SARIF is, and what it is called.
func TestSARIFPlaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(dir, "sub")
	r, o := hostileReport(t, below)
	var got []string
	if text := string(mustJSON(t, o.sarif(r))); strings.Contains(text, dir) {
		t.Errorf("it says where the sources lie:\n%s", text)
	}
	for _, result := range o.sarif(r).Runs[0].Results {
		p := result.Locations[0].Physical
		line := 0
		if p.Region != nil {
			line = p.Region.Line
		}
		got = append(got, fmt.Sprintf("%s %s %s%s:%d", result.Level, result.RuleID, p.Artifact.Base, p.Artifact.URI, line))
	}
	want := []string{
		"error bad-value %SRCROOT%sub/cr%20ew.yaml:2",
		"error bad-mount %SRCROOT%sub/cr%20ew.yaml:0",
		"error required-server %SRCROOT%sub/crewhost.yaml:4",
		"warning mcp_connect_timeout %SRCROOT%sub/cr%20ew.yaml:2",
		"warning tool_skipped %SRCROOT%sub/cr%20ew.yaml:0",
		"warning server %SRCROOT%sub/cr%20ew.yaml:0",
		"warning unused file:///elsewhere/x%20y.yaml:1",
		"warning settings %SRCROOT%sub/crewhost.yaml:7",
		"warning idle-rule %SRCROOT%sub/crewhost.yaml:0",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A run as tests: what failed, what did not come to it, and a run that failed for no
// task.
func TestJUnitOfRuns(t *testing.T) {
	o := &output{mask: func(s string) string { return s }}
	result := &runner.Output{Took: 1500 * time.Millisecond, Tasks: []process.TaskResult{
		{TaskOutput: process.TaskOutput{Task: "one", Text: "done"}, State: process.Completed, Took: time.Second},
		{TaskOutput: process.TaskOutput{Task: "two"}, State: process.Failed, Err: errors.New("no answer")},
		{TaskOutput: process.TaskOutput{Task: "three"}, State: process.Skipped, Why: "two failed"},
		{TaskOutput: process.TaskOutput{Task: "four"}, State: process.NotRun},
	}}
	var b bytes.Buffer
	d := o.junitOfRun("Crew", result, errors.New("two failed"))
	if err := d.write(&b); err != nil {
		t.Fatal(err)
	}
	if err := holdsTo("junit.xsd", b.Bytes()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`tests="4" failures="1" errors="0" skipped="2"`, `time="1.500"`, `<failure message="no answer" type="failed">`, `<skipped message="skipped: two failed">`, `<skipped message="not_run">`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	stopped := o.junitOfRun("Crew", &runner.Output{}, errors.New("the budget is spent"))
	if stopped.Failures != 1 || stopped.Tests != 1 {
		t.Errorf("%+v", stopped)
	}
}

// The README shows reports as they are, and pipelines that are YAML and call flags that
// are there.
func TestReadmePipelines(t *testing.T) {
	text := readme(t)
	script, err := txtar.ParseFile(filepath.Join("..", "..", "testdata", "script", "ci.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(script.Files, func(f txtar.File) bool { return f.Name == "crewhost.xml" })
	if i < 0 || !strings.Contains(text, "```xml\n"+string(script.Files[i].Data)+"```") {
		t.Error("the README does not show the report of testdata/script/ci.txtar")
	}
	pipelines := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(m[1], "\njobs:") && !strings.Contains(m[1], "stage:") {
			continue
		}
		pipelines++
		if !strings.Contains(m[1], "crewhost run --validate --format ") {
			t.Errorf("it judges no crew:\n%s", m[1])
		}
		var pipeline map[string]any
		if err := yaml.Unmarshal([]byte(m[1]), &pipeline); err != nil {
			t.Errorf("%v in\n%s", err, m[1])
		}
	}
	if pipelines != 2 {
		t.Errorf("%d pipelines", pipelines)
	}
	for _, schema := range []string{"validate.schema.json", "manifest.schema.json", "run.schema.json", "sarif.schema.json", "junit.xsd"} {
		if !strings.Contains(text, "cmd/crewhost/schema/"+schema) {
			t.Errorf("the README does not name %s", schema)
		}
	}
}

// Each code of an issue has its row in the table of meanings.
func TestEveryCodeHasAMeaning(t *testing.T) {
	known := meanings()
	for _, dir := range []string{"config", "config/strict", "crew", "runner", "tools"} {
		pkgs, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
		if err != nil || len(pkgs) == 0 {
			t.Fatal(dir, err)
		}
		for _, path := range pkgs {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.ValueSpec)
				if !ok {
					return true
				}
				for i, name := range spec.Names {
					if !strings.HasPrefix(name.Name, "Code") || i >= len(spec.Values) {
						continue
					}
					if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
						if code := strings.Trim(lit.Value, `"`); known[code] == "" {
							t.Errorf("%s: the code %s has no meaning", path, code)
						}
					}
				}
				return true
			})
		}
	}
}
