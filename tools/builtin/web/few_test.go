package web

import (
	"runtime"
	"strings"
	"testing"
)

// A list of very many entries takes the memory of those that are kept.
func TestFew(t *testing.T) {
	body := []byte("[" + strings.Repeat("{},", 2_000_000) + "{}]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var issues few[hubIssue]
	if err := decode(body, &issues); err != nil || len(issues) != maxFew {
		t.Fatalf("%d, %v", len(issues), err)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 32 {
		t.Errorf("took %d MiB", took)
	}
	for body, fails := range map[string]bool{`null`: false, `[]`: false, `[null]`: false, `{}`: true, `"x"`: true, `[5]`: true, `[`: true} {
		issues = few[hubIssue]{{Number: 1}}
		if err := decode([]byte(body), &issues); (err != nil) != fails || !fails && len(issues) > 1 {
			t.Errorf("%s: %v, %v", body, issues, err)
		}
	}
}
