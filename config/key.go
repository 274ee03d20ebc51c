package config

import (
	"strings"

	"crewhost/config/secret"
	"crewhost/config/strict"
)

const keyAPIKey = "api_key"

// apiKey is a model's key: a text, or where to find one.
type apiKey struct {
	text  string
	ref   keyDocument
	wrong bool // and an issue says so
}

type keyDocument struct {
	Env     strict.At[string]   `key:"env"`
	File    strict.At[string]   `key:"file"`
	Command []strict.At[scalar] `key:"command"`
}

// UnmarshalNode implements [strict.Unmarshaler].
func (k *apiKey) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	before := len(d.Issues())
	defer func() { k.wrong = len(d.Issues()) > before }()
	switch n.Kind {
	case strict.String, strict.Untyped:
		k.text = n.Text
	case strict.Map:
		d.Decode(n, &k.ref, "")
	default: // the text is not shown: it may be the key
		d.WrongType(&strict.Node{Pos: n.Pos, Kind: n.Kind}, "a text or a mapping with env, file or command")
	}
}

// key makes the reference of a model's key. Nothing is looked up.
func (l *loader) key(x *expander, k strict.At[apiKey], where string) secret.Ref {
	if !k.Set || k.V.wrong {
		return secret.Ref{}
	}
	ref := k.V.ref
	given := 0
	for _, set := range []bool{ref.Env.Set, ref.File.Set, len(ref.Command) > 0} {
		if set {
			given++
		}
	}
	switch {
	case given > 1:
		x.d.Fail(k.Pos, strict.CodeBadValue, where+" has more than one of env, file and command", "keep one")
	case ref.Env.Set:
		if ref.Env.V == "" || nameLength(ref.Env.V) != len(ref.Env.V) {
			// Not shown: it may be the key itself.
			x.d.Fail(ref.Env.Pos, strict.CodeBadValue, where+".env is not the name of a variable", "env: OPENAI_API_KEY")
			break
		}
		return secret.Ref{Source: secret.FromEnv, Name: ref.Env.V}
	case ref.File.Set && ref.File.V != "":
		return secret.Ref{Source: secret.FromFile, Name: l.absolute(ref.File.V, ref.File.Pos)}
	case len(ref.Command) > 0:
		return l.keyCommand(ref.Command)
	case k.V.text != "":
		return l.keyText(x, k, where)
	default:
		x.d.Fail(k.Pos, strict.CodeMissing, where+" is empty", "${NAME}, or a mapping with env, file or command")
	}
	return secret.Ref{}
}

func (l *loader) keyCommand(argv []strict.At[scalar]) secret.Ref {
	r := secret.Ref{Source: secret.FromCommand, Name: string(argv[0].V)}
	if strings.ContainsAny(r.Name, `/\`) {
		r.Name = l.absolute(r.Name, argv[0].Pos)
	}
	for _, a := range argv[1:] {
		r.Args = append(r.Args, string(a.V))
	}
	return r
}

// keyText reads a key that is written as a text: one variable, or the key.
func (l *loader) keyText(x *expander, k strict.At[apiKey], where string) secret.Ref {
	parts, problem := parse(k.V.text)
	switch {
	case problem != "":
		x.d.Fail(k.Pos, CodeVariable, where+": "+problem, "known are ${NAME}, ${NAME:-default} and ${env:NAME}")
		return secret.Ref{}
	case len(parts) == 1 && parts[0].name != "":
		return secret.Ref{Source: secret.FromEnv, Name: parts[0].name, Value: secret.New(parts[0].fallback)}
	case len(parts) == 1:
		if k.Line > 0 {
			l.warn(k.Pos, "%s is written out; name a variable that holds it: ${NAME}", where)
		}
		return secret.Ref{Source: secret.FromLiteral, Value: secret.New(parts[0].text)}
	}
	x.d.Fail(k.Pos, CodeVariable, where+" must be one variable and nothing else", "${NAME}")
	return secret.Ref{}
}
