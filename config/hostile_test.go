package config

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileSettings is K67 for what lies above the parsers: the layers, the
// variables, the issues.
func TestHostileSettings(t *testing.T) {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	key := strings.Repeat("k", 1000)
	for name, text := range map[string]string{
		"unknown keys":   lines(9_000, "k%d: 1\n"),
		"long paths":     key + ":\n " + key + ":\n  " + key + ":\n   " + key + ":\n" + lines(9_000, "    k%d: 1\n"),
		"servers":        "mcp:\n servers:\n" + lines(6_000, "  s%d: {}\n"),
		"servers in sum": "mcp:\n servers:\n" + lines(3_000, "  s%d: {command: \"${A}\"}\n"),
		"variables":      "mcp: {servers: {a: {command: x, args: [\"" + strings.Repeat("${A}${B}", 60_000) + "\"]}}}",
		"large values":   "mcp: {servers: {a: {command: x, args: [\"" + strings.Repeat("${BIG}", 20_000) + "\"]}}}",
		"half variables": "mcp: {servers: {a: {command: x, args: [\"" + strings.Repeat("${", 250_000) + "\"]}}}",
		"urls":           "mcp: {servers: {a: {command: x, args: [\"" + strings.Repeat("://a@?b=c&", 50_000) + "\"]}}}",
		"headers":        "mcp:\n servers:\n  a:\n   url: http://x/\n   headers:\n" + lines(5_000, "    H%d: 1\n"),
		"profiles":       "llm:\n profiles:\n" + lines(5_000, "  p%d: {model: x}\n"),
		"dollars":        "mcp: {servers: {a: {command: x, args: [\"" + strings.Repeat("$", 900_000) + "\"]}}}",
	} {
		t.Run(name, func(t *testing.T) {
			dir := files(t, map[string]string{"crewhost.yaml": text})
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			_, err := Load(Source{CrewDir: dir, Environ: []string{"BIG=" + strings.Repeat("x", 100_000)}})
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 200 {
				t.Errorf("took %d MB", allocated)
			}
			if took > 10*time.Second { // a second on an idle machine, and without the race detector
				t.Errorf("took %s", took)
			}
			if err != nil && len(err.Error()) > 1<<20 {
				t.Errorf("%d bytes of issues", len(err.Error()))
			}
			t.Log(took, (after.TotalAlloc-before.TotalAlloc)>>20, "MB")
		})
	}
}
func BenchmarkLoad(b *testing.B) {
	dir := files(b, map[string]string{"crewhost.yaml": wholeYAML})
	for b.Loop() {
		if _, err := Load(Source{CrewDir: dir}); err != nil {
			b.Fatal(err)
		}
	}
}
