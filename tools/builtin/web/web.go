// Package web has the tools that speak HTTP: http_api, web_scrape, web_search and github.
// Where a request may go, the [http.Client] that they are given decides, for each
// connection and each redirect; the tools never make another.
package web

import (
	"net/http"
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Config is what the tools work with.
type Config struct {
	// Client carries the requests and admits where they go. It follows no proxy of the
	// environment. Nil: each tool says that nothing can be reached.
	Client *http.Client
	// FS is where bodies are kept that are asked for as files; nil holds no mount.
	FS *mount.FS
	// Timeout bounds a call; MaxBytes what is read of one answer.
	Timeout  time.Duration
	MaxBytes int64
	// Authorize puts the operator's credential for its URL, if there is one, into a
	// request of http_api or web_scrape; no agent sees it. It is asked again for each
	// redirect. Nil: there are none.
	Authorize func(*http.Request) error
	// Search is where web_search looks; a nil Authorize means that no provider is set.
	Search Search
	// GitHub is where github looks.
	GitHub GitHub
}

// Search is a provider of web_search.
type Search struct {
	Provider  string // tavily or brave
	URL       string // of its API; empty: the provider's own
	Authorize func(*http.Request) error
}

// GitHub is an API of GitHub's kind.
type GitHub struct {
	URL       string                    // empty: https://api.github.com
	Authorize func(*http.Request) error // nil: anonymous
}

// Tools returns the tools.
func Tools(Config) []native.Tool { return nil }
