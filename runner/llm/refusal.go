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
	maxParam    = 100            // bytes of the name of a field
	maxAskedFor = 24 * time.Hour // a longer Retry-After is taken for this
)

// refusal reads a response that is no success. Vendors and compatible servers
// differ in the form of the body; what is understood of it is used.
func refusal(status int, header http.Header, body []byte) *APIError {
	e := &APIError{Status: status, RetryAfter: retryAfter(header, time.Now())}
	f := readFault(body)
	e.Code, e.Message, e.Param = f.code, f.message, f.param
	if e.RetryAfter == 0 {
		e.RetryAfter = f.retry
	}
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
	f := readFault(body)
	e := &APIError{Code: f.code, Message: f.message, Param: f.param, RetryAfter: f.retry}
	if f.status > 0 {
		e.Status = f.status
		e.Temporary = mayPass(f.status)
		if f.code == strconv.Itoa(f.status) {
			e.Code = "" // it says the same
		}
	}
	return e
}

// mayPass reports whether a refusal with the status may pass by itself.
func mayPass(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusConflict ||
		status == http.StatusTooManyRequests || status >= 500
}

// fault is the body of a refusal, in any of the forms that vendors have for it:
// {"error": {"message", "code", "type", "param"}}, {"error": "text"}, {"message"},
// {"detail"}, the first of a list of these, or else the body's own text.
type fault struct {
	code, message, param string
	status               int           // where the code is an HTTP status, 0 where it is none
	retry                time.Duration // 0: it does not say
}

func readFault(body []byte) fault {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 { // Gemini's
		body = list[0]
	}
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
		Code    json.RawMessage `json:"code"`
		Param   json.RawMessage `json:"param"`
	}
	if json.Unmarshal(body, &top) != nil {
		text := string(body)
		if strings.Contains(text, "<html") || strings.Contains(text, "<HTML") {
			return fault{} // a proxy's page says nothing that the status does not
		}
		return fault{message: text}
	}
	var inner struct {
		Message json.RawMessage `json:"message"`
		Code    json.RawMessage `json:"code"`
		Type    json.RawMessage `json:"type"`
		Param   json.RawMessage `json:"param"`
		Status  json.RawMessage `json:"status"` // Gemini's word beside a number as code
		Details []struct {
			RetryDelay string `json:"retryDelay"` // Gemini's
		} `json:"details"`
	}
	f := fault{code: scalar(top.Code), param: scalar(top.Param)}
	_ = json.Unmarshal(top.Error, &inner) // what was read of it is used
	for _, code := range []json.RawMessage{inner.Type, inner.Code} {
		if text := scalar(code); text != "" {
			f.code = text
		}
	}
	if n, err := strconv.Atoi(f.code); err == nil && n >= 400 && n <= 599 {
		f.status = n
		if word := scalar(inner.Status); word != "" {
			f.code = word
		}
	}
	if param := scalar(inner.Param); param != "" {
		f.param = param
	}
	if len(f.param) > maxParam {
		f.param = ""
	}
	for _, d := range inner.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			f.retry = min(wait, maxAskedFor)
		}
	}
	for _, raw := range []json.RawMessage{inner.Message, top.Error, top.Message, top.Detail} {
		if f.message = scalar(raw); f.message != "" {
			return f
		}
	}
	f.message = string(body)
	return f
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
