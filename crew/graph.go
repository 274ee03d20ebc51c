package crew

import (
	"fmt"
	"strings"

	"crewhost/config/strict"
)

// references checks that what the tasks and the crew name is there.
func (b *builder) references() {
	dependencies := ".dependencies"
	if b.crew.Format == CrewAI {
		dependencies = ".context"
	}
	agents, tasks := keys(b.crew.Agents, agentKey), keys(b.crew.Tasks, taskKey)
	isAgent, isTask := index(agents), index(tasks)
	dangling := func(t Text, at, kind string, known []string) {
		b.fail(t.Pos, CodeDanglingReference, fmt.Sprintf("%s: there is no %s %s", at, kind, strict.Quote(t.V)), strict.DidYouMean(t.V, known))
	}
	if m := b.crew.ManagerAgent; m.V != "" && !b.unread.agents {
		if _, ok := isAgent[m.V]; !ok {
			dangling(m, "managerAgent", "agent", agents)
		}
	}
	for _, t := range b.crew.Tasks {
		at := "tasks." + t.Key
		if a := t.Agent; a.V != "" && !b.unread.agents {
			if _, ok := isAgent[a.V]; !ok {
				dangling(a, at+".agent", "agent", agents)
			}
		}
		seen := map[string]bool{}
		var kept []Text
		for _, d := range t.Dependencies {
			_, ok := isTask[d.V]
			switch {
			case d.V == t.Key:
				b.fail(d.Pos, CodeDependencyCycle, at+": the task depends on itself", "")
			case seen[d.V]:
				b.fail(d.Pos, CodeDuplicateReference, fmt.Sprintf("%s: the dependency %s is there twice", at, strict.Quote(d.V)), "")
			case ok:
				kept = append(kept, d)
			case !b.unread.tasks:
				dangling(d, at+dependencies, "task", tasks)
			}
			seen[d.V] = true
		}
		t.Dependencies = kept
	}
}

// cycles reports tasks that wait for each other: one issue for each dependency
// that closes a cycle, in the order of the files.
func (b *builder) cycles() {
	const (
		unseen = iota
		open
		done
	)
	number := index(keys(b.crew.Tasks, taskKey))
	state := make([]int, len(b.crew.Tasks))
	var path []string
	var visit func(i int)
	visit = func(i int) {
		t := b.crew.Tasks[i]
		state[i] = open
		path = append(path, t.Key)
		for _, d := range t.Dependencies {
			switch j := number[d.V]; state[j] {
			case unseen:
				visit(j)
			case open:
				b.cycle(d, path)
			}
		}
		path = path[:len(path)-1]
		state[i] = done
	}
	for i := range b.crew.Tasks {
		if state[i] == unseen {
			visit(i)
		}
	}
}

// cycle reports that the last task of path depends on d, which is on path.
func (b *builder) cycle(d Text, path []string) {
	if len(b.issues) > maxIssues {
		return
	}
	start := len(path) - 1
	for path[start] != d.V {
		start--
	}
	around := path[start:]
	if n := len(around); n > 20 {
		around = append(append([]string{}, around[:10]...), fmt.Sprintf("(%d more)", n-20))
		around = append(around, path[len(path)-10:]...)
	}
	b.fail(d.Pos, CodeDependencyCycle, "tasks wait for each other: "+strings.Join(around, " → ")+" → "+d.V, "")
}

// processRules checks the keys that only some processes take.
func (b *builder) processRules(doc *crewDoc) {
	c := b.crew
	unknown := doc.Process.Set && fold(doc.Process.V) != string(c.Process) // an issue already
	switch {
	case c.Process == Hierarchical && !c.ManagerAgent.Set:
		b.fail(c.ProcessPos, strict.CodeMissing, "the hierarchical process needs managerAgent", "name the agent that hands out the tasks")
	case c.ManagerAgent.Set && c.Process != Hierarchical && c.Process != Consensual && !unknown:
		b.fail(c.ManagerAgent.Pos, CodeConflict, "managerAgent: the "+string(c.Process)+" process has no manager", "leave it out, or set process: hierarchical")
	}
	if doc.GraphConfig != nil && c.Process != Graph && !unknown {
		b.fail(doc.GraphConfig.Pos, CodeConflict, "graphConfig: the "+string(c.Process)+" process has no edges to bound", "leave it out, or set process: graph")
	}
	b.concurrencyRules(doc, unknown)
	b.hierarchicalRules(doc, unknown)
	b.consensusRules(doc, unknown)
	b.autonomousRules(doc, unknown)
	if c.MemoryProvider.Set && !c.Memory {
		b.fail(c.MemoryProvider.Pos, CodeConflict, "memoryProvider is given and memory is not true", "write memory: true")
	}
}

// concurrencyRules checks that what is to run at once can.
func (b *builder) concurrencyRules(doc *crewDoc, unknown bool) {
	c := b.crew
	if unknown {
		return
	}
	switch at := doc.MaxConcurrency; {
	case !at.Set, c.Process == Parallel, c.Process == Sequential, c.Process == Consensual: // whose agents work at once
	default:
		b.warn(at.Pos, CodeNoEffect, "maxConcurrency: the "+string(c.Process)+" process does one task at a time", "")
	}
	if c.Process == Sequential || c.Process == Parallel {
		return
	}
	for _, t := range c.Tasks {
		if t.Async {
			b.warn(t.Pos, CodeNoEffect, fmt.Sprintf("tasks.%s.asyncExecution is for the sequential process alone", t.Key), "")
		}
	}
}

func agentKey(a *Agent) string { return a.Key }
func taskKey(t *Task) string   { return t.Key }

func keys[T any](list []T, key func(T) string) []string {
	all := make([]string, len(list))
	for i, item := range list {
		all[i] = key(item)
	}
	return all
}

func index(keys []string) map[string]int {
	m := make(map[string]int, len(keys))
	for i, k := range keys {
		m[k] = i
	}
	return m
}
