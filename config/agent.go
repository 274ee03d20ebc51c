package config

import "crewhost/config/secret"

// Hidden returns the server with what may be secret in its texts made so, by the same
// signs as in the settings: for servers that are declared elsewhere (A1), where no
// secret has any business.
func (s Server) Hidden() Server {
	hidden := func(t secret.Text) secret.Text {
		value := t.Reveal()
		return secret.NewText(show([]part{{text: value}}), value, append(t.Secrets(), credentials(value)...)...)
	}
	s.Command, s.URL = hidden(s.Command), hidden(s.URL)
	args := make([]secret.Text, len(s.Args))
	for i, a := range s.Args {
		args[i] = hidden(a)
	}
	argSecrets(args)
	env := make([]Variable, len(s.Env))
	for i, v := range s.Env {
		value := v.Value.Reveal()
		env[i] = Variable{Name: v.Name, Value: whole(v.Name, secret.NewText(veil([]part{{text: value}}), value, credentials(value)...))}
	}
	if s.Args = nil; len(args) > 0 {
		s.Args = args
	}
	if s.Env = nil; len(env) > 0 {
		s.Env = env
	}
	return s
}
