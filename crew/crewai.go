package crew

import (
	"fmt"
	"strings"

	"crewhost/config/strict"
)

// CrewAI keeps agents and tasks in YAML and the rest in crew.py: which agent
// has which tools, which task is whose, the order, the process. Here an optional
// crew.yaml with "format: crewai" takes the place of crew.py; see overlay.
//
// Keys of the pair are of three kinds. Most have their counterpart. Some tune
// what this host does in its own way; they earn a warning. The others change
// what the crew does and need Python: they are refused, with what to do.

// crewaiAgent has the keys of agents.yaml.
type crewaiAgent struct {
	Pos              Pos            `key:"@"`
	Role             Text           `key:"role,required"`
	Goal             Text           `key:"goal,required"`
	Backstory        Text           `key:"backstory"`
	LLM              *crewaiLLM     `key:"llm"`
	Tools            []toolDoc      `key:"tools"`
	Servers          serversDoc     `key:"mcpServers"`
	MaxIter          strict.At[int] `key:"maxIter"`
	MaxRPM           strict.At[int] `key:"maxRpm"`
	MaxTokens        strict.At[int] `key:"maxTokens"`
	MaxExecutionTime seconds        `key:"maxExecutionTime"`
	AllowDelegation  *bool          `key:"allowDelegation"`
	Verbose          bool           `key:"verbose"`

	Cache                *strict.Node `key:"cache"`
	MaxRetryLimit        *strict.Node `key:"maxRetryLimit"`
	RespectContextWindow *strict.Node `key:"respectContextWindow"`
	UseSystemPrompt      *strict.Node `key:"useSystemPrompt"`
	CodeExecutionMode    *strict.Node `key:"codeExecutionMode"`
	DateFormat           *strict.Node `key:"dateFormat"`
	MaxReasoningAttempts *strict.Node `key:"maxReasoningAttempts"`

	MCPs                *strict.Node `key:"mcps"`
	FunctionCallingLLM  *strict.Node `key:"functionCallingLlm"`
	SystemTemplate      *strict.Node `key:"systemTemplate"`
	PromptTemplate      *strict.Node `key:"promptTemplate"`
	ResponseTemplate    *strict.Node `key:"responseTemplate"`
	AllowCodeExecution  *strict.Node `key:"allowCodeExecution"`
	Multimodal          *strict.Node `key:"multimodal"`
	Reasoning           *strict.Node `key:"reasoning"`
	InjectDate          *strict.Node `key:"injectDate"`
	KnowledgeSources    *strict.Node `key:"knowledgeSources"`
	KnowledgeConfig     *strict.Node `key:"knowledgeConfig"`
	Embedder            *strict.Node `key:"embedder"`
	FromRepository      *strict.Node `key:"fromRepository"`
	Guardrail           *strict.Node `key:"guardrail"`
	GuardrailMaxRetries *strict.Node `key:"guardrailMaxRetries"`
	StepCallback        *strict.Node `key:"stepCallback"`
	Callbacks           *strict.Node `key:"callbacks"`
}

// crewaiTask has the keys of tasks.yaml.
type crewaiTask struct {
	Pos            Pos    `key:"@"`
	Name           Text   `key:"name"`
	Description    Text   `key:"description,required"`
	ExpectedOutput Text   `key:"expectedOutput,required"`
	Agent          Text   `key:"agent"`
	Context        []Text `key:"context"`
	Tools          []Text `key:"tools"`
	OutputFile     Text   `key:"outputFile"`
	AsyncExecution bool   `key:"asyncExecution"`
	HumanInput     bool   `key:"humanInput"`

	CreateDirectory           *strict.Node `key:"createDirectory"`
	Markdown                  *strict.Node `key:"markdown"`
	AllowCrewAITriggerContext *strict.Node `key:"allowCrewaiTriggerContext"`
	OutputJSON                *strict.Node `key:"outputJson"`
	OutputPydantic            *strict.Node `key:"outputPydantic"`
	ResponseModel             *strict.Node `key:"responseModel"`
	ConverterClass            *strict.Node `key:"converterCls"`
	Guardrail                 *strict.Node `key:"guardrail"`
	Guardrails                *strict.Node `key:"guardrails"`
	GuardrailMaxRetries       *strict.Node `key:"guardrailMaxRetries"`
	Callback                  *strict.Node `key:"callback"`
	Callbacks                 *strict.Node `key:"callbacks"`
}

// crewaiLLM is "model", "vendor/model" or the block of Orkeon's format.
type crewaiLLM struct{ doc llmDoc }

func (l *crewaiLLM) UnmarshalNode(d *strict.Decoder, n *strict.Node) {
	if n.Kind != strict.String {
		d.Decode(n, &l.doc, "")
		return
	}
	model := Text{Pos: n.Pos, V: n.Text, Set: true}
	l.doc.Pos = n.Pos
	if vendor, rest, ok := strings.Cut(n.Text, "/"); ok {
		l.doc.provider = Text{Pos: n.Pos, V: strings.TrimSpace(vendor), Set: true}
		model.V = rest
	}
	l.doc.Model = model
}

// translate turns entities in CrewAI's keys into Orkeon's.
func translate[A, B any](from entities[A], one func(key string, doc A) B) entities[B] {
	to := entities[B]{wrong: from.wrong}
	for _, e := range from.list {
		to.list = append(to.list, strict.Named[B]{Key: e.Key, KeyPos: e.KeyPos, V: one(e.Key, e.V)})
	}
	return to
}

func (b *builder) crewaiAgent(key string, a crewaiAgent) agentDoc {
	at := "agents." + key
	for _, k := range []extra{
		{"cache", a.Cache, ""}, {"max_retry_limit", a.MaxRetryLimit, ""}, {"respect_context_window", a.RespectContextWindow, ""},
		{"use_system_prompt", a.UseSystemPrompt, ""}, {"code_execution_mode", a.CodeExecutionMode, ""},
		{"date_format", a.DateFormat, ""}, {"max_reasoning_attempts", a.MaxReasoningAttempts, ""},
		{"mcps", a.MCPs, "write mcp_servers: [{name: …, url: …}], and {type: mcp_toolset, mcp_server_name: …} among the tools"},
		{"function_calling_llm", a.FunctionCallingLLM, "one model does both here: give it as llm"},
		{"system_template", a.SystemTemplate, "put what it says into the backstory"},
		{"prompt_template", a.PromptTemplate, "put what it says into the backstory"},
		{"response_template", a.ResponseTemplate, "put what it says into the tasks' expected_output"},
		{"allow_code_execution", a.AllowCodeExecution, "give the agent a tool that runs code"},
		{"multimodal", a.Multimodal, "give the agent a tool that reads images"},
		{"reasoning", a.Reasoning, "write llm: {thinking: {enabled: true}}, or planning: true in crew.yaml"},
		{"inject_date", a.InjectDate, "write {date} in a task and give it as an input"},
		{"knowledge_sources", a.KnowledgeSources, "use format: orkeon with rag and knowledge"},
		{"knowledge_config", a.KnowledgeConfig, "use format: orkeon with rag and knowledge"},
		{"embedder", a.Embedder, "the settings choose the embedder"},
		{"from_repository", a.FromRepository, "write the agent out"},
		{"guardrail", a.Guardrail, "write the rule into the backstory, or use format: orkeon with guardrails"},
		{"guardrail_max_retries", a.GuardrailMaxRetries, ""},
		{"step_callback", a.StepCallback, "a callback is Python; watch the run's events instead"},
		{"callbacks", a.Callbacks, "a callback is Python; watch the run's events instead"},
	} {
		b.extra(at, k)
	}
	doc := agentDoc{
		Pos: a.Pos, Role: a.Role, Goal: a.Goal, Backstory: a.Backstory, Tools: a.Tools, Servers: a.Servers, AllowDelegation: a.AllowDelegation,
		MaxIter: a.MaxIter, MaxRPM: a.MaxRPM, Verbose: a.Verbose, MaxExecutionTime: a.MaxExecutionTime,
	}
	if a.LLM != nil {
		doc.LLM = &a.LLM.doc
	}
	if a.MaxTokens.Set {
		if doc.LLM == nil {
			doc.LLM = &llmDoc{Pos: a.MaxTokens.Pos}
		}
		doc.LLM.MaxTokens = a.MaxTokens
	}
	return doc
}

func (b *builder) crewaiTask(key string, t crewaiTask) taskDoc {
	at := "tasks." + key
	for _, k := range []extra{
		{"create_directory", t.CreateDirectory, ""}, {"markdown", t.Markdown, ""},
		{"allow_crewai_trigger_context", t.AllowCrewAITriggerContext, ""},
		{"output_json", t.OutputJSON, "the class is Python; use format: orkeon with a deliverable and schemaInline"},
		{"output_pydantic", t.OutputPydantic, "the class is Python; use format: orkeon with a deliverable and schemaInline"},
		{"response_model", t.ResponseModel, "the class is Python; use format: orkeon with a deliverable and schemaInline"},
		{"converter_cls", t.ConverterClass, "the class is Python; leave it out"},
		{"guardrail", t.Guardrail, "write the rule into expected_output, or use format: orkeon with guardrails"},
		{"guardrails", t.Guardrails, "write the rules into expected_output, or use format: orkeon with guardrails"},
		{"guardrail_max_retries", t.GuardrailMaxRetries, ""},
		{"callback", t.Callback, "a callback is Python; watch the run's events instead"},
		{"callbacks", t.Callbacks, "a callback is Python; watch the run's events instead"},
	} {
		b.extra(at, k)
	}
	doc := taskDoc{
		Pos: t.Pos, Description: t.Description, ExpectedOutput: t.ExpectedOutput, Agent: t.Agent,
		Dependencies: t.Context, Tools: t.Tools, AsyncExecution: t.AsyncExecution, HumanInput: t.HumanInput,
	}
	if t.OutputFile.Set {
		doc.Deliverable = &deliverableDoc{
			Pos: t.OutputFile.Pos, Path: t.OutputFile,
			Source: Text{Pos: t.OutputFile.Pos, V: "final_message", Set: true},
			Format: Text{Pos: t.OutputFile.Pos, V: formatOf(t.OutputFile.V), Set: true},
		}
	}
	return doc
}

// formatOf tells the format of a file by its name. What is not Markdown or YAML
// is written as the model gave it.
func formatOf(path string) string {
	switch lower := strings.ToLower(path); {
	case strings.HasSuffix(lower, ".md"), strings.HasSuffix(lower, ".markdown"):
		return "markdown"
	case strings.HasSuffix(lower, ".yaml"), strings.HasSuffix(lower, ".yml"):
		return "yaml"
	case strings.HasSuffix(lower, ".json"):
		return "json"
	default:
		return "text"
	}
}

// extra is a key that has no counterpart here: it is refused with what to do
// instead, or, where there is nothing to do, warned about.
type extra struct {
	key    string
	value  *strict.Node
	remedy string
}

func (b *builder) extra(at string, k extra) {
	switch {
	case k.value == nil || k.value.Kind == strict.Null:
	case k.remedy == "":
		b.warn(k.value.Pos, CodeNoEffect, at+"."+k.key+" changes nothing here", "")
	case k.value.Kind == strict.Bool && strings.EqualFold(k.value.Text, "false"):
	default:
		b.fail(k.value.Pos, CodeUnsupportedKey, at+"."+k.key+" cannot be honoured", k.remedy)
	}
}

// looksLikeCrewAI tells the writer of CrewAI's tasks in a crew of Orkeon's
// format, once, how to say which format it is.
func (b *builder) looksLikeCrewAI(tasks *strict.Node) {
	if tasks == nil {
		return
	}
	for _, t := range tasks.Entries {
		for _, e := range t.Value.Entries {
			switch key := fold(e.Key); {
			case key == "outputfile", key == "outputjson", key == "outputpydantic", key == "context" && e.Value.Kind == strict.List && len(e.Value.Items) > 0:
				b.fail(e.KeyPos, CodeLayout, "tasks."+t.Key+"."+e.Key+" is a key in CrewAI's format", "if all tasks are, write format: crewai among the crew's own keys")
				return
			}
		}
	}
}

// unassigned warns about the tasks of a CrewAI crew whose agents are said in
// its crew.py.
func (b *builder) unassigned() {
	var without []string
	for _, t := range b.crew.Tasks {
		if t.Agent.V == "" {
			without = append(without, t.Key)
		}
	}
	if b.crew.Format != CrewAI || len(without) == 0 || len(b.crew.Agents) < 2 || b.crew.Process != Sequential {
		return
	}
	n, first := len(without), without[0]
	if n > 10 {
		without = append(without[:10], fmt.Sprintf("and %d more", n-10))
	}
	example := "tasks: {" + first + ": {agent: " + b.crew.Agents[0].Key + "}}"
	hint := "name them in crew.yaml: " + example
	if b.pairWithout {
		hint = "name them in a crew.yaml beside it: format: crewai, " + example
	}
	b.warn(Pos{File: b.crew.Tasks[0].Pos.File}, CodeUnassigned,
		"no agent is named for "+strings.Join(without, ", ")+"; they go to the agents in turn, in the order of the file", hint)
}

// overlay makes one tree of CrewAI's pair and the crew.yaml beside it, which
// takes the place of crew.py:
//
//	format: crewai
//	name: tides               # the folder's name unless said
//	process: sequential       # unless said
//	agents:
//	  writer: {tools: [file_write]}     # laid over the agent of agents.yaml
//	tasks:
//	  draft: {agent: writer}            # laid over the task of tasks.yaml
//
// In place of the mapping, "tasks: [outline, draft]" gives the order and leaves
// out the tasks that it does not name.
func (r *reader) overlay(root, agents, tasks *strict.Node, l layout) *strict.Node {
	merged := &strict.Node{Pos: root.Pos, Kind: strict.Map}
	for _, e := range root.Entries {
		switch e.Key {
		case "agents":
			r.layOver(agents, e.Value, "agents", r.unread.agents)
		case "tasks":
			if e.Value.Kind == strict.List {
				r.choose(tasks, e.Value)
			} else {
				r.layOver(tasks, e.Value, "tasks", r.unread.tasks)
			}
		default:
			merged.Entries = append(merged.Entries, e)
		}
	}
	merged.Entries = append(merged.Entries,
		strict.Entry{Key: "agents", KeyPos: agents.Pos, Value: agents},
		strict.Entry{Key: "tasks", KeyPos: tasks.Pos, Value: tasks})
	setDefault(merged, "name", l.name)
	return merged
}

// layOver lays the entities of crew.yaml over those of a file, key by key.
func (r *reader) layOver(entities, over *strict.Node, section string, unread bool) {
	switch over.Kind {
	case strict.Null:
		return
	case strict.Map:
	default:
		r.fail(over.Pos, strict.CodeWrongType, section+" must be a mapping, not "+over.Kind.String(), "write {id: {key: value}}")
		return
	}
	for _, e := range over.Entries {
		at := section + "." + e.Key
		under := entities.Get(e.Key)
		switch {
		case under == nil && unread:
		case under == nil:
			r.fail(e.KeyPos, CodeDanglingReference, at+" is not in "+entities.File, strict.DidYouMean(e.Key, ids(entities)))
		case e.Value.Kind == strict.Null || under.Kind != strict.Map:
		case e.Value.Kind != strict.Map:
			r.fail(e.Value.Pos, strict.CodeWrongType, at+" must be a mapping, not "+e.Value.Kind.String(), "")
		default:
			for _, key := range e.Value.Entries {
				setEntry(under, key)
			}
		}
	}
}

// setEntry puts an entry into a map in place of the one of its key, whatever
// its spelling.
func setEntry(n *strict.Node, e strict.Entry) {
	for i, have := range n.Entries {
		if fold(have.Key) == fold(e.Key) {
			n.Entries[i] = e
			return
		}
	}
	n.Entries = append(n.Entries, e)
}

// choose keeps the tasks that a list of ids names, in its order.
func (r *reader) choose(tasks, list *strict.Node) {
	if r.unread.tasks || tasks.Kind != strict.Map {
		return
	}
	known := ids(tasks)
	position := index(known)
	chosen := map[string]bool{}
	var entries []strict.Entry
	for i, item := range list.Items {
		n, ok := position[item.Text]
		switch {
		case item.Kind != strict.String && !ok:
			r.fail(item.Pos, strict.CodeWrongType, fmt.Sprintf("tasks.%d must be the id of a task, not %s", i, item.Kind), "")
		case !ok:
			r.fail(item.Pos, CodeDanglingReference, fmt.Sprintf("tasks.%d: there is no task %s", i, strict.Quote(item.Text)), strict.DidYouMean(item.Text, known))
		case chosen[item.Text]:
			r.fail(item.Pos, CodeDuplicateReference, fmt.Sprintf("tasks.%d: %s is there twice", i, strict.Quote(item.Text)), "")
		default:
			chosen[item.Text] = true
			entries = append(entries, tasks.Entries[n])
		}
	}
	tasks.Entries = entries
}

func ids(entities *strict.Node) []string {
	return keys(entities.Entries, func(e strict.Entry) string { return e.Key })
}
