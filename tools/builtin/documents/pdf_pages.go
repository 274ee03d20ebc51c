package documents

import (
	"fmt"
	"strconv"
	"strings"
)

// pageSpan is a run of pages, both ends included. An end may be lastPage.
type pageSpan struct{ from, to int }

const (
	lastPage = -1
	maxSpans = 100
)

// parsePages reads a range of pages such as 1-3,7,last or 10-.
func parsePages(text string) ([]pageSpan, error) {
	var spans []pageSpan
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		first, second, is := strings.Cut(part, "-")
		from, err := parsePage(first, 1)
		to := from
		if err == nil && is {
			to, err = parsePage(second, lastPage)
		}
		switch {
		case err != nil || part == "" || part == "-":
			return nil, fmt.Errorf("%.40q is no page and no range of pages", part)
		case from > to && to != lastPage || from == lastPage && to != lastPage:
			return nil, fmt.Errorf("%.40q ends before it begins", part)
		case len(spans) == maxSpans:
			return nil, fmt.Errorf("it has more than %d parts", maxSpans)
		}
		spans = append(spans, pageSpan{from, to})
	}
	return spans, nil
}

func parsePage(text string, empty int) (int, error) {
	switch text = strings.TrimSpace(text); text {
	case "":
		return empty, nil
	case "last":
		return lastPage, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no page", text)
	}
	return int(n), nil
}

// within returns the spans as they are in a file of so many pages. A span that begins
// behind its end is an error; one that only ends there is shortened.
func within(spans []pageSpan, pages int) ([]pageSpan, error) {
	var found []pageSpan
	for _, s := range spans {
		if s.from == lastPage {
			s.from = pages
		}
		if s.to == lastPage || s.to > pages {
			s.to = pages
		}
		if s.from > pages {
			return nil, fmt.Errorf("there is no page %d: the last one is %d", s.from, pages)
		}
		found = append(found, s)
	}
	return found, nil
}
