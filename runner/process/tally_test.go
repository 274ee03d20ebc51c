package process

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
)

// ballotsOf reads ballots written as "voter: first second, confidence"; a voter
// alone abstains, and without a figure it is sure.
func ballotsOf(t *testing.T, lines ...string) []ballot {
	t.Helper()
	var all []ballot
	for _, l := range lines {
		voter, rest, _ := strings.Cut(l, ":")
		b := ballot{voter: voter, confidence: wholeConfidence}
		ranking, confidence, given := strings.Cut(rest, ",")
		if given {
			if _, err := fmt.Sscan(confidence, &b.confidence); err != nil {
				t.Fatal(err)
			}
		}
		b.ranking = strings.Fields(ranking)
		all = append(all, b)
	}
	return all
}

func TestVote(t *testing.T) {
	three := []string{"a", "b", "c"}
	for _, tt := range []struct {
		name     string
		strategy string
		quorum   float64
		voters   int
		answers  []string
		ballots  []string
		winner   string
		why      string
		best     string
	}{
		{"more than half", crew.Majority, 0.5, 3, three, []string{"a: b c", "b: a c", "c: a b"}, "a", "majority with 2 of 3 votes", "a"},
		{"half is not more than half", crew.Majority, 0.5, 4, []string{"a", "b", "c", "d"},
			[]string{"a: b", "b: a", "c: a", "d: c"}, "", "the answer of a came first with 2 of 4 votes, which is not enough for majority", "a"},
		{"a circle", crew.Majority, 0.5, 3, three, []string{"a: b c", "b: c a", "c: a b"}, "", "a tie between the answers of a and b and c", "a b c"},
		{"a tie that second places break for the best, not for the winner", crew.Majority, 0.5, 4, []string{"a", "b", "c", "d"},
			[]string{"a: b c", "b: a c", "c: a b", "d: b a"}, "", "a tie between the answers of a and b", "a b"},
		{"two agents", crew.Majority, 0.5, 2, []string{"a", "b"}, []string{"a: b", "b: a"}, "", "a tie between the answers of a and b", "a b"},
		{"two agents, one of which gives way", crew.Majority, 0.5, 2, []string{"a", "b"}, []string{"a", "b: a"}, "a", "majority with 1 of 1 votes", "a"},
		{"confidence tells the best of a tie", crew.Majority, 0.5, 2, []string{"a", "b"}, []string{"a: b, 400", "b: a, 700"}, "",
			"a tie between the answers of a and b", "a"},
		{"an agent without an answer decides", crew.Majority, 0.5, 3, []string{"a", "b"}, []string{"a: b", "b: a", "c: b a"}, "b", "majority with 2 of 3 votes", "b"},
		{"two thirds", crew.SuperMajority, 0.5, 3, three, []string{"a: b c", "b: a c", "c: a b"}, "a", "superMajority with 2 of 3 votes", "a"},
		{"less than two thirds", crew.SuperMajority, 0.5, 5, []string{"a", "b", "c", "d", "e"},
			[]string{"a: b", "b: a", "c: a", "d: a", "e: b"}, "", "the answer of a came first with 3 of 5 votes, which is not enough for superMajority", "a"},
		{"all but the author", crew.Unanimity, 1, 3, three, []string{"a: b c", "b: a c", "c: a b"}, "a", "unanimity with 2 of 3 votes", "a"},
		{"all but one", crew.Unanimity, 0.5, 4, []string{"a", "b", "c", "d"}, []string{"a: b", "b: a", "c: a", "d: b"}, "", "a tie between the answers of a and b", "a b"},
		{"two agents are never of one mind", crew.Unanimity, 0, 2, []string{"a", "b"}, []string{"a: b", "b: a"}, "", "a tie between the answers of a and b", "a b"},
		{"half of the votes, though nobody else's are left", crew.Unanimity, 0, 3, three, []string{"a: c", "b: a", "c"}, "", "a tie between the answers of a and c", "a c"},
		{"the surer ones", crew.WeightedConsensus, 0.5, 2, []string{"a", "b"}, []string{"a: b, 500", "b: a, 900"}, "a", "weightedConsensus with 0.90 of 1.40 by confidence", "a"},
		{"equally sure", crew.WeightedConsensus, 0.5, 2, []string{"a", "b"}, []string{"a: b, 500", "b: a, 500"}, "", "a tie between the answers of a and b", "a b"},
		{"half of the confidence", crew.WeightedConsensus, 0.5, 4, []string{"a", "b", "c"}, []string{"a: b, 250", "b: a, 500", "c: b, 0", "d: c, 250"}, "",
			"the answer of a came first with 0.50 of 1.00 by confidence, which is not enough for weightedConsensus", "a"},
		{"nobody is sure", crew.WeightedConsensus, 0.5, 3, three, []string{"a: b, 0", "b: a, 0", "c: a, 0"}, "", "a tie between the answers of a and b and c", "a"},
		{"places count", crew.BordaCount, 0.5, 4, []string{"a", "b", "c", "d"},
			[]string{"a: b c d", "b: c a d", "c: b a d", "d: a c b"}, "", "a tie between the answers of a and b and c", "b"},
		{"second places win", crew.BordaCount, 0.5, 4, []string{"a", "b", "c", "d"},
			[]string{"a: b c d", "b: c a d", "c: d b a", "d: a c b"}, "c", "bordaCount with 7 points", "c"},
		{"what is not ranked has no points", crew.BordaCount, 0.5, 3, three, []string{"a: b", "b: a", "c: b a"}, "b", "bordaCount with 4 points", "b"},
		{"too few", crew.Majority, 0.5, 5, three, []string{"a: b", "b", "c: b", "d", "e"}, "", "2 of 5 agents voted, which is below the quorum of 50%", "b"},
		{"just enough", crew.Majority, 0.5, 4, three, []string{"a: b", "b", "c: b", "d"}, "b", "majority with 2 of 2 votes", "b"},
		{"a quorum that no float meets exactly", crew.Majority, 0.7, 10, three,
			[]string{"a: b", "c: b", "d: b", "e: b", "f: b", "g: b", "h: b"}, "b", "majority with 7 of 7 votes", "b"},
		{"nobody", crew.Majority, 0, 3, three, []string{"a", "b", "c"}, "", "nobody voted", "a b c"},
		{"no ballots", crew.BordaCount, 0.5, 3, three, nil, "", "nobody voted", "a b c"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := vote(crew.ConsensusConfig{Strategy: tt.strategy, Quorum: tt.quorum}, tt.voters, tt.answers, ballotsOf(t, tt.ballots...))
			if o.winner != tt.winner || o.why != tt.why {
				t.Errorf("%q: %s\nwant %q: %s", o.winner, o.why, tt.winner, tt.why)
			}
			if best := strings.Join(o.best(), " "); best != tt.best {
				t.Errorf("best %q, want %q", best, tt.best)
			}
		})
	}
}

// election is a vote as chance makes it: some agents have no answer, some
// abstain, rankings may be short, and nobody ranks its own answer.
func election(r *rand.Rand) (voters, answers []string, ballots []ballot) {
	n := 1 + r.IntN(7)
	for i := range n {
		voters = append(voters, letters(i))
	}
	answers = slices.Clone(voters[:1+r.IntN(n)])
	for _, v := range voters {
		b := ballot{voter: v, confidence: r.IntN(wholeConfidence + 1)}
		others := slices.DeleteFunc(slices.Clone(answers), func(a string) bool { return a == v })
		r.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
		if len(others) > 0 && r.IntN(5) > 0 {
			b.ranking = others[:1+r.IntN(len(others))]
		}
		ballots = append(ballots, b)
	}
	return voters, answers, ballots
}

func TestVotesHoldWhatTheyPromise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	strategies := []string{crew.Majority, crew.SuperMajority, crew.Unanimity, crew.WeightedConsensus, crew.BordaCount}
	for range 5_000 {
		voters, answers, ballots := election(r)
		quorum := float64(r.IntN(5)) / 4
		by := func(strategy string) outcome {
			return vote(crew.ConsensusConfig{Strategy: strategy, Quorum: quorum}, len(voters), answers, ballots)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Fatalf(fmt.Sprintf(format, args...)+"\nanswers %v, quorum %v, ballots %+v", answers, quorum, ballots)
		}
		for _, s := range strategies {
			o := by(s)
			// The order in which agents answer and vote changes nothing.
			mixedAnswers, mixed := slices.Clone(answers), slices.Clone(ballots)
			r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			r.Shuffle(len(mixedAnswers), func(i, j int) { mixedAnswers[i], mixedAnswers[j] = mixedAnswers[j], mixedAnswers[i] })
			again := vote(crew.ConsensusConfig{Strategy: s, Quorum: quorum}, len(voters), mixedAnswers, mixed)
			if diff := cmp.Diff(o, again, cmp.AllowUnexported(outcome{}, standing{})); diff != "" {
				fail("%s depends on the order: %s", s, diff)
			}
			// Who wins has a vote of somebody else, and nobody is before it.
			if o.winner == "" {
				continue
			}
			if !slices.ContainsFunc(ballots, func(b ballot) bool { return slices.Contains(b.ranking, o.winner) }) {
				fail("%s: %s won without a vote", s, o.winner)
			}
			if o.winner != o.standings[0].answer {
				fail("%s: %s won and is not first", s, o.winner)
			}
		}
		majority := by(crew.Majority).winner
		if w := by(crew.Unanimity).winner; w != "" && w != by(crew.SuperMajority).winner {
			fail("%s is unanimous and has no two thirds", w)
		}
		if w := by(crew.SuperMajority).winner; w != "" && w != majority {
			fail("%s has two thirds and no majority", w)
		}
		// Equally sure, by confidence and by heads is the same.
		for i := range ballots {
			ballots[i].confidence = 700
		}
		if w := by(crew.WeightedConsensus).winner; w != majority {
			fail("%q by confidence, %q by heads", w, majority)
		}
		// One more ballot for who has a majority takes nothing from it.
		if majority != "" {
			ballots = append(ballots, ballot{voter: "new", ranking: []string{majority}, confidence: 700})
			voters = append(voters, "new")
			if w := by(crew.Majority).winner; w != majority {
				fail("%q won, and %q with one ballot more for it", majority, w)
			}
		}
	}
}
