package documents_test

import (
	"encoding/json"
	"testing"

	"crewhost/tools"
	"crewhost/tools/builtin/documents"
	"crewhost/tools/native/nativetest"
)

func newBench(t testing.TB) nativetest.Bench {
	t.Helper()
	return nativetest.New(t, documents.Tools)
}

// bounds is the bench of tests that hold bounds of time and memory: the race detector
// takes ten times of both, and what they call starts no goroutines.
func bounds(t testing.TB) nativetest.Bench {
	t.Helper()
	withoutDetector(t)
	return newBench(t)
}

// withoutDetector leaves a test to the run without the race detector.
func withoutDetector(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("it takes minutes with the race detector, and has a run without it")
	}
}

func call(arguments string) tools.Call { return tools.Call{Arguments: json.RawMessage(arguments)} }

func TestSchemas(t *testing.T) { newBench(t).CheckSchemas() }
