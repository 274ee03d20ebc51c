package llm

import (
	"net/http"
	"regexp"
)

// tooLong is how vendors that have no code for it say that a request does not fit
// into a model's context: Anthropic, vLLM and what is built on it, Mistral, Gemini,
// Ollama.
var tooLong = regexp.MustCompile(`(?i)prompt is too long|(maximum|exceeds? the( model'?s?)?( maximum)?) context (length|window)|` +
	`context (length|window) (of|is|exceeded)|input token count .*exceeds|input length .*exceeds|exceeds? the (available )?context size`)

// TooLong reports whether the vendor refused the request because it does not fit
// into the model's context, so that a shorter one may.
func (e *APIError) TooLong() bool {
	switch e.Code {
	case "context_length_exceeded", "exceed_context_size_error", "context_window_exceeded":
		return true
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return e.Status == http.StatusRequestEntityTooLarge || tooLong.MatchString(e.Message)
	}
	return false
}
