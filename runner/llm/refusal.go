package llm

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
)

const (
	maxMessage  = 500            // runes of a refusal's message
	maxAskedFor = 24 * time.Hour // a longer Retry-After is taken for this
)

// refusal reads a response that is no success. Vendors and compatible servers
// differ in the form of the body; what is understood of it is used.
func refusal(status int, header http.Header, body []byte) *APIError {
	e := &APIError{Status: status, RetryAfter: retryAfter(header, time.Now())}
	e.Code, e.Message = faultText(body)
	if e.Message == "" {
		e.Message = http.StatusText(status)
	}
	if to := header.Get("Location"); to != "" && status >= 300 && status < 400 {
		e.Message = "redirected, which is not followed; set the base URL to where the server is"
	}
	switch {
	case header.Get("X-Should-Retry") == "true":
		e.Temporary = true
	case header.Get("X-Should-Retry") == "false", e.Code == "insufficient_quota":
	default:
		e.Temporary = mayPass(status)
	}
	return e
}

// Refusal reads a body that says an error although its status said success, as
// some servers send it within a stream. It may be tried again where the vendor's
// code is an HTTP status that may be.
func Refusal(body []byte) *APIError {
	code, message := faultText(body)
	e := &APIError{Code: code, Message: message}
	if status, err := strconv.Atoi(code); err == nil && status >= 400 && status <= 599 {
		e.Status, e.Code = status, ""
		e.Temporary = mayPass(status)
	}
	return e
}

// mayPass reports whether a refusal with the status may pass by itself.
func mayPass(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= 500
}

// faultText finds the vendor's code and message in the body of a refusal: in
// {"error": {"message", "code", "type"}}, {"error": "text"}, {"message"},
// {"detail"}, or else the body's own text.
func faultText(body []byte) (code, message string) {
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &top) != nil {
		text := string(body)
		if strings.Contains(text, "<html") || strings.Contains(text, "<HTML") {
			return "", "" // a proxy's page says nothing that the status does not
		}
		return "", text
	}
	var fault struct {
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
	}
	if json.Unmarshal(top.Error, &fault) == nil {
		if code = scalar(fault.Code); code == "" {
			code = scalar(fault.Type)
		}
		if message = scalar(fault.Message); message != "" {
			return code, message
		}
	}
	for _, raw := range []json.RawMessage{top.Error, top.Message, top.Detail} {
		if message = scalar(raw); message != "" {
			return code, message
		}
	}
	return code, string(body)
}

// scalar returns the text of a JSON string or number, and "" of anything else.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// retryAfter is how long the vendor asks to wait, 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, ok := number(h.Get("Retry-After-Ms")); ok {
		return span(ms, time.Millisecond)
	}
	value := h.Get("Retry-After")
	if seconds, ok := number(value); ok {
		return span(seconds, time.Second)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxAskedFor)
	}
	return 0
}

func number(s string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return n, err == nil && !math.IsNaN(n)
}

func span(n float64, unit time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxAskedFor)))
}

// oneLine makes s fit for a line of a log.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	n := 0
	for i := range s {
		if n++; n > maxMessage {
			return s[:i] + "…"
		}
	}
	return s
}
