package tape

import (
	"encoding/base64"
	"regexp"
)

// scrubbed is a mask that also looks at what base64 in a text means: data of a tool,
// the credentials of a header.
func scrubbed(mask func(string) string) func(string) string {
	if mask == nil {
		return func(s string) string { return s }
	}
	return func(s string) string { return scrubText(s, mask) }
}

// coded is what may be base64 of something that is long enough to be a secret.
var coded = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}={0,2}`)

func scrubText(s string, mask func(string) string) string {
	s = mask(s)
	if len(s) < 12 {
		return s
	}
	return coded.ReplaceAllStringFunc(s, func(code string) string {
		for _, coding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			data, err := coding.DecodeString(code)
			if err != nil {
				continue
			}
			if masked := mask(string(data)); masked != string(data) {
				return coding.EncodeToString([]byte(masked))
			}
		}
		return code
	})
}
