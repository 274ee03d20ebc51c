package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// table writes a report for people: the servers, the policy, and what the tools'
// definitions take of a model's context.
func (r report) table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, s := range r.verdict.Servers {
		about := strings.TrimSpace(string(s.Era) + " " + s.Protocol)
		if s.Err != nil {
			about = reason(s.Err)
		}
		fmt.Fprintf(t, "server\t%s\t%s\t%s\t%s\n", oneLine(s.Name), s.State, count(len(s.Tools), "tool"), oneLine(about))
	}
	if p := r.policy; p != nil {
		fmt.Fprintf(t, "policy\tdefault %s\t%d allow, %d ask, %d deny\theadless %s\tapprove %s\n", p.Default, p.Allow, p.Ask, p.Deny, p.Headless, r.approve)
		for _, h := range p.Held {
			fmt.Fprintf(t, "policy\t%s\t%s\t%s\t%s\n", oneLine(h.Agent), oneLine(h.Tool), h.Decision.Verdict, oneLine(h.Decision.Reason))
		}
	}
	if r.weights != nil {
		for _, p := range r.weights.Providers {
			for _, s := range p.Servers {
				fmt.Fprintf(t, "tokens\t%s\t%s\t%s\tabout %d\n", p.Provider, oneLine(hostOr(s.Server)), count(s.Tools, "tool"), s.Tokens)
			}
			fmt.Fprintf(t, "tokens\t%s\tall\t%s\tabout %d\n", p.Provider, count(p.Tools, "tool"), p.Tokens)
		}
		for _, a := range r.weights.Agents {
			fmt.Fprintf(t, "tokens\t%s\tagent %s\t%s\tabout %d a request\n", a.Provider, oneLine(a.Agent), count(a.Tools, "tool"), a.Tokens)
		}
	}
	_ = t.Flush() // stderr: nobody is left to tell
}
