package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"crewhost/config/secret"
	"crewhost/mcp"
)

// respondent is who answers what servers ask in the middle of a call, or nil
// where nobody can be asked (O19).
func (p *person) respondent() mcp.Respondent {
	if p.console.terminal && p.mode != "deny" {
		return p
	}
	return nil
}

// What a person may write instead of a value.
const (
	wordDecline = "/decline"
	wordCancel  = "/cancel"
	wordNone    = "/none" // leave the field out
)

// Elicit asks at the terminal what a server wants to know: field by field, and
// once more before anything is sent.
func (p *person) Elicit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	over, err := p.turn(ctx)
	if err != nil {
		return mcp.Answer{}, err
	}
	defer over()
	while := ""
	if q.Tool != "" {
		while = fmt.Sprintf(" in a call of its tool %q", q.Tool)
	}
	p.progress.line(yellow, fmt.Sprintf("MCP server %q asks%s:", q.Server, while))
	for line := range strings.Lines(q.Message) {
		p.progress.step(yellow, "  ", line)
	}
	if q.URL != "" {
		return p.visit(ctx, q)
	}
	if len(q.Fields) > 0 {
		p.progress.line(grey, "* is required. Instead of a value: "+wordNone+" leaves a field out, "+wordDecline+" says no, "+wordCancel+" leaves it open")
	}
	for {
		answer, err := p.fill(ctx, q.Fields)
		if err != nil || answer.Action != mcp.Accept {
			return answer, err
		}
		for _, f := range q.Fields {
			if v, given := answer.Values[f.Name]; given {
				p.progress.step(grey, "  ", f.Name+" = "+v.String())
			}
		}
		again := ""
		if len(q.Fields) > 0 {
			again = "e = fill it in again, "
		}
		word, err := p.choose(ctx, fmt.Sprintf("Send this to MCP server %q? y = send, %sd = decline, c = cancel", q.Server, again), "y", "e", "d", "c")
		switch {
		case err != nil:
			return mcp.Answer{}, err
		case word == "y":
			return answer, nil
		case word == "d":
			return mcp.Answer{Action: mcp.Decline}, nil
		case word == "c":
			return mcp.Answer{Action: mcp.Cancel}, nil
		}
	}
}

// visit shows a page that a server wants to be visited. It is never opened from
// here: whoever does that should read first where it leads.
func (p *person) visit(ctx context.Context, q mcp.Question) (mcp.Answer, error) {
	host := q.URL
	if u, err := url.Parse(q.URL); err == nil {
		host = u.Host
	}
	p.progress.line(yellow, "It wants you to visit a page of "+host+", which knows who you are there and not here:")
	p.progress.step(yellow, "  ", q.URL)
	word, err := p.choose(ctx, "Open it yourself if you trust it. y = done, d = decline, c = cancel", "y", "d", "c")
	answers := map[string]mcp.Action{"y": mcp.Accept, "d": mcp.Decline, "c": mcp.Cancel}
	return mcp.Answer{Action: answers[word]}, err
}

// choose asks until one of the letters is given.
func (p *person) choose(ctx context.Context, question string, letters ...string) (string, error) {
	for {
		answer, err := p.keyboard.line(ctx, func() { p.progress.line(yellow, question) })
		if err != nil {
			return "", err
		}
		if answer = strings.ToLower(answer); answer != "" && slices.Contains(letters, answer[:1]) {
			return answer[:1], nil
		}
	}
}

// fill asks for the value of each field.
func (p *person) fill(ctx context.Context, fields []mcp.Field) (mcp.Answer, error) {
	a := mcp.Answer{Action: mcp.Accept, Values: make(map[string]secret.Text, len(fields))}
	for _, f := range fields {
		ask := func() { p.describe(f) }
		for done := false; !done; {
			text, err := p.keyboard.line(ctx, ask)
			if err != nil {
				return mcp.Answer{}, err
			}
			switch text {
			case wordDecline:
				return mcp.Answer{Action: mcp.Decline}, nil
			case wordCancel:
				return mcp.Answer{Action: mcp.Cancel}, nil
			}
			value, given, complaint := take(f, text)
			if complaint != "" {
				ask = func() { p.progress.step(red, "  ", "Not taken: "+complaint+". Again:") }
				continue
			}
			if given {
				a.Values[f.Name] = value
			}
			done = true
		}
	}
	return a, nil
}

// describe shows what a field is about.
func (p *person) describe(f mcp.Field) {
	line := f.Name
	if f.Required {
		line += "*"
	}
	for _, more := range []string{f.Title, f.Description} {
		if more != "" && more != f.Name {
			line += " – " + more
		}
	}
	p.progress.line(yellow, line)
	for i, c := range f.Choices {
		text := fmt.Sprintf("%d) %s", i+1, c.Value)
		if c.Title != "" && c.Title != c.Value {
			text += " – " + c.Title
		}
		p.progress.step(grey, "  ", text)
	}
	hints := []string{}
	if takes := f.Takes(); takes != "" {
		hints = append(hints, takes)
	}
	if f.Kind == mcp.FieldChoices {
		hints = append(hints, "separated by commas")
	}
	switch {
	case !f.Declared.IsZero():
		hints = append(hints, "Enter alone means what your settings declare, "+f.Declared.String())
	case f.HasDefault:
		hints = append(hints, fmt.Sprintf("Enter alone means %q", f.Default))
	case !f.Required:
		hints = append(hints, "Enter alone leaves it out")
	}
	if len(hints) > 0 {
		p.progress.step(grey, "  ", strings.Join(hints, "; "))
	}
}

// take makes a value of what a person wrote. A complaint says why it can't.
func take(f mcp.Field, text string) (value secret.Text, given bool, complaint string) {
	value = secret.Literal(text)
	switch {
	case text == wordNone && f.Required:
		return value, false, "it is required"
	case text == wordNone:
		return value, false, ""
	case text == "" && !f.Declared.IsZero():
		value = f.Declared
	case text == "" && f.HasDefault:
		value = secret.Literal(f.Default)
	case text == "" && !f.Required:
		return value, false, ""
	case text == "":
		return value, false, "it is required"
	default:
		value = secret.Literal(meant(f, text))
	}
	if _, err := f.Parse(value.Reveal()); err != nil {
		return value, false, err.Error()
	}
	return value, true, ""
}

// meant is a value that a person wrote in a shorter way: y for true, the number
// or the title of a choice.
func meant(f mcp.Field, text string) string {
	switch f.Kind {
	case mcp.FieldBoolean:
		switch strings.ToLower(text) {
		case "y", "yes", "true":
			return "true"
		case "n", "no", "false":
			return "false"
		}
	case mcp.FieldChoice:
		return chosen(f, text)
	case mcp.FieldChoices:
		var values []string
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part != "" {
				values = append(values, chosen(f, part))
			}
		}
		if data, err := json.Marshal(values); err == nil && values != nil {
			return string(data)
		}
	}
	return text
}

// chosen is the value that a text means: the value itself, then its number, then
// its title, whatever the case.
func chosen(f mcp.Field, text string) string {
	if slices.ContainsFunc(f.Choices, func(c mcp.Choice) bool { return c.Value == text }) {
		return text
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(f.Choices) {
		return f.Choices[n-1].Value
	}
	for _, c := range f.Choices {
		if strings.EqualFold(c.Value, text) || strings.EqualFold(c.Title, text) {
			return c.Value
		}
	}
	return text
}
