package process

import "context"

// parallel does each task as soon as those that it depends on have ended, at most
// the crew's maxConcurrency at once. A task sees the outputs of what it depends
// on, directly or not: whatever else is done by then, is so by chance.
func parallel(ctx context.Context, r *run) error {
	return r.each(ctx, r.atOnce(), once)
}

// atOnce is how many tasks may run at the same time.
func (r *run) atOnce() int {
	if n := r.plan.Crew.MaxConcurrency; n > 0 {
		return n
	}
	return defaultConcurrency
}

// defaultConcurrency is a number of conversations that vendors' rate limits for
// new accounts bear.
const defaultConcurrency = 8
