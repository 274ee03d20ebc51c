package secret

import "regexp"

// token matches tokens by the shapes that their issuers gave them.
var token = regexp.MustCompile(`\b(?:` +
	`sk-(?:[a-z0-9]+-)*[A-Za-z0-9_]{16,}` + // OpenAI, Anthropic and many after them
	`|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}` +
	`|xox[abeoprs]-[A-Za-z0-9-]{10,}` +
	`|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}` +
	`|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}` + // a JSON web token
	`)`)

// Tokens returns the tokens of well-known shape in a text: those of the larger
// vendors and JSON web tokens.
func Tokens(s string) []Value {
	var found []Value
	for _, t := range token.FindAllString(s, -1) {
		found = append(found, New(t))
	}
	return found
}

// MaskTokens masks the tokens of well-known shape in a text.
func MaskTokens(s string) string { return token.ReplaceAllString(s, Mask) }
