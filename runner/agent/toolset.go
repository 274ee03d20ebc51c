package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"

	"crewhost/crew"
	"crewhost/runner/llm"
	"crewhost/tools"
)

// humanInput is the tool that a task with humanInput gives its agent.
const humanInput = "human_input"

// toolset are the tools that one task's agent holds, under the names that the
// model sees. It is the one place where names are changed and changed back.
type toolset struct {
	held    []held         // sorted by registered name
	byWire  map[string]int // index in held by the model's name
	offered []llm.Tool     // as the model sees them, in the order of held
	// warnings say what of the tools' schemas the model is not told.
	warnings []string
}

// held is a tool that the agent holds.
type held struct {
	fitting
	def  tools.Definition
	wire string     // the name that the model sees
	own  tools.Tool // the tool itself, where it is not in the registry
}

// newToolset picks from defs what a and t name and what the toolsets of a bring, and
// the tool to ask a person with where t wants it (K27), adds the agent's own, and fits their schemas to
// the model's API. Names that are not there are an error.
func newToolset(a *crew.Agent, t *crew.Task, defs []tools.Definition, fit func(json.RawMessage) fitting, own ...*coworker) (*toolset, error) {
	known := make(map[string]tools.Definition, len(defs))
	for _, d := range defs {
		known[d.Name] = d
	}
	var names, missing []string
	wanted := Held(a, t, defs)
	if t.HumanInput {
		wanted = append(wanted, humanInput)
	}
	for _, n := range wanted {
		if _, ok := known[n]; !ok {
			missing = append(missing, strconv.Quote(n))
			continue
		}
		names = append(names, n)
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fail(ReasonTools, "agent %q and task %q name tools that are not there: %s",
			a.Key, t.Key, strings.Join(slices.Compact(missing), ", "))
	}
	set := &toolset{}
	beside := make(map[string]tools.Tool, len(own))
	for _, o := range own {
		name := o.def.Name
		if slices.Contains(names, name) {
			set.warnings = append(set.warnings, fmt.Sprintf("agent %q holds a registered tool %q, in place of the one to reach its coworkers", a.Key, name))
			continue
		}
		known[name], beside[name] = o.def, o
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)

	set.byWire = make(map[string]int, len(names))
	for i, wire := range wireNames(names) {
		def := known[names[i]]
		h := held{def: def, wire: wire, fitting: fit(def.InputSchema), own: beside[def.Name]}
		set.byWire[wire] = len(set.held)
		set.held = append(set.held, h)
		for _, w := range h.fit.warnings {
			set.warnings = append(set.warnings, fmt.Sprintf("tool %q: %s", def.Name, w))
		}
		set.offered = append(set.offered, llm.Tool{Name: wire, Description: def.Description, Schema: h.fit.schema})
	}
	return set, nil
}

// arguments makes the arguments for the tool of what the model wrote: an object
// of the server's own schema, without nulls that it does not allow (K29). An error
// says what is wrong, for the model to read.
func (h held) arguments(text string) (json.RawMessage, error) {
	raw, err := normalise(text, nil)
	if err != nil {
		return nil, err
	}
	return normalise(string(h.fit.back(raw)), h.shape)
}

// lookup returns the tool that the model calls name.
func (s *toolset) lookup(name string) (held, bool) {
	i, ok := s.byWire[name]
	if !ok {
		return held{}, false
	}
	return s.held[i], true
}

// holds reports whether the agent holds the tool of that registered name.
func (s *toolset) holds(name string) bool {
	return slices.ContainsFunc(s.held, func(h held) bool { return h.def.Name == name })
}

// wireName is what the model calls the held tool of that registered name.
func (s *toolset) wireName(name string) string {
	for _, h := range s.held {
		if h.def.Name == name {
			return h.wire
		}
	}
	return name
}

// unknown says to the model that it has no tool of that name, and which it has (K69).
func (s *toolset) unknown(name string) string {
	name = tools.Truncate(name, maxWireName)
	if len(s.held) == 0 {
		return fmt.Sprintf("there is no tool %q, and you have no tools; answer in text", name)
	}
	names := make([]string, len(s.held))
	for i, h := range s.held {
		names[i] = h.wire
	}
	slices.Sort(names)
	msg := fmt.Sprintf("you have no tool %q", name)
	if near := nearest(name, names); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	const shown = 40
	rest := ""
	if len(names) > shown {
		rest = fmt.Sprintf(" and %d more", len(names)-shown)
		names = names[:shown]
	}
	return msg + " Your tools: " + strings.Join(names, ", ") + rest
}

// nearest returns the name that was probably meant, or "": the same in other
// letters, one that ends in name behind a prefix, or one a few letters away.
func nearest(name string, names []string) string {
	fold := strings.NewReplacer("_", "", "-", "", ".", "", "/", "", " ", "").Replace
	want := fold(strings.ToLower(name))
	if want == "" {
		return ""
	}
	for _, n := range names {
		if fold(strings.ToLower(n)) == want {
			return n
		}
	}
	for _, n := range names {
		if rest, ok := strings.CutSuffix(strings.ToLower(n), strings.ToLower(name)); ok && strings.ContainsAny(rest[len(rest)-1:], "_-") {
			return n
		}
	}
	best, bestDistance := "", max(1, len([]rune(want))/3)+1
	for _, n := range names {
		if d := levenshtein.ComputeDistance(want, fold(strings.ToLower(n))); d < bestDistance {
			best, bestDistance = n, d
		}
	}
	return best
}

// maxWireName is the longest name, in bytes, that the APIs of models take.
const maxWireName = 64

// wireNames returns, for each of the unique names, the one that the model sees:
// [a-zA-Z0-9_-]{1,64}, all different (K23). A name that fits stays. Another gets
// "_" for what does not fit and, where that is taken or cut, a piece of its hash,
// so that it does not depend on which other tools there are more than it must.
func wireNames(names []string) []string {
	wire := make([]string, len(names))
	wanted := make(map[string]int, len(names))
	for i, n := range names {
		wire[i] = fitName(n)
		wanted[wire[i]]++
	}
	taken := make(map[string]bool, len(names))
	for _, n := range names {
		if fitName(n) == n {
			taken[n] = true
		}
	}
	for i, n := range names {
		base := wire[i]
		if base == n || wanted[base] == 1 && !taken[base] && len(n) <= maxWireName && strings.Trim(base, "_") != "" {
			taken[base] = true
			continue
		}
		sum := sha256.Sum256([]byte(n))
		hash := hex.EncodeToString(sum[:])
		for size := 8; ; size += 8 {
			cut := min(len(base), maxWireName-size-1)
			wire[i] = base[:cut] + "_" + hash[:size]
			if !taken[wire[i]] {
				break
			}
		}
		taken[wire[i]] = true
	}
	return wire
}

// fitName makes a name of what the APIs of models take.
func fitName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case b.Len() == maxWireName:
			return b.String()
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}
