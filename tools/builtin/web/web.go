// Package web has the tools that speak HTTP: http_api, web_scrape, web_search and github.
//
// Where a request may go, and what credential of the operator's goes with it, the
// [http.Client] decides that a tool is given, for each connection and each redirect. The
// tools never make another, and see no credential.
//
// What comes back is a stranger's: no more of it is read than [Config] says, for no
// longer, and what reaches a model is text without what nobody would see in it.
package web

import (
	"net/http"
	"time"

	"crewhost/tools/mount"
	"crewhost/tools/native"
)

// Config is what the tools work with.
type Config struct {
	// Client carries the requests of http_api and web_scrape. Nil: they say that nothing
	// can be reached.
	Client *http.Client
	// Mask takes the secrets of the operator's out of what a server says back. That is
	// done before anything is cut, or a model would get one in pieces, and to what is
	// kept in a file. Nil: there are none.
	Mask func(string) string
	// FS is where bodies are kept that are asked for as files; nil holds no mount.
	FS *mount.FS
	// Timeout bounds a call; zero is half a minute. MaxBytes bounds what is read of one
	// answer; zero is 8 MiB.
	Timeout  time.Duration
	MaxBytes int64
	// Search is where web_search looks.
	Search Search
	// GitHub is where github looks.
	GitHub GitHub
}

// Search is a provider of web_search.
type Search struct {
	Provider string       // tavily or brave
	URL      string       // of its API; empty: the provider's own
	Client   *http.Client // puts the key in; nil: no provider is set
}

// GitHub is an API of GitHub's kind.
type GitHub struct {
	URL    string       // empty: https://api.github.com
	Client *http.Client // puts a token in, where there is one
}

// Tools returns the tools.
func Tools(cfg Config) []native.Tool {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 30 * time.Second
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 8 << 20
	}
	if cfg.Mask == nil {
		cfg.Mask = func(s string) string { return s }
	}
	return []native.Tool{httpAPI(cfg), webScrape(cfg), webSearch(cfg), gitHub(cfg)}
}

// Endpoint is the URL of the provider's API; empty where it is not known.
func (s Search) Endpoint() string {
	switch {
	case s.URL != "":
		return s.URL
	case s.Provider == "tavily":
		return "https://api.tavily.com"
	case s.Provider == "brave":
		return "https://api.search.brave.com"
	}
	return ""
}

// API is the URL of the API.
func (g GitHub) API() string {
	if g.URL != "" {
		return g.URL
	}
	return "https://api.github.com"
}
