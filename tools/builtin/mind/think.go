package mind

import (
	"context"
	"strings"

	"crewhost/tools"
	"crewhost/tools/native"
)

const maxThought = 32_000 // characters

const thinkSchema = `{
  "type": "object",
  "properties": {
    "thought": {
      "type": "string", "minLength": 1, "maxLength": 32000,
      "description": "What you think, in your own words: what the last results mean, which rules apply, what is still missing, what to do next and why."
    }
  },
  "required": ["thought"],
  "additionalProperties": false
}`

func think() native.Tool {
	return native.Tool{
		Name: "think", Title: "Think",
		Description: "A place to think in the middle of work. It finds out nothing and changes nothing; the thought stays in the conversation. " +
			"Use it when results of tools have to be weighed, before a step that can't be undone, or when several rules meet. Not for simple steps.",
		Schema: thinkSchema, Effect: native.ReadOnly,
		Run: func(_ context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			thought := args.Need("thought")
			args.Within("thought", thought, maxThought)
			if args.Has("thought") && strings.TrimSpace(thought) == "" {
				args.Note("the argument %q is blank", "thought")
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			return tools.Text("Noted. Go on."), nil
		},
	}
}
