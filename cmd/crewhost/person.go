package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"crewhost/tools"
	"crewhost/tools/builtin/people"
	"crewhost/tools/permission"
)

// person is whoever can be asked: at the terminal, or nobody, with --approve
// standing in for an answer.
type person struct {
	console  *console
	progress *progress
	mode     string // ask, allow, deny

	asking   chan struct{} // holds a token while a question is open
	keyboard keyboard
}

func newPerson(c *console, p *progress, mode string) *person {
	return &person{
		console: c, progress: p, mode: mode,
		asking: make(chan struct{}, 1), keyboard: keyboard{in: c.in},
	}
}

// turn waits until no other question is open, or for the end of ctx.
func (p *person) turn(ctx context.Context) (over func(), err error) {
	select {
	case p.asking <- struct{}{}:
		return func() { <-p.asking }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// approver is who answers calls that the policy asks about, or nil where nobody
// can be asked: then the settings' headless answer holds (R3).
func (p *person) approver() permission.Approver {
	switch {
	case p.mode == "allow":
		return fixedAnswer{permission.Answer{Allow: true, Unasked: true}}
	case p.mode == "deny":
		return fixedAnswer{deniedByFlag()}
	case p.console.terminal:
		return p
	default:
		return nil
	}
}

// deniedByFlag is the answer of --approve deny.
func deniedByFlag() permission.Answer {
	return permission.Answer{Unasked: true, Reason: "nobody is asked: --approve deny"}
}

// fixedAnswer answers every question alike.
type fixedAnswer struct{ answer permission.Answer }

// Approve implements [permission.Approver].
func (f fixedAnswer) Approve(context.Context, permission.Question) (permission.Answer, error) {
	return f.answer, nil
}

// Always implements [permission.Constant]: what will always be refused is known
// before it is called.
func (f fixedAnswer) Always() permission.Answer { return f.answer }

// maxShown is how many characters of a call's arguments a person is shown: the
// beginning, the end, and how many are left out between them.
const maxShown = 4_000

// maxReason is how many characters of a person's reason the model is told.
const maxReason = 1_000

// Approve asks at the terminal about one call. Who ends stdin is not there any more, and
// has allowed nothing.
func (p *person) Approve(ctx context.Context, q permission.Question) (permission.Answer, error) {
	over, err := p.turn(ctx)
	if err != nil {
		return permission.Answer{}, err
	}
	defer over()
	from := ""
	if q.Request.Server != "" {
		from = fmt.Sprintf(" of MCP server %q", q.Request.Server)
	}
	p.progress.line(yellow, fmt.Sprintf("Agent %s wants to call %s%s", orNobody(q.Request.Agent), q.Request.Tool, from))
	p.progress.line(grey, "  with "+tools.Truncate(string(q.Request.Arguments), maxShown))
	p.progress.line(grey, "  asked because "+q.Decision.Reason)
	if q.Changed {
		p.progress.line(yellow, "  You had allowed it always, but its server has changed what the tool says of itself since.")
	}
	choices := "Allow? y = once, a = for this run, n = no; anything else is a no with that as the reason"
	always := slices.Contains(q.Scopes, permission.Always)
	if always {
		choices = "Allow? y = once, a = for this run, always = in later runs, too, n = no; anything else is a no with that as the reason"
	}
	for {
		answer, err := p.keyboard.line(ctx, func() { p.progress.line(yellow, choices) })
		switch {
		case errors.Is(err, io.EOF):
			return permission.Answer{Unasked: true, Reason: errNobodyWatches.Error()}, nil
		case err != nil:
			return permission.Answer{}, err
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "":
			continue
		case "y", "yes":
			return permission.Answer{Allow: true, Scope: permission.Once}, nil
		case "a":
			return permission.Answer{Allow: true, Scope: permission.Run}, nil
		case "always":
			if !always {
				p.progress.line(yellow, "Nothing is kept beyond this run here (permissions.approvals).")
				continue
			}
			return permission.Answer{Allow: true, Scope: permission.Always}, nil
		case "n", "no":
			return permission.Answer{}, nil
		default:
			return permission.Answer{Reason: tools.Truncate(answer, maxReason)}, nil
		}
	}
}

func orNobody(agent string) string {
	if agent == "" {
		return "(none)"
	}
	return agent
}

// Ask puts a question of an agent (the human_input tool) at the terminal. Where
// nobody is there, --approve allow gives the question's own default, and
// everything else is an error: an answer is never made up.
func (p *person) Ask(ctx context.Context, q people.Question) (people.Answer, error) {
	if !p.console.terminal {
		return p.unattended(q)
	}
	over, err := p.turn(ctx)
	if err != nil {
		return people.Answer{}, err
	}
	defer over()
	said, err := p.keyboard.line(ctx, func() {
		p.progress.line(yellow, "An agent asks: "+q.Prompt)
		for i, choice := range q.Choices {
			p.progress.line(grey, fmt.Sprintf("  %d) %s", i+1, choice))
		}
		switch {
		case q.Kind == people.KindApproval:
			p.progress.line(yellow, "Answer y or n, or in your own words")
		case q.Default != "":
			p.progress.line(grey, "Enter alone means: "+q.Default)
		}
	})
	return people.Answer{Text: said}, err
}

// unattended answers a question that nobody can be asked. That --approve allows is
// the word of whoever started the run; that it denies is word of nobody.
func (p *person) unattended(q people.Question) (people.Answer, error) {
	switch {
	case p.mode == "allow" && q.Kind == people.KindApproval:
		p.progress.warn("approved by --approve allow: " + q.Prompt)
		return people.Answer{Text: "yes"}, nil
	case p.mode == "deny" && q.Kind == people.KindApproval:
		return people.Answer{Text: "no", Unasked: true}, nil
	case p.mode == "allow" && q.Default != "":
		p.progress.warn("answered with its default by --approve allow: " + q.Prompt)
		return people.Answer{Text: q.Default}, nil
	default:
		return people.Answer{}, errNobody
	}
}

var errNobody = errors.New("nobody can be asked: this is no terminal")
