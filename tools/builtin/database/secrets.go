package database

import (
	"net/url"
	"slices"
	"strings"
)

// Secrets returns the passwords in a connection string of the settings, as they are and
// as they stand there, so that they can be masked wherever they turn up. It finds them in
// all forms that a [Connection] takes.
func Secrets(source string) []string {
	var found []string
	if _, rest, isURL := strings.Cut(source, "://"); isURL {
		rest, query, _ := strings.Cut(rest, "?")
		if at := strings.LastIndexByte(rest, '@'); at >= 0 {
			_, raw, _ := strings.Cut(rest[:at], ":")
			found = append(found, raw)
			if password, err := url.PathUnescape(raw); err == nil {
				found = append(found, password)
			}
		}
		for pair := range strings.SplitSeq(query, "&") {
			if key, raw, _ := strings.Cut(pair, "="); isPassword(normalKey(key)) {
				found = append(found, raw)
				if password, err := url.QueryUnescape(raw); err == nil {
					found = append(found, password)
				}
			}
		}
	} else {
		pairs, _ := adoPairs(source) // none of what is not like them
		for _, p := range pairs {
			if isPassword(p.key) {
				found = append(found, p.value)
			}
		}
		if at := strings.LastIndexByte(source[:max(0, strings.LastIndexByte(source, '/'))], '@'); at >= 0 && len(found) == 0 {
			_, password, _ := strings.Cut(source[:at], ":") // user:password@tcp(host)/db
			found = append(found, password)
		}
	}
	found = slices.DeleteFunc(found, func(s string) bool { return s == "" })
	slices.Sort(found)
	return slices.Compact(found)
}

func isPassword(key string) bool { return key == "password" || key == "pwd" || key == "sslpassword" }
