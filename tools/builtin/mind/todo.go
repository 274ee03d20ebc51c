package mind

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"crewhost/tools"
	"crewhost/tools/native"
)

const (
	maxItems    = 100
	maxItemText = 1_000 // characters
)

const todoSchema = `{
  "type": "object",
  "properties": {
    "items": {
      "type": "array", "maxItems": 100,
      "description": "The whole list, in the order of the work. It takes the place of the last one: repeat what stays, and change what has changed. [] is an empty list.",
      "items": {
        "type": "object",
        "properties": {
          "text": {
            "type": "string", "minLength": 1, "maxLength": 1000,
            "description": "What is to do, as an order that can be checked, such as: Compare the totals of both reports."
          },
          "status": {
            "type": "string", "enum": ["pending", "in_progress", "done", "cancelled"], "default": "pending",
            "description": "pending: not begun; in_progress: what you work on now, one at most; done: finished, and nothing of it is left; cancelled: no longer needed."
          }
        },
        "required": ["text"],
        "additionalProperties": false
      }
    }
  },
  "required": ["items"],
  "additionalProperties": false
}`

// item is something to do.
type item struct{ text, status string }

func todo() native.Tool {
	return native.Tool{
		Name: "todo", Title: "To-do list",
		Description: "Keeps the list of what is to do for work of three steps and more. Each call gives the whole list anew, and it is returned; nothing is kept elsewhere. " +
			"Write it before the work begins, mark a step in_progress when you begin it and done as soon as it is finished, and add what turns up. Not for work of one or two steps.",
		Schema: todoSchema, Effect: native.ReadOnly,
		Run: func(_ context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			items := itemsOf(args)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			return tools.Text(render(items)), nil
		},
	}
}

// itemsOf takes the list. What is not a list of objects with text and status is noted,
// item by item; a text alone is an item that is pending.
func itemsOf(args *native.Arguments) []item {
	raw := args.Raw("items")
	var list []json.RawMessage
	switch {
	case raw == nil:
		args.Note("the argument %q is missing", "items")
		return nil
	case json.Unmarshal(raw, &list) != nil:
		args.Note(`the argument "items" must be a list of objects with text and status, such as [{"text": "Read the report", "status": "pending"}]`)
		return nil
	case len(list) > maxItems:
		args.Note("there are %d items, and at most %d can be given: put some of them together", len(list), maxItems)
		return nil
	}
	var items []item
	var now []int
	for i, raw := range list {
		it, wrong := itemOf(raw)
		if wrong != "" {
			args.Note("item %d %s", i+1, wrong)
			continue
		}
		if slices.ContainsFunc(items, func(other item) bool { return other.text == it.text }) {
			args.Note("item %d is there already: %s", i+1, native.Shorten(it.text))
		}
		if it.status == "in_progress" {
			now = append(now, i+1)
		}
		items = append(items, it)
	}
	if len(now) > 1 {
		args.Note("the items %s are in_progress, and one at most may be: leave the others pending", strings.Trim(strings.ReplaceAll(fmt.Sprint(now), " ", ", "), "[]"))
	}
	return items
}

// itemOf reads an item, or says what is wrong with it.
func itemOf(raw json.RawMessage) (it item, wrong string) {
	it.status = "pending"
	if json.Unmarshal(raw, &it.text) != nil {
		var object struct {
			Text   *string `json:"text"`
			Status *string `json:"status"`
		}
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&object); err != nil {
			return it, "must be an object with text and status alone, both strings"
		}
		if object.Text == nil {
			return it, "has no text"
		}
		it.text = *object.Text
		if object.Status != nil {
			it.status = *object.Status
		}
	}
	known := []string{"pending", "in_progress", "done", "cancelled"}
	it.text = strings.Join(strings.Fields(it.text), " ") // a line each
	switch {
	case it.text == "":
		return it, "has a blank text"
	case len([]rune(it.text)) > maxItemText:
		return it, fmt.Sprintf("is longer than %d characters", maxItemText)
	case !slices.Contains(known, it.status):
		return it, fmt.Sprintf("has the status %q, and it must be one of %s%s", native.Shorten(it.status), strings.Join(known, ", "), native.DidYouMean(it.status, known))
	}
	return it, ""
}

// render is the list as a model reads it, with how far it is.
func render(items []item) string {
	if len(items) == 0 {
		return "[the list is empty]"
	}
	marks := map[string]string{"pending": "[ ]", "in_progress": "[>]", "done": "[x]", "cancelled": "[-]"}
	counts := map[string]int{}
	var b strings.Builder
	for i, it := range items {
		counts[it.status]++
		fmt.Fprintf(&b, "%d. %s %s\n", i+1, marks[it.status], it.text)
	}
	fmt.Fprintf(&b, "\n%d of %d done", counts["done"], len(items))
	for _, status := range []string{"in_progress", "pending", "cancelled"} {
		if counts[status] > 0 {
			fmt.Fprintf(&b, ", %d %s", counts[status], status)
		}
	}
	switch {
	case counts["in_progress"] == 0 && counts["pending"] > 0:
		b.WriteString(". Mark the next one in_progress when you begin it.")
	case counts["in_progress"]+counts["pending"] == 0:
		b.WriteString(". Nothing is left to do.")
	default:
		b.WriteString(".")
	}
	return b.String()
}
