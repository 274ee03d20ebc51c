package permission

import (
	"context"
	"fmt"
	"sync"

	"crewhost/tools"
)

// Approver asks a person about a call.
type Approver interface {
	// Approve returns the person's answer to q. It returns when ctx ends. A [Guard]
	// makes one call at a time, unless it is told otherwise.
	Approve(ctx context.Context, q Question) (Answer, error)
}

// Constant is an [Approver] that asks nobody and gives one answer to everything.
type Constant interface {
	Approver
	Always() Answer
}

// Witness is an [Approver] that is told of calls which an earlier answer lets
// through, too.
type Witness interface {
	Approver
	// Stands is told the answer, which has the scope that it was given with.
	Stands(ctx context.Context, q Question, a Answer)
}

// Question is a call that the policy asks about.
type Question struct {
	Request  Request
	Decision Decision
	// Scopes are those that an approval may have, the narrowest first.
	Scopes []Scope
	// Changed says that calls of the tool were approved always, and that its server
	// defines it otherwise since.
	Changed bool
}

// Scope is which calls an approval is for.
type Scope string

// The scopes.
const (
	Once   Scope = "once"   // this call
	Run    Scope = "run"    // and those till the end of the run that are asked about for the same reason
	Always Scope = "always" // and those of later runs
)

// Answer is what a person said.
type Answer struct {
	Allow bool
	// Scope is of an answer that allows; empty is Once.
	Scope Scope
	// Reason is told to the model with a refusal; it may be empty.
	Reason string
	// Unasked says that no person was asked, and Reason why.
	Unasked bool
	// Stands says that the answer was given to an earlier question.
	Stands bool
}

// Approval is what an approval is bound to that is for more than one call. Any other
// rule, tool or definition is another approval.
type Approval struct {
	// Agent is the key of the agent by whose toolset the question came; empty: it
	// came by the settings.
	Agent string
	// Asked is the pattern of the rule that asked; empty: none did, but the default.
	Asked string
	// Server is the tool's MCP server, or empty, and Tool its name there.
	Server, Tool string
	// Definition is the digest of the tool's definition ([tools.Digests]).
	Definition string
}

// Standing is what became of an approval.
type Standing string

// The standings.
const (
	Unknown  Standing = ""         // there is none
	Approved Standing = "approved" // it stands
	Changed  Standing = "changed"  // there is one, for another definition of the tool
)

// Approvals keep what a person said always.
type Approvals interface {
	// Foresee is Standing before any call is made; what can't be read stands for
	// nothing.
	Foresee(Approval) Standing
	Standing(context.Context, Approval) (Standing, error)
	Keep(context.Context, Approval) error
}

// approvedForRun is what a person allowed for one run.
type approvedForRun struct {
	mu  sync.Mutex
	set map[Approval]bool
}

func (a *approvedForRun) has(one Approval) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.set[one]
}

func (a *approvedForRun) add(one Approval) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.set == nil {
		a.set = map[Approval]bool{}
	}
	a.set[one] = true
}

// approvalOf is what an approval of calls like r is bound to, as d asks about them.
func (p *Policy) approvalOf(r Request, d Decision, def tools.Definition) Approval {
	a := Approval{Server: r.Server, Tool: r.Tool, Definition: def.Digests().Definition}
	if r.Server != "" {
		a.Tool = r.ServerTool
	}
	switch {
	case d.Rule != nil:
		a.Agent, a.Asked = d.Rule.Agent, d.Rule.Pattern
	case p.orZero().own(r).remote: // it is the toolset that asks
		a.Agent = r.Agent
	}
	return a
}

// answer gets the answer to a call that the policy asks about. What a run keeps of
// it is the answer as a whole, whosever it was: when others were given does not count.
func (g *Guard) answer(ctx context.Context, def tools.Definition, o *Observation) (Answer, error) {
	about := g.policy.approvalOf(o.Request, o.Decision, def)
	q := Question{Request: o.Request, Decision: o.Decision, Scopes: []Scope{Once, Run}}
	if g.Approvals != nil {
		q.Scopes = append(q.Scopes, Always)
	}
	get := func(ctx context.Context) (Answer, error) { return g.find(ctx, q, about) }
	var a Answer
	var err error
	if g.Answers != nil {
		a, err = g.Answers(ctx, q, get)
	} else {
		a, err = get(ctx)
	}
	if err == nil && a.Allow && !a.Unasked && (a.Scope == Run || a.Scope == Always) {
		g.run.add(about)
	}
	return a, err
}

// find finds the answer: one that was given before, or a person's, or where nobody can
// be asked, what the settings say.
func (g *Guard) find(ctx context.Context, q Question, about Approval) (a Answer, err error) {
	if constant, ok := g.approver.(Constant); ok { // it is about everything
		return constant.Approve(ctx, Question{Request: q.Request, Decision: q.Decision})
	}
	if a, err = g.earlier(ctx, &q, about); err != nil || a.Allow {
		return a, err
	}
	if g.approver == nil {
		return Answer{Allow: g.policy.Headless() == Allow, Unasked: true, Reason: "nobody can be asked here"}, nil
	}
	if !g.Concurrent {
		select {
		case g.asking <- struct{}{}:
			defer func() { <-g.asking }()
		case <-ctx.Done():
		}
	}
	// Both ways may have been open.
	if err := cancelled(ctx, q.Request.Tool); err != nil {
		return Answer{}, err
	}
	// While this call waited, another may have been answered for both.
	if a, err = g.earlier(ctx, &q, about); err != nil || a.Allow {
		return a, err
	}
	if a, err = g.approver.Approve(ctx, q); err != nil {
		if stopped := cancelled(ctx, q.Request.Tool); stopped != nil {
			return Answer{}, stopped
		}
		return Answer{}, fmt.Errorf("asking for approval of tool %q: %w", q.Request.Tool, err)
	}
	if !a.Allow || a.Unasked || a.Scope != Run && a.Scope != Always {
		return a, nil
	}
	g.run.add(about) // before the next is asked
	if a.Scope == Always && g.Approvals != nil {
		if err := g.Approvals.Keep(ctx, about); err != nil {
			return Answer{}, fmt.Errorf("keeping the approval of tool %q: %w", about.Tool, err)
		}
	}
	return a, nil
}

// earlier looks for an answer that was given before, and tells the approver of it; one
// that does not allow is none.
func (g *Guard) earlier(ctx context.Context, q *Question, about Approval) (a Answer, err error) {
	if g.run.has(about) {
		a = Answer{Allow: true, Scope: Run, Stands: true}
	} else if g.Approvals != nil {
		standing, err := g.Approvals.Standing(ctx, about)
		if err != nil {
			return Answer{}, fmt.Errorf("looking for an approval of tool %q: %w", q.Request.Tool, err)
		}
		q.Changed = standing == Changed
		a = Answer{Allow: standing == Approved, Scope: Always, Stands: true}
	}
	if witness, ok := g.approver.(Witness); ok && a.Allow {
		witness.Stands(ctx, *q, a)
	}
	return a, nil
}

// stands reports whether calls of a tool were approved always, those at least that
// meet no condition of a rule.
func (g *Guard) stands(r Request, o Outlook, tool tools.Tool) bool {
	if g.Approvals == nil || o.Decision.Verdict != Ask {
		return false
	}
	return g.Approvals.Foresee(g.policy.approvalOf(r, o.Decision, tool.Definition())) == Approved
}
