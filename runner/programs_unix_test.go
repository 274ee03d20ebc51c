//go:build unix

package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crewhost/runner"
	"crewhost/tools"
	"crewhost/tools/builtin/shell"
)

const shellSettings = `
mounts: ["./out:/out:rw"]
permissions: {allow: [shell_command]}
tools: {shell: {enabled: true, interpreters: true, allow: [sh, cat, ls, sleep, setsid], confine: off}}
`

// shellCommand calls shell_command and returns its one text.
func shellCommand(ctx context.Context, t *testing.T, h *runner.Host, command string, more ...string) (text string, failed bool, err error) {
	t.Helper()
	args := map[string]string{"command": command}
	for i := 0; i < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	res, err := h.Call(ctx, tools.Call{Name: "shell_command", Arguments: data})
	if err == nil {
		text = res.Content[0].Text
	}
	return text, res.IsError, err
}

func TestPrograms(t *testing.T) {
	r := open(t, map[string]string{"crewhost.yaml": shellSettings})
	for command, want := range map[string]string{
		"sh -c 'pwd; echo $PPID >/dev/null'": "/out",
		// All that was written is there.
		"sh -c 'i=0; while [ $i -lt 3000 ]; do echo 12345678; i=$((i+1)); done; echo end >&2'": "12345678\n[stderr]\nend",
		// A child that keeps the pipe open holds nobody up, and ends with the call.
		"sh -c 'echo begun; sleep 300 & setsid sleep 300 & echo done'": "begun\ndone",
		"sh -c 'exit 7'":     "[sh ended with exit code 7]\n[no output]",
		"sh -c 'kill -9 $$'": "[sh was ended by the signal killed]\n[no output]",
		"cat":                "[no output]",
	} {
		began := time.Now()
		got, _, err := shellCommand(t.Context(), t, r.host, command)
		if err != nil || !strings.HasSuffix(got, want) {
			t.Errorf("%s: %s, %v", command, got, err)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", command, took)
		}
	}
	big := strings.Repeat("x", 1<<20)
	if got, failed, err := shellCommand(t.Context(), t, r.host, "sh -c 'exec <&-; echo unread'", "stdin", big); got != "unread" || failed || err != nil {
		t.Errorf("%.100s, %v", got, err)
	}
}

// Nothing of a program is left when its call is over, whoever ended it.
func TestProgramsEndWhole(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("who left the group is found on Linux alone")
	}
	r := open(t, map[string]string{"crewhost.yaml": shellSettings})
	pids := filepath.Join(r.dir, "out", "pids")
	const tree = `sh -c 'echo $$ > pids; sleep 300 & echo $! >> pids; setsid sh -c "echo \$\$ >> pids; exec sleep 300" & while [ $(wc -l < pids) -lt 3 ]; do :; done; `
	gone := func(how string) {
		t.Helper()
		data, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(string(data))
		if len(words) != 3 {
			t.Fatalf("%s: %q", how, data)
		}
		for _, word := range words {
			pid, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(pid, 0); err == nil && !dead(pid) {
				t.Errorf("%s: %d is left", how, pid)
			}
		}
	}
	if got, failed, err := shellCommand(t.Context(), t, r.host, tree+"exit 0'"); failed || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	gone("ended")
	_ = os.Remove(pids)
	if got, failed, err := shellCommand(t.Context(), t, r.host, tree+"echo ready; wait'", "timeout_seconds", "2"); !failed || err != nil || !strings.Contains(got, "stopped after 2s") {
		t.Errorf("%s, %v", got, err)
	}
	gone("stopped")
	_ = os.Remove(pids)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for data, _ := os.ReadFile(pids); strings.Count(string(data), "\n") < 3 && ctx.Err() == nil; data, _ = os.ReadFile(pids) {
			<-tick.C
		}
		cancel()
	}()
	if _, _, err := shellCommand(ctx, t, r.host, tree+"wait'"); err == nil {
		t.Error("no error")
	}
	<-watched
	gone("given up")
}

// dead reports whether a process has ended and waits for somebody to see it.
func dead(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(data), ") Z ")
}

// A host that can't confine programs says so once.
func TestProgramsUnconfinedAreTold(t *testing.T) {
	for confine, want := range map[string]string{"auto": "are not confined", "require": "runs nothing", "off": ""} {
		var said bytes.Buffer
		open(t, map[string]string{"crewhost.yaml": strings.Replace(shellSettings, "off", `"`+confine+`"`, 1)}, func(cfg *runner.Config) {
			cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		})
		if got := said.String(); (got != "") != (want != "") || !strings.Contains(got, want) || strings.Count(got, "\n") > 1 {
			t.Errorf("%s: %s", confine, got)
		}
	}
}

// A program is confined by default; where the system can't, the host says that none is run.
func TestProgramsAreConfined(t *testing.T) {
	var said bytes.Buffer
	r := open(t, map[string]string{"crewhost.yaml": strings.Replace(shellSettings, ", confine: off", "", 1)}, func(cfg *runner.Config) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cfg.Confine = []string{self, confineArgument}
		cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
		cfg.Environ = append(cfg.Environ, "MODEL_KEY=sk-canary")
	})
	if shell.CanConfine() != nil {
		if strings.Count(said.String(), "runs nothing") != 1 {
			t.Errorf("%s", &said)
		}
		t.Skip("this system confines nothing")
	}
	if said.Len() > 0 {
		t.Errorf("%s", &said)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "secret"), []byte("canary"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"cat ../secret", "cat /etc/passwd", "sh -c 'cat /proc/*/environ'", "cat " + filepath.Join(r.dir, "crewhost.yaml")} {
		if got, failed, err := shellCommand(t.Context(), t, r.host, command); !failed || err != nil || !strings.Contains(got, "ermission denied") && !strings.Contains(got, "No such file") || strings.Contains(got, "canary") {
			t.Errorf("%s: %s, %v", command, got, err)
		}
	}
	if got, failed, err := shellCommand(t.Context(), t, r.host, "sh -c 'echo a > a; cat a; set'"); failed || err != nil || !strings.HasPrefix(got, "a\n") || strings.Contains(got, "canary") {
		t.Errorf("%s, %v", got, err)
	}
}
