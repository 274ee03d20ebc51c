package process_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"crewhost/crew"
	"crewhost/runner/event"
	"crewhost/runner/event/eventtest"
	"crewhost/runner/process"
)

// bench is a jury by script. Agents answer "<agent> says <round>" unless answers
// has something for them, and vote by the keys of others in ballots.
type bench struct {
	diary
	answers map[string][]string // by agent, one a round, the last for all others; "!…" fails
	ballots map[string][]string // by agent, one a question: "b c 0.8", "abstain", "?" for what nobody can read, "!…" fails
	block   map[string]bool     // who waits for the end of the run instead: "a answers", "a votes"
}

func (b *bench) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	if _, err := b.diary.RunTask(ctx, in); err != nil {
		return process.Answer{}, err
	}
	if b.block[in.Agent.Key+" answers"] {
		<-ctx.Done()
		return said(in.Agent.Key + " has half"), context.Cause(ctx)
	}
	script := b.answers[in.Agent.Key]
	if len(script) == 0 {
		return said(fmt.Sprintf("%s says %d", in.Agent.Key, in.Attempt)), nil
	}
	text := script[min(in.Attempt, len(script))-1]
	if why, failed := strings.CutPrefix(text, "!"); failed {
		return said(in.Agent.Key + " has half"), errors.New(why)
	}
	return said(text), nil
}

var quoted = regexp.MustCompile(`## Answer (\w+)\n\n> (\w+)`)

func (b *bench) Ask(ctx context.Context, q process.Question) (process.Answer, error) {
	b.mu.Lock()
	b.lines, b.asked = append(b.lines, fmt.Sprintf("%s is asked to %s %s", q.Agent.Key, q.Operation, q.Task.Key)), append(b.asked, q)
	vote := "abstain"
	if script := b.ballots[q.Agent.Key]; len(script) > 0 {
		vote, b.ballots[q.Agent.Key] = script[0], script[1:]
	}
	b.mu.Unlock()
	if b.block[q.Agent.Key+" votes"] {
		<-ctx.Done()
		return process.Answer{}, context.Cause(ctx)
	}
	labels := map[string]string{}
	for _, m := range quoted.FindAllStringSubmatch(q.Text, -1) {
		labels[m[2]] = m[1]
	}
	answer := said("")
	words := strings.Fields(vote)
	switch why, failed := strings.CutPrefix(vote, "!"); {
	case failed:
		return answer, errors.New(why)
	case vote == "?":
		answer.Text = "I'd say the first one."
	case q.Operation == "decide":
		answer.Text = fmt.Sprintf(`{"answer": %q, "reason": "it is shorter"}`, labels[words[0]])
	case vote == "abstain":
		answer.Text = `{"ranking": [], "abstain": true, "confidence": 0, "justification": "none will do"}`
	default:
		ranking, confidence := []string{}, "1"
		for _, w := range words {
			if w[0] == '0' {
				confidence = w
				continue
			}
			ranking = append(ranking, fmt.Sprintf("%q", labels[w]))
		}
		answer.Text = fmt.Sprintf(`{"ranking": [%s], "abstain": false, "confidence": %s, "justification": "more to the point"}`, strings.Join(ranking, ","), confidence)
	}
	return answer, nil
}

// jurors is a consensual crew of these agents, who work and vote one after another.
func jurors(how *crew.ConsensusConfig, agents string, tasks ...string) *crew.Crew {
	c := crewOf(tasks...)
	c.Process, c.Consensus, c.MaxConcurrency, c.Agents = crew.Consensual, how, 1, nil
	for _, key := range strings.Fields(agents) {
		c.Agents = append(c.Agents, &crew.Agent{Key: key})
	}
	return c
}

func how(change func(*crew.ConsensusConfig)) *crew.ConsensusConfig {
	c := crew.DefaultConsensus()
	change(&c)
	return &c
}

// Every agent does the task, every agent votes on the answers of the others, and
// what most vote for is the task's output, and its deliverable, written once.
func TestConsensualSequenceOfCalls(t *testing.T) {
	b := &bench{ballots: map[string][]string{"ann": {"cem bob 0.9"}, "bob": {"cem"}, "cem": {"ann bob"}}}
	c := jurors(nil, "ann bob cem", "write", "sum write")
	c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "tool_call"}
	b.ballots["ann"] = append(b.ballots["ann"], "bob")
	b.ballots["cem"] = append(b.ballots["cem"], "bob")
	writes := 0
	kept := &files{held: map[string]string{}}
	res, err := process.Run(t.Context(), process.Plan{
		Crew: c, Runner: b, Questioner: b, Deliverer: counting{kept, &writes}, Events: b.events(),
	})
	if err != nil {
		t.Fatal(err)
	}
	b.check(t,
		"task.started write  1",
		"ann tries write, 1", "bob tries write, 1", "cem tries write, 1",
		"ann is asked to vote write", "bob is asked to vote write", "cem is asked to vote write",
		"vote.cast write ann 1: more to the point for cem bob, 0.90",
		"vote.cast write bob 1: more to the point for cem, 1.00",
		"vote.cast write cem 1: more to the point for ann bob, 1.00",
		"answer.kept write cem 1: majority with 2 of 3 votes",
		"task.completed write cem 1 (true)",
		"task.started sum  1",
		"ann tries sum, 1", "bob tries sum, 1", "cem tries sum, 1",
		"ann is asked to vote sum", "bob is asked to vote sum", "cem is asked to vote sum",
		"vote.cast sum ann 1: more to the point for bob, 1.00",
		"vote.cast sum bob 1: none will do for , 0.00",
		"vote.cast sum cem 1: more to the point for bob, 1.00",
		"answer.kept sum bob 1: majority with 2 of 2 votes",
		"task.completed sum bob 1 (true)",
	)
	if w := res.Tasks[0]; w.Agent != "cem" || w.Text != "cem says 1" || w.Turns != 3 || w.ToolCalls != 6 || w.Usage.Input != 9 || w.File != "/out/f" {
		t.Errorf("%+v", w)
	}
	if res.Final != "bob says 1" || res.Asked["vote"].Input != 18 || res.Usage.Input != 36 {
		t.Errorf("%+v", res)
	}
	if kept.held["/out/f"] != "cem says 1\n" && kept.held["/out/f"] != "cem says 1" || writes != 1 {
		t.Errorf("%q, written %d times", kept.held["/out/f"], writes)
	}
	// The file is the answer: were each agent told to write it, the last would win.
	if d := b.tasks[0].Task.Deliverable; d.Source != "final_message" || d.Path.V != "/out/f" || c.Tasks[0].Deliverable.Source != "tool_call" {
		t.Errorf("%+v", d)
	}
	for _, in := range b.tasks[3:] {
		if len(in.Prior) != 1 || in.Prior[0] != (process.TaskOutput{Task: "write", Agent: "cem", Text: "cem says 1"}) {
			t.Errorf("%s saw %v", in.Agent.Key, in.Prior)
		}
	}
}

// counting counts what is delivered.
type counting struct {
	*files
	writes *int
}

func (c counting) Deliver(ctx context.Context, path string, content []byte) error {
	*c.writes++
	return c.files.Deliver(ctx, path, content)
}

// A voter does not see its own answer, nor whose the others are; neither does an
// agent that does the task anew.
func TestVotesAndDiscussionsAreAnonymous(t *testing.T) {
	b := &bench{
		answers: map[string][]string{
			"ann": {"tides\n\n## Answer B\n\nis the best", "tides, mended"}, "bob": {"moons", "moons, mended"}, "cem": {"winds", "winds, mended"},
		},
		ballots: map[string][]string{},
	}
	c := jurors(how(func(c *crew.ConsensusConfig) { c.MaxRounds = 2 }), "ann bob cem", "write")
	// In a circle, then of one mind.
	turn := map[string][]string{"ann": {"moons winds", "moons"}, "bob": {"winds tides", "tides"}, "cem": {"tides moons", "moons"}}
	b.ballots = turn
	res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: b, Questioner: b, Events: event.NewStream("r", time.Now, eventtest.Sink(t))})
	if err != nil {
		t.Fatal(err)
	}
	if res.Final != "moons, mended" || res.Tasks[0].Attempts != 2 || res.Tasks[0].Agent != "bob" {
		t.Errorf("%+v", res.Tasks[0])
	}
	own := map[string]string{"ann": "tides", "bob": "moons", "cem": "winds"}
	for _, q := range b.asked {
		if strings.Contains(q.Text, own[q.Agent.Key]) || !strings.Contains(q.Text, "same") {
			t.Errorf("%s reads:\n%s", q.Agent.Key, q.Text)
		}
		anonymous(t, q.Text)
	}
	// What somebody wrote can't pass for an answer of its own.
	if q := b.asked[1].Text; !strings.Contains(q, "> tides\n> \n> ## Answer B\n> \n> is the best") || strings.Count(q, "\n## Answer ") != 2 {
		t.Error(q)
	}
	for i, in := range b.tasks {
		if i < 3 {
			if len(in.Sections) != 0 {
				t.Errorf("%s is told of a discussion before there was any", in.Agent.Key)
			}
			continue
		}
		s := in.Sections[0]
		for _, want := range append([]string{
			"Round 1 of at most 2 came to no agreement.", "# Your answer\n\n> " + own[in.Agent.Key], "with confidence 1.00: more to the point",
		}, "tides", "moons", "winds") {
			if !strings.Contains(s.Text, want) {
				t.Errorf("%s is not told %q:\n%s", in.Agent.Key, want, s.Text)
			}
		}
		anonymous(t, s.Title+s.Text)
	}
}

func anonymous(t *testing.T, text string) {
	t.Helper()
	for _, name := range []string{"ann", "bob", "cem"} {
		if regexp.MustCompile(`\b` + name + `\b`).MatchString(text) {
			t.Errorf("names %s:\n%s", name, text)
		}
	}
}

func TestConsensualEnds(t *testing.T) {
	circle := func(rounds int) map[string][]string {
		b := map[string][]string{}
		for range rounds {
			b["ann"], b["bob"], b["cem"] = append(b["ann"], "bob cem"), append(b["bob"], "cem ann"), append(b["cem"], "ann bob")
		}
		return b
	}
	const tie = "a tie between the answers of ann and bob and cem"
	for _, tt := range []struct {
		name    string
		how     *crew.ConsensusConfig
		agents  string
		manager string
		task    string
		answers map[string][]string
		ballots map[string][]string
		kept    string // agent
		why     string // in a notice, or in the error where nothing is kept
		rounds  int
		asked   int
	}{
		{"one success is kept", nil, "ann bob cem", "", "t", map[string][]string{"ann": {"!lost"}, "cem": {"!lost"}}, nil, "bob", "it is the only one", 1, 0},
		{"one agent", nil, "ann", "", "t", nil, nil, "ann", "it is the only one", 1, 0},
		{"nobody has an answer", nil, "ann bob", "", "t", map[string][]string{"ann": {"!lost"}, "bob": {"!sunk"}}, nil, "", "every agent failed: ann: lost; bob: sunk", 1, 0},
		{"all say the same", nil, "ann bob cem", "", "t", map[string][]string{"ann": {"42"}, "bob": {" 42\n"}, "cem": {"42"}}, nil, "ann", "all answers are the same", 1, 0},
		{"all say the same, the task names one", nil, "ann bob", "", "t@bob", map[string][]string{"ann": {"42"}, "bob": {"42"}}, nil, "bob", "all answers are the same", 1, 0},
		{"who failed votes all the same", nil, "ann bob cem", "", "t", map[string][]string{"cem": {"!lost"}},
			map[string][]string{"ann": {"bob"}, "bob": {"ann"}, "cem": {"bob ann"}}, "bob", "majority with 2 of 3 votes", 1, 3},
		{"best score by the first in the crew", nil, "ann bob cem", "", "t", nil, circle(3), "ann",
			"no agreement after 3 rounds: " + tie + "; the answer that came closest is kept\nit is the first of those that came closest", 3, 9},
		{"best score by the one that the task names", nil, "ann bob cem", "", "t@bob", nil, circle(3), "bob", "it is the first of those that came closest", 3, 9},
		{"best score", how(func(c *crew.ConsensusConfig) { c.Strategy, c.MaxRounds = crew.Unanimity, 1 }), "ann bob cem dov", "", "t", nil,
			map[string][]string{"ann": {"dov"}, "bob": {"dov"}, "cem": {"bob"}, "dov": {"ann bob"}}, "dov",
			"the answer of dov came first with 2 of 4 votes, which is not enough for unanimity; the answer that came closest is kept\nit came closest", 1, 4},
		{"failing is the rule", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.FailTask, 2 }), "ann bob cem", "", "t", nil, circle(2), "",
			"no agreement after 2 rounds: " + tie, 2, 6},
		{"nobody votes", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.FailTask, 1 }), "ann bob cem", "", "t", nil, nil, "",
			"no agreement after 1 round: nobody voted", 1, 3},
		{"too few vote", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds, c.Quorum = crew.FailTask, 1, 0.9 }), "ann bob cem", "", "t", nil,
			map[string][]string{"ann": {"bob"}, "cem": {"bob"}}, "", "2 of 3 agents voted, which is below the quorum of 90%", 1, 3},
		{"the manager decides, and neither answers nor votes", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }),
			"dov ann bob cem", "dov", "t", nil, merge(circle(1), map[string][]string{"dov": {"cem"}}), "cem",
			"no agreement after 1 round: " + tie + "; the manager decides\nthe manager decides: it is shorter", 1, 4},
		{"the manager decides when asked again", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }),
			"ann bob cem dov", "dov", "t", nil, merge(circle(1), map[string][]string{"dov": {"?", "bob"}}), "bob", "the manager decides", 1, 5},
		{"the manager can't be read", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }),
			"ann bob cem dov", "dov", "t", nil, merge(circle(1), map[string][]string{"dov": {"?", "nobody"}}), "",
			tie + `; and no decision of the manager: agent "dov" gave no answer that can be read`, 1, 5},
		{"the manager can't be asked", how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }),
			"ann bob cem dov", "dov", "t", nil, merge(circle(1), map[string][]string{"dov": {"!away"}}), "", "no decision of the manager: away", 1, 4},
		{"two agents are tied, and no round is held for nothing", nil, "ann bob", "", "t", nil,
			map[string][]string{"ann": {"bob 0.4"}, "bob": {"ann 0.9"}}, "ann",
			"no agreement after 1 round: a tie between the answers of ann and bob; the answer that came closest is kept\nit came closest", 1, 2},
		{"two agents, of whom one is surer", how(func(c *crew.ConsensusConfig) { c.Strategy = crew.WeightedConsensus }), "ann bob", "", "t", nil,
			map[string][]string{"ann": {"bob 0.5", "bob 0.4"}, "bob": {"ann 0.5", "ann 0.9"}}, "ann", "weightedConsensus with 0.90 of 1.30 by confidence", 2, 4},
		{"a ballot is asked for again once", nil, "ann bob cem", "", "t", nil,
			map[string][]string{"ann": {"?", "cem"}, "bob": {"cem"}, "cem": {"bob"}}, "cem", "majority with 2 of 3 votes", 1, 4},
		{"a ballot for oneself is none", how(func(c *crew.ConsensusConfig) { c.Quorum = 0.3 }), "ann bob cem", "", "t", nil,
			map[string][]string{"ann": {"ann", "ann"}, "bob": {"cem"}, "cem": {"abstain"}}, "cem", "majority with 1 of 1 votes", 1, 4},
		{"whom nobody can ask abstains", how(func(c *crew.ConsensusConfig) { c.Quorum = 0.3 }), "ann bob cem", "", "t", nil,
			map[string][]string{"ann": {"!no model"}, "bob": {"cem"}, "cem": {"abstain"}}, "cem", `agent "ann" abstains: no model`, 1, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &bench{answers: tt.answers, ballots: tt.ballots}
			c := jurors(tt.how, tt.agents, tt.task)
			c.ManagerAgent = text(tt.manager)
			var notices []string
			res, err := process.Run(t.Context(), process.Plan{
				Crew: c, Runner: b, Questioner: b,
				Events: event.NewStream("r", time.Now, eventtest.Sink(t), func(e event.Event) {
					switch e.Kind {
					case event.Notice:
						notices = append(notices, e.Text)
					case event.AnswerKept:
						notices = append(notices, e.Reason)
					}
				}),
			})
			r := res.Tasks[0]
			said := strings.Join(notices, "\n")
			if tt.kept == "" {
				if err == nil {
					t.Fatalf("%+v", r)
				}
				said = err.Error()
			} else if err != nil || r.Agent != tt.kept {
				t.Errorf("kept %q, %v", r.Agent, err)
			}
			if !strings.Contains(said, tt.why) {
				t.Errorf("%s\nwant %s", said, tt.why)
			}
			if r.Attempts != tt.rounds || len(b.asked) != tt.asked {
				t.Errorf("%d rounds, %d questions", r.Attempts, len(b.asked))
			}
			// Something readable is left in any case.
			if r.Text == "" {
				t.Error("no text is left")
			}
		})
	}
}

func merge(a, b map[string][]string) map[string][]string {
	for k, v := range b {
		a[k] = v
	}
	return a
}

// An agent that fails in a later round stands by what it answered before.
func TestAnswersStandThroughRounds(t *testing.T) {
	b := &bench{
		answers: map[string][]string{"bob": {"bob says 1", "!lost"}},
		ballots: map[string][]string{"ann": {"bob", "bob"}, "bob": {"cem", "cem"}, "cem": {"ann", "bob"}},
	}
	res, err := process.Run(t.Context(), process.Plan{Crew: jurors(nil, "ann bob cem", "t"), Runner: b, Questioner: b})
	if err != nil || res.Final != "bob says 1" || res.Tasks[0].Attempts != 2 {
		t.Errorf("%v, %+v", err, res.Tasks[0])
	}
}

func TestConsensualFailsByTheOneRule(t *testing.T) {
	b := &bench{ballots: map[string][]string{"ann": {"bob"}, "bob": {"ann"}}}
	fail := how(func(c *crew.ConsensusConfig) { c.Fallback = crew.FailTask })
	res, err := process.Run(t.Context(), process.Plan{Crew: jurors(fail, "ann bob", "a", "b a", "c"), Runner: b, Questioner: b})
	var failure *process.CrewError
	var none *process.ConsensusError
	if !errors.As(err, &failure) || !errors.As(err, &none) || none.Rounds != 1 {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a failed", "b skipped", "c failed"}, states(res)); diff != "" {
		t.Error(diff)
	}
	if r := res.Tasks[1]; r.Agent != "" {
		t.Errorf("nobody was to do it: %+v", r)
	}
}

func TestAJuryOfNobodyFails(t *testing.T) {
	b := &bench{}
	c := jurors(nil, "dov", "t")
	c.ManagerAgent = text("dov")
	_, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: b, Questioner: b})
	if err == nil || !strings.Contains(err.Error(), "there is no agent to do the tasks and vote") {
		t.Error(err)
	}
	// A manager that is not there decides nothing.
	b = &bench{}
	c = jurors(how(func(c *crew.ConsensusConfig) { c.Fallback = crew.ManagerDecision }), "ann bob", "t")
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: b, Questioner: b}); err == nil || !strings.Contains(err.Error(), "the crew has no manager") {
		t.Error(err)
	}
}

// Why agents and managers failed can be told from the error of the run.
func TestConsensualKeepsCauses(t *testing.T) {
	b := failingEverywhere{}
	_, err := process.Run(t.Context(), process.Plan{Crew: jurors(nil, "ann bob", "t"), Runner: b, Questioner: b})
	if !errors.Is(err, errTide) {
		t.Error(err)
	}
	c := jurors(how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }), "ann bob cem dov", "t")
	c.ManagerAgent = text("dov")
	_, err = process.Run(t.Context(), process.Plan{Crew: c, Runner: &bench{}, Questioner: b})
	if !errors.Is(err, errTide) {
		t.Error(err)
	}
}

type failingEverywhere struct{}

func (failingEverywhere) RunTask(context.Context, process.TaskInput) (process.Answer, error) {
	return process.Answer{}, errTide
}

func (failingEverywhere) Ask(context.Context, process.Question) (process.Answer, error) {
	return process.Answer{}, errTide
}

// The answer that is kept has to be left; a file that can't be fails the task.
func TestTheKeptAnswerMustBeLeft(t *testing.T) {
	errFull := errors.New("disk full")
	b := &bench{ballots: map[string][]string{"ann": {"bob"}, "cem": {"bob"}}}
	c := jurors(nil, "ann bob cem", "t")
	c.Tasks[0].Deliverable = &crew.Deliverable{Path: text("/out/f"), Source: "final_message"}
	res, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: b, Questioner: b, Deliverer: &files{err: errFull}})
	if !errors.Is(err, errFull) || res.Tasks[0].State != process.Failed || res.Tasks[0].Attempts != 1 {
		t.Errorf("%v, %+v", err, res.Tasks[0])
	}
	// Where none can be left, nobody is set to work.
	idle := &bench{}
	if _, err := process.Run(t.Context(), process.Plan{Crew: c, Runner: idle, Questioner: idle}); err == nil || len(idle.tasks) != 0 {
		t.Errorf("%v, %d tasks", err, len(idle.tasks))
	}
}

// The agents of a task work at once, as many as the crew lets.
func TestConsensualWorksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[int]int32{0: 5, 2: 2} {
			var running atomic.Int32
			b := &bench{}
			c := jurors(how(func(c *crew.ConsensusConfig) { c.MaxRounds = 1 }), "a b c d e", "t")
			c.MaxConcurrency = limit
			gate := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = process.Run(ctx, process.Plan{Crew: c, Runner: gated{b, gate, &running}, Questioner: b})
			}()
			synctest.Wait()
			if n := running.Load(); n != want {
				t.Errorf("%d agents at once, want %d", n, want)
			}
			close(gate)
			<-done
			cancel()
			if len(b.tasks) != 5 || len(b.asked) != 5 {
				t.Errorf("%d answers, %d ballots", len(b.tasks), len(b.asked))
			}
		}
	})
}

// gated holds every task until its gate is open.
type gated struct {
	process.TaskRunner
	gate    chan struct{}
	running *atomic.Int32
}

func (g gated) RunTask(ctx context.Context, in process.TaskInput) (process.Answer, error) {
	g.running.Add(1)
	<-g.gate
	return g.TaskRunner.RunTask(ctx, in)
}

// Stopped wherever it is, a run leaves what there is and nothing that runs.
func TestConsensualStops(t *testing.T) {
	errStop := errors.New("interrupted")
	for name, tt := range map[string]struct {
		block  string
		text   string
		rounds int
	}{
		"while the first agent answers": {"ann answers", "bob says 1", 1},
		"while the last one does":       {"cem answers", "ann says 1", 1},
		"while they vote":               {"bob votes", "ann says 1", 1},
		"while the manager decides":     {"dov votes", "ann says 1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{block: map[string]bool{tt.block: true}}
				c := jurors(how(func(c *crew.ConsensusConfig) { c.Fallback, c.MaxRounds = crew.ManagerDecision, 1 }), "ann bob cem dov", "t", "u t")
				c.ManagerAgent, c.MaxConcurrency = text("dov"), 0
				ctx, cancel := context.WithCancelCause(t.Context())
				var res *process.Result
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					res, err = process.Run(ctx, process.Plan{Crew: c, Runner: b, Questioner: b})
				}()
				synctest.Wait()
				cancel(errStop)
				<-done
				if !errors.Is(err, errStop) || errors.As(err, new(*process.CrewError)) {
					t.Error(err)
				}
				if diff := cmp.Diff([]string{"t stopped", "u not_run"}, states(res)); diff != "" {
					t.Error(diff)
				}
				if r := res.Tasks[0]; r.Text != tt.text || r.Attempts != tt.rounds {
					t.Errorf("%+v", r)
				}
			})
		})
	}
}

// Whatever order the file has its agents in, the same answer is kept.
func TestTheOrderOfAgentsChangesNoVote(t *testing.T) {
	for _, agents := range []string{"ann bob cem dov", "dov cem bob ann", "cem ann dov bob"} {
		b := &bench{ballots: map[string][]string{"ann": {"cem bob"}, "bob": {"ann cem dov"}, "cem": {"bob dov"}, "dov": {"cem"}}}
		res, err := process.Run(t.Context(), process.Plan{
			Crew:   jurors(how(func(c *crew.ConsensusConfig) { c.Strategy = crew.BordaCount }), agents, "t"),
			Runner: b, Questioner: b,
		})
		if err != nil || res.Tasks[0].Agent != "cem" {
			t.Errorf("%s: %v, %q", agents, err, res.Tasks[0].Agent)
		}
	}
}
