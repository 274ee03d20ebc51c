package agent

import (
	"fmt"
	"strings"

	"crewhost/runner/llm"
)

// What the model is told where its turn is no answer and no proper call: each may
// happen a few times only.

// handBackCut tells the model that none of the calls in a cut turn was run:
// their arguments may look complete and not be (K71).
func (r *run) handBackCut(msg llm.Message, said string, written []textCall) error {
	r.cuts++
	r.pending = ReasonCut
	r.pieces, r.continued = "", 0
	if r.cuts > cutCalls {
		return fail(ReasonCut, "the model's calls were cut at the token limit %d times in a row; none of them was run; raise maxTokens", r.cuts)
	}
	r.notice("the model's answer was cut at the token limit; its %d calls are not run", len(msg.Calls)+len(written))
	// Without its calls, the turn's signed parts would be out of place too.
	if strings.TrimSpace(said) != "" {
		r.history.add(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{{Text: said}}})
	}
	calls := msg.Calls
	for _, w := range written {
		calls = append(calls, llm.ToolCall{Name: w.name})
	}
	r.history.add(llm.User(fmt.Sprintf(
		"Your last turn was cut at the token limit while you called %s. Nothing was run, because a cut call may be incomplete. Call again, and shorter: less text, smaller arguments, one call at a time.",
		callNames(calls))))
	return nil
}

// goOn asks for the rest of an answer that was cut.
func (r *run) goOn(msg llm.Message, blank bool) error {
	if !blank {
		r.pieces += msg.Text()
	}
	r.pending = ReasonCut
	r.continued++
	if r.continued > r.limits.Continuations {
		return fail(ReasonCut, "the answer was cut at the token limit and is not complete after %d continuations; raise maxTokens", r.limits.Continuations)
	}
	r.notice("the answer was cut at the token limit; asking for the rest")
	if !blank {
		r.history.add(msg)
	}
	r.history.add(llm.User("Your answer was cut at the token limit. Go on exactly where it stops; repeat nothing and add no remark."))
	return nil
}

// askAgain asks for an answer in text, first plainly, then firmly (K75).
func (r *run) askAgain() error {
	r.pending = ReasonEmptyAnswer
	r.empties++
	if r.empties > emptyAnswers {
		return r.emptyAnswer()
	}
	r.notice("the model's answer is empty; asking again, without tools")
	r.toolFree = true
	nudge := "Your answer had no text. Write your final answer to the task now, as plain text, from what you have."
	if r.empties > 1 {
		nudge = "There is still no text in your answer. Call no tool, and write no markup of a call. Answer the task in a few plain sentences; if you can't do it, say in one sentence why."
	}
	r.history.add(llm.User(nudge))
	return nil
}

func (r *run) emptyAnswer() *TaskError {
	return fail(ReasonEmptyAnswer,
		"the model gave no answer in text, also when asked again; a reasoning model may need a larger maxTokens, or less thinking")
}

// mimicsCall reports whether a text that was to be an answer is the markup of a
// call, as models write it when they may not call.
func mimicsCall(text string) bool {
	text = strings.ToLower(strings.TrimSpace(text))
	for _, mark := range []string{"<tool_call", "<invoke", "<function_call", "[tool_call]", "<｜"} {
		if strings.HasPrefix(text, mark) {
			return true
		}
	}
	return false
}
