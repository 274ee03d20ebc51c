package shell

import (
	"fmt"
	"slices"
	"strings"

	"crewhost/tools/native"
)

// A program that runs whatever it is given makes of an allow-list a list of one: all. This
// file knows the usual ones, and the options by which harmless ones become so. No such
// list is whole: what a program can do that the settings allow is theirs to know.

// interprets reports whether a program runs code or programs that it is given, or that
// lie in the folder.
func interprets(name string) bool {
	name = baseOf(name)
	known := func(n string) bool {
		return slices.Contains(strings.Fields(`
			sh ash bash csh dash elvish fish hush ksh ksh93 mksh nu oksh osh posh pwsh rbash rc tcsh xonsh yash zsh cmd powershell command
			busybox toybox wscript cscript mshta rundll32 regsvr32 msbuild installutil forfiles start runas wmic
			python pypy ipython jython perl ruby jruby php php-cgi node nodejs deno bun tsx ts-node npm npx pnpm pnpx yarn corepack
			lua luajit tclsh wish expect java jshell groovy scala kotlin clojure clj bb r rscript julia octave guile racket scheme sbcl clisp ecl
			ghc ghci runghc runhaskell ocaml erl escript elixir iex mix swift swipl gst gforth forth dotnet csi fsi mono osascript
			awk gawk mawk nawk original-awk ed ex vi vim view nvim emacs emacsclient nano pico joe m4 dc bc gnuplot sqlite3 psql mysql mariadb
			make gmake bmake cmake ninja meson scons bazel just task rake bundle gem gradle mvn ant sbt go cargo rustc gcc g++ cc c++ clang tcc
			pip pipx uv uvx poetry conda
			env xargs parallel nohup nice ionice chrt taskset time timeout setsid stdbuf unbuffer script watch entr flock
			sudo doas su runuser pkexec chroot unshare nsenter setpriv capsh fakeroot proot strace ltrace gdb lldb perf valgrind
			at batch crontab systemd-run systemctl launchctl run-parts start-stop-daemon
			ssh sshpass scp sftp rsync telnet nc ncat netcat socat docker podman nerdctl kubectl ansible
			less more most man info pager screen tmux dialog ctr
			ld.so ld-linux ld-linux-x86-64.so.2 linux64 linux32 setarch i386 x86_64
		`), n)
	}
	// python3.12 and lua5.4 are what they are without their numbers.
	return known(name) || known(strings.TrimRight(name, "0123456789.-"))
}

// An option is one by which a program runs another, or writes where it is told: --long, or
// a letter.
type option struct {
	long   string // without dashes; GNU programs take a beginning of it for it
	letter byte   // zero: none
}

// optionsOf are the options of a program that are refused.
func optionsOf(program string) []option {
	long := func(names ...string) []option {
		var list []option
		for _, n := range names {
			list = append(list, option{long: n})
		}
		return list
	}
	switch program {
	case "find", "fd", "fdfind", "bfs", "gfind":
		return append(long("exec", "exec-batch", "execdir", "ok", "okdir", "delete", "fprint", "fprint0", "fprintf", "fls"), option{letter: 'x'}, option{letter: 'X'})
	case "tar", "gtar", "bsdtar", "star":
		return append(long("to-command", "use-compress-program", "checkpoint-action", "rsh-command", "rmt-command", "info-script", "new-volume-script"), option{letter: 'I'}, option{letter: 'F'})
	case "sed", "gsed":
		return append(long("in-place", "file"), option{letter: 'i'}, option{letter: 'I'}, option{letter: 'f'})
	case "rg":
		return append(long("pre", "pre-glob", "hostname-bin", "search-zip"), option{letter: 'z'})
	case "sort", "gsort":
		return append(long("compress-program", "output"), option{letter: 'o'})
	case "split", "gsplit":
		return long("filter")
	case "zip":
		return append(long("unzip-command", "test"), option{letter: 'T'})
	case "curl":
		return append(long("config"), option{letter: 'K'})
	case "wget":
		return append(long("use-askpass", "execute", "config"), option{letter: 'e'})
	case "ctags", "hg", "svn":
		return long("options", "config", "config-option", "config-dir", "diff-cmd", "diff3-cmd", "editor-cmd", "merge-cmd")
	case "tree":
		return append(long("output"), option{letter: 'o'})
	}
	return nil
}

// dangerous says what an allowed command has that runs more than its program, or writes
// where nobody sees; empty: nothing is known.
func dangerous(argv, entry []string, interpreters bool) string {
	program := baseOf(argv[0])
	if program == "git" {
		return dangerousGit(argv[1:], entry[1:])
	}
	if interpreters {
		return ""
	}
	options := optionsOf(program)
	for i, arg := range argv[1:] {
		for _, o := range options {
			// tar takes its first argument for letters of options without a dash.
			if o.in(arg) || o.letter != 0 && i == 0 && strings.HasSuffix(program, "tar") && strings.IndexByte(arg, o.letter) >= 0 && !strings.HasPrefix(arg, "--") {
				return fmt.Sprintf("the option %s of %s runs another program, or writes a file by itself. Leave it out", native.Shorten(arg), program)
			}
		}
	}
	return ""
}

// in reports whether an argument is the option, or may be taken for it.
func (o option) in(arg string) bool {
	name, isLong := strings.CutPrefix(arg, "--")
	switch {
	case isLong:
		name, _, _ = strings.Cut(name, "=")
		return o.long != "" && len(name) > 1 && strings.HasPrefix(o.long, name)
	case len(arg) < 2 || arg[0] != '-':
		return false
	}
	// -exec of find; -xI of tar
	return o.long != "" && arg[1:] == o.long || o.letter != 0 && strings.IndexByte(arg[1:], o.letter) >= 0
}

// dangerousGit judges the arguments of git. What a repository's own configuration would
// run is switched off by gitEnviron.
func dangerousGit(args, entry []string) string {
	if len(entry) == 0 && len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "--version" {
		return fmt.Sprintf("an option of git before its sub-command (%s) is not taken: it could change where and what git runs. For another folder use the argument working_directory", native.Shorten(args[0]))
	}
	refused := []option{{long: "ext-diff"}, {long: "textconv"}, {long: "output"}, {long: "show-signature"}, {long: "help"},
		{long: "upload-pack"}, {long: "receive-pack"}, {long: "exec"}, {long: "open-files-in-pager"}, {long: "recurse-submodules"},
		{long: "ignore-submodules"}, {long: "config"}, {long: "template"}, {long: "editor"}, {long: "filters"}}
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		switch {
		case name == "--output-indicator-new", name == "--output-indicator-old", name == "--output-indicator-context", name == "--filter", name == "--text":
			continue
		case args[0] == "grep" && strings.HasPrefix(arg, "-O"), strings.Contains(arg, "ext::"), strings.Contains(arg, "%G") && strings.HasPrefix(arg, "-"):
			return fmt.Sprintf("%s makes git run another program. Leave it out", native.Shorten(arg))
		}
		for _, o := range refused {
			if o.in(arg) {
				return fmt.Sprintf("the option %s makes git run another program, write a file, or look into other repositories. Leave it out", native.Shorten(arg))
			}
		}
	}
	if len(args) > 0 && slices.Contains(strings.Fields("bisect config credential daemon difftool filter-branch help hook instaweb maintenance mergetool p4 rebase send-email shell submodule svn web--browse"), args[0]) {
		return fmt.Sprintf("git %s runs programs that it is told of. It is not taken", args[0])
	}
	return ""
}
