package shell

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
)

// A repository's configuration, which an agent may have written or a stranger, names
// programs that git runs: filters, hooks, a pager, a file system monitor and so on. Each
// has its value here that runs nothing. What is named after something (filter.NAME.clean)
// has to be looked for in the configuration, as nothing overrides all of them.

// gitEnviron has git ask nobody, read no configuration but the repository's, and not look
// for a repository above the mount.
func gitEnviron(mountFolder string, settings []string) []string {
	env := []string{
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + devNull, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=false", "SSH_ASKPASS=false",
		"GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false", "GIT_SSH_COMMAND=false", "GIT_PROXY_COMMAND=false",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ATTR_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(mountFolder),
		"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings)/2),
	}
	for i := 0; i+1 < len(settings); i += 2 {
		n := strconv.Itoa(i / 2)
		env = append(env, "GIT_CONFIG_KEY_"+n+"="+settings[i], "GIT_CONFIG_VALUE_"+n+"="+settings[i+1])
	}
	return env
}

const devNull = "/dev/null" // git knows it on Windows, too

// gitHarmless are settings, each with its value, that run nothing.
func gitHarmless() []string {
	return []string{
		"core.fsmonitor", "false", "core.hooksPath", devNull, "core.pager", "cat", "core.editor", "false", "core.askPass", "false",
		"core.sshCommand", "false", "core.gitProxy", "", "core.alternateRefsCommand", "true", "credential.helper", "",
		"diff.external", "true", "diff.ignoreSubmodules", "all", "interactive.diffFilter", "cat", "log.showSignature", "false",
		"gpg.program", "false", "gpg.openpgp.program", "false", "gpg.ssh.program", "false", "gpg.x509.program", "false", "gpg.ssh.defaultKeyCommand", "false",
		"protocol.ext.allow", "never", "maintenance.auto", "false", "gc.auto", "0", "uploadpack.packObjectsHook", "",
		// Whose the folder is says nothing: what its configuration could do is switched off.
		"safe.directory", "*",
	}
}

// gitNamed is the value that runs nothing of a setting which is named after something;
// not ok: it runs nothing anyway.
func gitNamed(key string) (value string, ok bool) {
	section, _, _ := strings.Cut(key, ".")
	last := key[strings.LastIndexByte(key, '.')+1:]
	switch section + "." + last {
	case "filter.clean", "filter.smudge", "filter.process":
		return "", true
	case "filter.required":
		return "false", true
	case "diff.textconv":
		return "cat", true
	case "diff.command":
		return "true", true
	case "merge.driver", "trailer.command", "trailer.cmd", "mergetool.cmd", "difftool.cmd", "man.cmd", "browser.cmd":
		return "false", true
	case "remote.uploadpack":
		return "git-upload-pack", true
	case "remote.receivepack":
		return "git-receive-pack", true
	}
	return "", section == "alias"
}

// tame gives a job of git the environment and the arguments by which it runs nothing that
// the repository names. It runs git to list what that is, which by itself runs nothing.
// What it returns says why it can't be done.
func (c Config) tame(ctx context.Context, j *job) (why string, err error) {
	dirs, root := c.path(j.place.masks), j.place.root()
	list := *j
	list.stdin, list.environ = "", c.environ(dirs, j.home, gitEnviron(root, gitHarmless()))
	list.argv = []string{j.argv[0], "config", "-z", "--name-only", "--get-regexp", `^(alias|browser|diff|difftool|filter|man|merge|mergetool|remote|trailer)\.`}
	out, errOut := &output{limit: 1 << 20}, &output{limit: 4 << 10}
	o, err := c.start(ctx, list, out, errOut)
	switch {
	case err != nil:
		return "", err
	case o != Outcome{} && o != Outcome{Code: 1}: // 1: there is none
		return "git can't read the configuration of the repository.\n" + errOut.text(j.masks()), nil
	case out.dropped > 0:
		return "the configuration of the repository is too large.", nil
	}
	settings := gitHarmless()
	for key := range strings.SplitSeq(string(out.head)+string(out.tail), "\x00") {
		if value, ok := gitNamed(key); ok {
			settings = append(settings, key, value)
		}
	}
	j.environ = c.environ(dirs, j.home, gitEnviron(root, settings))
	j.argv = append([]string{j.argv[0]}, gitArguments(j.argv[1:])...)
	return "", nil
}

// gitArguments are the arguments of git with the options that keep diffs to itself.
func gitArguments(args []string) []string {
	if len(args) == 0 {
		return args
	}
	switch args[0] {
	case "diff", "log", "show":
		return append([]string{args[0], "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"}, args[1:]...)
	case "status":
		return append([]string{args[0], "--ignore-submodules=all"}, args[1:]...)
	}
	return args
}
