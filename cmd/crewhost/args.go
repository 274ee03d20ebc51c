package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionFlag ends the command lines by which completion scripts ask.
const completionFlag = "--generate-bash-completion"

// arrange puts a command line into the order that the flag parser wants: the
// command, its flags, then the rest. "run" is added where the first word is a
// crew rather than a command. Who asks for help gets it and nothing else, and a
// flag at the end that wants a value does not get the crew for one.
func arrange(app *cli.App, args []string) []string {
	if len(args) > 0 && args[len(args)-1] == completionFlag {
		return args // a shell asks what may follow: the order is its question
	}
	if len(args) > 0 && app.Command(args[0]) == nil {
		switch {
		case args[0] == "help":
			args = append(slices.Clone(args[1:]), "--help")
		case args[0] == "--version":
			args = []string{"version"}
		case isHelp(args[0]):
		case strings.HasPrefix(args[0], "-"), isCrew(args[0]): // flags of run, or a crew
			args = append([]string{"run"}, args...)
		}
	}
	command, depth := find(app.Commands, args)
	if command == nil {
		return args
	}
	var flags, rest []string
	for i := depth; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			rest = append(rest, args[i:]...)
			i = len(args)
		case len(arg) < 2 || arg[0] != '-':
			rest = append(rest, arg)
		case isHelp(arg):
			return append(args[:depth:depth], arg)
		default:
			flags = append(flags, arg)
			if strings.Contains(arg, "=") || !takesValue(command, arg) {
				continue
			}
			if i++; i == len(args) {
				return slices.Concat(args[:depth], flags)
			}
			flags = append(flags, args[i])
		}
	}
	return slices.Concat(args[:depth], flags, rest)
}

func isHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// find returns the command that args name and how many words name it.
func find(commands []*cli.Command, args []string) (*cli.Command, int) {
	var found *cli.Command
	depth := 0
	for depth < len(args) {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[depth]) })
		if i < 0 {
			break
		}
		found, commands = commands[i], commands[i].Subcommands
		depth++
	}
	return found, depth
}

func takesValue(command *cli.Command, arg string) bool {
	name := strings.TrimLeft(arg, "-")
	for _, f := range command.Flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		_, isBool := f.(*cli.BoolFlag)
		return !isBool
	}
	return false
}

// atMost refuses more words than a command looks at.
func atMost(ctx *cli.Context, words int) error {
	if ctx.NArg() <= words {
		return nil
	}
	return usagef("%s: unexpected %q; %[1]s --help says what it takes", ctx.Command.HelpName, ctx.Args().Get(words))
}

// isCrew reports whether a word names a crew: a file or folder that exists, or
// a path or a name that ends like one.
func isCrew(word string) bool {
	switch strings.ToLower(filepath.Ext(word)) {
	case ".yaml", ".yml":
		return true
	}
	if strings.ContainsAny(word, `/\`) {
		return true
	}
	_, err := os.Stat(word)
	return err == nil
}
