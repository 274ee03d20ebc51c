// Package gateway stands between the host and its servers over HTTP (A6, A7, A8). All
// requests to them go through one [Gateway]: it admits where they lead, puts in the
// credential that the vault has for the server, forwards, and tells an audit.
//
//	gate, err := gateway.New(gateway.Config{Network: network, Keys: keys, Audit: audit})
//	server = gate.Enter(run, server) // of an agent: from here on without URL and credential
//	route := gate.Route(server)      // what carries its requests
//	defer gate.Close()
//
// # Servers of the settings
//
// The operator named the URL, and the requests have it. It may lead to a private
// network and to loopback, not to what is nobody's business; see package admission.
//
// # Servers of agents
//
// A crew named the URL, and from [Gateway.Enter] on nobody but the gateway knows it:
// an entry holds the server's name and an address of the gateway's own, and what
// carries its requests shows a pass with each, which is good for a minute, for one
// run, one server and its agents. What comes back is freed of where it came from:
// redirects are followed or refused here, the address for messages of the transport of
// 2024-11-05 is replaced, headers that tell of URLs are left out, and an error names
// what went wrong and not where. The operator's log says where.
//
// # Tools of the host's own
//
// A model named the URL, or the settings did for a service of theirs; see [Tool]. Where
// it leads is admitted in the same way, the requests are told to the same audit, and the
// errors don't say what a host resolved to either.
//
// # Credentials
//
// A credential goes to the URL that it is bound to and to further paths of the same
// origin that this server uses for its messages. On a redirect it is looked up anew:
// another path of the origin is sent what is bound to that path, or nothing. No other
// origin is sent anything at all (K39).
package gateway
