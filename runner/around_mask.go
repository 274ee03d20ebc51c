package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"strings"

	"crewhost/config/secret"
	"crewhost/runner/journal"
	"crewhost/tools"
	"crewhost/tools/permission"
)

// maskResult takes the secrets of the settings out of what a tool gives back, before
// anything sees it: a model, events, the journal. A server that repeats its own key, a
// file that holds one and an endpoint that echoes its headers hand it to nobody.
// Tokens that only look like secrets stay: agents may have to work with them.
func (h *Host) maskResult(ctx context.Context, _ permission.Observation, run func(context.Context) (tools.Result, error)) (tools.Result, error) {
	res, err := run(ctx)
	known := h.cfg.Redactor.RedactKnown
	return masked(res, known), maskedError(err, known)
}

// masked is a result in which each text is masked. What it was made of is left alone.
func masked(res tools.Result, mask func(string) string) tools.Result {
	if len(res.Content) > 0 {
		content := make([]tools.Content, len(res.Content))
		for i, c := range res.Content {
			c.Text, c.URI, c.Name = mask(c.Text), mask(c.URI), mask(c.Name)
			c.Raw = maskedJSON(c.Raw, mask)
			if len(c.Data) > 0 && isText(c.MIME) {
				c.Data = []byte(mask(string(c.Data)))
			}
			content[i] = c
		}
		res.Content = content
	}
	res.Structured = maskedJSON(res.Structured, mask)
	return res
}

// isText reports whether bytes of a MIME type are text: others may hold the bytes of a
// secret by chance, and would be broken without them.
func isText(kind string) bool {
	kind, _, err := mime.ParseMediaType(kind)
	if err != nil {
		return false
	}
	_, sub, _ := strings.Cut(kind, "/")
	if i := strings.LastIndexByte(sub, '+'); i >= 0 {
		sub = sub[i+1:]
	}
	switch sub {
	case "json", "xml", "yaml", "x-yaml", "toml", "javascript", "x-sh", "sql", "x-www-form-urlencoded", "jsonl", "x-ndjson":
		return true
	}
	return strings.HasPrefix(kind, "text/")
}

// maskedJSON is JSON with its texts masked, and of its numbers those that are a secret:
// a mask stands in their place.
func maskedJSON(raw json.RawMessage, mask func(string) string) json.RawMessage {
	raw = journal.Mask(raw, mask)
	var out []byte
	done := 0
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '"':
			for i++; i < len(raw) && raw[i] != '"'; i++ {
				if raw[i] == '\\' {
					i++
				}
			}
			i++
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(raw) && bytes.IndexByte([]byte("+-.0123456789eE"), raw[end]) >= 0 {
				end++
			}
			if number := string(raw[i:end]); mask(number) != number {
				out = append(append(out, raw[done:i]...), `"`+secret.Mask+`"`...)
				done = end
			}
			i = end
		default:
			i++
		}
	}
	if out == nil {
		return raw
	}
	return append(out, raw[done:]...)
}

// maskedError is an error whose text is masked, and that is of the same code.
func maskedError(err error, mask func(string) string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if mask(text) == text {
		return err
	}
	if known := (*tools.Error)(nil); errors.As(err, &known) {
		own := *known
		own.Detail, own.Err = mask(own.Detail), nil
		if known.Err != nil {
			own.Err = errors.New(mask(known.Err.Error()))
		}
		return &own
	}
	return errors.New(mask(text))
}
