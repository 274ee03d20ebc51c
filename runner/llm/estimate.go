package llm

// bytesPerToken is about what the tokenizers of vendors come to, over prose and
// code.
const bytesPerToken = 4

// Used returns what an exchange used: what the vendor measured or, where it sent
// no figures, an estimate of a token for every four bytes of text.
func Used(req Request, res Response) Usage {
	if res.Usage.Measured {
		return res.Usage
	}
	input := len(req.System)
	for _, m := range req.Messages {
		input += m.bytes()
	}
	for _, t := range req.Tools {
		input += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return Usage{Input: EstimateTokens(input), Output: EstimateTokens(res.Message.bytes())}
}

// EstimateTokens guesses how many tokens so many bytes of text are.
func EstimateTokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// bytes is how much text m has.
func (m Message) bytes() int {
	n := len(m.Reasoning)
	for _, p := range m.Parts {
		n += len(p.Text)
	}
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}
