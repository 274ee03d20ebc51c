package process

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLabelsDependOnKeysAlone(t *testing.T) {
	agents := []string{"ann", "bob", "cem", "dov"}
	l := newLabels("write", agents)
	mixed := []string{"dov", "bob", "ann", "cem"}
	if diff := cmp.Diff(l, newLabels("write", mixed), cmp.AllowUnexported(labels{})); diff != "" {
		t.Error(diff)
	}
	if !slices.Equal(l.offered("bob", agents), l.offered("bob", mixed)) {
		t.Error("the order of the answers depends on the order of the agents")
	}
	// Another task, another order; each voter has its own, and never itself in it.
	orders := map[string]bool{}
	for _, task := range []string{"write", "check", "sum", "plan", "test", "ship"} {
		l := newLabels(task, agents)
		orders[l.of["ann"]+l.of["bob"]+l.of["cem"]+l.of["dov"]] = true
		for _, a := range agents {
			if o := l.offered(a, agents); slices.Contains(o, l.of[a]) || len(o) != 3 {
				t.Errorf("%s may rank %v, and is %s", a, o, l.of[a])
			}
		}
	}
	if len(orders) < 2 {
		t.Error("labels are the same for every task")
	}
	many := newLabels("write", slices.Collect(func(yield func(string) bool) {
		for i := range 60 {
			if !yield(letters(i)) {
				return
			}
		}
	}))
	if len(many.agents) != 60 || many.agents["BH"] == "" {
		t.Errorf("%d labels", len(many.agents))
	}
}

// readBallot reads the ballot of y as a vote does.
func readBallot(l labels, offered []string, answer string) (b ballot, err error) {
	_, err = readAs(answer, func(doc ballotDoc) error {
		b, err = l.read("y", offered, doc)
		return err
	})
	return b, err
}

func TestReadBallot(t *testing.T) {
	l := labels{task: "t", of: map[string]string{"x": "A", "y": "B", "z": "C"}, agents: map[string]string{"A": "x", "B": "y", "C": "z"}}
	offered := []string{"C", "A"} // to y
	for _, tt := range []struct {
		answer string
		want   ballot
		err    string
	}{
		{`{"ranking":["A","C"],"abstain":false,"confidence":0.8,"justification":"A is\nshort"}`,
			ballot{voter: "y", ranking: []string{"x", "z"}, confidence: 800, why: "A is short"}, ""},
		{"My vote:\n```json\n{\"ranking\": [\"answer c\"]}\n```", ballot{voter: "y", ranking: []string{"z"}, confidence: 1000}, ""},
		{`{"ranking":[],"abstain":true,"confidence":0}`, ballot{voter: "y"}, ""},
		{`{"ranking":["A"],"abstain":true}`, ballot{voter: "y", confidence: 1000}, ""},
		{`{"note":1} {"ranking":["A"]}`, ballot{voter: "y", ranking: []string{"x"}, confidence: 1000}, ""},
		{"```\n{\"ranking\":[\"A\"]}\n```\nSo: {\"ranking\": [\"A\"]}", ballot{voter: "y", ranking: []string{"x"}, confidence: 1000}, ""},
		{`A says {"ranking":["A"]}, which is a trick. {"ranking":["C"]}`, ballot{}, "several JSON objects"},
		{`A, then C`, ballot{}, "no JSON object"},
		{`["A"]`, ballot{}, "no JSON object"},
		{`{"ranking":["B","A"]}`, ballot{}, `"B" is none of the answers to rank, which are C, A`},
		{`{"ranking":["A","a"]}`, ballot{}, "ranks A twice"},
		{`{"ranking":[]}`, ballot{}, "ranks nothing and does not abstain"},
		{`{"ranking":["A"],"confidence":85}`, ballot{}, "must be between 0 and 1"},
		{`{"ranking":"A"}`, ballot{}, "cannot unmarshal"},
	} {
		got, err := readBallot(l, offered, tt.answer)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.answer, err, tt.err)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(ballot{})); err != nil || diff != "" {
			t.Errorf("%s: %v %s", tt.answer, err, diff)
		}
	}
}

// What the schema allows can be read, and the other way round.
func TestBallotsAreReadByTheirSchema(t *testing.T) {
	schema, err := resolve(string(ballotSchema([]string{"C", "A"})))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`{"ranking":["A","C"],"abstain":false,"confidence":1,"justification":""}`: true,
		`{"ranking":[],"abstain":true,"confidence":0,"justification":"none"}`:     true,
		`{"ranking":["B"],"abstain":false,"confidence":1,"justification":""}`:     false,
		`{"ranking":["A","A"],"abstain":false,"confidence":1,"justification":""}`: false,
		`{"ranking":["A"],"abstain":false,"confidence":2,"justification":""}`:     false,
		`{"ranking":["A"]}`: false,
	} {
		if err := validate(schema, text); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	if !json.Valid(ballotSchema(nil)) {
		t.Error("no JSON")
	}
}

// A ballot is what a model wrote: whatever it is, it is read or refused, and
// holds to the rules when it is read.
func FuzzReadBallot(f *testing.F) {
	f.Add(`{"ranking":["A","C"],"abstain":false,"confidence":0.8,"justification":"x"}`)
	f.Add("```json\n{\"ranking\": [\"answer c\"]}\n```")
	f.Add(`{"ranking":["B"],"confidence":1e308}`)
	f.Add(`{"ranking":["A"],"confidence":-0}`)
	l := labels{task: "t", of: map[string]string{"x": "A", "y": "B", "z": "C"}, agents: map[string]string{"A": "x", "B": "y", "C": "z"}}
	f.Fuzz(func(t *testing.T, answer string) {
		b, err := readBallot(l, []string{"C", "A"}, answer)
		if err != nil {
			return
		}
		if slices.Contains(b.ranking, "y") || len(b.ranking) > 2 || b.confidence < 0 || b.confidence > wholeConfidence || strings.Contains(b.why, "\n") {
			t.Errorf("%+v", b)
		}
	})
}
