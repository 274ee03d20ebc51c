package documents_test

import (
	"strings"
	"testing"

	"crewhost/tools/native/nativetest"
)

const shop = `{"store":{"b":[{"t":"x","p":8.95},{"t":"y","p":12.99}],"a b":{"c.d":1}},"id":725653563933458433,"big":1e400,"small":0.1000000000000000055,"html":"<&>","nul":null}`

func TestJSONToolKeepsDigitsK31(t *testing.T) {
	b := newBench(t)
	b.WantText("json_tool", nativetest.Args("input", ` {"z": 725653563933458433, "a":1e400,"x":0.1000000000000000055 } `, "operation", "parse"),
		`{"z":725653563933458433,"a":1e400,"x":0.1000000000000000055}`)
	b.WantText("json_tool", nativetest.Args("input", `{"z":[1,{}],"a":1e400}`, "operation", "format"),
		"{\n  \"z\": [\n    1,\n    {}\n  ],\n  \"a\": 1e400\n}")
	b.WantText("json_tool", `{"input":{"id":725653563933458433},"operation":"parse"}`, `{"id":725653563933458433}`)
	for query, want := range map[string]string{
		"$.id": "725653563933458433", "big": "1e400", "$['small']": "0.1000000000000000055", "html": `"<&>"`, "nul": "null",
		"$.store.b[0]":                 `{"p":8.95,"t":"x"}`,
		"$.store.b[?@.p < 10].t":       `["x"]`,
		"$.store.b[*].t":               `["x","y"]`,
		"$.store.b[::-1].t":            `["y","x"]`,
		"$..t":                         `["x","y"]`,
		"$..[?@.t == 'y'].p":           `[12.99]`,
		"store.b.1.t":                  `"y"`,
		"store.b[1].t":                 `"y"`,
		"store.a b['c.d']":             "1",
		"store.b.*.p":                  "[8.95,12.99]",
		"$.store.*":                    `[{"c.d":1},[{"p":8.95,"t":"x"},{"p":12.99,"t":"y"}]]`,
		"$..none":                      "[]",
		"$.store.b[?match(@.t,'[x]')]": `[{"p":8.95,"t":"x"}]`,
		"$.store.b[?@.t=='a?..b']":     "[]",
	} {
		b.WantText("json_tool", nativetest.Args("input", shop, "operation", "query", "query", query), want)
	}
}

func TestJSONQueryIsDeterministic(t *testing.T) {
	b := newBench(t)
	doc := `{"z":{"n":1},"m":{"n":2},"a":{"n":3},"k":[{"n":4},{"y":{"n":5},"x":{"n":6}}]}`
	for range 20 {
		b.WantText("json_tool", nativetest.Args("input", doc, "operation", "query", "query", "$..n"), "[3,4,6,5,2,1]")
		b.WantText("json_tool", nativetest.Args("input", doc, "operation", "query", "query", "$[?@.n]"), `[{"n":3},{"n":2},{"n":1}]`)
	}
}

func TestJSONToolRefuses(t *testing.T) {
	b := newBench(t)
	for _, tt := range []struct {
		input, operation, query string
		want                    []string
	}{
		{"", "parse", "", []string{"empty"}},
		{"{\"a\": 1,\n \"é\": }", "parse", "", []string{"line 2, column 7", "invalid character"}},
		{"{'a':1}", "format", "", []string{"line 1, column 2"}},
		{`{"a":1`, "parse", "", []string{"unexpected end"}},
		{`{"a":1} x`, "parse", "", []string{"line 1, column 9"}},
		{strings.Repeat("[", 10_000), "parse", "", []string{"not valid JSON"}},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), "query", "$..a", []string{"more than 200 levels"}},
		{"", "query", "a", []string{"empty"}},
		{shop, "query", "$.stor", []string{"selects nothing", "members big, html, id, nul, small, store"}},
		{"[1]", "query", "3", []string{"selects nothing", "a list of 1 item"}},
		{"5", "query", "a", []string{"selects nothing", "single value"}},
		{shop, "query", "$.[", []string{"can't be read"}},
		{shop, "query", "$[?@..x]", []string{"not supported"}},
		{shop, "query", "$[?@[?@.x]]", []string{"not supported"}},
		{shop, "query", "$[?@[0,0][0,0]]", []string{"not supported"}},
	} {
		b.WantFailure("json_tool", nativetest.Args("input", tt.input, "operation", tt.operation, "query", tt.query), tt.want...)
	}
	b.WantFailure("json_tool", nativetest.Args("input", strings.Repeat(" ", 5<<20), "operation", "parse"), "at most")
}

// TestJSONQueryIsBounded holds queries whose answers grow without bound.
func TestJSONQueryIsBounded(t *testing.T) {
	b := bounds(t)
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	wide := "[" + strings.Repeat("[[[[]]]],", 20_000) + "0]"
	for doc, query := range map[string]string{
		deep: "$" + strings.Repeat("[0,0]", 60),
		wide: "$..*..*..*",
	} {
		b.WantFailure("json_tool", nativetest.Args("input", doc, "operation", "query", "query", query), "more than 20000 parts")
	}
	got, failed := b.Call("json_tool", nativetest.Args("input", wide, "operation", "parse"))
	if n := len([]rune(got)); failed || n > 8100 || !strings.Contains(got, "go on with offset 8001]") {
		t.Errorf("%d characters, failed: %t", n, failed)
	}
}
