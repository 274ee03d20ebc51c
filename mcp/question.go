package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"crewhost/config/secret"
)

// A Respondent answers what servers ask in the middle of a call (O19). Both forms
// of the protocol end here: input_required of the modern era and
// elicitation/create of the legacy one.
type Respondent interface {
	// Elicit puts q to a person and returns what the person decided. It must
	// allow concurrent calls and return when ctx ends. While it is waited for,
	// the call's own time stands still. An error means that nobody could be
	// asked; then nothing is sent that a person did not say.
	Elicit(ctx context.Context, q Question) (Answer, error)
}

// Question is what a server wants to know: the values of a form, or, with URL
// set, that a person has visited a page. Its texts are the server's: bounded,
// without secrets of the settings and without characters that are not seen (R4).
type Question struct {
	Server  string // the server's name in the settings
	Tool    string // the tool that is called, or empty
	Message string // may have several lines
	Fields  []Field
	// URL is a page that only the person may open. It is https or http,
	// without credentials, and its host is ASCII.
	URL string
}

// Action is what a person does with a [Question].
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // no, and the server may go on without
	Cancel  Action = "cancel"  // not decided
)

// Answer is what a person said. The zero Answer declines.
type Answer struct {
	Action Action
	// Values are the values of a form by the names of its fields, each as
	// [Field.Parse] takes it. Fields that are not there are not sent.
	Values map[string]secret.Text
}

// Limits of a question.
const (
	maxRounds   = 10      // in which one call asks
	maxRequests = 20      // in one round
	maxAsking   = 8 << 10 // bytes of a message
	maxURL      = 4 << 10 // bytes
)

// question reads the parameters of elicitation/create. The error is for the
// server and for a report; it is one line, not yet masked.
func (s *session) question(tool string, raw json.RawMessage) (Question, error) {
	var p struct {
		Mode            string          `json:"mode"`
		Message         string          `json:"message"`
		RequestedSchema json.RawMessage `json:"requestedSchema"`
		URL             string          `json:"url"`
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return Question{}, fmt.Errorf("its question can't be read")
	}
	q := Question{
		Server:  s.server.Name,
		Tool:    tool,
		Message: cut(strings.TrimSpace(readable(s.masks.redact(p.Message))), maxAsking),
	}
	mode := p.Mode
	if mode == "" && p.URL != "" {
		mode = "url"
	}
	var err error
	switch mode {
	case "", "form":
		q.Fields, err = fields(p.RequestedSchema, s.masks.redact)
	case "url":
		q.URL, err = page(p.URL)
	default:
		err = fmt.Errorf("it asks in a mode that is not known: %q", cut(p.Mode, 64))
	}
	for i := range q.Fields {
		for _, v := range s.server.Answers {
			if v.Name == q.Fields[i].Name {
				q.Fields[i].Declared = v.Value
			}
		}
	}
	return q, err
}

// page is a URL that may be shown to a person.
func page(s string) (string, error) {
	u, err := url.Parse(s)
	switch {
	case len(s) > maxURL:
		return "", fmt.Errorf("the page that it asks to visit has a URL of %d bytes", len(s))
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", fmt.Errorf("the page that it asks to visit has no http or https URL")
	case u.User != nil:
		return "", fmt.Errorf("the page that it asks to visit has a URL with credentials")
	}
	for _, r := range u.Host {
		if r <= ' ' || r > '~' {
			return "", fmt.Errorf("the page that it asks to visit has a host that is not written in ASCII")
		}
	}
	return u.String(), nil
}

// asked is a question in one line, for whoever could not answer it.
func (q Question) asked() string {
	text := fmt.Sprintf("%q", oneLine(q.Message, maxDetail))
	if q.URL != "" {
		return text + ", and to visit " + q.URL
	}
	if len(q.Fields) == 0 {
		return text
	}
	names := make([]string, len(q.Fields))
	for i, f := range q.Fields {
		names[i] = f.Name
		if !f.Required {
			names[i] += " (optional)"
		}
	}
	return text + ", with the fields " + strings.Join(names, ", ")
}

// declared is the answer that the settings declare, or false where they don't:
// every required field must be declared, at least one field, and every value
// must be one that its field takes.
func (q Question) declared() (Answer, bool) {
	a := Answer{Action: Accept, Values: make(map[string]secret.Text)}
	for _, f := range q.Fields {
		if f.Declared.IsZero() {
			if f.Required {
				return Answer{}, false
			}
			continue
		}
		if _, err := f.Parse(f.Declared.Reveal()); err != nil {
			return Answer{}, false
		}
		a.Values[f.Name] = f.Declared
	}
	return a, len(a.Values) > 0
}

// content is what an accepted form is sent as. Each value is checked, and so is
// that none is missing.
func (q Question) content(a Answer) (map[string]any, error) {
	content := make(map[string]any, len(a.Values))
	for _, f := range q.Fields {
		text, given := a.Values[f.Name]
		if !given {
			if f.Required {
				return nil, fmt.Errorf("the field %q is required", f.Name)
			}
			continue
		}
		value, err := f.Parse(text.Reveal())
		if err != nil {
			return nil, fmt.Errorf("the field %q: %w", f.Name, err)
		}
		content[f.Name] = value
	}
	return content, nil
}
