package shell_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools/builtin/shell"
)

// TestGitRunsNothing has a repository whose configuration names a program in every place
// that git knows: none of them is run, though nothing else holds git.
func TestGitRunsNothing(t *testing.T) {
	b := bench(t, func(cfg *shell.Config) { cfg.Allow = append(cfg.Allow, "git") })
	repo, mark := filepath.Join(b.Root, "out"), filepath.Join(b.Root, "out", "ran")
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", args...)
		cmd.Dir = repo
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("git %q: %v, %s", args, err, out)
		}
	}
	git("init", "-q", "-b", "main", ".")
	b.Put("out/a.txt", "one\n")
	b.Put("out/.gitignore", "evil\nran\n")
	git("add", ".")
	git("commit", "-q", "-m", "first words")
	git("init", "-q", "sub")
	git("-C", "sub", "commit", "-q", "--allow-empty", "-m", "sub")
	git("-c", "protocol.file.allow=always", "submodule", "-q", "add", "./sub", "sub")
	git("commit", "-q", "-m", "second words")
	b.Put("out/evil", "#!/bin/sh\ntouch '"+mark+"'\ncat\n")
	evil := filepath.Join(repo, "evil")
	for _, path := range []string{"evil", ".git/hooks/post-index-change", "hooks/post-index-change", "hooks/reference-transaction"} {
		b.Put("out/"+path, b.Get("out/evil"))
		if err := os.Chmod(filepath.Join(repo, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.Put("out/.git/info/attributes", "*.txt filter=f diff=d\n*.md diff=e filter=two.dots\n")
	for key, value := range map[string]string{
		"core.fsmonitor": evil, "core.hooksPath": filepath.Join(repo, "hooks"), "core.pager": evil, "pager.log": evil, "core.editor": evil, "core.sshCommand": evil,
		"diff.external": evil, "diff.d.textconv": evil, "diff.e.command": evil, "filter.f.clean": evil, "filter.f.process": evil, "filter.f.required": "true", "filter.two.dots.clean": evil,
		"gpg.program": evil, "log.showSignature": "true", "alias.evil": "!" + evil, "diff.ignoreSubmodules": "none", "submodule.sub.ignore": "none",
	} {
		git("config", key, value)
	}
	git("-C", "sub", "config", "core.fsmonitor", evil)
	git("config", "-f", ".gitmodules", "submodule.sub.ignore", "none")
	b.Put("out/a.txt", "two\n")
	b.Put("out/b.md", "new\n")
	// The trap is set: a plain git walks into it.
	_ = os.Remove(mark)
	git("status")
	if _, err := os.Stat(mark); err != nil {
		t.Fatal("the trap doesn't work")
	}
	for _, tt := range [][2]string{
		{"git status", "modified:   a.txt"}, {"git log -p --stat", "+one"}, {"git diff", "-one\n+two"}, {"git diff --stat HEAD~1", "a.txt"}, {"git show", "second words"},
		{"git show HEAD:a.txt", "one"}, {"git evil", ""}, {"git blame a.txt", "two"}, {"git --no-pager log", "first words"}, {"git add a.txt b.md", ""}, {"git diff --cached", "+two"},
	} {
		line, want := tt[0], tt[1]
		_ = os.Remove(mark)
		got, _ := b.Call("shell_command", command(line))
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("%s ran a program of the repository", line)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// A repository above the mount is not the mount's.
func TestGitStaysBelow(t *testing.T) {
	b := bench(t)
	if out, err := exec.Command("git", "init", "-q", b.Root).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	b.WantFailure("shell_command", command("git status"), "not a git repository")
	b.Put("out/deep/er/x", "")
	b.WantFailure("shell_command", command("git status", "working_directory", "/out/deep/er"), "not a git repository")
	if out, err := exec.Command("git", "init", "-q", filepath.Join(b.Root, "out")).CombinedOutput(); err != nil {
		t.Fatalf("%s", out)
	}
	b.WantParts("shell_command", command("git status --short", "working_directory", "/out/deep/er"), "?? ../")
	b.Put("out/.git/config", "[broken")
	b.WantFailure("shell_command", command("git status"), "git can't read the configuration of the repository", "bad config")
}
