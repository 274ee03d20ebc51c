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

// answer gets the answer to a call that the policy asks about: one that was given
// before, or a person's, or where nobody can be asked (asked is false), what the
// settings say.
func (g *Guard) answer(ctx context.Context, def tools.Definition, o *Observation) (a Answer, asked bool, err error) {
	if constant, ok := g.approver.(Constant); ok { // it is about everything
		a, err = constant.Approve(ctx, Question{Request: o.Request, Decision: o.Decision})
		return a, true, err
	}
	about := g.policy.approvalOf(o.Request, o.Decision, def)
	q := Question{Request: o.Request, Decision: o.Decision, Scopes: []Scope{Once, Run}}
	if g.Approvals != nil {
		q.Scopes = append(q.Scopes, Always)
	}
	if a, err = g.earlier(ctx, &q, about); err != nil || a.Allow {
		return g.witnessed(ctx, q, a), true, err
	}
	if g.approver == nil {
		return Answer{Allow: g.policy.Headless() == Allow, Unasked: true, Reason: "nobody can be asked here"}, false, nil
	}
	if !g.Concurrent {
		select {
		case g.asking <- struct{}{}:
			defer func() { <-g.asking }()
		case <-ctx.Done():
		}
	}
	// Both ways may have been open.
	if err := cancelled(ctx, o.Request.Tool); err != nil {
		return Answer{}, false, err
	}
	// While this call waited, another may have been answered for both.
	if a, err = g.earlier(ctx, &q, about); err != nil || a.Allow {
		return g.witnessed(ctx, q, a), true, err
	}
	if a, err = g.approver.Approve(ctx, q); err != nil {
		if stopped := cancelled(ctx, o.Request.Tool); stopped != nil {
			return Answer{}, false, stopped
		}
		return Answer{}, false, fmt.Errorf("asking for approval of tool %q: %w", o.Request.Tool, err)
	}
	return a, true, g.keep(ctx, a, about)
}

// earlier looks for an answer that was given before; one that does not allow is none.
func (g *Guard) earlier(ctx context.Context, q *Question, about Approval) (Answer, error) {
	if g.run.has(about) {
		return Answer{Allow: true, Scope: Run, Stands: true}, nil
	}
	if g.Approvals == nil {
		return Answer{}, nil
	}
	standing, err := g.Approvals.Standing(ctx, about)
	if err != nil {
		return Answer{}, fmt.Errorf("looking for an approval of tool %q: %w", q.Request.Tool, err)
	}
	q.Changed = standing == Changed
	return Answer{Allow: standing == Approved, Scope: Always, Stands: true}, nil
}

// witnessed tells an approver of an answer that stands.
func (g *Guard) witnessed(ctx context.Context, q Question, a Answer) Answer {
	if witness, ok := g.approver.(Witness); ok && a.Allow {
		witness.Stands(ctx, q, a)
	}
	return a
}

// keep keeps an approval for as long as it is for.
func (g *Guard) keep(ctx context.Context, a Answer, about Approval) error {
	if !a.Allow || a.Unasked || a.Scope != Run && a.Scope != Always {
		return nil
	}
	g.run.add(about) // whatever becomes of the file
	if a.Scope != Always || g.Approvals == nil {
		return nil
	}
	if err := g.Approvals.Keep(ctx, about); err != nil {
		return fmt.Errorf("keeping the approval of tool %q: %w", about.Tool, err)
	}
	return nil
}

// stands reports whether calls of a tool were approved always, those at least that
// meet no condition of a rule.
func (g *Guard) stands(r Request, o Outlook, tool tools.Tool) bool {
	if g.Approvals == nil || o.Decision.Verdict != Ask {
		return false
	}
	return g.Approvals.Foresee(g.policy.approvalOf(r, o.Decision, tool.Definition())) == Approved
}
