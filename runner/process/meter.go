package process

import (
	"fmt"
	"sync"

	"crewhost/crew"
	"crewhost/runner/llm"
)

// The axes of a budget, by their keys in the crew.
const (
	axisToolCalls = "toolCalls"
	axisDepth     = "depth"
	axisWallTime  = "wallTime"
	axisTokens    = "tokens"
	axisSpawns    = "spawns"
)

// BudgetError says that more was wanted than the budget of an autonomous run has.
// It is the Cause of a [CrewError] where all tasks draw on what is used up: tool
// calls, tokens and time. Otherwise it fails its task.
type BudgetError struct {
	Axis  string // its key in the crew
	Limit string
}

// Error names the axis and its limit.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the budget is used up: autonomous.budget.%s (%s)", e.Axis, e.Limit)
}

// shared reports whether all tasks draw on what is used up.
func (e *BudgetError) shared() bool { return e.Axis != axisDepth && e.Axis != axisSpawns }

// meter counts what a run uses of its budget.
type meter struct {
	limit crew.Budget

	mu     sync.Mutex
	calls  int
	tokens int
	spawns int
}

// Call implements [Budget].
func (m *meter) Call() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls >= m.limit.ToolCalls {
		return &BudgetError{axisToolCalls, fmt.Sprint(m.limit.ToolCalls)}
	}
	m.calls++
	return nil
}

// Spent implements [Budget]. A request is over before its tokens are known, so the
// last one may go beyond the limit by its own.
func (m *meter) Spent(u llm.Usage) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tokens += u.Input + u.Output
	if m.tokens > m.limit.Tokens {
		return &BudgetError{axisTokens, fmt.Sprint(m.limit.Tokens)}
	}
	return nil
}

// Delegate implements [Budget].
func (m *meter) Delegate(depth int) error {
	if depth > m.limit.Depth {
		return &BudgetError{axisDepth, fmt.Sprint(m.limit.Depth)}
	}
	return nil
}

// spawn takes one specialist off the budget.
func (m *meter) spawn() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spawns++
}

// maySpawn is an error where no specialist is left.
func (m *meter) maySpawn() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spawns >= m.limit.Spawns {
		return &BudgetError{axisSpawns, fmt.Sprint(m.limit.Spawns)}
	}
	return nil
}

// left says what is left, for the planner.
func (m *meter) left() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprintf("%d of %d calls of tools, %d of %d tokens, %d of %d specialists",
		m.limit.ToolCalls-m.calls, m.limit.ToolCalls, max(0, m.limit.Tokens-m.tokens), m.limit.Tokens, m.limit.Spawns-m.spawns, m.limit.Spawns)
}

// deeper is the budget of work that was handed on so many times already.
type deeper struct {
	Budget
	by int
}

// Delegate implements [Budget].
func (d deeper) Delegate(depth int) error { return d.Budget.Delegate(d.by + depth) }
