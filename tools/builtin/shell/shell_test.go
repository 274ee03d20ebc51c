package shell_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"crewhost/tools"
	"crewhost/tools/builtin/shell"
	"crewhost/tools/mount"
	"crewhost/tools/native"
	"crewhost/tools/native/nativetest"
)

func TestSchemas(t *testing.T) {
	bench(t).CheckSchemas()
	nativetest.New(t, func(*mount.FS) []native.Tool { return shell.Tools(shell.Config{}) }).CheckSchemas()
}

func TestRuns(t *testing.T) {
	for name, b := range map[string]nativetest.Bench{"plain": bench(t), "confined": bench(t, confined(t))} {
		t.Run(name, func(t *testing.T) {
			b.TB = t
			b.Put("in/a.txt", "one\ntwo\n")
			b.Put("out/src/b.txt", "three\n")
			b.WantText("shell_command", command("cat /in/a.txt"), "one\ntwo")
			b.WantText("shell_command", command("cat b.txt", "working_directory", "/out/src"), "three")
			b.WantText("shell_command", command("pwd", "working_directory", "/out/src"), "/out/src")
			b.WantText("shell_command", `{"command":"ls"}`, "src") // the one that can be written to
			b.WantText("shell_command", command(`echo 'a  b' "c\"d" e\ f '$1'`), `a  b c"d e f $1`)
			b.WantText("shell_command", command("cat -", "stdin", "given\n"), "given")
			b.WantText("shell_command", command("cat"), "[no output]") // the input ends
			b.WantText("shell_command", command("ls /out/src /in"), "/in:\na.txt\n\n/out/src:\nb.txt")
			b.WantFailure("shell_command", command("grep nothing /in/a.txt"), "[grep ended with exit code 1]")
			b.WantFailure("shell_command", command("ls none"), "[ls ended with exit code 2]\n[stderr]\n", "ls: cannot access 'none': No such file or directory")
			b.WantFailure("shell_command", command("ls", "working_directory", "/none"), "working directory", "the mounts are /in, /out")
			b.WantFailure("shell_command", command("ls", "working_directory", "/in/a.txt"), "/in/a.txt")
			b.WantFailure("shell_command", `{"command":" "}`, "is blank")
			b.WantFailure("shell_command", command("ls", "timeout_seconds", 61), "must be from 1 to 60")
		})
	}
}

// What a shell would do more is refused by its name, with what to do instead.
func TestNoShell(t *testing.T) {
	b := bench(t)
	for line, want := range map[string]string{
		"ls | wc":             "a pipe (|)",
		"cat a > b":           "a redirection (>)",
		"ls none 2>/dev/null": "a redirection (2>/dev/null)",
		"ls 2>&1":             "a redirection (2>&1)",
		"wc < a":              "a redirection (<)",
		"ls && ls":            "more than one command",
		"ls; ls":              "more than one command",
		"ls &":                "more than one command",
		"ls\nls":              "more than one command",
		"ls *.go":             "a pattern (*)",
		"ls ?":                "a pattern (?)",
		"ls [ab]":             "a pattern ([)",
		"echo $HOME":          "a variable",
		"echo ${HOME}":        "a variable",
		`echo "$HOME"`:        "a variable",
		"echo $(ls)":          "a command in a command",
		"echo `ls`":           "a command in a command",
		`echo "$(ls)"`:        "a command in a command",
		"(ls)":                "a parenthesis",
		"ls ~":                "the home folder (~)",
		"ls # all":            "a comment (#)",
		"ls {a,b}":            "a list in braces",
		"ls {1..9}":           "a list in braces",
		"echo 'a":             "a quote that is not closed",
		`echo "a`:             "a quote that is not closed",
		`echo a\`:             "a backslash at the end",
		"echo $'a'":           "the quotes $'…'",
		"A=b ls":              "a variable before the program",
		"cd src":              "working_directory",
		"/bin/ls":             "is a path",
		"./ls":                "is a path",
		`bin\\ls`:             "is a path",
		"rmdir x":             `"rmdir x" is not one of the programs that may be. Those that may be are cat, cp, echo, find, git diff`,
		"curl http://x":       "the tool http_api does much of what curl does",
		"git push":            `"git push" is not one`,
		"git -C / log":        `"git -C" is not one`,
		"git -c core.x=y log": `"git -c" is not one`,
		"git":                 `"git" is not one`,
		"env":                 "env runs whatever it is given",
		"echo a\x00b":         "NUL",
	} {
		b.WantFailure("shell_command", command(line), want)
	}
}

// What would run more than its program, or write where nobody looks, is refused.
func TestInterpreters(t *testing.T) {
	everything := func(cfg *shell.Config) {
		cfg.Allow = append(cfg.Allow, "git", "python3.11", "node", "xargs", "awk", "rg", "bash")
	}
	b := bench(t, everything)
	for _, line := range []string{
		"python3.11 -c 1", "node -e 1", "xargs ls", "awk 1", "bash -c ls", "env ls",
		"find . -exec ls", "find . -execdir ls", "find . -ok ls", "find . -delete", "find . -fprintf x y",
		"sed -i s/a/b/ x", "sed -ni p x", "sed --in-pl x", "sed --in-place=.bak x",
		"tar --to-command=ls -xf x", "tar --to-c ls", "tar -xIls x", "tar xIf ls x", "tar cf x --checkpoint-action=exec=ls", "tar --use-compress=x",
		"sort --compress-program=ls", "sort --comp ls", "sort -o x", "rg --pre ls x", "rg --pre=ls x",
		"git -c core.pager=ls log", "git --exec-path=. log", "git -C / log", "git --git-dir=x log", "git --config-env=a=b log",
		"git log --ext-diff", "git log --textconv", "git diff --output=x", "git diff --outp x", "git log '--format=%G?'", "git log --show-signature", "git log --help", "git help log",
		"git clone ext::ls", "git fetch --upload-pack=ls", "git grep -Ols x", "git bisect run ls", "git submodule foreach ls", "git difftool", "git config alias.x '!ls'", "git rebase -x ls",
	} {
		b.WantFailure("shell_command", command(line), "Nothing was run:")
	}
	for line, want := range map[string]string{
		"git --no-pager log":               "not a git repository",
		"git log --text":                   "not a git repository",
		"git log --output-indicator-new=x": "not a git repository",
		"sed -n -e 1p none":                "No such file",
		"find . -name x -type f":           "",
	} {
		if got, _ := b.Call("shell_command", command(line)); !strings.Contains(got, want) || strings.Contains(got, "Nothing was run") {
			t.Errorf("%s: %s", line, got)
		}
	}
	b.Put("out/x", "a\n")
	// The language of sed runs programs, too.
	b.WantFailure("shell_command", command("sed '1e touch /tmp/no' x"), "sandbox")
	b.WantFailure("shell_command", command("sed 's/a/ls/e' x"), "sandbox")

	b = bench(t, everything, interpreters)
	b.WantText("shell_command", command("env A=b sh -c 'echo $A'"), "b")
}

// A program is never one of the folder that it runs in, and never one that a name that
// looks harmless leads to.
func TestWhichProgram(t *testing.T) {
	var root string
	b := bench(t, func(cfg *shell.Config) {
		root = t.TempDir()
		cfg.Allow = append(cfg.Allow, "reader", "lister", "sh")
		cfg.Host = []string{"PATH=.::relative:" + root + "/away:/usr/bin:/bin"}
	})
	for _, name := range []string{"out/ls", "out/reader"} {
		b.Put(name, "#!/bin/sh\necho mine\n")
		if err := os.Chmod(filepath.Join(b.Root, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(root, "away"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/bin/sh", filepath.Join(root, "away/lister")); err != nil {
		t.Fatal(err)
	}
	b.WantText("shell_command", command("ls"), "ls\nreader")
	b.WantFailure("shell_command", command("reader"), "there is no program reader: it is not on the PATH")
	b.WantFailure("shell_command", command("lister -c ls"), "lister is", "runs whatever it is given")
	// A folder of the PATH that is mounted is left out.
	b = bench(t, func(cfg *shell.Config) { cfg.Host = nil })
	b.WantFailure("shell_command", command("ls"), "there is no program ls")
}

func TestMountedPathIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	cfg := shell.Config{Allow: []string{"mine"}, Host: []string{"PATH=" + dir}, Run: run}
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("#!/bin/sh\necho mine\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{dir + ":/bin:rw": "there is no program mine", t.TempDir() + ":/bin:rw": "mine"} {
		m, err := mount.Parse(spec)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.FS, err = mount.Open([]mount.Mount{m}); err != nil {
			t.Fatal(err)
		}
		defer cfg.FS.Close()
		res, err := shell.Tools(cfg)[0].Call(t.Context(), tools.Call{Arguments: []byte(`{"command":"mine"}`)})
		if err != nil || !strings.Contains(res.Content[0].Text, want) {
			t.Errorf("%+v, %v; want %s", res, err, want)
		}
	}
}

// Of the host's environment a program gets what tells nothing.
func TestEnvironment(t *testing.T) {
	const canary = "sk-canary-1"
	t.Setenv("TMPDIR", t.TempDir()) // to see what is left there
	for name, more := range map[string]func(*shell.Config){"plain": func(*shell.Config) {}, "confined": confined(t)} {
		b := bench(t, interpreters, more, func(cfg *shell.Config) {
			cfg.Host = append(cfg.Host, "OPENAI_API_KEY="+canary, "AWS_SECRET_ACCESS_KEY="+canary, "LD_PRELOAD=/x", "GIT_DIR=/x", "TZ=Europe/Berlin", "SSH_AUTH_SOCK=/x")
			cfg.Environ = []string{"MINE=yes", "TERM=own"}
		})
		got, _ := b.Call("shell_command", command("env"))
		for _, part := range []string{"MINE=yes", "TERM=own", "TZ=Europe/Berlin", "HOME=~", "TMPDIR=~", "PATH=/"} {
			if !strings.Contains("\n"+got, "\n"+part) {
				t.Errorf("%s: no %s in %s", name, part, got)
			}
		}
		for _, part := range []string{canary, "LD_PRELOAD", "GIT_DIR", "SSH_AUTH_SOCK", "dumb", "API_KEY"} {
			if strings.Contains(got, part) {
				t.Errorf("%s: %s in %s", name, part, got)
			}
		}
		// The home is empty, can be written to, and is gone afterwards.
		b.WantText("shell_command", command(`sh -c 'cd && ls -A && echo x > f && cat f && pwd'`), "x\n~")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "crewhost-program-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Where nothing else holds a program, its arguments are looked at.
func TestArgumentsOutside(t *testing.T) {
	b := bench(t)
	b.Put("in/a.txt", "one\n")
	if err := os.Symlink("/etc/passwd", filepath.Join(b.Root, "out/link")); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cat /etc/passwd", "cat ../in/a.txt", "cat a/../../x", "cat /in/../etc/passwd", "grep --file=/etc/passwd x", "grep -f/etc/passwd x", "cat '~/x'",
		"grep -f../x y", "cat link", "cat /out/link", "tar cf x=/etc/passwd", "git show HEAD:../x", "cat //etc/passwd",
	} {
		b.WantFailure("shell_command", command(line), "Nothing was run: the argument")
	}
	b.WantText("shell_command", command("cat --show-ends /in/./a.txt"), "one$")
	b.WantFailure("shell_command", command("cp /in/a.txt b", "working_directory", "/in"), "cp could change files, and /in is read-only")
	b.WantText("shell_command", command("wc -l a.txt", "working_directory", "/in"), "1 a.txt")
}

func TestRequired(t *testing.T) {
	b := bench(t, func(cfg *shell.Config) { cfg.Required = true })
	b.WantFailure("shell_command", command("ls"), "tools.shell.confine")
	b = bench(t, func(cfg *shell.Config) { cfg.Run = nil })
	b.WantFailure("shell_command", command("ls"), "this host runs no programs")
}

// The helper fails rather than to run a program that is not confined.
func TestHelperFails(t *testing.T) {
	for _, args := range [][]string{nil, {"{"}, {"{}", "{}"}, {`{"path":"/bin/true","args":["true"],"rules":[{"path":"/no/such/folder","may":1}]}`}} {
		if len(args) == 1 && strings.Contains(args[0], "rules") && shell.CanConfine() != nil {
			continue
		}
		if err := shell.ConfineMain(args); err == nil || !strings.HasPrefix(err.Error(), "confining a program: ") {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// An output is bounded, says where it was cut, and has nothing that only a terminal, or
// nobody, can read.
func TestOutput(t *testing.T) {
	b := bench(t, interpreters, func(cfg *shell.Config) { cfg.Bytes = 3000 })
	got, _ := b.Call("shell_command", command("python3 -c 'for i in range(100000): print(i)'"))
	if !strings.HasPrefix(got, "0\n1\n2\n") || !strings.HasSuffix(got, "\n99998\n99999") || !strings.Contains(got, "bytes left out here") || len(got) > 3200 {
		t.Errorf("%d: %s", len(got), got)
	}
	got, _ = b.Call("shell_command", command(`python3 -c 'import os; print(os.getcwd()*300)'`))
	if strings.Contains(got, filepath.Base(b.Root)) || len(got) > 3200 {
		t.Errorf("%d: %s", len(got), got)
	}
	b.WantText("shell_command", command(`printf '\033[31mred\033[0m \033]0;title\007\033(B10%%\r20%%\r\n\007end'`), "red 10%\n20%\nend")
	b.WantText("shell_command", command(`printf 'a\000b'`), "[3 bytes that are no text]")
	b.WantText("shell_command", command(`printf 'a\303b'`), "a\uFFFDb")
	b.WantFailure("shell_command", command(`sh -c 'echo out; echo err >&2; exit 3'`), "[sh ended with exit code 3]\nout\n[stderr]\nerr")
	b.WantText("shell_command", command(`sh -c 'echo out; echo err >&2'`), "out\n[stderr]\nerr")
	// What is longer than a model gets is cut, too.
	b = bench(t, interpreters, func(cfg *shell.Config) { cfg.Bytes = 1 << 20 })
	if got, _ = b.Call("shell_command", command(`python3 -c 'print("x"*900000)'`)); len(got) > native.MaxResult || !strings.Contains(got, "characters left out") {
		t.Errorf("%d", len(got))
	}
}

func TestTimeout(t *testing.T) {
	b := bench(t, interpreters)
	b.WantFailure("shell_command", command("sh -c 'echo begun; exec sleep 60'", "timeout_seconds", 1), "[sh was stopped after 1s.", "begun")
	ctx, cancel := context.WithCancel(t.Context())
	b = bench(t, func(cfg *shell.Config) {
		cfg.Run = func(ctx context.Context, _ shell.Program) (shell.Outcome, error) {
			cancel()
			<-ctx.Done()
			return shell.Outcome{}, ctx.Err()
		}
	})
	tool, _ := b.Reg.Lookup("shell_command")
	if _, err := tool.Call(ctx, tools.Call{Name: "shell_command", Arguments: []byte(command("ls"))}); tools.CodeOf(err) != tools.CodeCancelled {
		t.Error(err)
	}
}

// A failure of the host is its error, which names no folder.
func TestHostFails(t *testing.T) {
	b := bench(t, func(cfg *shell.Config) {
		cfg.Run = func(context.Context, shell.Program) (shell.Outcome, error) { return shell.Outcome{}, os.ErrPermission }
	})
	tool, _ := b.Reg.Lookup("shell_command")
	for _, line := range []string{"ls", "git log"} {
		res, err := tool.Call(t.Context(), tools.Call{Name: "shell_command", Arguments: []byte(command(line))})
		if err == nil || len(res.Content) > 0 {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

func TestDefinition(t *testing.T) {
	for want, cfg := range map[string]shell.Config{
		"Programs that may be run: git log, ls.":          {Allow: []string{"ls", " git  log ", "sh", "ls"}},
		"The settings say which programs may be run.":     {},
		"Programs that may be run: git log, ls, python3.": {Allow: []string{"ls", "git log", "python3"}, Interpreters: true},
	} {
		if d := shell.Tools(cfg)[0].Definition(); !strings.Contains(d.Description, want) {
			t.Errorf("%s\nwant %s", d.Description, want)
		}
	}
}
