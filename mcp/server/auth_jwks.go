package server

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

const (
	maxJWKS     = 1 << 20          // bytes of a set of keys
	maxKeys     = 256              // of a set
	keysFresh   = time.Hour        // after which keys are read again
	keysPause   = 10 * time.Second // between two readings, whatever tokens name
	keysTimeout = 10 * time.Second // of one reading
	minRSA      = 2048             // bits of a modulus
	maxRSA      = 8192
)

// A jwk is a public key, and what it is for.
type jwk struct {
	kid    string
	alg    string // the only one that it is for
	public crypto.PublicKey
}

// A keySet is an issuer's keys. They are read when one is wanted, and read again
// when a token names one that isn't there: issuers change them.
type keySet struct {
	issuer Issuer
	client *http.Client
	now    func() time.Time

	turn  chan struct{} // held by whoever reads the keys
	url   string        // of the keys; the turn's
	tried time.Time     // when it was last attempted; the turn's

	mu   sync.Mutex // of what follows
	keys []jwk
	read time.Time // when the keys came; zero: never
}

func newKeySet(issuer Issuer) *keySet {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true // a reading an hour
	return &keySet{
		issuer: issuer,
		client: &http.Client{
			Transport: transport,
			Timeout:   keysTimeout,
			// What a redirect leads to is nobody's word.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		now:  time.Now,
		turn: make(chan struct{}, 1),
		url:  issuer.JWKS,
	}
}

// key returns the key that a token names. A token without a kid is judged by the
// only key of its algorithm, where there is one. Who names a key that is there
// never waits for those who name others, and keys that can't be read again stay.
func (s *keySet) key(ctx context.Context, kid, alg string) (crypto.PublicKey, error) {
	key, fresh := s.find(kid, alg)
	if key != nil && fresh {
		return key, nil
	}
	if key != nil {
		select {
		case s.turn <- struct{}{}:
		default:
			return key, nil // somebody is at it
		}
	} else {
		select {
		case s.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", errKeys, context.Cause(ctx))
		}
	}
	err := s.refresh(ctx)
	<-s.turn
	key, _ = s.find(kid, alg)
	switch {
	case key != nil:
		return key, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errKeys, err)
	}
	return nil, errors.New("the issuer has no such key")
}

// refresh reads the keys, unless that was attempted a moment ago. It fails only
// where there never were any.
func (s *keySet) refresh(ctx context.Context) error {
	s.mu.Lock()
	never := s.read.IsZero()
	s.mu.Unlock()
	now := s.now()
	if !s.tried.IsZero() && now.Sub(s.tried) < keysPause {
		if never {
			return errors.New("it failed a moment ago")
		}
		return nil
	}
	// Whoever goes away must not have begun in vain: others could have the issuer asked
	// again and again, and its keys never read.
	keys, err := s.fetch(context.WithoutCancel(ctx))
	s.tried = now
	if err != nil {
		if never {
			return err
		}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys, s.read = keys, now
	return nil
}

// find returns the key, or nil, and whether the keys came lately.
func (s *keySet) find(kid, alg string) (key crypto.PublicKey, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, k := range s.keys {
		if k.alg == alg && (kid == "" || k.kid == kid) {
			key = k.public
			n++
		}
	}
	if n != 1 {
		key = nil
	}
	return key, s.now().Sub(s.read) <= keysFresh
}

// fetch reads the keys, from where the issuer's metadata says if nobody else does.
func (s *keySet) fetch(ctx context.Context) ([]jwk, error) {
	ctx, cancel := context.WithTimeout(ctx, keysTimeout)
	defer cancel()
	if s.url == "" {
		meta, err := auth.GetAuthServerMetadata(ctx, s.issuer.URL, s.client)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the metadata of %s: %w", s.issuer.URL, err)
		case meta == nil:
			return nil, fmt.Errorf("%s has no metadata", s.issuer.URL)
		}
		if err := checkURL(meta.JWKSURI); err != nil {
			return nil, fmt.Errorf("keys of %s: %w", s.issuer.URL, err)
		}
		if !isLoopback(hostOf(s.issuer.URL)) && isLoopback(hostOf(meta.JWKSURI)) {
			return nil, fmt.Errorf("keys of %s: it says that they are on this machine", s.issuer.URL)
		}
		s.url = meta.JWKSURI
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading keys from %s: status %d", s.url, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxJWKS+1))
	if err != nil {
		return nil, err
	}
	return parseJWKS(data)
}

func hostOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// parseJWKS reads a set of keys (RFC 7517). Keys of kinds that are not used here,
// and those that are malformed, are passed over: a set holds keys for others too.
func parseJWKS(data []byte) ([]jwk, error) {
	if len(data) > maxJWKS {
		return nil, errors.New("the set of keys is too large")
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, fmt.Errorf("parsing the set of keys: %w", err)
	}
	if set.Keys == nil {
		return nil, errors.New("the set of keys has no keys")
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the set has more than %d keys", maxKeys)
	}
	var keys []jwk
	for _, raw := range set.Keys {
		keys = append(keys, parseJWK(raw)...)
	}
	return keys, nil
}

// parseJWK reads a key: one for each algorithm that it may be used with.
func parseJWK(raw json.RawMessage) []jwk {
	var k struct {
		Kty, Kid, Use, Alg, Crv, N, E, X, Y string
		Ops                                 []string `json:"key_ops"`
	}
	if json.Unmarshal(raw, &k) != nil ||
		k.Use != "" && k.Use != "sig" ||
		k.Ops != nil && !slices.Contains(k.Ops, "verify") {
		return nil
	}
	var public crypto.PublicKey
	var algs []string
	switch {
	case k.Kty == "RSA":
		if key := rsaKey(k.N, k.E); key != nil {
			public, algs = key, []string{"RS256", "PS256"}
		}
	case k.Kty == "EC" && k.Crv == "P-256":
		if key := p256Key(k.X, k.Y); key != nil {
			public, algs = key, []string{"ES256"}
		}
	case k.Kty == "OKP" && k.Crv == "Ed25519":
		if x, err := base64.RawURLEncoding.DecodeString(k.X); err == nil && len(x) == ed25519.PublicKeySize {
			public, algs = ed25519.PublicKey(x), []string{"EdDSA"}
		}
	}
	var keys []jwk
	for _, alg := range algs {
		if k.Alg == "" || k.Alg == alg || k.Alg == "Ed25519" && alg == "EdDSA" {
			keys = append(keys, jwk{kid: k.Kid, alg: alg, public: public})
		}
	}
	return keys
}

func rsaKey(n, e string) *rsa.PublicKey {
	nb, err1 := base64.RawURLEncoding.DecodeString(n)
	eb, err2 := base64.RawURLEncoding.DecodeString(e)
	if err1 != nil || err2 != nil || len(nb) > maxRSA/8+1 || len(eb) > 4 {
		return nil
	}
	modulus := new(big.Int).SetBytes(nb)
	exponent := new(big.Int).SetBytes(eb).Int64()
	if modulus.BitLen() < minRSA || modulus.BitLen() > maxRSA || modulus.Bit(0) == 0 ||
		exponent < 3 || exponent > 1<<31-1 || exponent%2 == 0 {
		return nil
	}
	return &rsa.PublicKey{N: modulus, E: int(exponent)}
}

func p256Key(x, y string) *ecdsa.PublicKey {
	const size = 32
	xb, err1 := base64.RawURLEncoding.DecodeString(x)
	yb, err2 := base64.RawURLEncoding.DecodeString(y)
	if err1 != nil || err2 != nil || len(xb) != size || len(yb) != size {
		return nil
	}
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), slices.Concat([]byte{4}, xb, yb))
	if err != nil { // not on the curve
		return nil
	}
	return key
}
