package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

// maxText is how many bytes a field may have with its variables expanded.
const maxText = 1 << 20

// CodeVariable is the code of an issue about a ${VARIABLE}.
const CodeVariable = "variable"

// sight says how a field's text may be shown, and what of it is secret beside
// what comes from variables.
type sight int

const (
	plainText  sight = iota // shown as written; a URL in it hides its credentials
	hiddenText              // no literal part is shown: env and headers
)

// expander expands the fields of one decoding.
type expander struct {
	env environ
	d   *strict.Decoder
}

// text expands the variables of a field. Where names the field for an issue:
// `server "x": args.1`.
func (x *expander) text(f strict.At[scalar], where string, how sight) secret.Text {
	parts, problem := parse(string(f.V))
	if problem != "" {
		x.d.Fail(f.Pos, CodeVariable, where+": "+problem, "known are ${NAME}, ${NAME:-default} and ${env:NAME}; $${…} is the text ${…}")
		return secret.Text{}
	}
	if strings.Contains(string(f.V), delim) {
		x.d.Fail(f.Pos, strict.CodeBadValue, where+" holds a NUL character", "")
		return secret.Text{}
	}
	var value strings.Builder
	var secrets []secret.Value
	unset := false
	for _, p := range parts {
		if p.name == "" {
			value.WriteString(p.text)
			continue
		}
		v, given, ok := x.env.value(p)
		if !ok {
			x.d.Fail(f.Pos, CodeVariable, where+": the variable "+p.name+" is not set", "set it, or give a default: ${"+p.name+":-…}")
			unset = true
			continue
		}
		if value.WriteString(v); value.Len() > maxText {
			x.d.Fail(f.Pos, strict.CodeTooLarge, where+": its variables make more than "+strconv.Itoa(maxText)+" bytes of it", "")
			return secret.Text{}
		}
		if given && !isPublic(p.name) {
			secrets = append(secrets, secret.New(v))
		}
	}
	if unset {
		return secret.Text{} // what is left is not what was meant
	}
	shown := veil(parts)
	if how == plainText {
		shown = show(parts)
	}
	return secret.NewText(shown, value.String(), append(secrets, credentials(value.String())...)...)
}

// veil returns parts as they may be shown where all that is literal may be
// secret: a word such as Bearer, and the names of variables.
func veil(parts []part) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.name != "" && p.fallback != "":
			b.WriteString("${" + p.name + ":-" + secret.Mask + "}")
		case p.name != "":
			b.WriteString(p.text)
		default:
			scheme, rest, ok := strings.Cut(p.text, " ")
			if i == 0 && ok && isScheme(scheme) {
				b.WriteString(scheme + " ")
				p.text = strings.TrimSpace(rest)
			}
			if p.text != "" {
				b.WriteString(secret.Mask)
			}
		}
	}
	return b.String()
}

// show returns parts as they may be shown where only a URL's credentials and
// tokens of well-known shape are secret. A variable is one sign while they are
// looked for, since a credential may stand beside it.
func show(parts []part) string {
	var b strings.Builder
	for i, p := range parts {
		if p.name == "" {
			b.WriteString(p.text)
		} else {
			b.WriteString(delim + strconv.Itoa(i) + delim)
		}
	}
	text := b.String()
	if bareToken.MatchString(text) {
		return secret.Mask
	}
	text = maskURLs(secret.MaskTokens(text))
	return placeholder.ReplaceAllStringFunc(text, func(m string) string {
		i, err := strconv.Atoi(strings.Trim(m, delim))
		if err != nil || i >= len(parts) {
			return secret.Mask
		}
		if p := parts[i]; p.fallback != "" {
			return "${" + p.name + ":-" + show([]part{{text: p.fallback}}) + "}"
		}
		return parts[i].text
	})
}

// placeholder stands for a variable while a text is searched; onlyPlaceholders
// is a credential that is made of variables alone.
var (
	placeholder      = regexp.MustCompile(`\x00[0-9]+\x00`)
	onlyPlaceholders = regexp.MustCompile(`^(?:\x00[0-9]+\x00|:)+$`)
)

// isPublic reports whether a variable's value is no secret: a log in which the
// home folder is masked says little.
func isPublic(name string) bool {
	switch name {
	case "HOME", "USER", "USERPROFILE", "LOGNAME", "HOSTNAME", "PWD", "PATH", "SHELL", "LANG", "TMPDIR", "TEMP", "TMP",
		"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME":
		return true
	}
	return false
}

// isScheme reports whether a word is one that stands before a credential in an
// Authorization header.
func isScheme(word string) bool {
	switch strings.ToLower(word) {
	case "bearer", "basic", "token", "apikey":
		return true
	}
	return false
}

// bareToken matches a text that is nothing but a token, by how it begins.
var bareToken = regexp.MustCompile(`^(?:sk-|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hf_|npm_|AKIA|AIza)[A-Za-z0-9_.-]{6,}$`)

// credential matches where a URL keeps its credentials: the user's part and the
// values of the query.
var credential = regexp.MustCompile(`(://)([^/?#@\s]+)(@)|([?&][^=&#\s]+=)([^&#\s]+)`)

// maskURLs masks the credentials of every URL in a text, but for those that are
// variables. It leaves a text alone that is no URL.
func maskURLs(text string) string {
	if !strings.Contains(text, "://") && !strings.HasPrefix(text, delim) { // a variable may hold how the URL begins
		return text
	}
	return credential.ReplaceAllStringFunc(text, func(m string) string {
		before, after := "://", "@"
		if !strings.HasPrefix(m, before) {
			name, _, _ := strings.Cut(m, "=")
			before, after = name+"=", ""
		}
		if onlyPlaceholders.MatchString(strings.TrimSuffix(strings.TrimPrefix(m, before), after)) {
			return m
		}
		return before + secret.Mask + after
	})
}

// basic is a user and a password as they are sent.
func basic(user, password string) secret.Value {
	if u, err := url.PathUnescape(user); err == nil {
		user = u
	}
	if p, err := url.PathUnescape(password); err == nil {
		password = p
	}
	return secret.New(base64.StdEncoding.EncodeToString([]byte(user + ":" + password)))
}

// credentials returns the secrets that a value shows by its form: the user's
// part and the query's values of a URL, and tokens of well-known shape.
func credentials(value string) []secret.Value {
	found := secret.Tokens(value)
	if bareToken.MatchString(value) {
		found = append(found, secret.New(value))
	}
	if !strings.Contains(value, "://") {
		return found
	}
	add := func(raw string, unescape func(string) (string, error)) {
		found = append(found, secret.New(raw))
		if text, err := unescape(raw); err == nil && text != raw {
			found = append(found, secret.New(text))
		}
	}
	for _, m := range credential.FindAllStringSubmatch(value, -1) {
		if m[2] != "" {
			user, password, both := strings.Cut(m[2], ":")
			if both {
				add(password, url.PathUnescape)
				found = append(found, basic(user, password))
			} else {
				add(user, url.PathUnescape)
			}
			continue
		}
		add(m[5], url.QueryUnescape)
	}
	return found
}

// secretName matches the names of flags, variables and headers whose value is
// a secret.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|pwd|api[-_.]?key|apikey|access[-_]?key|private[-_]?key|credential|bearer|cookie|\bauth\b|authorization|_auth\b|^key$|[-_]key$`)

// harmless matches values of variables and headers that are no secrets whatever
// they are for: masking "debug" or "8080" in every log would hide the logs.
var harmless = regexp.MustCompile(`^(?i:true|false|yes|no|on|off|null|none|auto|all|default|trace|debug|info|notice|warn|warning|error|fatal|quiet|silent|verbose|` +
	`production|prod|development|dev|staging|test|testing|local|localhost|stdio|http|https|json|text|plain|utf-?8|posix|c|` +
	`[0-9]{1,5}|[a-z]{2}_[a-z]{2}(\.utf-?8)?|\*/\*|(application|text|image)/[a-z+.*-]+|\.{0,2}/[^\s:@=?]*)$`)

// whole makes the whole of a text secret, as the values of env and headers are:
// it is not shown, and it is masked where it turns up, unless its name is not
// that of a secret and it is a plain word, number or path.
func whole(name string, t secret.Text) secret.Text {
	value := t.Reveal()
	secrets := t.Secrets()
	if value != "" && (secretName.MatchString(name) || !harmless.MatchString(value)) {
		secrets = append(secrets, secret.New(value))
		if token := bearer(value); token != "" {
			secrets = append(secrets, secret.New(token))
		}
	}
	if strings.EqualFold(name, "Cookie") {
		for pair := range strings.SplitSeq(value, ";") {
			_, v, _ := strings.Cut(pair, "=")
			secrets = append(secrets, secret.New(strings.TrimSpace(v)))
		}
	}
	return secret.NewText(t.String(), value, secrets...)
}

var digits = regexp.MustCompile(`^[0-9]{1,6}$`)

// bearer returns the token of a header's value that is a scheme and a token, or "".
func bearer(value string) string {
	scheme, token, ok := strings.Cut(value, " ")
	if !ok || strings.Contains(token, " ") || !isScheme(scheme) {
		return ""
	}
	return token
}

// argSecrets finds the arguments that follow a flag with a secret's name, or
// stand in one (--token X, --api-key=X, --header "Authorization: X"), and hides
// them.
func argSecrets(args []secret.Text) {
	for i, arg := range args {
		value := arg.Reveal()
		flag, rest, joined := strings.Cut(value, "=")
		isFlag := strings.HasPrefix(flag, "-") && !strings.ContainsAny(flag, " \t:/")
		switch {
		case isFlag && secretName.MatchString(flag) && joined:
			if !digits.MatchString(rest) { // --max-tokens=4096
				args[i] = hide(arg, rest)
			}
		case isFlag && secretName.MatchString(flag) && i+1 < len(args):
			if next := args[i+1].Reveal(); !strings.HasPrefix(next, "--") && !digits.MatchString(next) {
				args[i+1] = hide(args[i+1], next)
			}
		default:
			header, rest, ok := strings.Cut(value, ":")
			if name := header[strings.LastIndexAny(header, "= ")+1:]; ok && rest != "" && !strings.HasPrefix(rest, "//") && secretName.MatchString(name) && !strings.ContainsAny(name, "/\\") {
				rest = strings.TrimSpace(rest)
				args[i] = hide(arg, rest, bearer(rest))
			}
		}
	}
}

// hide makes a part of a text secret, and also what is within that part.
func hide(t secret.Text, part string, within ...string) secret.Text {
	if part == "" {
		return t
	}
	shown := t.String()
	if strings.Contains(shown, part) {
		shown = strings.ReplaceAll(shown, part, secret.Mask)
	} else { // variables stand in the part
		before := t.Reveal()[:max(0, strings.Index(t.Reveal(), part))]
		rest, ok := strings.CutPrefix(shown, before)
		if !ok {
			before, rest = "", shown
		}
		parts, _ := parse(rest)
		shown = before + veil(parts)
	}
	secrets := append(t.Secrets(), secret.New(part))
	for _, s := range within {
		secrets = append(secrets, secret.New(s))
	}
	return secret.NewText(shown, t.Reveal(), secrets...)
}
