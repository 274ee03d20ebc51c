package runner

import (
	"context"

	"crewhost/tools"
	"crewhost/tools/permission"
)

// around stands between the guard and a tool, for each call that may be made. It is
// what [permission.Guard] has for that.
type around = func(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error)

// inward composes what stands around tools, the outermost first; nil ones are left
// out.
func inward(all ...around) around {
	var composed around
	for i := len(all) - 1; i >= 0; i-- {
		outer, inner := all[i], composed
		switch {
		case outer == nil:
		case inner == nil:
			composed = outer
		default:
			composed = func(ctx context.Context, o permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
				return outer(ctx, o, func(ctx context.Context) (tools.Result, error) { return inner(ctx, o, run) })
			}
		}
	}
	return composed
}

// around is what stands around the host's tools. What a run keeps of a call is what
// its model reads: so masking is further in than the run's steps.
func (h *Host) around() around {
	return inward(
		h.spanOfTool(),
		h.stepOfTool,
		h.maskResult,
		h.onlyLocked,
		h.trail.aroundTool(),
	)
}
