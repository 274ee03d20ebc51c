package strict

import (
	"strings"
	"testing"
)

// TestParse holds what the three parsers make of a text, as JSON, and every
// issue they raise.
func TestParse(t *testing.T) {
	brackets := strings.Repeat("[{", 100)
	for _, c := range []struct {
		name, file, text string
		want             string // "" for no node
		issues           string
	}{
		// K61: tabs, indentation, colons.
		{"K61 tab at the start of line 7", "t.yaml", "one:\n  d: x\n  e: y\ntwo:\n  d: x\n  e: y\n\tf: z\n", "",
			"t.yaml:7:1: a tab in the indentation; YAML indents with spaces only (replace the tab with spaces) [syntax]"},
		{"K61 tab before a dash", "t.yaml", "one:\n  d: x\n  e: y\ntwo:\n  d: x\n  e:\n\t- z\n", "",
			"t.yaml:7:1: a tab in the indentation; YAML indents with spaces only (replace the tab with spaces) [syntax]"},
		{"K61 tab after a value and in a literal", "t.yaml", "one: \tx\ntwo: y\t\nthree: |\n  a\tb\n  \tc\n",
			`{"one":"x","two":"y","three":"a\tb\n\tc\n"}`, ""},
		{"K61 three spaces after two", "t.yaml", "one:\n  a: 1\n   b: 2\n", "",
			"t.yaml:3:5: mapping values are not allowed in this context (a colon followed by a space needs quotes around the text; or the line before lacks a colon, or a line is indented wrongly) [syntax]"},
		{"K61 two spaces after three", "t.yaml", "one:\n   a: 1\n  b: 2\n", "", "t.yaml:3:3: did not find expected key [syntax]"},
		{"K61 no colon", "t.yaml", "one: 1\ntwo\nthree: 3\n", "", "t.yaml:2:1: could not find expected ':' (found in line 3) [syntax]"},
		{"open quote", "t.yaml", "a: \"x\nb: 3\n", "", "t.yaml:1:4: found unexpected end of stream (found in line 3) [syntax]"},
		{"open bracket", "t.yaml", "a: [1, 2\nb: 3\n", "", "t.yaml:2:2: did not find expected ',' or ']' [syntax]"},
		{"colon in text", "t.yaml", "one: x: y\n", "",
			"t.yaml:1:7: mapping values are not allowed in this context (a colon followed by a space needs quotes around the text; or the line before lacks a colon, or a line is indented wrongly) [syntax]"},

		{"duplicate keys", "t.yaml", "a: 1\nb: 2\na: 3\n", `{"a":1,"b":2}`, `t.yaml:3:1: duplicate key "a" (first set in line 1) [duplicate-key]`},
		{"numbers", "t.yaml", "a: 12345678901234567890\nb: 1_000\nc: 0x1F\nd: 1e3\ne: .5\nf: +5\ng: 0o17\nh: 0.1000000000000000055\n",
			`{"a":12345678901234567890,"b":1000,"c":31,"d":1e3,"e":0.5,"f":5,"g":15,"h":0.1000000000000000055}`, ""},
		{"words that are no booleans", "t.yaml", "a: yes\nb: off\nc: True\nd: ~\ne:\nf: 1:30\ng: 2001-01-01\n",
			`{"a":"yes","b":"off","c":true,"d":null,"e":null,"f":"1:30","g":"2001-01-01"}`, ""},
		{"keys of other kinds", "t.yaml", "? [a, b]\n: x\n~: y\n1: z\ntrue: w\n", `{"1":"z","true":"w"}`,
			"t.yaml:1:3: a key must be plain text [wrong-type]\nt.yaml:3:1: a key must be plain text [wrong-type]"},
		{"tags", "t.yaml", "a: !foo x\nb: !!binary aGk=\nc: !!str 5\n", `{"a":"x","b":"aGk=","c":"5"}`,
			"t.yaml:1:4: the tag \"!foo\" is not known here [wrong-type]\nt.yaml:2:4: the tag \"!!binary\" is not known here [wrong-type]"},
		{"merge keys", "t.yaml", "base: &b {x: 1, y: 2}\nd:\n  <<: *b\n  y: 3\ne: {<<: [*b, {x: 9, z: 1}]}\n",
			`{"base":{"x":1,"y":2},"d":{"y":3,"x":1},"e":{"x":1,"y":2,"z":1}}`, ""},
		{"merge of a number", "t.yaml", "f: {<<: 5}\ng: {<<: [5]}\n", `{"f":{},"g":{}}`,
			"t.yaml:1:9: a merge key takes a mapping, not an integer [wrong-type]\nt.yaml:2:10: a merge key takes mappings, not an integer [wrong-type]"},
		{"K67 three honest anchors", "t.yaml", "a: &a {x: 1}\nb: &b [*a, *a]\nc: &c text\nd: [*a, *b, *c]\n",
			`{"a":{"x":1},"b":[{"x":1},{"x":1}],"c":"text","d":[{"x":1},[{"x":1},{"x":1}],"text"]}`, ""},
		{"K67 an alias inside its anchor", "t.yaml", "a: &a [*a]\n", `{"a":[null]}`, "t.yaml:1:8: alias *a stands inside its own anchor [syntax]"},
		{"unknown anchor", "t.yaml", "a: *nope\n", "", "t.yaml:1:4: unknown anchor 'nope' referenced [syntax]"},
		{"carriage returns", "t.yaml", "a: 1\r\nb: \r\n  c: 2\r\n", `{"a":1,"b":{"c":2}}`, ""},
		{"byte order mark", "t.yaml", "\ufeffa: 1\n", `{"a":1}`, ""},
		{"two documents", "t.yaml", "a: 1\n---\nb: 1\n", `{"a":1}`, "t.yaml:2:1: a second document begins here; a file holds one [syntax]"},
		{"document null", "t.yaml", "null", "null", ""},
		{"nothing", "t.yaml", "# only a comment\n", "", ""},
		{"control character", "t.yaml", "a: 1\nb: '\x01'\n", "", "t.yaml:2:5: control characters are not allowed (value: 1) [syntax]"},
		{"UTF-16", "t.yaml", "\xff\xfea\x00", "", "t.yaml:1:1: the text is not UTF-8 (it looks like UTF-16; save it as UTF-8) [syntax]"},
		{"a bad byte", "t.toml", "a = 1\nb = \"é\xff\"", "", "t.toml:2:7: the text is not UTF-8 (save it as UTF-8) [syntax]"},

		{"comments and commas", "t.json", "{\"a\": 1, // c\n /* d */ \"b\": [1,2,],} // end", `{"a":1,"b":[1,2]}`, ""},
		{"brackets in text and comments", "t.json", "{\"a\": \"" + strings.Repeat("[", 200) + "\\\"\" /*" + strings.Repeat("{", 200) + "*/ } //" + strings.Repeat("{", 200),
			`{"a":"` + strings.Repeat("[", 200) + `\""}`, ""},
		{"place after letters beyond ASCII", "t.json", "{\"é\": 1, \"é\": x}", "", "t.json:1:15: invalid literal: x (keys and texts stand in double quotes) [syntax]"},
		{"duplicate keys in JSON", "t.json", "{\"a\": 1,\n \"\\u0061\": 2}", `{"a":1}`, `t.json:2:2: duplicate key "a" (first set in line 1) [duplicate-key]`},
		{"no colon", "t.json", "{\n\"a\" 1}", "", "t.json:2:5: invalid character '1' after object name [syntax]"},
		{"open brace", "t.json", "{\"a\": 1\n\n", "", "t.json:3:1: parsing object after value: unexpected EOF [syntax]"},
		{"single quotes", "t.json", "{\"a\": 'x'}", "", `t.json:1:7: invalid character '\'' at start of value (keys and texts stand in double quotes) [syntax]`},
		{"leading zero", "t.json", "{\"a\": 01}", "", "t.json:1:7: invalid literal: 01 [syntax]"},
		{"two values", "t.json", "{} {}", "", "t.json:1:4: invalid character '{' after top-level value [syntax]"},
		{"open comment", "t.json", "{} /* x", "", "t.json:1:4: parsing comment: unexpected EOF [syntax]"},
		{"digits", "t.json", `{"a":725653563933458433,"b":1e400}`, `{"a":725653563933458433,"b":1e400}`, ""},
		{"nothing", "t.json", " \n", "", ""},

		{"tables", "t.toml", "[[s]]\nn=1\n[s.t]\nx=1\n[[s]]\nn=2\n[s.t]\nx=2\n", `{"s":[{"n":1,"t":{"x":1}},{"n":2,"t":{"x":2}}]}`, ""},
		{"values", "t.toml", "z.b = 1\na = {e = [1, {f = 2}]}\nt = 1979-05-27T07:32:00Z\nj=0x1f\nk=1_000\nl='[[['\n",
			`{"z":{"b":1},"a":{"e":[1,{"f":2}]},"t":"1979-05-27T07:32:00Z","j":31,"k":1000,"l":"[[["}`, ""},
		{"brackets in text and comments", "t.toml",
			"a = \"\"\"" + brackets + "\\\"\"\"\"\nb = '''" + brackets + "'''\nc = \"\\\"" + brackets + "\" # " + brackets + "\n'd[' = '" + brackets + "' #'\n",
			`{"a":"` + brackets + `\"","b":"` + brackets + `","c":"\"` + brackets + `","d[":"` + brackets + `"}`, ""},
		{"duplicate keys in TOML", "t.toml", "a=1\na=2\n", "", "t.toml:2:1: key a is already defined [syntax]"},
		{"duplicate tables", "t.toml", "[a]\nx=1\n[a]\ny=2\n", "", "t.toml:3:2: table a already exists [syntax]"},
		{"bare word", "t.toml", "a = x\n", "", "t.toml:1:5: unexpected character U+0078 'x' at start of value [syntax]"},
	} {
		t.Run(c.file[2:]+" "+c.name, func(t *testing.T) {
			n, issues := Parse(c.file, []byte(c.text), Limits{})
			got := ""
			if n != nil {
				got = string(n.JSON())
			}
			if got != c.want {
				t.Errorf("value:\n got %s\nwant %s", got, c.want)
			}
			if issues.Error() != c.issues {
				t.Errorf("issues:\n got %s\nwant %s", issues, c.issues)
			}
		})
	}
}

func TestPositions(t *testing.T) {
	for file, text := range map[string]string{
		"t.yaml": "a: 1\nllm:\n  model: x\n  list: [p, q]\n",
		"t.json": "{\"a\": 1,\n\"llm\": {\n  \"model\": \"x\",\n  \"list\": [\"p\", \"q\"]}}",
		"t.toml": "a = 1\n[llm]\nmodel = \"x\"\nlist = [\"p\", \"q\"]\n",
	} {
		n, issues := Parse(file, []byte(text), Limits{})
		if len(issues) > 0 {
			t.Errorf("%s: %v", file, issues)
			continue
		}
		if e := n.Entries[1]; e.Key != "llm" || e.KeyPos.Line != 2 {
			t.Errorf("%s: second key is %s at %s", file, e.Key, e.KeyPos)
		}
		if m := n.Get("llm").Get("model"); m.Line != 3 {
			t.Errorf("%s: model at %s", file, m.Pos)
		}
		if q := n.Get("llm").Get("list").Items[1]; q.Line != 4 || q.Column < 10 {
			t.Errorf("%s: q at %s", file, q.Pos)
		}
	}
}

func TestOffsetsCountCharacters(t *testing.T) {
	text := strings.Repeat("é", 3000) + "\n" + strings.Repeat("語", 3000) + "x"
	o := newOffsets("f", []byte(text))
	for offset, want := range map[int]string{
		0: "f:1:1", 2: "f:1:2", 5998: "f:1:3000", 6000: "f:1:3001", 6001: "f:2:1",
		6001 + 3*2999: "f:2:3000", len(text) - 1: "f:2:3001", len(text): "f:2:3002", len(text) + 9: "f:2:3002",
	} {
		if got := o.at(offset).String(); got != want {
			t.Errorf("at(%d) = %s, want %s", offset, got, want)
		}
	}
	if got := newOffsets("f", nil).at(0).String(); got != "f:1:1" {
		t.Errorf("empty text: %s", got)
	}
	if got := newOffsets("f", []byte(strings.Repeat("a", block))).at(block).Column; got != block+1 {
		t.Errorf("at the end of a block: column %d", got)
	}
}
