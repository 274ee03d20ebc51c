package llm_test

import (
	"testing"

	"crewhost/runner/llm"
)

func TestTooLong(t *testing.T) {
	for _, tt := range []struct {
		status  int
		code    string
		message string
		want    bool
	}{
		{400, "context_length_exceeded", "", true},
		{0, "context_length_exceeded", "", true}, // within a stream
		{400, "exceed_context_size_error", "the request exceeds the available context size", true},
		{413, "request_too_large", "Request exceeds the maximum size", true},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", true},
		{400, "BadRequestError", "This model's maximum context length is 4096 tokens. However, you requested 5000", true},
		{400, "3051", "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", true},
		{400, "INVALID_ARGUMENT", "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", true},
		{400, "", "input length exceeds the context length", true},
		{400, "invalid_request_error", "max_tokens is too large", false},
		{400, "invalid_request_error", "the role of the context message is unknown", false},
		{429, "rate_limit_exceeded", "prompt is too long for your tier", false},
		{500, "", "maximum context length", false},
	} {
		e := &llm.APIError{Status: tt.status, Code: tt.code, Message: tt.message}
		if e.TooLong() != tt.want {
			t.Errorf("%+v: want %v", e, tt.want)
		}
	}
}
