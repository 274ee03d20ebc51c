package people

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"crewhost/tools"
	"crewhost/tools/native"
)

// Asker asks a person a question.
type Asker interface {
	// Ask puts q to a person and returns the answer. It returns when ctx ends,
	// and must allow concurrent calls.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Answer is what a person answered, or what is said where nobody could be asked.
type Answer struct {
	Text string // as it was given; empty: none
	// Unasked says that Text is nobody's word: a refusal, or the default, by
	// which an agent goes on that has nobody to ask. It is no answer that a task
	// with humanInput waits for. What the host was started to answer with is one.
	Unasked bool
}

// Kind is the kind of a [Question].
type Kind string

// The kinds of questions.
const (
	KindText     Kind = "text"
	KindApproval Kind = "approval" // yes or no
	KindChoice   Kind = "choice"   // one of Choices, or its number
)

// Question is what human_input asks. Its texts are a model's: they are cleaned of
// control and invisible characters, and bounded.
type Question struct {
	Prompt  string
	Kind    Kind
	Choices []string // of KindChoice
	// Default is what an empty answer stands for; empty where nothing is
	// offered. An approval never has one.
	Default string
	// Agent and Task are the keys of who asks; both may be empty.
	Agent, Task string
}

const humanInputSchema = `{
  "type": "object",
  "properties": {
    "prompt": {
      "type": "string", "minLength": 1,
      "description": "The question, with all that the person needs to know to answer it, such as: The invoice says 120, the order 100. Which is right? Of more than 4000 characters the middle is left out."
    },
    "input_type": {
      "type": "string", "enum": ["text", "approval", "choice"], "default": "text",
      "description": "text: a free answer; approval: yes or no, and the result is approved or rejected; choice: one of choices."
    },
    "choices": {
      "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 50,
      "description": "For input_type choice: what the person may choose from, such as [\"Send it\", \"Change it\"]. The answer is one of them, as it is written here."
    },
    "default_value": {
      "type": "string",
      "description": "What an empty answer means; with choices, one of them. It has no effect on an approval, which only a yes gives."
    }
  },
  "required": ["prompt"],
  "additionalProperties": false
}`

const maxChoices = 50

func humanInput(asker Asker) native.Tool {
	return native.Tool{
		Name: "human_input", Title: "Ask a person",
		Description: "Asks a person a question and returns the answer. Use it where only a person can decide or know. To have a file looked at or changed, name it in the question, and read it again when the answer is there.",
		Schema:      humanInputSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, call tools.Call, args *native.Arguments) (tools.Result, error) {
			q := asked(args)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			if asker == nil {
				return tools.Failure("Nobody can be asked here: no person is present in this run. Nothing was approved. Go on without the answer, or say that it is missing."), nil
			}
			q.Agent, q.Task = call.Agent, call.Task
			answer, err := asker.Ask(ctx, q)
			if err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, "human_input")
				}
				return tools.Result{}, fmt.Errorf("asking a person for tool %q: %w", "human_input", err)
			}
			res := q.judge(answer.Text)
			res.Unasked = answer.Unasked
			return res, nil
		},
	}
}

// asked takes the arguments.
func asked(args *native.Arguments) Question {
	q := Question{
		Prompt:  harmless(args.Need("prompt")),
		Kind:    Kind(args.OneOf("input_type", string(KindText), string(KindText), string(KindApproval), string(KindChoice))),
		Default: harmless(args.Text("default_value", "")),
	}
	for _, c := range args.List("choices") {
		if c = strings.TrimSpace(harmless(c)); c == "" {
			args.Note("a choice is empty")
		} else if slices.Contains(q.Choices, c) {
			args.Note("the choice %q is given twice", native.Shorten(c))
		}
		q.Choices = append(q.Choices, c)
	}
	switch {
	case q.Prompt == "" && args.Has("prompt"):
		args.Note("the argument %q is empty", "prompt")
	case q.Kind != KindChoice:
		q.Choices = nil
	case len(q.Choices) == 0:
		args.Note("the input_type choice needs the argument %q", "choices")
	case len(q.Choices) > maxChoices:
		args.Note("there are %d choices, and at most %d can be given", len(q.Choices), maxChoices)
	case q.Default != "" && !slices.Contains(q.Choices, q.Default):
		args.Note("the default_value %q is none of the choices", native.Shorten(q.Default))
	}
	if q.Kind == KindApproval {
		q.Default = "" // what the model wishes is no approval
	}
	return q
}

// judge turns the person's answer into a result.
func (q Question) judge(answer string) tools.Result {
	answer = strings.TrimSpace(answer)
	if answer == "" {
		answer = q.Default
	}
	switch q.Kind {
	case KindApproval:
		switch strings.ToLower(answer) {
		case "y", "yes", "true", "ok", "approve", "approved":
			return tools.Text("approved")
		case "", "n", "no", "false", "deny", "denied", "reject", "rejected":
			return tools.Text("rejected")
		}
		return tools.Text("rejected: the person did not say yes, but: " + tools.Truncate(answer, native.MaxText))
	case KindChoice:
		if i := q.chosen(answer); i >= 0 {
			return tools.Text(q.Choices[i])
		}
		if answer == "" {
			return tools.Failure("The person chose nothing.")
		}
		return tools.Failure("The person gave an answer that is none of the choices: " + tools.Truncate(answer, native.MaxText))
	}
	if answer == "" {
		return tools.Failure("The person gave no answer.")
	}
	return tools.Text(tools.Truncate(answer, native.MaxText))
}

// chosen is the index of the choice that answer names, by its text, its number or
// its text in another letter case, in this order; -1 where it names none.
func (q Question) chosen(answer string) int {
	if i := slices.Index(q.Choices, answer); i >= 0 {
		return i
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(q.Choices) {
		return n - 1
	}
	return slices.IndexFunc(q.Choices, func(c string) bool { return strings.EqualFold(c, answer) })
}

// harmless takes out what could make a terminal show, or do, something else than
// what is written: control characters but line breaks and tabs, and characters
// that are invisible or turn the direction of writing.
func harmless(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	return tools.Truncate(strings.TrimSpace(s), native.MaxText)
}
