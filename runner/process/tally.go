package process

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"crewhost/crew"
)

// standing is how an answer stands after a vote.
type standing struct {
	answer string // the agent that gave it
	votes  int    // ballots that rank it first
	weight int    // the confidence of those, in thousandths
	points int    // of Borda: with n answers, n-1 for a first place, n-2 for a second, …
}

// outcome is what a vote came to.
type outcome struct {
	winner    string     // the agent whose answer all agree on, or ""
	standings []standing // best first
	why       string     // how it won, or why nobody did, in one line
}

// best are the answers that nothing sets apart at the top.
func (o outcome) best() []string {
	var top []string
	for _, s := range o.standings {
		if compareAll(s, o.standings[0]) == 0 {
			top = append(top, s.answer)
		}
	}
	return top
}

// vote counts the ballots of so many voters on the answers. The order of
// answers and ballots changes nothing.
//
// Nobody ranks its own answer, so the ballot of an answer's author never speaks
// for it: unanimity leaves it out, and all else counts it with the others.
// Whatever the strategy, a tie at the top has no winner.
func vote(how crew.ConsensusConfig, voters int, answers []string, ballots []ballot) outcome {
	cast := slices.DeleteFunc(slices.Clone(ballots), ballot.abstains)
	standings := count(answers, cast)
	slices.SortFunc(standings, func(a, b standing) int {
		return cmp.Or(measure(how.Strategy, b)-measure(how.Strategy, a), compareAll(a, b), strings.Compare(a.answer, b.answer))
	})
	o := outcome{standings: standings}
	switch {
	case len(cast) == 0:
		o.why = "nobody voted"
		return o
	case float64(len(cast)) < how.Quorum*float64(voters)-1e-9:
		o.why = fmt.Sprintf("%d of %d agents voted, which is below the quorum of %.0f%%", len(cast), voters, how.Quorum*100)
		return o
	}
	first := standings[0]
	if tied := level(how.Strategy, standings); len(tied) > 1 {
		o.why = fmt.Sprintf("a tie between the answers of %s", strings.Join(tied, " and "))
		return o
	}
	if !enough(how.Strategy, first, cast) {
		o.why = fmt.Sprintf("the answer of %s came first with %s, which is not enough for %s", first.answer, tell(how.Strategy, first, cast), how.Strategy)
		return o
	}
	o.winner = first.answer
	o.why = fmt.Sprintf("%s with %s", how.Strategy, tell(how.Strategy, first, cast))
	return o
}

// measure is what a strategy goes by.
func measure(strategy string, s standing) int {
	switch strategy {
	case crew.WeightedConsensus:
		return s.weight
	case crew.BordaCount:
		return s.points
	default:
		return s.votes
	}
}

// compareAll compares two answers by everything that was counted, the better one
// first.
func compareAll(a, b standing) int {
	return cmp.Or(b.votes-a.votes, b.points-a.points, b.weight-a.weight)
}

// level are the answers that have as much as the first one.
func level(strategy string, standings []standing) []string {
	var tied []string
	for _, s := range standings {
		if measure(strategy, s) == measure(strategy, standings[0]) {
			tied = append(tied, s.answer)
		}
	}
	slices.Sort(tied)
	return tied
}

// enough reports whether the first answer has won.
func enough(strategy string, first standing, cast []ballot) bool {
	majority := 2*first.votes > len(cast)
	switch strategy {
	case crew.SuperMajority:
		return 3*first.votes >= 2*len(cast)
	case crew.Unanimity:
		others := len(cast)
		if slices.ContainsFunc(cast, func(b ballot) bool { return b.voter == first.answer }) {
			others--
		}
		return majority && first.votes == others
	case crew.WeightedConsensus:
		return 2*first.weight > weigh(cast)
	case crew.BordaCount:
		return true
	default:
		return majority
	}
}

// tell says what the first answer has.
func tell(strategy string, first standing, cast []ballot) string {
	switch strategy {
	case crew.WeightedConsensus:
		return fmt.Sprintf("%.2f of %.2f by confidence", float64(first.weight)/wholeConfidence, float64(weigh(cast))/wholeConfidence)
	case crew.BordaCount:
		return fmt.Sprintf("%d points", first.points)
	default:
		return fmt.Sprintf("%d of %d votes", first.votes, len(cast))
	}
}

func count(answers []string, cast []ballot) []standing {
	standings := make([]standing, len(answers))
	at := make(map[string]*standing, len(answers))
	for i, a := range answers {
		standings[i].answer = a
		at[a] = &standings[i]
	}
	for _, b := range cast {
		at[b.ranking[0]].votes++
		at[b.ranking[0]].weight += b.confidence
		for place, a := range b.ranking {
			at[a].points += len(answers) - 1 - place
		}
	}
	return standings
}

func weigh(ballots []ballot) int {
	sum := 0
	for _, b := range ballots {
		sum += b.confidence
	}
	return sum
}
