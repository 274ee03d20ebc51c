package config

import (
	"slices"
	"strings"
	"time"

	"crewhost/config/strict"
)

// Serving is what a host says of itself to MCP clients, and what it lets them ask
// (I9, I10, I11).
type Serving struct {
	Name, Version string // told to clients; empty: the host's own

	RequestBytes       int           // of one message
	ConcurrentRequests int           // and open streams, together
	ResponseBytes      int           // of one answer
	MetadataBytes      int           // of a message's _meta, and of HTTP headers
	PageSize           int           // of lists; at most 100
	Grace              time.Duration // for answers after the end of input, and for cleaning up
	SubscriptionBuffer int           // events that wait for one stream
	Subscribers        int           // streams and sessions that listen
	SubscribedURIs     int           // resources that one of them watches
	Keepalive          time.Duration // between signs of life on an open stream
	SearchThreshold    int           // tools above which a search stands in for their list; 0: never
	SearchResults      int           // of one search
	SearchCalls        int           // at a time for one client
	SearchBytes        int           // of the output of a search, and of a call by it
}

// servingDefaults are those of [Serving], as a part of the lowest layer.
const servingDefaults = `
  serving:
    request_bytes: 1048576
    concurrent_requests: 32
    response_bytes: 4194304
    metadata_bytes: 65536
    page_size: 50
    grace: 5s
    subscription_buffer: 64
    subscribers: 1024
    subscribed_uris: 64
    keepalive: 15s
    search_threshold: 0
    search_results: 20
    search_calls: 5
    search_bytes: 262144
`

type servingDocument struct {
	Name    strict.At[word] `key:"name"`
	Version strict.At[word] `key:"version"`
	BudgetDocument
}

// BudgetDocument is the budgets as they are written. It is exported for reflection.
type BudgetDocument struct {
	RequestBytes       count         `key:"request_bytes"`
	ConcurrentRequests count         `key:"concurrent_requests"`
	ResponseBytes      count         `key:"response_bytes"`
	MetadataBytes      count         `key:"metadata_bytes"`
	PageSize           pageSize      `key:"page_size"`
	Grace              time.Duration `key:"grace"`
	SubscriptionBuffer count         `key:"subscription_buffer"`
	Subscribers        count         `key:"subscribers"`
	SubscribedURIs     count         `key:"subscribed_uris"`
	Keepalive          time.Duration `key:"keepalive"`
	SearchThreshold    natural       `key:"search_threshold"`
	SearchResults      count         `key:"search_results"`
	SearchCalls        count         `key:"search_calls"`
	SearchBytes        count         `key:"search_bytes"`
}

// pageSize is how many entries a page of a list may have (I9).
type pageSize int

const maxPageSize = 100

// UnmarshalNode implements [strict.Unmarshaler].
func (p *pageSize) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	*p = pageSize(number(d, n, 1, maxPageSize))
}

func (doc servingDocument) serving() Serving {
	return Serving{
		Name:               string(doc.Name.V),
		Version:            string(doc.Version.V),
		RequestBytes:       int(doc.RequestBytes),
		ConcurrentRequests: int(doc.ConcurrentRequests),
		ResponseBytes:      int(doc.ResponseBytes),
		MetadataBytes:      int(doc.MetadataBytes),
		PageSize:           int(doc.PageSize),
		Grace:              doc.Grace,
		SubscriptionBuffer: int(doc.SubscriptionBuffer),
		Subscribers:        int(doc.Subscribers),
		SubscribedURIs:     int(doc.SubscribedURIs),
		Keepalive:          doc.Keepalive,
		SearchThreshold:    int(doc.SearchThreshold),
		SearchResults:      int(doc.SearchResults),
		SearchCalls:        int(doc.SearchCalls),
		SearchBytes:        int(doc.SearchBytes),
	}
}

// budgetPrefix begins the short names of the variables for budgets (I9):
// CREWHOST_MCP_PAGE_SIZE is CREWHOST_MCP__SERVING__PAGE_SIZE.
const budgetPrefix = variablePrefix + "MCP_"

// budget returns the path of the setting that a variable's short name stands for.
func budget(variable string) (path []string, ok bool) {
	key, ok := strings.CutPrefix(variable, budgetPrefix)
	if key = strings.ToLower(key); !ok || !slices.Contains(strict.Keys[BudgetDocument](), key) {
		return nil, false
	}
	return []string{"mcp", "serving", key}, true
}
