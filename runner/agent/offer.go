package agent

import (
	"crewhost/runner/llm"
)

// Offer is the tools of a task as its model gets to know them.
type Offer struct {
	// Names are what the host calls them, sorted; Tools and Texts are in this order.
	Names []string
	// Tools are as they are handed to the model's API, their names and schemas
	// fitted to it.
	Tools []llm.Tool
	// Texts are what the prompt says of them in place of that, where the model calls
	// in the text of its answers; else there are none. Lead is what it says of calling
	// before the first.
	Lead  string
	Texts []string
}

// Offer returns what [Loop.Run] would offer the model for a task, and asks nobody.
// Its errors are those of Run.
func (l *Loop) Offer(in Input) (Offer, error) {
	r, err := l.prepare(in)
	if err != nil {
		return Offer{}, err
	}
	o := Offer{Tools: r.set.offered}
	for _, h := range r.set.held {
		o.Names = append(o.Names, h.def.Name)
	}
	if r.settings.TextCalls && len(o.Tools) > 0 {
		o.Lead = calling
		for _, t := range o.Tools {
			o.Texts = append(o.Texts, inWords(t))
		}
	}
	return o, nil
}
