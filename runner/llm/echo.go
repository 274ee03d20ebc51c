package llm

import "context"

// Echo is a model without intelligence: it answers every request with the text
// of the last user's message, calls no tool and measures no tokens. It is for
// trying a crew offline. The zero value is ready for use.
type Echo struct{}

// Generate returns the last user's message, or an empty answer if there is
// none. It fails only if ctx has ended.
func (Echo) Generate(ctx context.Context, req Request) (*Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var text string
	for _, m := range req.Messages {
		if m.Role == RoleUser {
			text = m.Text()
		}
	}
	if req.OnDelta != nil && text != "" {
		req.OnDelta(Delta{Text: text})
	}
	return &Response{
		Message: Message{Role: RoleAssistant, Parts: []Part{{Text: text}}},
		Stop:    StopEnd,
		Model:   "echo",
	}, nil
}
