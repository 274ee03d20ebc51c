package process

import (
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = make(map[string]llm.Usage)
	}
	r.asked[q.Operation] = r.asked[q.Operation].Add(answer.Usage)
	if r.budget != nil {
		used := answer.Usage
		if !used.Measured {
			used = llm.Usage{Input: llm.EstimateTokens(len(q.Text)), Output: llm.EstimateTokens(len(answer.Text))}
		}
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

// query puts a question and reads the answer: the first JSON object in it that
// reads as a T and that check has nothing against. Where there is none, the agent
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

// readAs finds the first JSON object in an answer that is a T by its own rules
// and by check's.
func readAs[T any](answer string, check func(T) error) (T, error) {
	var none T
	var bad error
	for _, c := range candidates(answer) {
		if c[0] != '{' {
			continue
		}
		var read T
		err := json.Unmarshal([]byte(c), &read)
		if err == nil {
			err = check(read)
		}
		if err == nil {
			return read, nil
		}
		if bad == nil {
			bad = err
		}
	}
	if bad == nil {
		bad = errors.New("it holds no JSON object")
	}
	return none, bad
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
