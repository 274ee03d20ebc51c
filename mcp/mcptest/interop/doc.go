// Package interop runs the programs of others that this project is held against:
// those that .ci/npm pins and installs. Whatever is not installed fails the test
// that needs it; nothing is skipped.
//
//	func TestInteropX(t *testing.T) {
//		if interop.Isolated(t) {
//			return
//		}
//		exec.CommandContext(t.Context(), "node", interop.Script(t, "server-everything/dist/index.js"))
//	}
//
// Some of them listen on every interface, and some call home. So such a test runs
// in a network namespace that holds nothing but a loopback, which is Linux's.
package interop

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// Root is the folder of this module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("there is no go.mod above the test")
		}
		dir = parent
	}
}

// Script is the path of a file in a package of @modelcontextprotocol.
func Script(t testing.TB, file string) string {
	t.Helper()
	path := filepath.Join(modules(t), "@modelcontextprotocol", filepath.FromSlash(file))
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not installed (npm ci in .ci/npm): %v", file, err)
	}
	return path
}

func modules(t testing.TB) string {
	t.Helper()
	return filepath.Join(Root(t), ".ci", "npm", "node_modules")
}

// importsGlob is where the conformance suite imports what Node has since version 22.
var importsGlob = regexp.MustCompile(`\bglobSync as \w+,`)

// Conformance is the script of the official conformance suite. It imports by name
// a function that Node has since version 22, and that neither the suite's tests of
// clients nor those of servers call: an older Node runs a copy without.
func Conformance(t testing.TB) string {
	t.Helper()
	script := Script(t, "conformance/dist/index.js")
	if exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", `import { globSync } from "fs"`).Run() == nil {
		return script
	}
	code, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	patched := importsGlob.ReplaceAll(code, nil)
	if len(patched) == len(code) {
		t.Fatal("the suite imports globSync in another way than is known here")
	}
	from, work := filepath.Dir(filepath.Dir(script)), t.TempDir()
	script = filepath.Join(work, "dist", "index.js")
	pkg, errRead := os.ReadFile(filepath.Join(from, "package.json"))
	if err := cmp.Or(
		errRead,
		os.Mkdir(filepath.Dir(script), 0o700),
		os.WriteFile(script, patched, 0o600),
		os.WriteFile(filepath.Join(work, "package.json"), pkg, 0o600),
		os.Symlink(filepath.Join(from, "requirements"), filepath.Join(work, "requirements")),
		os.Symlink(modules(t), filepath.Join(work, "node_modules")),
	); err != nil {
		t.Fatal(err)
	}
	return script
}
