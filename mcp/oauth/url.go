package oauth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"crewhost/config/secret"
	"crewhost/mcp/admission"
)

// origin is scheme, host and port of a URL.
func origin(u *url.URL) string {
	n, err := secret.Binding((&url.URL{Scheme: u.Scheme, Host: u.Host}).String())
	if err != nil {
		return ""
	}
	return n
}

// covers reports whether a resource is the one at a URL, or holds it: the same
// origin, and a path that is the other's or above it.
func covers(resource, target string) bool {
	r, err1 := secret.Binding(resource)
	u, err2 := secret.Binding(target)
	return err1 == nil && err2 == nil && (r == u || strings.HasPrefix(u, r+"/") && !strings.Contains(r, "?"))
}

// admissible reports why an endpoint may not be used, as far as its URL says; the
// transport sees the address too. Loopback is for servers that are there themselves:
// no other has business with this machine.
func (a *Authorizer) admissible(u *url.URL) error {
	within := admission.Private
	if admission.Here(a.target.Hostname()) {
		within = admission.Loopback
	}
	refused, _ := errors.AsType[*admission.Error](a.cfg.Rules.URL(u, within))
	switch {
	case refused != nil && refused.Realm == admission.Loopback:
		return fmt.Errorf("the OAuth endpoint %s is on loopback and the server is not", brief(origin(u)))
	case refused != nil:
		return fmt.Errorf("the OAuth endpoint %s is %s", brief(u.Scheme+"://"+u.Host), brief(refused.Reason))
	case a.cfg.Allowed != nil && !a.cfg.Allowed(u):
		return fmt.Errorf("the OAuth endpoint %s is not among the hosts that may be called (mcp.allowed_hosts)", brief(origin(u)))
	}
	return nil
}
