package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"crewhost/tools"
	"crewhost/tools/native"
)

const httpAPISchema = `{
  "type": "object",
  "properties": {
    "url": {
      "type": "string", "minLength": 1, "maxLength": 8000,
      "description": "Where to send the request, such as https://api.example.com/v1/items. https, unless an operator allows http for the host. No user or password in it."
    },
    "method": {
      "type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET",
      "description": "Method of the request."
    },
    "query": {
      "type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]},
      "description": "Parameters that are added to the query of the URL, encoded: {\"q\": \"a b\", \"limit\": 10}."
    },
    "headers": {
      "type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]},
      "description": "Headers of the request: {\"Accept\": \"text/csv\"}. Where the operator has a credential for the URL, it is sent without your doing, in place of an Authorization or a Cookie from here."
    },
    "body": {
      "type": ["string", "object", "array"], "items": {},
      "description": "Body of the request: a text as it is, or a JSON value, which is sent as JSON."
    },
    "content_type": {
      "type": "string",
      "description": "Content-Type of the body. By default application/json for a JSON value or a text that is one, or else text/plain; charset=utf-8."
    },
    "timeout_seconds": {
      "type": "integer", "minimum": 1, "maximum": 600,
      "description": "How many seconds to wait for the whole answer. The operator's limit, 30 by default, is the default and the most."
    },
    "save_to": {
      "type": "string",
      "description": "Path of a file in a mounted folder, such as /output/report.pdf, that gets the body of a successful answer byte for byte, in place of the result. For what is no text, and what is large. A body that repeats a credential of the operator's is not saved."
    },
    "max_length": {
      "type": "integer", "minimum": 1, "maximum": 30000, "default": 20000,
      "description": "How many characters of the body the result has at most."
    },
    "follow_redirects": {
      "type": "boolean", "default": true,
      "description": "Whether up to 10 redirects are followed. To another origin, your headers don't go, and only GET, HEAD and OPTIONS do."
    }
  },
  "required": ["url"],
  "additionalProperties": false
}`

// methods are the methods of http_api.
func methods() []string {
	return []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
}

func httpAPI(cfg Config) native.Tool {
	return native.Tool{
		Name: "http_api", Title: "Call an HTTP API",
		Description: "Sends an HTTP request and returns status, headers and body. Only hosts of the public internet can be reached, and what the operator allows besides. An answer whose status is not 2xx is a failure that has its body. For web pages to read, web_scrape is better.",
		Schema:      httpAPISchema, EffectOf: asks, Open: true,
		Run: func(ctx context.Context, _ tools.Call, args *native.Arguments) (tools.Result, error) {
			r := cfg.request(args)
			if res, bad := args.Fault(); bad {
				return res, nil
			}
			if r.saveTo != "" { // before anything is done in the world
				if err := cfg.FS.CanWrite(r.saveTo); err != nil {
					return native.Failuref("Nothing was sent: %v.", err), nil
				}
			}
			return cfg.call(ctx, r)
		},
	}
}

// asks is the effect of a call. PUT and DELETE may do no more when they are repeated at
// once; after what others have done meanwhile, they may.
func asks(arguments json.RawMessage) native.Effect {
	var args struct {
		Method *string         `json:"method"`
		SaveTo json.RawMessage `json:"save_to"`
	}
	switch err := json.Unmarshal(arguments, &args); {
	case err != nil:
		return native.Once
	case args.Method != nil && *args.Method != "" && !safe(strings.ToUpper(*args.Method)):
		return native.Once
	case len(args.SaveTo) > 0 && string(args.SaveTo) != "null":
		return native.Repeatable
	}
	return native.ReadOnly
}

// apiRequest is a call of http_api.
type apiRequest struct {
	method  string
	url     *url.URL
	header  http.Header
	body    []byte
	timeout time.Duration
	saveTo  string
	length  int
	follow  bool
}

// request takes the arguments.
func (c Config) request(args *native.Arguments) apiRequest {
	r := apiRequest{
		url: address(args), header: make(http.Header), saveTo: args.Text("save_to", ""),
		length: args.Integer("max_length", defaultLength, 1, maxLength),
		follow: !args.Has("follow_redirects") || args.Flag("follow_redirects"),
	}
	r.method = strings.ToUpper(args.Text("method", ""))
	if r.method == "" {
		r.method = http.MethodGet
	}
	if !slices.Contains(methods(), r.method) {
		args.Note("the argument %q is %q, and must be one of %s", "method", native.Shorten(r.method), strings.Join(methods(), ", "))
	}
	r.timeout = c.Timeout
	if args.Has("timeout_seconds") {
		r.timeout = min(c.Timeout, time.Duration(args.Integer("timeout_seconds", 1, 1, 600))*time.Second)
	}
	for _, h := range args.Object("headers") {
		switch why := unsent(h.Name, h.Text); {
		case strings.EqualFold(h.Name, "Accept-Encoding"): // the client unpacks what it asked for itself
		case why != "":
			args.Note("the header %q %s", native.Shorten(h.Name), why)
		default:
			r.header.Set(h.Name, h.Text)
		}
	}
	if query := args.Object("query"); len(query) > 0 && r.url != nil {
		values := make(url.Values, len(query))
		for _, q := range query {
			values.Set(q.Name, q.Text)
		}
		if r.url.RawQuery != "" {
			r.url.RawQuery += "&"
		}
		r.url.RawQuery += values.Encode()
	}
	kind := "text/plain; charset=utf-8"
	if raw := bytes.TrimSpace(args.Raw("body")); len(raw) > 0 {
		var text string
		switch {
		case json.Unmarshal(raw, &text) == nil:
			r.body = []byte(text)
			if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
				if json.Valid(r.body) {
					kind = "application/json"
				}
			}
		default:
			r.body, kind = raw, "application/json"
		}
		if r.method == http.MethodHead && len(r.body) > 0 {
			args.Note("a request of the method HEAD has no body")
		}
	}
	if own := args.Text("content_type", ""); own != "" {
		if !httpguts.ValidHeaderFieldValue(own) {
			args.Note("the content_type can't stand in a header")
		}
		r.header.Set("Content-Type", own)
	} else if len(r.body) > 0 && r.header.Get("Content-Type") == "" {
		r.header.Set("Content-Type", kind)
	}
	return r
}

// unsent says why a header of a model's is not sent; empty: it is.
func unsent(name, value string) string {
	lower := strings.ToLower(name)
	switch {
	case !httpguts.ValidHeaderFieldName(name):
		return "is no name of a header"
	case !httpguts.ValidHeaderFieldValue(value):
		return "has a value that can't stand in a header: it has a line break or the like"
	case len(value) > 16<<10:
		return "has a value that is too long"
	case strings.HasPrefix(lower, "proxy-"):
		return "belongs to the connection and can't be set"
	}
	switch lower {
	case "host", "content-length", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "expect":
		return "belongs to the connection and can't be set"
	}
	return ""
}

// call carries a request out.
func (c Config) call(ctx context.Context, r apiRequest) (tools.Result, error) {
	within, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(within, r.method, r.url.String(), bytes.NewReader(r.body))
	if err != nil {
		return native.Failuref("The url is not a URL."), nil
	}
	req.Header = r.header
	a, err := c.exchange(c.Client, req, r.follow)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(within.Err(), context.DeadlineExceeded):
		text := fmt.Sprintf("%s did not answer in full within %v and was given up.", shown(r.url), r.timeout)
		if !safe(r.method) {
			text += " Whether it did what it was asked, nobody knows: look before you ask again."
		}
		return tools.Failure(text), nil
	case err != nil:
		return failed(ctx, "http_api", err)
	case r.saveTo != "" && a.good():
		return c.save(ctx, r, a)
	}
	return c.result(r, a), nil
}

// result is the answer as a model reads it.
func (c Config) result(r apiRequest, a answer) tools.Result {
	var b strings.Builder
	b.WriteString(a.head())
	note := ""
	if location := a.header.Get("Location"); a.status >= 300 && a.status <= 399 && location != "" {
		note = "[The redirect was not followed: " + whyNot(r) + "]\n"
	}
	text, ok := a.text()
	switch {
	case len(a.body) == 0:
		b.WriteString("\n(no body)\n")
	case !ok:
		fmt.Fprintf(&b, "\n[The body is no text: %s, %s. %s]\n", kindOf(a), size(a, c.MaxBytes), "To keep it, give save_to, the path of a file in a mounted folder.")
	default:
		piece, cut := part(clean(strings.ReplaceAll(text, "\r\n", "\n")), 0, r.length, fmt.Sprintf("For more, give max_length, at most %d, or save_to, and read the file in parts.", maxLength))
		b.WriteString("\n" + piece)
		if cut != "" {
			b.WriteString("\n" + cut)
		}
		if a.more {
			fmt.Fprintf(&b, "\n[The body is longer than %d bytes, and no more was read: tools.web.bytes in the settings is the limit.]", c.MaxBytes)
		}
		b.WriteString("\n")
	}
	res := tools.Text(strings.TrimRight(b.String()+note, "\n"))
	res.IsError = !a.good() && (r.follow || a.status < 300 || a.status > 399)
	return res
}

// whyNot says why a redirect was not followed.
func whyNot(r apiRequest) string {
	if !r.follow {
		return "follow_redirects is false."
	}
	return "it leads to another origin, and " + r.method + " is not repeated there. Call it yourself if that is what you want."
}

// save writes the body into a file of a mount.
func (c Config) save(ctx context.Context, r apiRequest, a answer) (tools.Result, error) {
	if a.more {
		return native.Failuref("%s was not written: the body is longer than %d bytes, the limit that tools.web.bytes of the settings sets.\n%s", r.saveTo, c.MaxBytes, a.head()), nil
	}
	if a.confides() {
		return native.Failuref("The request was answered, and the body was not written to %s: it repeats a credential of the operator's. Without save_to, it is returned, and the credential is masked.\n%s", r.saveTo, a.head()), nil
	}
	if ctx.Err() != nil {
		return tools.Result{}, native.Ended(ctx, "http_api")
	}
	err := c.FS.MkdirAll(path.Dir(path.Clean(r.saveTo)))
	if err == nil {
		err = c.FS.WriteFile(r.saveTo, a.body)
	}
	if err != nil {
		return native.Failuref("The request was answered, and the body was not written: %v.\n%s", err, a.head()), nil
	}
	info, err := c.FS.Stat(r.saveTo)
	if err != nil {
		return tools.Failure(err.Error()), nil
	}
	return tools.Text(fmt.Sprintf("%s\nThe body is in %s: %s, %s.", a.head(), info.Path, kindOf(a), native.Plural(len(a.body), "byte", "bytes"))), nil
}

// confides reports whether the body has a secret of the operator's in it.
func (a answer) confides() bool {
	text, _ := a.decoded()
	return a.mask(text) != text || a.mask(string(a.body)) != string(a.body)
}

// kindOf is the media type of the body in words.
func kindOf(a answer) string {
	kind := a.kind()
	if kind == "" {
		kind = http.DetectContentType(a.body)
	}
	if packed := a.header.Get("Content-Encoding"); packed != "" {
		kind += ", packed by " + packed
	}
	return line(kind, 100)
}

// size is how long the body is, in words.
func size(a answer, limit int64) string {
	if a.more {
		return fmt.Sprintf("more than %d bytes", limit)
	}
	return native.Plural(len(a.body), "byte", "bytes")
}
