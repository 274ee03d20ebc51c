package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// brave is the dialect of Brave: a GET, and words that are marked by HTML.
type brave struct{}

func (brave) request(ctx context.Context, base string, q inquiry) (*http.Request, error) {
	query := q.query
	for i, d := range q.domains {
		switch i {
		case 0:
			query += " (site:" + d
		default:
			query += " OR site:" + d
		}
	}
	if len(q.domains) > 0 {
		query += ")"
	}
	values := url.Values{"q": {query}, "count": {strconv.Itoa(q.most)}, "text_decorations": {"false"}}
	if q.advanced {
		values.Set("extra_snippets", "true")
	}
	if q.freshness != "" {
		values.Set("freshness", "p"+q.freshness[:1])
	}
	if !strings.HasSuffix(base, "/web/search") {
		base += "/res/v1/web/search"
	}
	return http.NewRequestWithContext(ctx, http.MethodGet, base+"?"+values.Encode(), nil)
}

func (brave) findings(body []byte) ([]finding, error) {
	var doc struct {
		Web struct {
			Results few[struct {
				Title, URL, Description, Age string
				Date                         string   `json:"page_age"`
				More                         []string `json:"extra_snippets"`
			}]
		}
	}
	if err := decode(body, &doc); err != nil {
		return nil, err
	}
	var found []finding
	for _, r := range doc.Web.Results {
		if r.Date == "" {
			r.Date = r.Age
		}
		f := finding{unmarked(r.Title), r.URL, r.Date, []string{unmarked(r.Description)}}
		for _, m := range r.More {
			f.excerpts = append(f.excerpts, unmarked(m))
		}
		found = append(found, f)
	}
	return found, nil
}

func (brave) complaint(body []byte) string {
	var doc struct {
		Error struct{ Detail string }
	}
	_ = decode(body, &doc)
	return doc.Error.Detail
}

// unmarked is text that has tags and entities of HTML without them.
func unmarked(s string) string {
	const most = 32 << 10
	if len(s) > most {
		s = s[:most]
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}
