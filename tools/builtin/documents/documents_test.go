package documents_test

import (
	"testing"

	"crewhost/tools/builtin/documents"
	"crewhost/tools/native/nativetest"
)

func newBench(t testing.TB) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, documents.Tools)
}

func TestSchemas(t *testing.T) { newBench(t).CheckSchemas() }
