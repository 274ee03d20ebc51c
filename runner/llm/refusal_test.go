package llm

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestFaultText(t *testing.T) {
	for _, tt := range []struct{ body, code, message string }{
		{`{"error":{"message":"m","type":"t","code":"c"}}`, "c", "m"},
		{`{"error":{"message":"m","type":"t","code":null}}`, "t", "m"},
		{`{"error":{"message":"m","code":1301}}`, "1301", "m"},
		{`{"type":"error","error":{"type":"t","message":"m"}}`, "t", "m"},
		{`{"error":"m"}`, "", "m"},
		{`{"message":"m"}`, "", "m"},
		{`{"detail":"m"}`, "", "m"},
		{`{"detail":[{"loc":["body"]}]}`, "", `{"detail":[{"loc":["body"]}]}`},
		{`[]`, "", "[]"},
		{`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]`, "INVALID_ARGUMENT", "m"}, // Gemini
		{`{"code":"c","error":"m"}`, "c", "m"},                                                          // xAI
		{`{"object":"error","message":"m","type":"t","code":"c"}`, "c", "m"},                            // Mistral
		{`busy`, "", "busy"},
		{`<!doctype html><html>`, "", ""},
		{``, "", ""},
	} {
		if f := readFault([]byte(tt.body)); f.code != tt.code || f.message != tt.message {
			t.Errorf("%s: %q, %q; want %q, %q", tt.body, f.code, f.message, tt.code, tt.message)
		}
	}
}

func TestFaultNamesFieldAndWait(t *testing.T) {
	for _, tt := range []struct {
		body, param string
		retry       time.Duration
	}{
		{`{"error":{"message":"m","param":"temperature"}}`, "temperature", 0},
		{`{"message":"m","param":"top_p"}`, "top_p", 0},
		{`{"error":{"message":"m","param":{"a":1}}}`, "", 0},
		{`{"error":{"message":"m","param":"` + strings.Repeat("a", 101) + `"}}`, "", 0},
		{`[{"error":{"message":"m","details":[{},{"retryDelay":"36s"}]}}]`, "", 36 * time.Second},
		{`{"error":{"message":"m","details":[{"retryDelay":"-1s"},{"retryDelay":"soon"}]}}`, "", 0},
		{`{"error":{"message":"m","details":[{"retryDelay":"999h"}]}}`, "", maxAskedFor},
	} {
		if f := readFault([]byte(tt.body)); f.param != tt.param || f.retry != tt.retry || f.message != "m" {
			t.Errorf("%s: %+v", tt.body, f)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		header, value string
		want          time.Duration
	}{
		{"Retry-After", "7", 7 * time.Second},
		{"Retry-After", "0.25", 250 * time.Millisecond},
		{"Retry-After", "-3", 0},
		{"Retry-After", "1e300", 24 * time.Hour},
		{"Retry-After", "NaN", 0},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:35 GMT", 30 * time.Second},
		{"Retry-After", "Fri, 02 Jan 2026 03:04:00 GMT", 0},
		{"Retry-After", "Fri, 02 Jan 2099 03:04:00 GMT", 24 * time.Hour},
		{"Retry-After", "soon", 0},
		{"Retry-After-Ms", "1500", 1500 * time.Millisecond},
		{"X-Other", "7", 0},
	} {
		h := http.Header{}
		h.Set(tt.header, tt.value)
		if got := retryAfter(h, now); got != tt.want {
			t.Errorf("%s: %s: %v, want %v", tt.header, tt.value, got, tt.want)
		}
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"a":                      "a",
		" a\n\tb\x1b[31m\u202ec": "a b [31m c",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := oneLine(strings.Repeat("ö", 2000)); utf8.RuneCountInString(got) != maxMessage+1 || !utf8.ValidString(got) {
		t.Errorf("%d runes", utf8.RuneCountInString(got))
	}
}

func TestBackoffGrowsToItsCap(t *testing.T) {
	for n := range 200 {
		full := longestWait
		if n < 6 {
			full = firstWait << n
		}
		if got := backoff(n); got > full || got < full*3/4 {
			t.Errorf("wait %d: %v, want %v to %v", n, got, full*3/4, full)
		}
	}
}

// FuzzRefusal: whatever a server sends, there is one line of bounded length.
func FuzzRefusal(f *testing.F) {
	f.Add(500, []byte(`{"error":{"message":"m\n","code":{}}}`), "7")
	f.Add(302, []byte("\xff\x00"), "Fri, 02 Jan 2026 03:04:35 GMT")
	f.Fuzz(func(t *testing.T, status int, body []byte, wait string) {
		x := Exchange{Provider: "p", Secret: "secret-key"}
		err := x.failure(refusal(status, http.Header{"Retry-After": {wait}}, body), nil, false)
		if strings.ContainsAny(err.Message, "\n\r\x00") || utf8.RuneCountInString(err.Message) > maxMessage+1 {
			t.Errorf("message %q", err.Message)
		}
		if strings.Contains(err.Error(), "secret-key") {
			t.Errorf("the key shows: %s", err)
		}
		if err.RetryAfter < 0 || err.RetryAfter > maxAskedFor {
			t.Errorf("wait %v", err.RetryAfter)
		}
	})
}
