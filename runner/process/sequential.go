package process

import "context"

// sequential does the tasks one after another. A task with asyncExecution runs
// beside those that follow it, and what depends on it waits.
//
// Each task waits for the last one before it that is not asynchronous. So it sees
// the outputs of all of those, and of the asynchronous tasks that it, or one of
// them, had to wait for.
func sequential(ctx context.Context, r *run) error {
	var last *slot
	async := false // a task before is asynchronous
	for _, s := range r.slots {
		s.after, s.lined = last, last != nil && !async
		if async = async || s.task.Async; !s.task.Async {
			last = s
		}
	}
	return r.each(ctx, r.atOnce(), once)
}

// once is the plain way to do a task: its agent tries it one time. A task's
// failure is no failure of the process.
func once(ctx context.Context, s *slot) error {
	_, _ = s.try(ctx, attempt{by: s.agent}) // the result says it
	return nil
}
