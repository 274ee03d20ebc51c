//go:build interop

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"crewhost/runner"
)

// What others read as XML Schema and XML is it: libxml2 holds reports against the
// schema, hostile texts included.
func TestInteropJUnitByXMLLint(t *testing.T) {
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Fatal("xmllint is not there: apt-get install libxml2-utils")
	}
	r, o := hostileReport(t, t.TempDir())
	lint := func(d junitSuites) ([]byte, error) {
		path := filepath.Join(t.TempDir(), "report.xml")
		var b bytes.Buffer
		if err := d.write(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		return exec.CommandContext(t.Context(), "xmllint", "--nonet", "--noout", "--schema", filepath.Join("schema", "junit.xsd"), path).CombinedOutput()
	}
	for name, d := range map[string]junitSuites{
		"report":   o.junit(r),
		"run":      o.junitOfRun("Crew \x00<&>", &runner.Output{}, io.ErrUnexpectedEOF),
		"findings": junitOfFindings([]finding{{Check: "settings", Status: broken, Detail: "]]>\x1b[31m"}}),
	} {
		if out, err := lint(d); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	bad := o.junit(r)
	bad.Suites[0].Tests = -1
	if out, err := lint(bad); err == nil {
		t.Errorf("a document that does not hold to the schema passes:\n%s", out)
	}
}
