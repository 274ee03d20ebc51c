package crew

import (
	"fmt"

	"crewhost/config/strict"
)

// DefaultReviews is how often a manager looks at one task's results where a crew
// says nothing of it.
const DefaultReviews = 3

// HierarchicalConfig is how the manager of the hierarchical process works.
type HierarchicalConfig struct {
	Pos Pos
	// MaxReviews is how many results of one task the manager reviews: one that it
	// turns down is done anew, and the last one fails the task. 0 means that it
	// hands tasks out and reviews nothing. [DefaultReviews] unless said.
	MaxReviews int
}

type hierarchicalDoc struct {
	Pos        Pos            `key:"@"`
	MaxReviews strict.At[int] `key:"maxReviews"`
}

func (b *builder) hierarchical(doc *hierarchicalDoc) *HierarchicalConfig {
	if doc == nil {
		return nil
	}
	return &HierarchicalConfig{
		Pos: doc.Pos, MaxReviews: orDefault(b.atLeast(doc.MaxReviews, 0, "hierarchical.maxReviews"), DefaultReviews),
	}
}

// hierarchicalRules checks that there is somebody to hand tasks to, and that no
// task expects the manager to do it.
func (b *builder) hierarchicalRules(doc *crewDoc, unknown bool) {
	c := b.crew
	if c.Process != Hierarchical {
		if doc.Hierarchical != nil && !unknown {
			b.fail(doc.Hierarchical.Pos, CodeConflict, "hierarchical: the "+string(c.Process)+" process has no manager at work", "leave it out, or set process: hierarchical")
		}
		return
	}
	manager := c.ManagerAgent
	if !manager.Set || b.unread.agents || c.Agent(manager.V) == nil {
		return
	}
	if len(c.Agents) == 1 {
		b.fail(manager.Pos, strict.CodeMissing, "the hierarchical process needs an agent beside managerAgent", "the manager hands tasks out and does none")
	}
	for _, t := range c.Tasks {
		if t.Agent.V == manager.V {
			b.warn(t.Agent.Pos, CodeNoEffect, fmt.Sprintf("tasks.%s.agent: %s is the manager, who does no task and chooses somebody for it", t.Key, strict.Quote(manager.V)), "")
		}
	}
}
