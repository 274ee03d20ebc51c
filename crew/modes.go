package crew

import (
	"fmt"
	"time"

	"crewhost/config/strict"
)

// The ways in which the consensual process counts ballots.
const (
	Majority          = "majority"          // more than half of the ballots name it first
	SuperMajority     = "superMajority"     // two thirds or more name it first
	Unanimity         = "unanimity"         // all but its author's name it first
	WeightedConsensus = "weightedConsensus" // more than half of the confidence names it first
	BordaCount        = "bordaCount"        // most points over all places of all rankings
)

// What the consensual process does where no round agrees.
const (
	AcceptBestScore = "acceptBestScore" // keep the answer that came closest
	FailTask        = "fail"            // fail the task
	ManagerDecision = "managerDecision" // have the manager choose
)

// ConsensusConfig is how the agents of the consensual process agree.
type ConsensusConfig struct {
	Pos       Pos
	Strategy  string  // [Majority] unless said
	Quorum    float64 // the share of agents that must vote and not abstain, 0 to 1; 0.5 unless said
	MaxRounds int     // 3 unless said
	Fallback  string  // [AcceptBestScore] unless said
}

// DefaultConsensus is what holds where a crew says nothing of it.
func DefaultConsensus() ConsensusConfig {
	return ConsensusConfig{Strategy: Majority, Quorum: 0.5, MaxRounds: 3, Fallback: AcceptBestScore}
}

// AutonomousConfig bounds the autonomous process.
type AutonomousConfig struct {
	Pos    Pos
	Budget Budget
}

// Budget is what an autonomous run may use, all its agents together. What would
// go beyond it is not done, and the run fails.
type Budget struct {
	ToolCalls int           // calls of tools; 50 unless said
	Depth     int           // times that one piece of work is handed on; 4 unless said
	WallTime  time.Duration // 15 minutes unless said
	Tokens    int           // of requests and answers, questions to the planner included; 64,000 unless said
	Spawns    int           // specialists that are made; 10 unless said
}

// DefaultBudget is what holds where a crew says nothing of it.
func DefaultBudget() Budget {
	return Budget{ToolCalls: 50, Depth: 4, WallTime: 15 * time.Minute, Tokens: 64_000, Spawns: 10}
}

type consensusDoc struct {
	Pos       Pos                `key:"@"`
	Strategy  Text               `key:"strategy"`
	Quorum    strict.At[float64] `key:"quorum"`
	MaxRounds strict.At[int]     `key:"maxRounds"`
	Fallback  Text               `key:"fallback"`
}

type autonomousDoc struct {
	Pos    Pos       `key:"@"`
	Budget budgetDoc `key:"budget"`
}

type budgetDoc struct {
	ToolCalls strict.At[int] `key:"toolCalls"`
	Depth     strict.At[int] `key:"depth"`
	WallTime  seconds        `key:"wallTime"`
	Tokens    strict.At[int] `key:"tokens"`
	Spawns    strict.At[int] `key:"spawns"`
}

func (b *builder) consensus(doc *consensusDoc) *ConsensusConfig {
	if doc == nil {
		return nil
	}
	unset := DefaultConsensus()
	c := &ConsensusConfig{
		Pos: doc.Pos,
		Strategy: b.enum(doc.Strategy, "consensus.strategy", unset.Strategy,
			Majority, SuperMajority, Unanimity, WeightedConsensus, BordaCount),
		Quorum:    or(b.between(doc.Quorum, 0, 1, "consensus.quorum"), unset.Quorum),
		MaxRounds: orDefault(b.atLeast(doc.MaxRounds, 1, "consensus.maxRounds"), unset.MaxRounds),
		Fallback:  b.enum(doc.Fallback, "consensus.fallback", unset.Fallback, AcceptBestScore, FailTask, ManagerDecision),
	}
	return c
}

func (b *builder) autonomous(doc *autonomousDoc) *AutonomousConfig {
	if doc == nil {
		return nil
	}
	unset := DefaultBudget()
	budget := doc.Budget
	a := &AutonomousConfig{Pos: doc.Pos, Budget: Budget{
		ToolCalls: orDefault(b.atLeast(budget.ToolCalls, 0, "autonomous.budget.toolCalls"), unset.ToolCalls),
		Depth:     orDefault(b.atLeast(budget.Depth, 0, "autonomous.budget.depth"), unset.Depth),
		WallTime:  unset.WallTime,
		Tokens:    orDefault(b.atLeast(budget.Tokens, 1, "autonomous.budget.tokens"), unset.Tokens),
		Spawns:    orDefault(b.atLeast(budget.Spawns, 0, "autonomous.budget.spawns"), unset.Spawns),
	}}
	if budget.WallTime.Set {
		a.Budget.WallTime = budget.WallTime.V
	}
	return a
}

// consensusRules checks what agreeing needs: somebody to agree, and a manager
// where it is the one to decide.
func (b *builder) consensusRules(doc *crewDoc, unknown bool) {
	c := b.crew
	if c.Process != Consensual {
		if doc.Consensus != nil && !unknown {
			b.fail(doc.Consensus.Pos, CodeConflict, "consensus: the "+string(c.Process)+" process has no votes", "leave it out, or set process: consensual")
		}
		return
	}
	how, at := DefaultConsensus(), c.ProcessPos
	if c.Consensus != nil {
		how, at = *c.Consensus, c.Consensus.Pos
	}
	switch {
	case how.Fallback == ManagerDecision && !c.ManagerAgent.Set:
		b.fail(doc.Consensus.Fallback.Pos, strict.CodeMissing, "consensus.fallback is managerDecision and there is no managerAgent", "name the agent that decides")
	case how.Fallback != ManagerDecision && c.ManagerAgent.Set:
		b.warn(c.ManagerAgent.Pos, CodeNoEffect, "managerAgent neither answers nor votes, and decides nothing unless consensus.fallback is managerDecision", "")
	}
	if b.unread.agents {
		return
	}
	members := 0
	for _, a := range c.Agents {
		if a.Key != c.ManagerAgent.V {
			members++
		}
	}
	switch {
	case members == 0:
		b.fail(c.ManagerAgent.Pos, strict.CodeMissing, "the consensual process needs an agent beside managerAgent", "")
	case members == 1:
		b.warn(at, CodeNoEffect, "there is one agent to answer: its answers are kept without a vote", "")
	case members == 2 && how.Strategy != WeightedConsensus:
		b.warn(at, CodeNoEffect, fmt.Sprintf("two agents, who may not vote for themselves, are always tied by %s: consensus.fallback (%s) decides", how.Strategy, how.Fallback),
			"a third agent, or strategy: weightedConsensus")
	}
}

// autonomousRules checks that a budget is for a process that has one.
func (b *builder) autonomousRules(doc *crewDoc, unknown bool) {
	if doc.Autonomous != nil && b.crew.Process != Autonomous && !unknown {
		b.fail(doc.Autonomous.Pos, CodeConflict, "autonomous: the "+string(b.crew.Process)+" process has no budget", "leave it out, or set process: autonomous")
	}
}
