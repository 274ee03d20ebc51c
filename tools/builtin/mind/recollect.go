package mind

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"crewhost/tools"
	"crewhost/tools/native"
)

// Memory is what a crew remembers. The errors of its methods are for the model to
// read.
type Memory interface {
	// Search finds what is most like the query, the best first; nothing that is
	// less like it than least, from 0 to 1.
	Search(ctx context.Context, query string, top int, least float64) ([]Passage, error)
	// Store keeps a text, in place of the one of the same key where key is not
	// empty. The call says who has it kept.
	Store(ctx context.Context, call tools.Call, key, text string) error
}

// Documents is what a crew may look up.
type Documents interface {
	// Collections returns the names of the collections.
	Collections() []string
	// Search finds the passages of a collection that bear most on a question, the
	// best first. An empty collection is all of them.
	Search(ctx context.Context, question, collection string, top int) ([]Passage, error)
}

// Passage is a piece of text that was found.
type Passage struct {
	Place string  // where it stands, or comes from
	Text  string  // untrusted
	Score float64 // how like what was looked for it is, from 0 to 1
}

const (
	maxNote     = 32_000 // characters
	maxKey      = 200    // characters
	maxQuestion = 8_000  // characters
	maxPassages = 20
)

const memoryStoreSchema = `{
  "type": "object",
  "properties": {
    "text": {
      "type": "string", "minLength": 1, "maxLength": 32000,
      "description": "What to remember, such as: The client wants prices without tax (mail of 3 May). It should make sense on its own, to somebody who has not seen this conversation."
    },
    "key": {
      "type": "string", "maxLength": 200,
      "description": "A name for it, such as prices. A note of the same name is replaced. Default: none, and the note is added."
    }
  },
  "required": ["text"],
  "additionalProperties": false
}`

func memoryStore(memory func(context.Context) Memory) native.Tool {
	return native.Tool{
		Name: "memory_store", Title: "Remember",
		Description: "Keeps a note in the crew's memory, for other agents and later runs.",
		Schema:      memoryStoreSchema, Effect: native.Repeatable,
		Run: func(ctx context.Context, call tools.Call, args *native.Arguments) (tools.Result, error) {
			text, key := args.Need("text"), args.Text("key", "")
			args.Within("text", text, maxNote)
			if args.Has("text") && strings.TrimSpace(text) == "" {
				args.Note("the argument %q is blank", "text")
			}
			args.Within("key", key, maxKey)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			m := of(ctx, memory)
			if m == nil {
				return tools.Failure(noMemory), nil
			}
			if err := m.Store(ctx, call, strings.TrimSpace(key), text); err != nil {
				if ctx.Err() != nil {
					return tools.Result{}, native.Ended(ctx, call.Name)
				}
				return native.Failuref("The note was not kept: %v.", err), nil
			}
			return tools.Text("Kept."), nil
		},
	}
}

const semanticSearchSchema = `{
  "type": "object",
  "properties": {
    "query": {
      "type": "string", "minLength": 1, "maxLength": 8000,
      "description": "What to look for, in your own words, such as: which prices the client wants."
    },
    "top_k": {
      "type": "integer", "minimum": 1, "maximum": 20, "default": 5,
      "description": "The most entries to return."
    },
    "threshold": {
      "type": "number", "minimum": 0, "maximum": 1, "default": 0,
      "description": "Leave out what is less like the query than this, from 0 (all) to 1 (the same); 0.3 leaves out what has little to do with it."
    }
  },
  "required": ["query"],
  "additionalProperties": false
}`

func semanticSearch(memory func(context.Context) Memory) native.Tool {
	return native.Tool{
		Name: "semantic_search", Title: "Search memory",
		Description: "Looks through the crew's memory: notes, and what tasks of this run and of earlier ones came to.",
		Schema:      semanticSearchSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, call tools.Call, args *native.Arguments) (tools.Result, error) {
			query, top, least := question(args, "query"), args.Integer("top_k", 5, 1, maxPassages), args.Fraction("threshold")
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			m := of(ctx, memory)
			if m == nil {
				return tools.Failure(noMemory), nil
			}
			found, err := m.Search(ctx, query, top, least)
			return passages(ctx, call, "the memory", found, err)
		},
	}
}

const ragSearchSchema = `{
  "type": "object",
  "properties": {
    "question": {
      "type": "string", "minLength": 1, "maxLength": 8000,
      "description": "What to find out, in your own words."
    },
    "top_k": {
      "type": "integer", "minimum": 1, "maximum": 20, "default": 5,
      "description": "The most passages to return."
    },
    "collection": {
      "type": "string",
      "description": "The collection to look in; all of them where it is left out."
    }
  },
  "required": ["question"],
  "additionalProperties": false
}`

func ragSearch(documents func(context.Context) Documents) native.Tool {
	return native.Tool{
		Name: "rag_search", Title: "Search documents",
		Description: "Finds the passages of the crew's documents that bear most on a question, each with where it stands, to cite.",
		Schema:      ragSearchSchema, Effect: native.ReadOnly,
		Run: func(ctx context.Context, call tools.Call, args *native.Arguments) (tools.Result, error) {
			question, top, collection := question(args, "question"), args.Integer("top_k", 5, 1, maxPassages), args.Text("collection", "")
			docs := of(ctx, documents)
			if docs != nil && collection != "" && !slices.Contains(docs.Collections(), collection) {
				args.Note("there is no collection %q; there are %s", native.Shorten(collection), strings.Join(docs.Collections(), ", "))
			}
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			if docs == nil {
				return tools.Failure("There are no documents here: the crew has no collections, or no crew makes this call."), nil
			}
			found, err := docs.Search(ctx, question, collection, top)
			return passages(ctx, call, "the documents", found, err)
		},
	}
}

const noMemory = "There is no memory here: the crew has none, or no crew makes this call."

// of calls a function that may be nil.
func of[T any](ctx context.Context, f func(context.Context) T) (t T) {
	if f != nil {
		t = f(ctx)
	}
	return t
}

// question takes a text to look for.
func question(a *native.Arguments, name string) string {
	q := a.Need(name)
	a.Within(name, q, maxQuestion)
	return q
}

// passages is the result of a search: each passage with a number, its place and an
// even share of the room that there is.
func passages(ctx context.Context, call tools.Call, where string, found []Passage, err error) (tools.Result, error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return tools.Result{}, native.Ended(ctx, call.Name)
	case err != nil:
		return native.Failuref("Nothing was found in %s: %v.", where, err), nil
	case len(found) == 0:
		return tools.Text("[nothing in " + where + " is like that]"), nil
	}
	var b strings.Builder
	room := native.MaxText / len(found)
	for i, p := range found {
		if i > 0 {
			b.WriteString("\n\n")
		}
		head := fmt.Sprintf("[%d] %s, score %.2f\n", i+1, tools.Truncate(p.Place, 200), p.Score)
		b.WriteString(head + tools.Truncate(strings.TrimSpace(p.Text), max(room-utf8.RuneCountInString(head)-2, 0)))
	}
	return tools.Text(b.String()), nil
}
