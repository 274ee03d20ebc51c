package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// imports is who may import whom, by path below the module. A package that is
// not in the table fails the test, as does an import that its row does not
// name. Command packages and test helpers are rows like any other.
var imports = map[string][]string{
	"cmd/crewhost": {"*"},

	"config":               {"config/secret", "config/strict"},
	"config/secret":        {},
	"config/secret/sealed": {"config/secret"},
	"config/strict":        {},
	"config/vault":         {"config/secret", "config/secret/sealed"},

	"tools":            {},
	"tools/permission": {"tools"},
	"tools/mount":      {},
	"tools/search":     {"tools"},
	"tools/audit":      {},
	"tools/native":     {"tools"},
	// For tests of the rooms of tools/builtin.
	"tools/native/nativetest": {"tools", "tools/mount", "tools/native"},
	"tools/builtin": {
		"tools", "tools/mount", "tools/native", "tools/builtin/files", "tools/builtin/documents",
		"tools/builtin/web", "tools/builtin/database", "tools/builtin/shell", "tools/builtin/people", "tools/builtin/mind",
	},
	"tools/builtin/charset":   {"tools/native"},
	"tools/builtin/files":     {"tools", "tools/mount", "tools/native", "tools/builtin/charset"},
	"tools/builtin/documents": {"tools", "tools/mount", "tools/native", "tools/builtin/charset"},
	"tools/builtin/web":       {"tools", "tools/mount", "tools/native", "tools/builtin/charset"},
	"tools/builtin/database":  {"tools", "tools/mount", "tools/native"},
	"tools/builtin/shell":     {"tools", "tools/mount", "tools/native"},
	"tools/builtin/people":    {"tools", "tools/native"},
	"tools/builtin/mind":      {"tools", "tools/native"},

	"crew": {"config/strict"},

	"mcp":           {"mcp/admission", "mcp/child", "mcp/oauth", "mcp/wire", "tools", "config", "config/secret"},
	"mcp/admission": {},
	// The tables of what is admitted, for tests of whatever goes out.
	"mcp/admission/admissiontest": {"mcp/admission"},
	"mcp/child":                   {},
	"mcp/oauth":                   {"mcp/admission", "config", "config/secret", "config/secret/sealed"},
	"mcp/gateway":                 {"mcp/admission", "mcp/oauth", "config", "config/secret", "config/vault"},
	"mcp/server":                  {"mcp/wire", "tools", "tools/permission", "tools/search"},
	"mcp/wire":                    {},
	"mcp/mcptest":                 {"mcp/mcptest/notebook"},
	"mcp/mcptest/notebook":        {},
	"mcp/mcptest/notes":           {"mcp/mcptest/notebook"},
	"mcp/mcptest/interop":         {},
	// The client that the conformance suite tests is the product's.
	"mcp/mcptest/conformance": {"mcp", "config", "config/secret", "tools"},

	"runner": {
		"config", "config/secret", "config/secret/sealed", "config/strict", "config/vault", "crew", "mcp", "mcp/admission", "mcp/child", "mcp/gateway", "mcp/server",
		"tools", "tools/permission", "tools/mount", "tools/native", "tools/builtin", "tools/audit",
		"tools/builtin/database", "tools/builtin/mind", "tools/builtin/people", "tools/builtin/shell", "tools/builtin/web",
		"runner/llm", "runner/llm/provider", "runner/llm/replay",
		"runner/agent", "runner/process", "runner/event", "runner/journal",
		"runner/index", "runner/memory", "runner/knowledge",
		"runner/lock", "runner/tape", "runner/telemetry", "runner/approvals",
	},
	"runner/llm":             {},
	"runner/llm/openai":      {"runner/llm"},
	"runner/llm/anthropic":   {"runner/llm"},
	"runner/llm/ollama":      {"runner/llm"},
	"runner/llm/provider":    {"runner/llm", "runner/llm/openai", "runner/llm/anthropic", "runner/llm/ollama"},
	"runner/llm/replay":      {"runner/llm"},
	"runner/llm/llmtest":     {"runner/llm"},
	"runner/agent":           {"runner/llm", "tools", "crew", "runner/event"},
	"runner/process":         {"crew", "runner/event", "runner/llm"},
	"runner/event":           {},
	"runner/event/eventtest": {"runner/event"},
	"runner/journal":         {},
	"runner/tape":            {"runner/journal", "runner/event", "runner/llm/replay"},
	"runner/lock":            {"config/strict"},
	"runner/approvals":       {"config/secret/sealed", "tools/permission"},
	"runner/telemetry":       {"runner/llm", "runner/event", "tools"},
	"runner/index":           {},
	"runner/memory":          {"runner/index"},
	"runner/knowledge":       {"runner/index"},
}

// testOnly are packages that only tests and command packages of their own may
// import.
var testOnly = []string{"tools/native/nativetest", "mcp/admission/admissiontest", "mcp/mcptest", "mcp/mcptest/interop", "runner/llm/llmtest", "runner/event/eventtest"}

const sdk = "github.com/modelcontextprotocol/" + "go-sdk"

type pkg struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	Imports               []string
}

func modulePackages(t *testing.T) []pkg {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Dir,Name,GoFiles,Imports", "crewhost/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// TestImports holds the import table against the code, and confines the MCP SDK
// to the packages below mcp (W1).
func TestImports(t *testing.T) {
	for _, p := range modulePackages(t) {
		path := strings.TrimPrefix(p.ImportPath, "crewhost/")
		allowed, known := imports[path]
		if !known {
			t.Errorf("package %s is not in the import table", path)
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, sdk) && path != "mcp" && !strings.HasPrefix(path, "mcp/") {
				t.Errorf("%s imports the MCP SDK, which stops in mcp", path)
			}
			local, ours := strings.CutPrefix(imported, "crewhost/")
			if !ours {
				continue
			}
			if slices.Contains(testOnly, local) && !strings.HasPrefix(path, local+"/") {
				t.Errorf("%s imports %s, which is for tests", path, local)
			}
			if !slices.Contains(allowed, local) && !slices.Contains(allowed, "*") {
				t.Errorf("%s imports %s, which the table does not allow", path, local)
			}
		}
	}
}

// TestSDKStaysInside finds SDK types in what the packages below mcp export:
// nobody outside can name such a type, so nobody should be handed one (W1). What
// mcp/wire exports is for packages below mcp alone, as the import table says.
func TestSDKStaysInside(t *testing.T) {
	for _, p := range modulePackages(t) {
		path := strings.TrimPrefix(p.ImportPath, "crewhost/")
		if path != "mcp" && !strings.HasPrefix(path, "mcp/") || path == "mcp/wire" || p.Name == "main" {
			continue
		}
		for _, file := range p.GoFiles {
			checkExports(t, filepath.Join(p.Dir, file))
		}
	}
}

func checkExports(t *testing.T, path string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{} // local names of SDK packages
	for _, spec := range f.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if !strings.HasPrefix(imported, sdk) {
			continue
		}
		name := imported[strings.LastIndex(imported, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	report := func(what string, n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && names[x.Name] {
				t.Errorf("%s: %s shows the SDK type %s.%s", fset.Position(sel.Pos()), what, x.Name, sel.Sel.Name)
			}
			return true
		})
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
				report(d.Name.Name, d.Type)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				ts, ok := spec.(*ast.TypeSpec)
				if !ok || !ts.Name.IsExported() {
					continue
				}
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					report(ts.Name.Name, ts.Type)
					continue
				}
				for _, field := range st.Fields.List {
					if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
						report(ts.Name.Name, field.Type)
					}
				}
			}
		}
	}
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := false
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
		}
		return true
	})
	return exported
}

// TestPackageComments wants one package comment a package, neither none nor two.
func TestPackageComments(t *testing.T) {
	for _, p := range modulePackages(t) {
		comments := 0
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				comments++
			}
		}
		if comments != 1 {
			t.Errorf("package %s has %d package comments, want 1", p.ImportPath, comments)
		}
	}
}
