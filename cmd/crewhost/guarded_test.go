package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unguarded are the exported functions below runner and mcp that take or hand out a
// registry of tools which no policy stands before, and why each may.
var unguarded = map[string]string{
	"mcp.Startup": "it adds the tools of servers, and calls none: who opens a host puts the guard before them",
}

// TestNobodyTakesAnUnguardedRegistry holds that there is no way around the policy: no
// exported function, method or field of a runner or a server takes a registry itself,
// or an interface that looks tools up in one (R3).
func TestNobodyTakesAnUnguardedRegistry(t *testing.T) {
	files := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, p := range modulePackages(t) {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			files[p.ImportPath] = append(files[p.ImportPath], f)
		}
	}
	found := registriesTaken(files)
	for what, where := range found {
		if unguarded[what] == "" {
			t.Errorf("%s: %s goes around the policy: let it have a *permission.Guard", fset.Position(where), what)
		}
	}
	for what := range unguarded {
		if _, ok := found[what]; !ok {
			t.Errorf("%s needs no exception any more", what)
		}
	}
}

// The search finds each way in which a registry could be taken.
func TestUnguardedRegistriesAreFound(t *testing.T) {
	source := func(path, text string) []*ast.File {
		f, err := parser.ParseFile(token.NewFileSet(), path, "package x\n"+text, 0)
		if err != nil {
			t.Fatal(err)
		}
		return []*ast.File{f}
	}
	found := registriesTaken(map[string][]*ast.File{
		"crewhost/tools": source("tools.go", `type Registry struct{}; type Tool interface{}`),
		"crewhost/tools/permission": source("permission.go", `
			import "crewhost/tools"
			func NewGuard(r *tools.Registry) {}`), // this is the guard
		"crewhost/runner/agent": source("agent.go", `
			import t "crewhost/tools"
			type Finder interface { Lookup(string) (t.Tool, bool) }
			type Toolbox interface { Call() }
			func New(r *t.Registry) {}
			func hidden(r *t.Registry) {}
			func Fine(b Toolbox) {}
			func Many(r ...Finder) {}
			func Nested(f func(map[string]*t.Registry)) {}
			func Inline(f interface { Lookup(name string) (t.Tool, bool) }) {}
			func Out() *t.Registry { return nil }
			type Config struct { Registry *t.Registry; finder Finder }
			type Embeds struct { *t.Registry }
			type Alias = t.Registry
			type Wide interface { Finder }
			func Takes(w Wide) {}
			type Loop struct{}
			func (l *Loop) Use(r t.Registry) {}
			type loop struct{}
			func (l *loop) Use(r t.Registry) {}`),
		"crewhost/runner": source("runner.go", `
			import "crewhost/runner/agent"
			func Open(f agent.Finder) {}`),
	})
	want := []string{
		"runner.Open", "runner/agent.Alias", "runner/agent.Config", "runner/agent.Embeds", "runner/agent.Inline", "runner/agent.Loop.Use",
		"runner/agent.Many", "runner/agent.Nested", "runner/agent.New", "runner/agent.Out", "runner/agent.Takes",
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("found %v\nwant  %v", got, want)
	}
}

// registriesTaken finds what is exported below runner and mcp, and takes or hands out a
// registry or an interface that finds tools by name. The files are by package.
func registriesTaken(files map[string][]*ast.File) map[string]token.Pos {
	s := search{open: map[string]bool{"crewhost/tools.Registry": true}, found: map[string]token.Pos{}}
	for before := 0; before < len(s.open); { // interfaces embed one another
		before = len(s.open)
		s.each(files, s.finder)
	}
	for path, list := range files {
		local := strings.TrimPrefix(path, "crewhost/")
		if local == "runner" || local == "mcp" || strings.HasPrefix(local, "runner/") || strings.HasPrefix(local, "mcp/") {
			s.each(map[string][]*ast.File{path: list}, s.taken)
		}
	}
	return s.found
}

// search goes through declarations.
type search struct {
	open  map[string]bool // types that lead to tools without a guard, as package.Name
	found map[string]token.Pos

	path    string
	imports map[string]string // of the file, by local name
}

func (s *search) each(files map[string][]*ast.File, visit func(ast.Decl)) {
	for path, list := range files {
		for _, f := range list {
			s.path, s.imports = path, map[string]string{}
			for _, spec := range f.Imports {
				imported := strings.Trim(spec.Path.Value, `"`)
				name := imported[strings.LastIndexByte(imported, '/')+1:]
				if spec.Name != nil {
					name = spec.Name.Name
				}
				s.imports[name] = imported
			}
			for _, decl := range f.Decls {
				visit(decl)
			}
		}
	}
}

// finder remembers the interfaces that find tools by name.
func (s *search) finder(decl ast.Decl) {
	gen, ok := decl.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range gen.Specs {
		if ts, ok := spec.(*ast.TypeSpec); ok {
			if i, ok := ts.Type.(*ast.InterfaceType); ok && s.finds(i) {
				s.open[s.path+"."+ts.Name.Name] = true
			}
		}
	}
}

// finds reports whether an interface has Lookup, which gives a tool away, be it by
// another that it embeds.
func (s *search) finds(i *ast.InterfaceType) bool {
	return slices.ContainsFunc(i.Methods.List, func(m *ast.Field) bool {
		if len(m.Names) == 0 {
			return s.leads(m.Type)
		}
		f, ok := m.Type.(*ast.FuncType)
		return ok && m.Names[0].Name == "Lookup" && f.Results != nil && slices.ContainsFunc(f.Results.List, func(r *ast.Field) bool {
			return s.name(r.Type) == "crewhost/tools.Tool"
		})
	})
}

// name is that of a type as package.Name, or "".
func (s *search) name(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Ident:
		return s.path + "." + n.Name
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			return s.imports[x.Name] + "." + n.Sel.Name
		}
	}
	return ""
}

// leads reports whether a type has one in it that leads to tools without a guard.
func (s *search) leads(n ast.Node) bool {
	leads := false
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			leads = leads || s.open[s.name(n)]
			return false
		case *ast.Ident:
			leads = leads || s.open[s.name(n)]
		case *ast.InterfaceType:
			leads = leads || s.finds(n)
		}
		return !leads
	})
	return leads
}

// taken notes what a declaration exports of such types.
func (s *search) taken(decl ast.Decl) {
	local := strings.TrimPrefix(s.path, "crewhost/")
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if !d.Name.IsExported() || d.Recv != nil && !exportedReceiver(d.Recv) || !s.leads(d.Type) {
			return
		}
		of := ""
		if d.Recv != nil {
			ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && of == "" {
					of = id.Name + "."
				}
				return true
			})
		}
		s.found[fmt.Sprintf("%s.%s%s", local, of, d.Name.Name)] = d.Pos()
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			ts, ok := spec.(*ast.TypeSpec)
			if !ok || !ts.Name.IsExported() || s.open[s.path+"."+ts.Name.Name] {
				continue // who takes such an interface is found, and not who names it
			}
			if s.exposes(ts.Type) {
				s.found[local+"."+ts.Name.Name] = ts.Pos()
			}
		}
	}
}

// exposes reports whether a type shows one that leads to tools: of a struct, what is
// exported counts.
func (s *search) exposes(n ast.Expr) bool {
	st, ok := n.(*ast.StructType)
	if !ok {
		return s.leads(n)
	}
	return slices.ContainsFunc(st.Fields.List, func(f *ast.Field) bool {
		exported := len(f.Names) == 0 || slices.ContainsFunc(f.Names, (*ast.Ident).IsExported)
		return exported && s.leads(f.Type)
	})
}
