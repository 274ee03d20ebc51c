package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
)

// tavily is the dialect of Tavily: a POST of JSON.
type tavily struct{}

func (tavily) request(ctx context.Context, base string, q inquiry) (*http.Request, error) {
	depth := "basic"
	if q.advanced {
		depth = "advanced"
	}
	body, err := json.Marshal(struct {
		Query   string   `json:"query"`
		Depth   string   `json:"search_depth"`
		Most    int      `json:"max_results"`
		Domains []string `json:"include_domains,omitempty"`
		Range   string   `json:"time_range,omitempty"`
	}{q.query, depth, q.most, q.domains, q.freshness})
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(base, "/search") {
		base += "/search"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func (tavily) findings(body []byte) ([]finding, error) {
	var doc struct {
		Results few[struct {
			Title, URL, Content string
			Date                string `json:"published_date"`
		}]
	}
	if err := decode(body, &doc); err != nil {
		return nil, err
	}
	var found []finding
	for _, r := range doc.Results {
		found = append(found, finding{r.Title, r.URL, r.Date, []string{r.Content}})
	}
	return found, nil
}

// complaint reads detail, which is a text or has one as its error.
func (tavily) complaint(body []byte) string {
	var doc struct{ Detail json.RawMessage }
	var detail struct{ Error string }
	var text string
	if decode(body, &doc) != nil {
		return ""
	}
	if json.Unmarshal(doc.Detail, &detail) == nil && detail.Error != "" {
		return detail.Error
	}
	_ = json.Unmarshal(doc.Detail, &text)
	return text
}
