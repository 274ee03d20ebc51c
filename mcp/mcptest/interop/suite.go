package interop

import (
	"bytes"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// A Score is how many checks passed and failed.
type Score struct{ Passed, Failed int }

// Scores are those of a run of the conformance suite.
type Scores struct {
	Total     Score
	Scenarios map[string]Score
	Output    string // all of it
}

// A scenario's line in the suite's summary, and the sum.
var (
	scenarioLine = regexp.MustCompile(`(?m)^[✓✗] (\S+): (\d+) passed, (\d+) failed`)
	totalLine    = regexp.MustCompile(`(?m)^Total: (\d+) passed, (\d+) failed`)
)

// Suite runs the conformance suite. Its exit code is no matter: it tells of what is
// scored, and the scores tell of everything.
func Suite(t testing.TB, args ...string) Scores {
	t.Helper()
	began := time.Now()
	suite := exec.CommandContext(t.Context(), "node", append([]string{Conformance(t)}, args...)...)
	suite.Dir = t.TempDir()
	var out bytes.Buffer
	suite.Stdout, suite.Stderr = &out, &out
	err := suite.Run()
	t.Logf("the suite: %v in %v", err, time.Since(began).Round(time.Millisecond))

	s := Scores{Scenarios: map[string]Score{}, Output: out.String()}
	for _, m := range scenarioLine.FindAllStringSubmatch(s.Output, -1) {
		s.Scenarios[m[1]] = score(t, m[2], m[3])
		t.Logf("%s: %s passed, %s failed", m[1], m[2], m[3])
	}
	total := totalLine.FindStringSubmatch(s.Output)
	if total == nil {
		t.Fatalf("the suite gives no totals:\n%s", s.Output)
	}
	t.Log(total[0])
	s.Total = score(t, total[1], total[2])
	return s
}

func score(t testing.TB, passed, failed string) Score {
	t.Helper()
	p, errPassed := strconv.Atoi(passed)
	f, errFailed := strconv.Atoi(failed)
	if errPassed != nil || errFailed != nil {
		t.Fatal(errPassed, errFailed)
	}
	return Score{p, f}
}
