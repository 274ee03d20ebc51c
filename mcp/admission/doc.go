// Package admission says which hosts HTTP may reach, and reaches no other (A7, W4).
//
// Who named a URL decides how near it may lead. Each address is in a [Realm]: the
// public network, a private one, this machine, or what nobody has business with,
// such as the addresses at which clouds hand out credentials. A URL of the settings
// may lead anywhere but there; a URL that a crew, a server or a model named may lead
// to the public network alone, by https. [Rules] are what an operator has allowed
// besides.
//
// There are two questions, each with one answer for everybody: [Rules.URL] judges a
// URL as it is spelled, and [Rules.Addr] an address that its host resolved to. A
// [Transport] asks both, of each request, each redirect and each connection: it
// resolves a name once, judges what came of that, and connects to these very
// addresses, so that a name can't mean something else a moment later. Proxies of the
// environment are none of its business: a proxy hides where a request goes.
//
//	client := &http.Client{Transport: admission.Config{}.Transport(admission.Public)}
//	resp, err := client.Get(url) // *admission.Error where url leads to a private network
package admission

// An Error says why a URL or an address is not admitted.
type Error struct {
	// Reason follows "it is", such as "on a private network".
	Reason string
	// Host is the host or the address of which that is so, where a name hides it.
	Host string
	// Realm is where it would have led, or [Public] where that is not the reason.
	Realm Realm
}

// Error returns the host and the reason.
func (e *Error) Error() string {
	if e.Host == "" {
		return "not admitted: it is " + e.Reason
	}
	return "not admitted: " + e.Host + " is " + e.Reason
}
