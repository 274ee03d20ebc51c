package llm

import "context"

// Embedder turns texts into vectors whose nearness is that of the texts'
// meanings. Implementations must be safe for concurrent use.
type Embedder interface {
	// Embed returns a vector for each text, in order, all of one length, which
	// is never 0. An empty model is the embedder's own. However many texts there
	// are, the vendor's limits of one request are kept; no texts are no request.
	// A blank text is an error, since vendors refuse it. Errors are those of
	// [Model.Generate]: a refusal of the vendor is an [*APIError].
	Embed(ctx context.Context, model string, texts []string) ([][]float32, Usage, error)
}
