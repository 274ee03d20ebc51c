package agent_test

import (
	"context"
	"fmt"

	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
)

// A model without intelligence answers with its prompt, which shows what an
// agent without tools is told.
func ExampleLoop_Run() {
	loop, err := agent.New(agent.Config{
		Models: func(string) (llm.Model, agent.Settings, error) { return llm.Echo{}, agent.Settings{}, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	writer := &crew.Agent{Key: "writer", Role: text("a writer"), Goal: text("be clear"), MaxIter: 5}
	write := &crew.Task{Key: "write", Description: text("Write about tides."), ExpectedOutput: text("One line.")}
	out, err := loop.Run(context.Background(), agent.Input{Crew: &crew.Crew{}, Agent: writer, Task: write})
	fmt.Println(out.Text, err)
	// Output:
	// # Task
	//
	// Write about tides.
	//
	// # Expected output
	//
	// One line. <nil>
}
