package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
)

// passLife is how long a pass is good for. Each request gets one of its own, so it
// needs to last no longer than from one side of the gateway to the other.
const passLife = time.Minute

// A pass says who may have a request forwarded, and where.
type pass struct {
	Run    string   `json:"run"`
	Agents []string `json:"agents"`
	Server string   `json:"server"`
	Expiry int64    `json:"exp"` // in seconds since 1970
}

// Why a pass is refused.
var (
	errForged  = errors.New("it is none of this gateway's")
	errExpired = errors.New("it has expired")
	errOther   = errors.New("it is for another server, run or agent")
)

// passes makes and reads passes, with a key that no other process has.
type passes struct{ key [32]byte }

// issue writes a pass, signed.
func (p *passes) issue(c pass) string {
	data, _ := json.Marshal(c) // which has no value that can't be marshalled
	body := base64.RawURLEncoding.EncodeToString(data)
	return body + "." + base64.RawURLEncoding.EncodeToString(p.sign(body))
}

// read returns the pass that is written, unless it is forged or over.
func (p *passes) read(text string, now time.Time) (pass, error) {
	body, signature, _ := strings.Cut(text, ".")
	mac, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !hmac.Equal(mac, p.sign(body)) {
		return pass{}, errForged
	}
	data, err := base64.RawURLEncoding.DecodeString(body)
	var c pass
	if err != nil || json.Unmarshal(data, &c) != nil {
		return pass{}, errForged
	}
	if now.Unix() >= c.Expiry {
		return pass{}, errExpired
	}
	return c, nil
}

func (p *passes) sign(body string) []byte {
	h := hmac.New(sha256.New, p.key[:])
	h.Write([]byte(body))
	return h.Sum(nil)
}

// opens reports whether the pass is one for a server that was entered.
func (c pass) opens(at place, l *line) bool {
	if c.Run != at.run || c.Server != at.server || len(c.Agents) == 0 {
		return false
	}
	for _, agent := range c.Agents {
		if !slices.Contains(l.agents, agent) {
			return false
		}
	}
	return true
}
