package openai

import (
	"encoding/json"
	"strings"

	"crewhost/runner/llm"
)

// kept is what a server wants to have back of a turn and the API has no field
// for: signatures of thoughts, without which it refuses the next request or
// thinks all over again. It travels in [llm.Message.Opaque].
type kept struct {
	// ExtraContent is that of calls, by their id (Gemini's thought signatures).
	ExtraContent map[string]json.RawMessage `json:"extra_content,omitempty"`
	// ReasoningDetails are those of the message (OpenRouter).
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
}

type opaque struct {
	OpenAI *kept `json:"openai"`
}

// opaque returns k for a message, nil where there is nothing to keep.
func (k kept) opaque() json.RawMessage {
	if len(k.ExtraContent) == 0 && len(k.ReasoningDetails) == 0 {
		return nil
	}
	raw, err := json.Marshal(opaque{&k})
	if err != nil { // what came was no JSON, and nothing is lost with it
		return nil
	}
	return raw
}

// keptOf returns what was kept of a turn, which is nothing for one of another
// vendor.
func keptOf(m llm.Message) kept {
	var o opaque
	if len(m.Opaque) == 0 || json.Unmarshal(m.Opaque, &o) != nil || o.OpenAI == nil {
		return kept{}
	}
	return *o.OpenAI
}

// detailList puts reasoning details together. Texts that go on in the next piece
// are joined, since the server wants each back as one. The zero value is ready
// for use.
type detailList struct{ all []*detail }

type detail struct {
	fields map[string]json.RawMessage
	field  string // which of the fields is the text, text or summary
	text   strings.Builder
}

// add takes the details of an answer, or of a piece of it.
func (l *detailList) add(raw json.RawMessage) {
	var list []map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return // a form that is not known is not handed back
	}
	for _, fields := range list {
		if fields == nil {
			continue
		}
		d := &detail{fields: fields}
		text := ""
		for _, name := range []string{"text", "summary"} {
			var s string
			if value, ok := fields[name]; ok && json.Unmarshal(value, &s) == nil {
				d.field, text = name, s
			}
		}
		if last := l.last(); last != nil && last.goesOn(d) {
			for name, value := range fields {
				if !isNull(value) {
					last.fields[name] = value
				}
			}
			d = last
		} else {
			l.all = append(l.all, d)
		}
		d.text.WriteString(text)
	}
}

func (l *detailList) last() *detail {
	if len(l.all) == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}

// goesOn reports whether next is a further piece of d.
func (d *detail) goesOn(next *detail) bool {
	return d.field != "" && d.field == next.field &&
		string(d.fields["type"]) == string(next.fields["type"]) && string(d.fields["index"]) == string(next.fields["index"])
}

// details returns the whole details.
func (l *detailList) details() []json.RawMessage {
	var out []json.RawMessage
	for _, d := range l.all {
		if d.field != "" {
			d.fields[d.field], _ = json.Marshal(d.text.String()) // a text encodes
		}
		if raw, err := json.Marshal(d.fields); err == nil {
			out = append(out, raw)
		}
	}
	return out
}
