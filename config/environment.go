package config

import (
	"slices"
	"strings"

	"crewhost/config/strict"
)

// variablePrefix begins the names of variables that are settings.
const variablePrefix = "CREWHOST_"

// variables returns the layer that CREWHOST_* variables make: levels are parted
// by "__" and lower-cased, but for the short names of budgets. A name that the
// settings choose — a server, a handle, a profile, a variable of env — is matched without regard to case against those
// of known, with "_" for any of "_.-"; a new variable or header keeps its case.
// An empty variable is no setting.
func (l *loader) variables(known *strict.Node) *strict.Node {
	root := &strict.Node{Kind: strict.Map}
	names := make([]string, 0, len(l.env))
	for name := range l.env {
		if strings.HasPrefix(name, variablePrefix) && !slices.Contains(l.source.Reserved, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if l.env[name] == "" {
			continue
		}
		pos := strict.Pos{File: "environment variable " + name}
		path := strings.Split(strings.TrimPrefix(name, variablePrefix), "__")
		if short, ok := budget(name); ok {
			path = short
			if long := variablePrefix + strings.ToUpper(strings.Join(short, "__")); l.env[long] != "" {
				l.fail(pos, strict.CodeDuplicateKey, "the same is set by "+long, "keep one")
			}
		} else if word, ok := strings.CutPrefix(strings.ToLower(path[0]), "mcp_"); ok {
			l.fail(pos, strict.CodeUnknownKey, "there is no budget of this name", strict.DidYouMean(word, strict.Keys[BudgetDocument]()))
			continue
		}
		if slices.Contains(path, "") {
			l.fail(pos, strict.CodeUnknownKey, "a level of its name is empty", `levels are parted by two underscores: CREWHOST_LLM__MODEL`)
			continue
		}
		l.set(root, spelled(path, known), l.env[name], pos)
	}
	return root
}

// spelled gives each level of a variable's name the spelling of the settings.
func spelled(path []string, known *strict.Node) []string {
	out := make([]string, len(path))
	for i, level := range path {
		chosen := i == 2 && (out[0] == "mcp" && (out[1] == "servers" || out[1] == "served") || out[0] == "llm" && (out[1] == "profiles" || out[1] == "prices"))
		kept := i == 4 && out[0] == "mcp" && out[1] == "servers" && (out[3] == "env" || out[3] == "headers")
		out[i] = strings.ToLower(level)
		if kept {
			out[i] = level
		}
		if chosen || kept {
			if same := sameName(level, known); same != "" {
				out[i] = same
			}
		}
		known = known.Get(out[i])
	}
	return out
}

// sameName returns the only key of n that differs from name in case and in
// "_.-" alone, or an equal one.
func sameName(name string, n *strict.Node) string {
	if n == nil {
		return ""
	}
	fold := func(s string) string { return strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(s)) }
	same := ""
	for _, e := range n.Entries {
		if e.Key == name || e.Key == strings.ToLower(name) {
			return e.Key
		}
		if fold(e.Key) == fold(name) {
			if same != "" {
				return ""
			}
			same = e.Key
		}
	}
	return same
}

// overrides returns the layer that flags make.
func (l *loader) overrides() *strict.Node {
	root := &strict.Node{Kind: strict.Map}
	for _, o := range l.source.Overrides {
		l.set(root, strings.Split(o.Path, "."), o.Value, strict.Pos{File: "flag " + o.Flag})
	}
	return root
}

// set puts a value into a tree; of two values at one path the later counts.
func (l *loader) set(n *strict.Node, path []string, value string, pos strict.Pos) {
	for i, key := range path {
		at := slices.IndexFunc(n.Entries, func(e strict.Entry) bool { return e.Key == key })
		last := i == len(path)-1
		if at < 0 {
			n.Entries = append(n.Entries, strict.Entry{Key: key, KeyPos: pos, Value: &strict.Node{Pos: pos, Kind: strict.Map}})
			at = len(n.Entries) - 1
		} else if have := n.Entries[at]; last != (have.Value.Kind != strict.Map) {
			l.fail(pos, strict.CodeDuplicateKey, strings.Join(path[:i+1], ".")+" is set as a whole and in parts", "the other is "+have.KeyPos.File)
			return
		}
		if last {
			n.Entries[at] = strict.Entry{Key: key, KeyPos: pos, Value: l.untyped(value, pos)}
			return
		}
		n = n.Entries[at].Value
	}
}

// untyped reads the text of a variable or a flag: a YAML list or mapping where
// it begins with a bracket, else a scalar that is what its field wants.
func (l *loader) untyped(text string, pos strict.Pos) *strict.Node {
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return &strict.Node{Pos: pos, Kind: strict.Untyped, Text: text}
	}
	n, issues := strict.Parse(pos.File, []byte(text), limits())
	l.issues = append(l.issues, issues...)
	if n == nil {
		return &strict.Node{Pos: pos} // an issue says why
	}
	withoutDelim(n, l.fail)
	return relocated(n, pos)
}

// relocated returns a tree with all its places at one: a variable has no lines.
func relocated(n *strict.Node, pos strict.Pos) *strict.Node {
	n.Pos = pos
	for _, item := range n.Items {
		relocated(item, pos)
	}
	for i := range n.Entries {
		n.Entries[i].KeyPos = pos
		relocated(n.Entries[i].Value, pos)
	}
	return n
}
