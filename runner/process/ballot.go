package process

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ballot is what an agent thinks of the answers of the others, which are known
// by the key of the agent that gave them.
type ballot struct {
	voter      string
	ranking    []string // best first; empty: it abstains
	confidence int      // in thousandths, so that sums do not depend on their order
	why        string
}

func (b ballot) abstains() bool { return len(b.ranking) == 0 }

// wholeConfidence is that of a ballot which does not say how sure it is.
const wholeConfidence = 1000

// labels hide who gave which answer. They are the same in every round of a task,
// and in every run of it, whatever the order of the agents.
type labels struct {
	task   string
	of     map[string]string // label by agent
	agents map[string]string // agent by label
}

func newLabels(task string, agents []string) labels {
	l := labels{task: task, of: make(map[string]string, len(agents)), agents: make(map[string]string, len(agents))}
	for i, a := range shuffled(agents, task) {
		name := letters(i)
		l.of[a], l.agents[name] = name, a
	}
	return l
}

// shuffled returns the keys in an order that looks like chance and depends on
// the seed and the keys alone.
func shuffled(keys []string, seed ...string) []string {
	sum := func(key string) string {
		h := sha256.Sum256([]byte(strings.Join(append(slices.Clone(seed), key), "\x00")))
		return string(h[:])
	}
	list := slices.Clone(keys)
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(strings.Compare(sum(a), sum(b)), strings.Compare(a, b)) })
	return list
}

// letters counts A, B, … Z, AA, AB, ….
func letters(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return letters(i/26-1) + letters(i%26)
}

// offered are the labels that an agent may rank, in the order in which it reads
// them: another one for each, as models favour what comes first.
func (l labels) offered(voter string, answered []string) []string {
	var names []string
	for _, a := range shuffled(answered, l.task, voter) {
		if a != voter {
			names = append(names, l.of[a])
		}
	}
	return names
}

// ballotSchema is what a ballot on these labels looks like.
func ballotSchema(offered []string) json.RawMessage {
	ranking := map[string]any{
		"type": "array", "uniqueItems": true, "items": map[string]any{"type": "string", "enum": slices.Sorted(slices.Values(offered))},
		"description": "the labels, best first; empty to abstain",
	}
	text, _ := json.Marshal(map[string]any{ // maps of strings encode, in the order of their keys
		"type": "object", "additionalProperties": false,
		"required": []string{"ranking", "abstain", "confidence", "justification"},
		"properties": map[string]any{
			"ranking":       ranking,
			"abstain":       map[string]any{"type": "boolean"},
			"confidence":    map[string]any{"type": "number", "minimum": 0, "maximum": 1},
			"justification": map[string]any{"type": "string"},
		},
	})
	return text
}

// ballotDoc is a ballot as it is written.
type ballotDoc struct {
	Ranking       []string `json:"ranking"`
	Abstain       bool     `json:"abstain"`
	Confidence    *float64 `json:"confidence"`
	Justification string   `json:"justification"`
}

// read makes a ballot of what a voter wrote. Its error says what is wrong with
// it, for the voter to read.
func (l labels) read(voter string, offered []string, doc ballotDoc) (ballot, error) {
	b := ballot{voter: voter, confidence: wholeConfidence, why: oneLine(doc.Justification)}
	if c := doc.Confidence; c != nil {
		if *c < 0 || *c > 1 {
			return ballot{}, fmt.Errorf("the confidence is %v; it must be between 0 and 1", *c)
		}
		b.confidence = int(*c*wholeConfidence + 0.5)
	}
	if doc.Abstain {
		return b, nil
	}
	if len(doc.Ranking) == 0 {
		return ballot{}, errors.New("it ranks nothing and does not abstain")
	}
	for _, written := range doc.Ranking {
		label := label(written)
		switch {
		case !slices.Contains(offered, label):
			return ballot{}, fmt.Errorf("%.40q is none of the answers to rank, which are %s", written, strings.Join(offered, ", "))
		case slices.Contains(b.ranking, l.agents[label]):
			return ballot{}, fmt.Errorf("it ranks %s twice", label)
		}
		b.ranking = append(b.ranking, l.agents[label])
	}
	return b, nil
}

// label reads a label that a model wrote.
func label(written string) string {
	name := strings.ToUpper(strings.TrimSpace(written))
	return strings.TrimSpace(strings.TrimPrefix(name, "ANSWER "))
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
