package strict

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// hostile are documents whose size says nothing about what they cost (K67).
func hostile() map[string]string {
	lines := func(n int, line func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(line(i))
		}
		return b.String()
	}
	indented := func(key string) string {
		return lines(1300, func(i int) string { return strings.Repeat(" ", i) + key + "\n" })
	}
	aliases := "a0: &a0 [x]\n" + lines(9, func(i int) string {
		return fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9))
	})
	const mib = 1 << 20
	return map[string]string{
		"aliases.yaml":           aliases,
		"flow.yaml":              strings.Repeat("[", 10_000),
		"flow closed.yaml":       strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000),
		"flow items.yaml":        strings.Repeat("[x,", 10_000),
		"flow maps.yaml":         strings.Repeat("{a: ", 10_000),
		"flow lines.yaml":        strings.Repeat("[x,\n", 10_000),
		"flow tags.yaml":         strings.Repeat("[!!seq ", 10_000),
		"dashes.yaml":            strings.Repeat("- ", 10_000) + "x",
		"many dashes.yaml":       strings.Repeat("- ", mib/2-8) + "x",
		"indented maps.yaml":     indented("a:"),
		"indented lists.yaml":    indented("-"),
		"questions.yaml":         strings.Repeat("? ", 10_000) + "x",
		"keys.yaml":              lines(90_000, func(i int) string { return fmt.Sprintf("k%d: 1\n", i) }),
		"equal keys.yaml":        "a: {" + strings.Repeat("a: 1, ", 40_000) + "}",
		"merges.yaml":            "a: &a {x: 1}\nb: {<<: [" + strings.Repeat("*a,", 40_000) + "]}\n",
		"commas.yaml":            "[" + strings.Repeat(",", mib-8),
		"items.yaml":             "[" + strings.Repeat("x,", mib/2-8) + "]",
		"quotes.yaml":            strings.Repeat(`"`, mib-8),
		"anchors.yaml":           strings.Repeat("&a ", mib/3-8),
		"lines.yaml":             strings.Repeat("\n", mib-8),
		"comments.yaml":          "a:\n" + strings.Repeat("- x\n#x\n", mib/8),
		"10 MB.yaml":             "a: " + strings.Repeat("text ", 2*mib),
		"60 MB.yaml":             "a: '" + strings.Repeat("x", 60*mib) + "'",
		"lists.json":             strings.Repeat("[", 10_000),
		"deep maps.json":         strings.Repeat(`{"a":`, mib/5-8),
		"commented lists.json":   strings.Repeat("[/*x*/", mib/6-8),
		"items.json":             "[" + strings.Repeat("1,", mib/2-8) + "1]",
		"empty lists.json":       "[" + strings.Repeat("[],", 49_000) + strings.Repeat("[", 49_000),
		"equal keys.json":        "{" + strings.Repeat(`"a":1,`, mib/6-8) + `"b":1}`,
		"60 MB.json":             `{"a": "` + strings.Repeat("x", 60*mib) + `"}`,
		"lists.toml":             "a=" + strings.Repeat("[", mib-8),
		"inline tables.toml":     "a=" + strings.Repeat("{a=", mib/3-8),
		"dots.toml":              strings.Repeat("a.", mib/2-8) + "a=1",
		"table dots.toml":        "[" + strings.Repeat("a.", mib/2-8) + "a]\nx=1",
		"tables.toml":            lines(60_000, func(i int) string { return fmt.Sprintf("[[a]]\nk%d=1\n", i) }),
		"keys.toml":              lines(60_000, func(i int) string { return fmt.Sprintf("k%d=1\n", i) }),
		"keys of long name.toml": "[" + strings.Repeat("a", mib/2) + "]\n" + lines(40_000, func(i int) string { return fmt.Sprintf("k%d=1\n", i) }) + "x",
	}
}

// TestHostileFilesAreRefused is K67: refused within a second and 200 MB, with a
// reason that has a place.
func TestHostileFilesAreRefused(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			data := []byte(text)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			n, issues := Parse(name, data, Limits{})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if len(issues) == 0 {
				t.Fatalf("accepted: %v", n.Kind)
			}
			if issues[0].Code == "" || issues[0].File != name || len(issues.Error()) > 200*(maxIssues+1) {
				t.Errorf("a poor reason: %.300s", issues.Error())
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 200 {
				t.Errorf("took %d MB", allocated)
			}
			if took > 10*time.Second { // a second on an idle machine, and without the race detector
				t.Errorf("took %s", took)
			}
		})
	}
}

// TestManyProblemsAreCut keeps a file of nothing but faults readable.
func TestManyProblemsAreCut(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "unknown%d: %s\n", i, "x")
	}
	n, issues := Parse("t.yaml", []byte(b.String()), Limits{})
	if len(issues) > 0 {
		t.Fatal(issues[0])
	}
	var into struct {
		Name string `key:"name"`
	}
	issues = Decode(n, &into)
	if len(issues) != maxIssues+1 || issues[maxIssues].Message != "more than 500 problems; the rest is not listed" {
		t.Errorf("%d issues, the last %q", len(issues), issues[len(issues)-1].Message)
	}
}
