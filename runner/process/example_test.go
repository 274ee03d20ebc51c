package process_test

import (
	"context"
	"errors"
	"fmt"

	"crewhost/crew"
	"crewhost/runner/process"
)

// What depends on a failed task is skipped, everything else is done, and the
// error names both.
func ExampleRun() {
	c := &crew.Crew{
		Name:   text("paper"),
		Agents: []*crew.Agent{{Key: "writer"}},
		Tasks: []*crew.Task{
			{Key: "find"},
			{Key: "write", Dependencies: []crew.Text{text("find")}},
			{Key: "title"},
		},
	}
	runner := &worker{do: map[string]doing{
		"find": func(context.Context, process.TaskInput) (process.Answer, error) {
			return process.Answer{}, errors.New("no sources")
		},
	}}
	result, err := process.Run(context.Background(), process.Plan{Crew: c, Runner: runner})
	for _, t := range result.Tasks {
		fmt.Println(t.Task, t.State)
	}
	fmt.Println(err)
	// Output:
	// find failed
	// write skipped
	// title completed
	// crew "paper": task "find" failed: no sources; task "write" was skipped: task "find", on which it depends, failed
}
