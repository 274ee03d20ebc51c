package mcp_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/mcp"
	"crewhost/mcp/mcptest"
)

// K19: an empty cursor is a cursor, and goes out as an empty string.
func TestEmptyCursor(t *testing.T) {
	r := start(t, settings(stdio("a", mcptest.Scripted, "-cursor", "empty", "-list", `[{"name":"first"},{"name":"log"}]`))).connected()
	if got := r.reg.Names(); !slices.Equal(got, []string{"first", "log", "second"}) {
		t.Errorf("got %q", got)
	}
	if log := text(r.call("log", "")); !strings.Contains(log, `"cursor":""`) {
		t.Errorf("on the wire: %s", log)
	}
}

// W7: lists that don't end do.
func TestEndlessLists(t *testing.T) {
	for cursor, want := range map[string]struct {
		tools   int
		warning string
	}{
		"repeat":  {4, "repeats the cursor"},
		"endless": {1000, "on more than 1000 pages"},
	} {
		report := start(t, settings(stdio("a", mcptest.Scripted, "-cursor", cursor))).connected().only()
		if len(report.Tools) != want.tools || !slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.Contains(w, want.warning) }) {
			t.Errorf("%s: %d tools, %q", cursor, len(report.Tools), report.Warnings)
		}
	}
}

// K23: strange names are kept, and reach the server as they are; no name is none.
func TestStrangeNames(t *testing.T) {
	names := []string{"GET:/items/{id}", "files list", "files.list", "files/list", "größe_ändern"}
	list := []string{`{"name":""}`, `{"name":"  "}`, `{"name":"a\u001b[2Jb"}`, `{"name":"` + strings.Repeat("n", 300) + `"}`, `{"name":5}`, `7`, `{"name":"files.list"}`}
	for _, name := range names {
		list = append(list, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name))
	}
	r := start(t, settings(stdio("a", mcptest.Scripted, "-list", "["+strings.Join(list, ",")+"]"))).connected()
	if got := r.reg.Names(); !slices.Equal(got, names) {
		t.Errorf("got %q", got)
	}
	for _, name := range names {
		if got := text(r.call(name, `{"a":1}`)); got != `{"a":1}` {
			t.Errorf("%s: %s", name, got)
		}
	}
	var reasons []mcp.Reason
	for _, skip := range r.only().Skipped {
		reasons = append(reasons, skip.Reason)
		if !strings.Contains(skip.String(), `"a"`) || strings.ContainsRune(skip.String(), '\x1b') {
			t.Errorf("line %q", skip)
		}
	}
	want := []mcp.Reason{
		mcp.ReasonNameless, mcp.ReasonNameless, mcp.ReasonMalformed, mcp.ReasonTooLarge,
		mcp.ReasonMalformed, mcp.ReasonMalformed, mcp.ReasonDuplicate,
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
}

// W7: schemas are kept byte for byte; what is none is replaced, with a warning.
func TestSchemas(t *testing.T) {
	schema := `{"z":1, "a" :12345678901234567890, "x-unknown":{"$ref":"#/properties/n/items"},"type":"object","f":1.50}`
	list := `[{"name":"kept","inputSchema":` + schema + `,"outputSchema":{"b":1,"a":2},"title":"T","annotations":{"readOnlyHint":true,"destructiveHint":"?"}},` +
		`{"name":"missing"},{"name":"null","inputSchema":null},{"name":"true","inputSchema":true},{"name":"text","inputSchema":"{}"}]`
	r := start(t, settings(stdio("a", mcptest.Scripted, "-list", list))).connected()
	kept, _ := r.reg.Lookup("kept")
	def := kept.Definition()
	if string(def.InputSchema) != schema || string(def.OutputSchema) != `{"b":1,"a":2}` || def.Title != "T" || def.Server != "a" {
		t.Errorf("got %+v", def)
	}
	if def.Annotations.ReadOnly == nil || !*def.Annotations.ReadOnly || def.Annotations.Destructive != nil {
		t.Errorf("annotations %+v", def.Annotations)
	}
	for _, name := range []string{"missing", "null", "true", "text"} {
		tool, ok := r.reg.Lookup(name)
		if !ok || string(tool.Definition().InputSchema) != `{"type":"object"}` {
			t.Errorf("%s: %v", name, ok)
		}
	}
	if n := len(r.only().Warnings); n != 4 {
		t.Errorf("%d warnings: %q", n, r.only().Warnings)
	}
}

// The settings choose by the server's own names, and are told of names that are none.
func TestEnabledAndDisabled(t *testing.T) {
	for name, tt := range map[string]struct {
		enabled, disabled, want []string
		warnings                int
	}{
		"all":      {nil, nil, []string{"x", "y", "z"}, 0},
		"enabled":  {[]string{"x", "nope"}, nil, []string{"x"}, 1},
		"none":     {[]string{}, nil, nil, 0},
		"disabled": {nil, []string{"y", "nope"}, []string{"x", "z"}, 1},
		"both":     {[]string{"x", "y"}, []string{"y"}, []string{"x"}, 0},
	} {
		s := stdio("a", mcptest.Standard, "-tools", "x,y,z")
		s.EnabledTools, s.DisabledTools = tt.enabled, tt.disabled
		report := start(t, settings(s)).connected().only()
		if !slices.Equal(report.Tools, tt.want) || len(report.Warnings) != tt.warnings || len(report.Skipped) != 0 {
			t.Errorf("%s: %q, %q, %v", name, report.Tools, report.Warnings, report.Skipped)
		}
	}
}

// R4: what is not to be seen in a description isn't.
func TestDescriptions(t *testing.T) {
	list := `[{"name":"a","description":"plain\nand \u001b[31mred\u202e hid\u200bden \u007f"},{"name":"b","description":"` + strings.Repeat("é", 40<<10) + `"},{"name":"c","description":5}]`
	r := start(t, settings(stdio("s", mcptest.Scripted, "-list", list))).connected()
	got := map[string]string{}
	for _, d := range r.reg.Definitions() {
		got[d.Name] = d.Description
	}
	if got["a"] != "plain\nand [31mred hidden " || len(got["b"]) > 33<<10 || !strings.HasSuffix(got["b"], "é…") || got["c"] != "" {
		t.Errorf("a %q, b %d bytes, c %q", got["a"], len(got["b"]), got["c"])
	}
}

// W7: the first 10,000 tools are taken, also of a single page, and what there is
// to say about them is bounded.
func TestTooManyTools(t *testing.T) {
	var list strings.Builder
	for i := range 10_001 {
		fmt.Fprintf(&list, `,{"name":"t%05d"}`, i)
	}
	answers := maps.Clone(legacy)
	answers["tools/list"] = `{"result":{"tools":[` + list.String()[1:] + `]}}`
	report := start(t, settings(remote("a", handler(t, answers)))).connected().only()
	if len(report.Tools) != 10_000 || len(report.Warnings) > 110 || !strings.Contains(report.Warnings[0], "more than 10000 tools") {
		t.Errorf("%d tools, %d warnings, %q", len(report.Tools), len(report.Warnings), report.Warnings[0])
	}
}

// Over HTTP, a tool that wants a header which can't be made is not used.
func TestBadHeaderTool(t *testing.T) {
	answers := maps.Clone(legacy)
	answers["tools/list"] = `{"result":{"tools":[{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"no header"}}}},{"name":"good"}]}}`
	report := start(t, settings(remote("a", handler(t, answers)))).connected().only()
	if !slices.Equal(report.Tools, []string{"good"}) || len(report.Skipped) != 1 || report.Skipped[0].Reason != mcp.ReasonMalformed {
		t.Errorf("%q, %v", report.Tools, report.Skipped)
	}
}

// K27: 1,500 tools on one server are listed and registered in moments.
func TestManyTools(t *testing.T) {
	var names []string
	for i := range 1500 {
		names = append(names, fmt.Sprintf("tool_%04d", i))
	}
	r := start(t, settings(stdio("a", mcptest.Standard, "-tools", strings.Join(names, ",")))).connected()
	if got := r.reg.Names(); !slices.Equal(got, names) {
		t.Errorf("%d tools", len(got))
	}
}
