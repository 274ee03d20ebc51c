package replay_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"crewhost/runner/llm"
	"crewhost/runner/llm/replay"
)

// A tape written by hand, and a request that is not on it.
func ExampleRead() {
	const text = `
{"tape":"crewhost","version":1}
{"note":"the first question","match":{"contains":["capital","Norway"],"turn":0},"response":{"message":{"parts":[{"text":"Oslo."}]}}}
{"match":{"contains":["how many people"]},"response":{"message":{"parts":[{"text":"Some 700,000."}]}}}
`
	tape, err := replay.Read(strings.NewReader(text), "tape.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, question := range []string{"What is the capital of Norway?", "What is it known for?"} {
		res, err := tape.Generate(context.Background(), llm.Request{Messages: []llm.Message{llm.User(question)}})
		var divergence *replay.DivergenceError
		if errors.As(err, &divergence) {
			fmt.Println(err)
			fmt.Println(divergence.Diff)
			return
		}
		fmt.Println(res.Message.Text())
	}
	// Output:
	// Oslo.
	// tape tape.jsonl: no record answers the request (1 of 2 are unused); the nearest is tape.jsonl:4
	//   the request does not contain "how many people"
	// the request:
	// {
	//   "messages": [
	//     {
	//       "parts": [
	//         {
	//           "text": "What is it known for?"
	//         }
	//       ],
	//       "role": "user"
	//     }
	//   ]
	// }
}
