package crew

import (
	"strings"
	"testing"
	"unicode/utf8"

	"crewhost/config/strict"
)

func TestExpandAnchors(t *testing.T) {
	block := "anchors:\n  x: |\n    one\n\n    two\n\n"
	for name, c := range map[string]struct{ in, want string }{
		"no block":              {"a: 1\n  *x\n", "a: 1\n  *x\n"},
		"at the line's indent":  {block + "t: |\n  *x\n", block + "t: |\n  one\n\n  two\n"},
		"escaped":               {block + "t: |\n  \\*x\n", block + "t: |\n  *x\n"},
		"not a line of its own": {block + "t: |\n  see *x\n  - *x\n", block + "t: |\n  see *x\n  - *x\n"},
		"before the block":      {"t: |\n  *x\n" + block, "t: |\n  *x\n" + block},
		"lines end in CR LF":    {strings.ReplaceAll(block+"t: |\n  *x\n", "\n", "\r\n"), block + "t: |\n  one\n\n  two\n"},
		"a native anchor":       {"anchors:\n  x: &y [1]\nt:\n  *y\n", "anchors:\n  x: &y [1]\nt:\n  *y\n"},
		"an indented block":     {"a:\n  anchors:\n    x: y\nt: |\n  *x\n", "a:\n  anchors:\n    x: y\nt: |\n  *x\n"},
	} {
		x := expandAnchors("f.yaml", []byte(c.in), maxFile)
		if string(x.text) != c.want || len(x.issues) > 0 {
			t.Errorf("%s: got %q %v, want %q", name, x.text, x.issues, c.want)
		}
	}
}

// TestAnchorsKeepPlaces: what stands below an expanded line has its place in the
// file, not in the expanded text.
func TestAnchorsKeepPlaces(t *testing.T) {
	_, issues := loadBytes("f.yaml", []byte(`anchors:
  three: |
    role: r
    maxIter: 0
    backstory: b
  other: text
name: n
goal: g
agents:
  a:
    *three
    goal: g
    rolle: x
tasks:
  t:
    description: |
      *three
      *threee
    expectedOutput: e
    expectedOutput: f
  u: [
`))
	expect(t, issues,
		`f.yaml:18:7: *threee stands for nothing in the anchors block (did you mean "three"?) [undefined-alias]`,
		`f.yaml:2`)
	_, issues = loadBytes("f.yaml", []byte(`anchors:
  three: |
    role: r
    maxIter: 0
    backstory: b
name: n
goal: g
agents:
  a:
    *three
    goal: g
    rolle: x
tasks:
  t: {description: d, expectedOutput: e, expectedOutput: f}
`))
	expect(t, issues,
		"f.yaml:10:5: agents.a.maxIter is 0; it must be at least 1",
		`f.yaml:12:5: unknown key "rolle" in agents.a (did you mean "role"?)`,
		`f.yaml:14:42: duplicate key "expectedOutput" (keep one)`)
}

// FuzzAnchors: places stay inside the file, the text stays bounded, and a file
// without a block stays as it is.
func FuzzAnchors(f *testing.F) {
	for _, s := range []string{
		"anchors:\n  a: |\n    x\nb: |\n  *a\n  \\*a\n  *b\n", "anchors:\r\n a: x\r\n*a\r\n", "anchors:\n", "anchors:", "a: &a x\nanchors:\n  b: *a\nc:\n  *a\n",
		"anchors:\n  a: \"*a\"\n*a", "\ufeffanchors:\n  a: b\n*a\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 1 << 16
		x := expandAnchors("f.yaml", data, limit)
		if !x.block && string(x.text) != string(data) {
			t.Error("changed without a block")
		}
		if len(x.text) > limit+len(data) {
			t.Errorf("grew from %d to %d bytes", len(data), len(x.text))
		}
		lines := 1
		for _, r := range string(data) {
			if strings.ContainsRune("\n\r\u0085\u2028\u2029", r) { // what the parser takes for the end of a line
				lines++
			}
		}
		n, issues := strict.Parse("f.yaml", x.text, strict.Limits{})
		x.restore(n, issues)
		for _, i := range append(issues, x.issues...) {
			if i.Line > lines+1 {
				t.Errorf("%v is beyond the %d lines of the file", i, lines)
			}
			if !utf8.ValidString(i.Message) && utf8.Valid(data) {
				t.Errorf("a message that is no text: %q", i.Message)
			}
		}
	})
}
