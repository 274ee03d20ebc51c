package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"crewhost/tools"
)

const (
	maxHead   = 1_800 // characters of a status and headers
	maxHeader = 400   // characters of one header
)

// head is the status of an answer, where it is from in the end, and those of its headers
// that an agent has use for, sorted. Cookies are nobody's to read.
func (a answer) head() string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s", a.status, http.StatusText(a.status))
	if a.moved {
		b.WriteString(", after a redirect to " + a.mask(shown(a.url)))
	}
	names := make([]string, 0, len(a.header))
	for name := range a.header {
		if useful(strings.ToLower(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "\n%s: %s", name, line(a.mask(strings.Join(a.header[name], ", ")), maxHeader))
	}
	return tools.Truncate(strings.TrimSpace(b.String()), maxHead) + "\n"
}

func useful(name string) bool {
	switch name {
	case "content-type", "content-length", "content-range", "content-language", "content-disposition", "content-location",
		"etag", "last-modified", "date", "age", "expires", "location", "link", "allow", "accept-ranges",
		"retry-after", "www-authenticate", "deprecation", "sunset", "warning", "x-request-id", "x-total-count", "x-total", "x-total-pages", "x-next-page":
		return true
	}
	return strings.HasPrefix(name, "x-ratelimit-") || strings.HasPrefix(name, "ratelimit")
}
