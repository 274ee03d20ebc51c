package process

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"crewhost/runner/llm"
)

// ask puts a question to an agent and keeps account of what it cost.
func (r *run) ask(ctx context.Context, q Question) (Answer, error) {
	if r.plan.Questioner == nil {
		return Answer{}, fmt.Errorf("asking agent %q: the plan has no questioner", q.Agent.Key)
	}
	answer, err := r.plan.Questioner.Ask(ctx, q)
	used := answer.Usage
	if !used.Measured {
		used = llm.Usage{Input: llm.EstimateTokens(len(q.Text)), Output: llm.EstimateTokens(len(answer.Text))}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = make(map[string]llm.Usage)
	}
	r.asked[q.Operation] = r.asked[q.Operation].Add(answer.Usage)
	r.drawn = r.drawn.Add(used)
	if r.budget != nil {
		err = cmp.Or(r.budget.Spent(used), err)
	}
	return answer, err
}

// UnreadableError says that an agent's answers to a question could not be read.
type UnreadableError struct {
	Agent     string // key
	Operation string
	Err       error // what is wrong with the last answer
}

// Error says whose answer it was and what is wrong with it.
func (e *UnreadableError) Error() string {
	return fmt.Sprintf("agent %q gave no answer that can be read (%s), also when asked again: %v", e.Agent, e.Operation, e.Err)
}

// Unwrap returns what is wrong with the last answer.
func (e *UnreadableError) Unwrap() error { return e.Err }

// query puts a question and reads the answer: the JSON object in it that reads as a
// T and that check has nothing against. Where there is none, or more than one, the agent
// is told why and asked once more; after that the error is an [*UnreadableError].
func query[T any](ctx context.Context, r *run, q Question, check func(T) error) (T, error) {
	text := q.Text
	var bad error
	for range 2 {
		answer, err := r.ask(ctx, q)
		if err != nil {
			var none T
			return none, err
		}
		read, err := readAs(answer.Text, check)
		if err == nil {
			return read, nil
		}
		bad = err
		q.Text = fmt.Sprintf("%s\n\n# Your last answer can't be taken\n\n%s\n\nIt was:\n\n%s", text, err, shorten(answer.Text, 4_000))
	}
	var none T
	return none, &UnreadableError{Agent: q.Agent.Key, Operation: q.Operation, Err: bad}
}

// readAs finds the JSON object in an answer that is a T by its own rules and by
// check's. Where there are several that differ, it is none of them: a model that
// weighs what somebody wrote may quote it, a ballot or an approval in it as well.
func readAs[T any](answer string, check func(T) error) (T, error) {
	var none, read T
	var bad error
	found := ""
	for _, c := range candidates(answer) {
		if c[0] != '{' {
			continue
		}
		var one T
		err := json.Unmarshal([]byte(c), &one)
		if err == nil {
			err = check(one)
		}
		var plain bytes.Buffer
		_ = json.Compact(&plain, []byte(c)) // candidates are JSON
		switch {
		case err != nil:
			bad = cmp.Or(bad, err)
		case found == "":
			read, found = one, plain.String()
		case found != plain.String():
			return none, errors.New("it holds several JSON objects that could be the answer; write one, and nothing else")
		}
	}
	if found != "" {
		return read, check(read) // once more: what the last check left behind may be of another
	}
	return none, cmp.Or(bad, errors.New("it holds no JSON object"))
}

// shorten returns the first characters of a text, and says how many it leaves out.
func shorten(text string, characters int) string {
	n := 0
	for i := range text {
		if n == characters {
			rest := len([]rune(text[i:]))
			return fmt.Sprintf("%s\n[%d more characters]", text[:i], rest)
		}
		n++
	}
	return text
}
