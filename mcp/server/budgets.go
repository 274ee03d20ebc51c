package server

import (
	"errors"
	"fmt"
	"time"
)

// MaxPageSize is the largest page that may be asked for in settings (I9).
const MaxPageSize = 100

// number is a budget that counts: its place, its name in errors, its default.
type number struct {
	at    *int
	name  string
	value int
}

func (b *Budgets) numbers() []number {
	return []number{
		{&b.RequestBytes, "request bytes", 1 << 20},
		{&b.ConcurrentRequests, "concurrent requests", 32},
		{&b.ResponseBytes, "response bytes", 4 << 20},
		{&b.MetadataBytes, "metadata bytes", 64 << 10},
		{&b.PageSize, "page size", 50},
		{&b.SubscriptionBuffer, "subscription buffer", 64},
		{&b.Subscribers, "subscribers", 1024},
		{&b.SubscribedURIs, "subscribed URIs", 64},
		{&b.SearchThreshold, "search threshold", 0},
		{&b.SearchResults, "search results", 20},
		{&b.SearchCalls, "search calls", 5},
		{&b.SearchBytes, "search bytes", 256 << 10},
	}
}

// span is a budget of time.
type span struct {
	at    *time.Duration
	name  string
	value time.Duration
}

func (b *Budgets) spans() []span {
	return []span{
		{&b.Grace, "grace", 5 * time.Second},
		{&b.Keepalive, "keepalive", 15 * time.Second},
	}
}

func (b Budgets) withDefaults() Budgets {
	for _, n := range b.numbers() {
		if *n.at == 0 {
			*n.at = n.value
		}
	}
	for _, d := range b.spans() {
		if *d.at == 0 {
			*d.at = d.value
		}
	}
	return b
}

// Check reports every budget that can't be meant, joined (I13). A zero is the
// default and always fine.
func (b Budgets) Check() error {
	var errs []error
	for _, n := range b.numbers() {
		switch {
		case *n.at < 0:
			errs = append(errs, fmt.Errorf("%s: %d is not a positive number", n.name, *n.at))
		case n.at == &b.PageSize && *n.at > MaxPageSize:
			errs = append(errs, fmt.Errorf("%s: %d is above %d", n.name, *n.at, MaxPageSize))
		}
	}
	for _, d := range b.spans() {
		if *d.at < 0 {
			errs = append(errs, fmt.Errorf("%s: %s is not above zero", d.name, *d.at))
		}
	}
	return errors.Join(errs...)
}
