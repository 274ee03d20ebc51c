package documents_test

import (
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"

	"crewhost/tools"
	"crewhost/tools/native/nativetest"
)

func jq(input any, query string) string {
	return nativetest.Args("input", input, "operation", "query", "language", "jq", "query", query)
}

func TestJQ(t *testing.T) {
	b := newBench(t)
	for query, want := range map[string]string{
		".store.b | map(.p) | add":                                  "21.939999999999998",
		".store.b[] | select(.p > 10) | .t":                         `"y"`,
		".store.b[].t":                                              "\"x\"\n\"y\"",
		".store.b | sort_by(-.p) | map(.t)":                         `["y","x"]`,
		"[.store.b[] | {key: .t, value: .p}] | from_entries":        `{"x":8.95,"y":12.99}`,
		`.store.b[0].t == "x" and (.nul | not)`:                     "true",
		`"\(.store.b[0].t)-\(.id)"`:                                 `"x-725653563933458433"`,
		".store.b | map(.t) | contains([\"y\"])":                    "true",
		".store.b | map(.t) | index(\"y\")":                         "1",
		"[1,2,3] - [2] | @csv":                                      `"1,3"`,
		"def f: if . < 3 then . + 1 | f else . end; 0 | f":          "3",
		".store.b[0] | .p *= 2 | .p -= 0.9 | .t |= ascii_upcase":    `{"p":17,"t":"X"}`,
		`[.store.b[] | .t as $t | {($t): .p}] | add | keys`:         `["x","y"]`,
		`.store["a b"] | del(."c.d")`:                               "{}",
		`[paths(type == "number")] | length`:                        "6",
		`.html | test("<.>")`:                                       "true",
		`[.store.b[] | .t] | join("/")`:                             `"x/y"`,
		`reduce .store.b[] as {p: $p} (0; . + $p) | floor`:          "21",
		`try error("gone") catch .`:                                 `"gone"`,
		`{"a": {"b": 1}} * {"a": {"c": 2}} | tojson`:                `"{\"a\":{\"b\":1,\"c\":2}}"`,
		`[3,1,2] | sort | min_by(.), max, (unique | bsearch(2)), .`: "1\n3\n1\n[1,2,3]",
		`"2026-11-30T00:00:00Z" | fromdate | todate`:                `"2026-11-30T00:00:00Z"`,
		`. as {store: {b: [$first]}} | $first.t | IN("x", "z")`:     "true",
		`[limit(3; repeat("x"))] | @json`:                           `"[\"x\",\"x\",\"x\"]"`,
		`.store.b[(.store.b | length) - 1].p |= 1 | .store.b[1].p`:  "1",
		`path(.store.b[1].p)`:                                       `["store","b",1,"p"]`,
		`[.[]?] | .[[]]`:                                            "[]",
		`"x" | halt`:                                                "",
	} {
		if want == "" {
			b.WantFailure("json_tool", jq(shop, query), "gives nothing; the document is an object with the members")
			continue
		}
		b.WantText("json_tool", jq(shop, query), want)
	}
}

// TestJQKeepsDigits says exactly what is kept: what is handed on keeps its text, sums,
// differences and products of whole numbers are exact, the rest is float64.
func TestJQKeepsDigits(t *testing.T) {
	b := newBench(t)
	for query, want := range map[string]string{
		".id": "725653563933458433", ".big": "1e400", ".small": "0.1000000000000000055",
		"[.id, .small]": "[725653563933458433,0.1000000000000000055]", "{id} | tojson": `"{\"id\":725653563933458433}"`,
		".id + 1": "725653563933458434", ".id * .id": "526573094849329845509038204138815489", "-.id": "-725653563933458433",
		".id - 725653563933458432": "1", ".id == 725653563933458432": "false",
		".id / 2": "362826781966729200", ".small + 0": "0.1", "12345678901234567890123": "12345678901234567890123",
	} {
		b.WantText("json_tool", jq(shop, query), want)
	}
}

func TestJQSeesTheDocumentAlone(t *testing.T) {
	b := newBench(t)
	t.Setenv("SECRET_OF_THE_HOST", "hunter2")
	for _, query := range []string{
		"env", "$ENV", "$ENV.SECRET_OF_THE_HOST", "env.SECRET_OF_THE_HOST", "input", "[inputs]", "input_filename", "input_line_number",
		"now", "now | todate", "localtime", `strflocaltime("%Z")`, "debug", `debug("x")`, "stderr", "get_search_list", `"a" | modulemeta`,
		`.a[env.x]`, `{(env|keys[0]): 1}`, `"\(env)"`, `def f: env; f`, `if env then 1 else 2 end`, `try env catch .`,
		`reduce env as $x (0; .)`, `@text "\($ENV)"`, `. as {(env.x): $y} | $y`,
	} {
		b.WantFailure("json_tool", jq("{}", query), "not available: a query sees the document alone")
	}
	for _, query := range []string{`import "a" as a; a::f`, `include "/etc/passwd"; .`, `import "/etc/passwd" as $p; $p`, `module {}; .`} {
		b.WantFailure("json_tool", jq("{}", query), "module")
	}
	b.WantFailure("json_tool", jq("{}", "getenv"), "function not defined")
	b.WantFailure("json_tool", jq("{}", "$__prog_args"), "variable not defined")
}

func TestJQRefuses(t *testing.T) {
	b := newBench(t)
	for query, want := range map[string]string{
		".a |":                    "unexpected EOF at character 5",
		".a ] .b":                 `unexpected token "]" at character 4`,
		".store | .b.x":           "expected an object but got: array",
		`error({"why": "no"})`:    `fails ({"why":"no"})`,
		`"bad" | halt_error`:      `fails ("bad")`,
		".none[]?":                "gives nothing",
		".store.b | .[\"x\"]":     "expected an object",
		"nosuch":                  "function not defined: nosuch/0",
		strings.Repeat("a", 1001): "longer than 1000 bytes",
	} {
		b.WantFailure("json_tool", jq(shop, query), want)
	}
	b.WantFailure("json_tool", jq("["+strings.Repeat("9", 1001)+"]", ". == ."), "more than 1000 digits")
}

// TestJQIsBounded holds queries that loop, or make values without bound.
func TestJQIsBounded(t *testing.T) {
	b := bounds(t)
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	double := func(step string) string { return strings.Repeat(step+"|", 40) }
	for query, want := range map[string]string{
		"def f: f; f":     "too many steps",
		"while(true; . )": "gives more than 20000 values",
		"[range(1e9)]":    "takes too ",
		`reduce range(60) as $i ("xxxxxxxx"; . + .) | length`: "takes too ",
		`"x" * 1000000000`:                                                   "too long to work on",
		`. as $x | "x" | . *= 1000000000`:                                    "too long to work on",
		double("[.,.]") + ". == .":                                           "too large",
		double("[.,.]") + "{a:.} == {a:.}":                                   "too large",
		double("[.,.]") + ".":                                                "too large",
		double("[.,.]") + "tojson":                                           "too large",
		double("[.,.]") + "@json":                                            "too large",
		double("[.,.]") + `"\(.)"`:                                           "too large",
		double("[.,.]") + `@base64 "\(.)"`:                                   "too large",
		double("[.,.]") + "flatten":                                          "too large",
		double("[.,.]") + "sort":                                             "too large",
		double("[.,.]") + "[.,.]|sort_by(.)":                                 "too large",
		double("[.,.]") + "[.,.]|unique_by([.])":                             "too large",
		double("[.,.]") + "contains(.)":                                      "too large",
		double("[.,.]") + ". - .":                                            "too large",
		double("[.,.]") + ". as $x | .[$x]":                                  "too large",
		double("[.,.]") + "error":                                            "too large",
		double("[.,.]") + "IN([.])":                                          "too large",
		double("[.,.]") + "INDEX(.)":                                         "too large",
		double("(. as $r|[0,0]|.[]|=$r)") + ". == .":                         "too large",
		"def s: . as $r | [0,0] | map_values($r);" + double("s") + "min":     "too large",
		"reduce range(1e5) as $i (0; [.])":                                   "too large",
		"reduce range(100) as $i (10; . * .)":                                "too long",
		`reduce range(100) as $i (10; . *= .) | length`:                      "too long",
		`[range(20000)] | . - .`:                                             "too large",
		`[range(20000)] as $a | [range(20000) | $a] | add`:                   "too large",
		`[range(20000)] | tojson | . as $x | [range(10000) | $x] | join("")`: "too large",
		`("9" * 100000) | tonumber`:                                          "too long",
		`("9" * 100000) | fromjson`:                                          "too large",
		`[("ab" * 1000000) | match("";"g")]`:                                 "too long to search",
	} {
		if len(query) > 1000 {
			t.Fatalf("%d bytes: %.40s", len(query), query)
		}
		runtime.GC()
		metrics.Read(sample)
		before := sample[0].Value.Uint64()
		b.WantFailure("json_tool", jq("[1]", query), want)
		metrics.Read(sample)
		if grown := int64(sample[0].Value.Uint64()) - int64(before); grown > 700<<20 {
			t.Errorf("%.100s left %d MiB", query, grown>>20)
		}
	}
}

func TestJSONFiles(t *testing.T) {
	b := newBench(t)
	b.Put("in/a.json", "\xef\xbb\xbf{\"a\": [1, 2.50]}\r\n")
	b.Put("in/u.json", "\xff\xfe[\x001\x00]\x00")
	b.Put("in/a.jsonl", "{\"n\": 1}\n\n{\"n\": 12345678901234567890}\r\n{\"n\": 3}")
	b.Put("in/bad.ndjson", "{\"n\": 1}\n{\"n\": }\n")
	b.Put("in/empty.jsonl", "\n")
	b.Put("in/big.json", "["+strings.Repeat(" ", 16<<20)+"]")
	b.Put("in/bin.json", "\x00\x01\x02\x00\xff")
	b.WantText("json_tool", `{"path":"/in/a.json","operation":"parse"}`, `{"a":[1,2.50]}`)
	b.WantText("json_tool", `{"path":"/in/a.json","operation":"query","query":"a.1"}`, `2.50`)
	b.WantText("json_tool", `{"path":"/in/u.json","operation":"parse"}`, `[1]`)
	b.WantText("json_tool", `{"path":"/in/a.jsonl","operation":"query","query":"$[*].n"}`, `[1,12345678901234567890,3]`)
	b.WantText("json_tool", `{"path":"/in/a.jsonl","operation":"query","language":"jq","query":"map(.n) | add"}`, `12345678901234567894`)
	b.WantText("json_tool", `{"path":"/in/empty.jsonl","operation":"parse"}`, `[]`)
	b.WantText("json_tool", `{"input":"1\n2\n","lines":true,"operation":"parse"}`, `[1,2]`)
	b.WantFailure("json_tool", `{"path":"/in/a.jsonl","lines":false,"operation":"parse"}`, "/in/a.jsonl is not valid JSON: line 3")
	b.WantFailure("json_tool", `{"path":"/in/bad.ndjson","operation":"parse"}`, "line 2 of the JSON Lines: line 1, column 7: invalid character")
	b.WantFailure("json_tool", `{"path":"/in/big.json","operation":"parse"}`, "at most 16777216")
	b.WantFailure("json_tool", `{"path":"/in/bin.json","operation":"parse"}`, "/in/bin.json can't be read")
	b.WantFailure("json_tool", `{"path":"/in/none.json","operation":"parse"}`, "/in/none.json")
	b.WantFailure("json_tool", `{"path":"/in/a.json","input":"1","operation":"parse"}`, `either as "input" or as "path"`)
	b.WantFailure("json_tool", `{"operation":"parse"}`, `either as "input" or as "path"`)
	list := "[" + strings.Repeat("1,", 10_000) + "2]"
	b.WantText("json_tool", nativetest.Args("input", list, "operation", "parse", "offset", 19_999, "max_chars", 3), ",1,\n[characters 19999 to 20001 of 20003; go on with offset 20002]")
	b.WantText("json_tool", nativetest.Args("input", list, "operation", "parse", "offset", 20_002), "2]\n[characters 20002 to 20003 of 20003]")
	b.WantFailure("json_tool", nativetest.Args("input", list, "operation", "parse", "offset", 20_004), "20003 characters is all")
}

func TestJSONValidate(t *testing.T) {
	b := newBench(t)
	schema := map[string]any{
		"type": "object", "required": []string{"id", "mail"}, "additionalProperties": false,
		"properties": map[string]any{"id": map[string]any{"type": "integer"}, "mail": map[string]any{"type": "string", "format": "email"}, "a/b": map[string]any{"items": map[string]any{"maximum": 5}}},
	}
	check := func(input string) string {
		return nativetest.Args("input", input, "operation", "validate", "schema", schema)
	}
	b.WantText("json_tool", check(`{"id": 12345678901234567890, "mail": "a@b.de", "a/b": [1]}`), "The document is valid.")
	b.WantParts("json_tool", check(`{"id": 1.5, "mail": "x", "a/b": [1, 6], "more": 0}`), "not valid: 4 faults.",
		"/id: ", "/mail: ", "/a~1b/1: maximum", "the whole document: additional properties 'more' not allowed")
	b.WantParts("json_tool", nativetest.Args("input", "["+strings.Repeat("0,", 100)+"0]", "operation", "validate", "schema", `{"items": false}`), "[81 more]")
	for schema, want := range map[string]string{
		`{"type": "objct"}`: "no JSON Schema", `{"$ref": "file:///etc/passwd"}`: "refers to nothing but itself",
		`{"$ref": "http://localhost/x"}`: "refers to nothing but itself", `{"pattern": "["}`: "regex", `{`: "schema is not valid JSON: line 1",
		`{"maximum": 1e999999999}`: "too long to judge",
	} {
		b.WantFailure("json_tool", nativetest.Args("input", "[1]", "operation", "validate", "schema", schema), want)
	}
	b.WantFailure("json_tool", nativetest.Args("input", "1e999999999", "operation", "validate", "schema", `{"maximum": 1}`), "too long to judge")
	b.WantText("json_tool", `{"input":"5","operation":"validate","schema":true}`, "The document is valid.")
	b.WantFailure("json_tool", `{"input":"5","operation":"validate"}`, `needs the argument "schema"`)
}

func FuzzJSON(f *testing.F) {
	b := newBench(f)
	tool, _ := b.Reg.Lookup("json_tool")
	for _, s := range [][3]string{
		{shop, "jq", ".store.b | map(.p) | add"}, {shop, "jsonpath", "$..b[?@.p > 3]"}, {"1\n2", "jq", "[.[] | . * 2] - [4]"},
		{"[1]", "jq", `reduce .[] as {a: $x} ([]; . + [$x]) | "\(.)" | @json`}, {"[1]", "jq", `.[0] *= 3 | .[[1]] | sort_by(.)`},
	} {
		f.Add(s[0], s[1], s[2])
	}
	f.Fuzz(func(t *testing.T, doc, language, query string) {
		res, err := tool.Call(t.Context(), call(nativetest.Args("input", doc, "operation", "query", "language", language, "query", query, "lines", len(doc)%2 == 0)))
		holdsBound(t, res, err)
	})
}

// holdsBound holds what every call owes, whatever it was given.
func holdsBound(t *testing.T, res tools.Result, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Content) != 1 || len([]rune(res.Content[0].Text)) > 20_000 {
		t.Errorf("got %.300v", res)
	}
}
