package crew

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"crewhost/config/strict"
)

// builder turns a tree into a crew and collects what is wrong with it.
type builder struct {
	crew     *Crew
	issues   Issues
	warnings Issues

	// wrong has the places of values of a wrong type, which have one issue and
	// need no second.
	wrong map[Pos]bool
	// pairWithout is set for CrewAI's pair without a file for the crew's own keys.
	pairWithout bool
	// doubtful are the agents whose tools could not all be read.
	doubtful map[string]bool
	// unread: parts of the crew that no reference can be judged against.
	unread struct{ agents, tasks bool }
}

func (b *builder) fail(pos Pos, code, message, hint string) {
	switch {
	case b.wrong[pos]:
	case len(b.issues) < maxIssues:
		b.issues = append(b.issues, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
	case len(b.issues) == maxIssues:
		b.issues = append(b.issues, Issue{
			Pos: Pos{File: pos.File}, Code: strict.CodeTooLarge,
			Message: fmt.Sprintf("more than %d problems; the rest is not listed", maxIssues),
		})
	}
}

func (b *builder) warn(pos Pos, code, message, hint string) {
	if len(b.warnings) < maxIssues {
		b.warnings = append(b.warnings, Issue{Pos: pos, Code: code, Message: message, Hint: hint})
	}
}

// add takes over the issues of the decoder.
func (b *builder) add(issues Issues) {
	for _, i := range issues {
		b.fail(i.Pos, i.Code, i.Message, i.Hint)
	}
	for _, i := range issues {
		if i.Code == strict.CodeWrongType || i.Code == strict.CodeBadValue {
			if b.wrong == nil {
				b.wrong = map[Pos]bool{}
			}
			b.wrong[i.Pos] = true
		}
	}
}

// build decodes the tree, whose agents and tasks have the keys of their format.
func (b *builder) build(root *strict.Node, crewai bool) *Crew {
	b.crew, b.doubtful = &Crew{Format: Orkeon}, map[string]bool{}
	var doc crewDoc
	var agents entities[agentDoc]
	var tasks entities[taskDoc]
	b.removed(root, "")
	if tasks := root.Get("tasks"); tasks != nil {
		for _, t := range tasks.Entries {
			b.removed(t.Value, "tasks."+word(t.Key)+".")
		}
	}
	b.add(strict.Decode(root, &doc))
	if crewai {
		b.crew.Format = CrewAI
		agents = translate(decodeEntities[crewaiAgent](b, "agents", doc.Agents), b.crewaiAgent)
		tasks = translate(decodeEntities[crewaiTask](b, "tasks", doc.Tasks), b.crewaiTask)
	} else {
		b.looksLikeCrewAI(doc.Tasks)
		agents = decodeEntities[agentDoc](b, "agents", doc.Agents)
		tasks = decodeEntities[taskDoc](b, "tasks", doc.Tasks)
	}
	b.head(&doc)
	for _, a := range agents.list {
		b.crew.Agents = append(b.crew.Agents, b.agent(a))
	}
	for _, t := range tasks.list {
		b.crew.Tasks = append(b.crew.Tasks, b.task(t))
	}
	b.atLeastOne("agents", doc.Pos, doc.Agents, len(agents.list) > 0 || agents.wrong || b.unread.agents)
	b.atLeastOne("tasks", doc.Pos, doc.Tasks, len(tasks.list) > 0 || tasks.wrong || b.unread.tasks)
	b.unread.agents = b.unread.agents || agents.wrong || len(agents.list) == 0
	b.unread.tasks = b.unread.tasks || tasks.wrong || len(tasks.list) == 0
	company(b.crew.Agents, b.doubtful, b.fail)
	b.references()
	b.cycles()
	b.processRules(&doc)
	b.unassigned()
	return b.crew
}

func (b *builder) atLeastOne(key string, pos Pos, n *strict.Node, ok bool) {
	switch {
	case ok:
	case n == nil:
		b.fail(pos, strict.CodeMissing, strict.Quote(key)+" is missing", "")
	default:
		b.fail(n.Pos, strict.CodeMissing, key+" is empty: a crew needs at least one of them", "")
	}
}

// head fills in the crew's own keys.
func (b *builder) head(doc *crewDoc) {
	c := b.crew
	b.enum(doc.Format, "format", "", Orkeon, CrewAI)
	c.Name = b.text(doc.Name, "name")
	c.Goal = doc.Goal
	if c.Format == Orkeon {
		b.text(doc.Goal, "goal")
		switch {
		case doc.Goal.Set, doc.Goal.Pos == Pos{}: // a document that is no mapping is told so
		case doc.Goal.Pos != doc.Pos:
			b.fail(doc.Goal.Pos, strict.CodeMissing, `"goal" is empty`, "give it a value")
		default:
			b.fail(doc.Goal.Pos, strict.CodeMissing, `"goal" is missing`, "")
		}
	}
	c.ProcessPos = doc.Process.Pos
	c.Process = Process(b.enum(doc.Process, "process", string(Sequential), string(Sequential), string(Hierarchical),
		string(Parallel), string(Consensual), string(Graph), string(Autonomous)))
	c.Verbose, c.Memory, c.Planning = doc.Verbose, doc.Memory, doc.Planning
	c.MemoryProvider = doc.MemoryProvider
	c.MemoryProvider.V = b.memoryProvider(doc.MemoryProvider)
	c.ManagerAgent = b.text(doc.ManagerAgent, "managerAgent")
	c.MaxRPM = b.atLeast(doc.MaxRPM, 1, "maxRpm")
	c.LLM = b.llm(doc.LLM, "llm")
	c.MaxConcurrency = b.atLeast(doc.MaxConcurrency, 1, "maxConcurrency").V
	c.MaxDuration = doc.MaxDuration.V
	c.Graph = b.graph(doc.GraphConfig)
	c.Hierarchical = b.hierarchical(doc.Hierarchical)
	c.Consensus = b.consensus(doc.Consensus)
	c.Autonomous = b.autonomous(doc.Autonomous)
	c.Mounts = b.mounts(doc.Mounts)
	c.RAG = b.rag(doc.RAG)
	for i, l := range doc.Links {
		at := fmt.Sprintf("links.%d", i)
		direction := b.enum(l.Direction, at+".direction", "outbound", "outbound", "inbound", "bidirectional", "both")
		if direction == "both" {
			direction = "bidirectional"
		}
		c.Links = append(c.Links, Link{
			To: b.text(l.To, at+".to"), Direction: direction, AllowedTopics: values(b.texts(l.AllowedTopics, at+".allowedTopics")),
		})
	}
	for _, in := range doc.Inputs {
		if !inputName.MatchString(in.Key) {
			b.fail(in.KeyPos, strict.CodeBadValue, "inputs: "+strict.Quote(in.Key)+" is no name of a variable",
				"letters, digits, _ and -, the first no digit")
			continue
		}
		if c.Inputs == nil {
			c.Inputs = Inputs{}
		}
		c.Inputs[in.Key] = in.V.V
	}
	if doc.Anchors != nil {
		b.fail(doc.Anchors.Pos, CodeLayout, "anchors must be a block: the line \"anchors:\" and indented lines below it", "")
	}
}

var inputName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// removed takes the key circuitBreaker, which once was, out of a mapping.
func (b *builder) removed(n *strict.Node, at string) {
	if n == nil {
		return
	}
	n.Entries = slices.DeleteFunc(n.Entries, func(e strict.Entry) bool {
		if e.Key != "circuitBreaker" && e.Key != "circuit_breaker" {
			return false
		}
		b.fail(e.KeyPos, CodeRemovedKey, at+e.Key+" is no key any more", "the limits of the graph process are graphConfig of the crew")
		return true
	})
}

func (b *builder) agent(e strict.Named[agentDoc]) *Agent {
	doc, at := e.V, "agents."+e.Key
	a := &Agent{
		Key: e.Key, Pos: e.KeyPos,
		Role:             b.longest(b.text(doc.Role, at+".role"), 256, at+".role"),
		Goal:             b.longest(b.text(doc.Goal, at+".goal"), 2048, at+".goal"),
		Backstory:        doc.Backstory,
		Servers:          b.servers(doc.Servers, at+".mcpServers"),
		AllowDelegation:  or(doc.AllowDelegation, b.crew.Format == Orkeon),
		MaxIter:          20,
		MaxRPM:           b.atLeast(doc.MaxRPM, 1, at+".maxRpm"),
		Verbose:          doc.Verbose,
		LLM:              b.llm(doc.LLM, at+".llm"),
		Guardrails:       b.guardrails(doc.Guardrails, at+".guardrails"),
		MaxExecutionTime: doc.MaxExecutionTime.V,
	}
	var doubtful bool
	a.Tools, a.Toolsets, doubtful = b.tools(doc.Tools, at+".tools")
	if doubtful {
		b.doubtful[a.Key] = true
	}
	if a.Role.V = strings.TrimSpace(a.Role.V); !a.Role.Set { // a folded scalar ends in a newline, a name does not
		a.Role.V = e.Key
	}
	if n := b.atLeast(doc.MaxIter, 1, at+".maxIter"); n.Set {
		a.MaxIter = n.V
	}
	for i, k := range doc.Knowledge {
		at := fmt.Sprintf("%s.knowledge.%d", at, i)
		a.Knowledge = append(a.Knowledge, Knowledge{
			Collection:       b.text(k.Collection, at+".collection"),
			TopK:             orDefault(b.atLeast(k.TopK, 1, at+".topK"), 5),
			MinScore:         b.between(k.MinScore, 0, 1, at+".minScore"),
			Profile:          k.Profile.V,
			MaxContextTokens: orDefault(b.atLeast(k.MaxContextTokens, 1, at+".maxContextTokens"), 2000),
		})
	}
	return a
}

func (b *builder) task(e strict.Named[taskDoc]) *Task {
	doc, at := e.V, "tasks."+e.Key
	t := &Task{
		Key: e.Key, Pos: e.KeyPos,
		Description:    b.text(doc.Description, at+".description"),
		ExpectedOutput: b.text(doc.ExpectedOutput, at+".expectedOutput"),
		Agent:          b.text(doc.Agent, at+".agent"),
		Dependencies:   b.texts(doc.Dependencies, at+".dependencies"),
		Async:          doc.AsyncExecution,
		HumanInput:     doc.HumanInput,
		Tools:          b.set(doc.Tools, at+".tools"),
		Deliverable:    b.deliverable(doc.Deliverable, at+".deliverable"),
		LLM:            b.llm(doc.LLM, at+".llmOverride"),
		Guardrails:     b.guardrails(doc.Guardrails, at+".guardrails"),
		Timeout:        doc.Timeout.V,
	}
	for _, c := range doc.Context.list {
		t.Context = append(t.Context, Named{Name: c.Key, Value: c.V.Text})
	}
	return t
}

// text refuses a text of nothing but spaces.
func (b *builder) text(t Text, at string) Text {
	if t.Set && strings.TrimSpace(t.V) == "" {
		b.fail(t.Pos, strict.CodeMissing, at+" is empty", "")
	}
	return t
}

// texts refuses empty items and leaves them out.
func (b *builder) texts(list []Text, at string) []Text {
	var all []Text
	for i, t := range list {
		if strings.TrimSpace(t.V) == "" {
			b.fail(t.Pos, strict.CodeMissing, fmt.Sprintf("%s.%d is empty", at, i), "")
			continue
		}
		all = append(all, t)
	}
	return all
}

// set is texts for a list in which a second mention means nothing.
func (b *builder) set(list []Text, at string) []Text {
	seen := map[string]bool{}
	var all []Text
	for _, t := range b.texts(list, at) {
		if seen[t.V] {
			b.warn(t.Pos, CodeNoEffect, fmt.Sprintf("%s: %s is there twice", at, strict.Quote(t.V)), "")
			continue
		}
		seen[t.V] = true
		all = append(all, t)
	}
	return all
}

func (b *builder) longest(t Text, characters int, at string) Text {
	if n := utf8.RuneCountInString(t.V); n > characters {
		b.fail(t.Pos, CodeOutOfRange, fmt.Sprintf("%s has %d characters; the limit is %d", at, n, characters), "")
	}
	return t
}

func (b *builder) atLeast(n strict.At[int], least int, at string) strict.At[int] {
	if n.Set && n.V < least {
		b.fail(n.Pos, CodeOutOfRange, fmt.Sprintf("%s is %d; it must be at least %d", at, n.V, least), "")
	}
	return n
}

func (b *builder) between(n strict.At[float64], least, most float64, at string) *float64 {
	if !n.Set {
		return nil
	}
	if n.V < least || n.V > most {
		b.fail(n.Pos, CodeOutOfRange, fmt.Sprintf("%s is %v; it must be between %v and %v", at, n.V, least, most), "")
	}
	return &n.V
}

// enum returns the word that a text means, whatever its case and hyphens.
func (b *builder) enum(t Text, at, unset string, words ...string) string {
	if !t.Set {
		return unset
	}
	for _, w := range words {
		if fold(w) == fold(t.V) {
			return w
		}
	}
	hint := ""
	if near := strict.Nearest(t.V, words); near != "" {
		hint = "did you mean " + strict.Quote(near) + "?"
	}
	b.fail(t.Pos, strict.CodeBadValue, fmt.Sprintf("%s: %s is none of %s", at, strict.Quote(t.V), strings.Join(words, ", ")), hint)
	return unset
}

// fold returns the form in which words of a fixed list are compared.
func fold(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(word))
}

func or[T any](p *T, unset T) T {
	if p == nil {
		return unset
	}
	return *p
}

func orDefault(n strict.At[int], unset int) int {
	if !n.Set {
		return unset
	}
	return n.V
}

func pointer(n strict.At[int]) *int {
	if !n.Set {
		return nil
	}
	return &n.V
}

func values(list []Text) []string {
	var all []string
	for _, t := range list {
		all = append(all, t.V)
	}
	return all
}
