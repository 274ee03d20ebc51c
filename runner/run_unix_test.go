//go:build unix

package runner_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// A schema file that is a pipe is refused: nobody may ever write to it.
func TestSchemaIsARegularFile(t *testing.T) {
	r := open(t, map[string]string{
		"crewhost.yaml": "mounts: [\"./out:/out:rw\"]\n",
		"crew.yaml": strings.Replace(oneTask, "agent: one }",
			"agent: one, deliverable: { path: /out/a.json, source: structured_output, schemaPath: pipe.json } }", 1),
	}, with(llm.Echo{}))
	if err := syscall.Mkfifo(filepath.Join(r.dir, "pipe.json"), 0o600); err != nil {
		t.Skip(err)
	}
	inputs := crew.Inputs{"word": "tide"}
	c, _ := crew.Load(filepath.Join(r.dir, "crew.yaml"))
	c.Agents[0].Tools = nil
	_, err := r.host.Run(t.Context(), c, inputs)
	if err == nil || !strings.Contains(err.Error(), "pipe.json is no regular file") {
		t.Error(err)
	}
}
