package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"crewhost/runner/llm"
)

// Sent returns how each tool stands in a request to the provider, in the API's own
// terms: what it takes of a model's context. The request is written by the adapter
// that would send it, and is not sent; no key is needed.
func (p Provider) Sent(ctx context.Context, c Config, offered []llm.Tool) ([]json.RawMessage, error) {
	if len(offered) == 0 {
		return nil, nil
	}
	var seen copyist
	none := 0
	c.HTTPClient, c.MaxRetries, c.Logger = &http.Client{Transport: &seen}, &none, nil
	if c.Key == "" {
		c.Key = "none"
	}
	if c.Model == "" {
		c.Model = "any"
	}
	m, err := p.Model(c)
	if err != nil {
		return nil, err
	}
	_, err = m.Generate(ctx, llm.Request{Messages: []llm.Message{llm.User("-")}, Tools: offered, MaxTokens: 1})
	var request struct {
		Tools []json.RawMessage `json:"tools"`
	}
	switch body := seen.first(); {
	case body == nil && err != nil:
		return nil, err
	case body == nil:
		return nil, errors.New("the adapter sent nothing")
	default:
		if err := json.Unmarshal(body, &request); err != nil {
			return nil, fmt.Errorf("reading the adapter's request: %w", err)
		}
	}
	if len(request.Tools) != len(offered) {
		return nil, fmt.Errorf("the adapter's request has %d tools in place of %d", len(request.Tools), len(offered))
	}
	return request.Tools, nil
}

// Dialect is the dialect of schemas in which the provider is asked.
func (p Provider) Dialect(c Config) llm.SchemaDialect {
	if c.Key == "" {
		c.Key = "none"
	}
	if m, err := p.Model(c); err == nil {
		return llm.DialectOf(m)
	}
	return llm.SchemaDialect{}
}

// copyist is a transport that keeps the first request and sends none.
type copyist struct {
	mu   sync.Mutex
	body []byte
}

// RoundTrip implements [http.RoundTripper].
func (c *copyist) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.body == nil {
		c.body = body
	}
	return nil, errNotSent
}

var errNotSent = errors.New("the request was to be written only")

func (c *copyist) first() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.body
}
