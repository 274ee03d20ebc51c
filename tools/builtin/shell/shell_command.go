package shell

import (
	"context"
	"errors"
	"fmt"
	"time"

	"crewhost/tools"
	"crewhost/tools/native"
)

const (
	maxCommand = 16_000      // characters
	defTimeout = time.Minute // for a Config that has none
	defBytes   = 32 << 10    // likewise
	maxTimeout = 24 * time.Hour
)

const schema = `{
  "type": "object",
  "properties": {
    "command": {
      "type": "string", "minLength": 1, "maxLength": 16000,
      "description": "One program with its arguments, such as: grep -rn 'TODO' src. Quotes and backslashes are read as a shell reads them; there is no shell, so pipes (|), redirections (>), &&, patterns (*), variables ($X) and $(…) are refused. Put what has such characters in single quotes: grep -r --include='*.go' 'a|b' . Paths are relative to working_directory, or begin with a mount, such as /data/a.txt."
    },
    "working_directory": {
      "type": "string",
      "description": "The folder of a mount that the program runs in, such as /repo or /repo/src. Default: the only mount that can be written to, or the only one."
    },
    "timeout_seconds": {
      "type": "integer", "minimum": 1, "maximum": %d, "default": %d,
      "description": "After how many seconds the program is stopped, with all that it started. What it wrote until then is returned."
    },
    "stdin": {
      "type": "string",
      "description": "What the program reads on its standard input, such as the output of an earlier call. Default: nothing; the input ends at once."
    }
  },
  "required": ["command"],
  "additionalProperties": false
}`

func shellCommand(cfg Config) native.Tool {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defTimeout
	}
	if cfg.Bytes <= 0 {
		cfg.Bytes = defBytes
	}
	seconds := int(min(max(cfg.Timeout, time.Second), maxTimeout) / time.Second)
	programs := "The settings say which programs may be run."
	if list := cfg.runnable(); len(list) > 0 {
		programs = "Programs that may be run: " + listed(list) + "."
	}
	return native.Tool{
		Name: "shell_command", Title: "Run a program",
		Description: "Runs one program of an allow-list in a folder of a mount, without a shell, and returns its output and its exit code. " + programs +
			" An exit code other than 0 makes the call a failure, with the output in it: grep ends with 1 where it finds nothing.",
		Schema: fmt.Sprintf(schema, seconds, seconds), Effect: native.Once,
		Open: len(cfg.Confine) == 0 || cfg.Network,
		Run: func(ctx context.Context, call tools.Call, args *native.Arguments) (tools.Result, error) {
			command, dir, stdin := args.Need("command"), args.Text("working_directory", ""), args.Text("stdin", "")
			timeout := time.Duration(args.Integer("timeout_seconds", seconds, 1, seconds)) * time.Second
			args.Within("command", command, maxCommand)
			argv, err := words(command)
			var shell *refusal
			switch {
			case errors.As(err, &shell):
				args.Note("the command has %s. There is no shell: %s", shell.what, shell.instead)
			case len(argv) == 0 && args.Has("command"):
				args.Note("the argument %q is blank", "command")
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			argv = plainGit(argv)
			if why := cfg.permit(argv); why != "" {
				return tools.Failure(why), nil
			}
			res, err := cfg.run(ctx, job{argv: argv, dir: dir, stdin: stdin, timeout: timeout})
			if err != nil && ctx.Err() != nil {
				return tools.Result{}, native.Ended(ctx, call.Name)
			}
			return res, err
		},
	}
}

// plainGit is a command without the option of git that turns off the pager, which is off
// anyway: it would stand before the sub-command.
func plainGit(argv []string) []string {
	for len(argv) > 1 && baseOf(argv[0]) == "git" && (argv[1] == "--no-pager" || argv[1] == "-P") {
		argv = append([]string{argv[0]}, argv[2:]...)
	}
	return argv
}
