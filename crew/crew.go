// Package crew reads crews as people write them: YAML in Orkeon's layouts or as
// CrewAI's pair of files, decoded strictly, with the place of every value.
//
// A crew is data. [Load] reads and checks its shape; [Crew.Validate] judges it
// against a [Catalog] of what the host offers. Both report every problem at
// once, and nothing is started by either.
//
// Loading and judging are two steps because a host needs the shape of a crew
// before it knows which tools there are:
//
//	c, err := crew.Load("crew.yaml") // err is Issues
//	if c != nil {
//		issues := c.Validate(catalog, crew.Inputs{"topic": "tides"})
//		…
//	}
//	run(c.Expand(crew.Inputs{"topic": "tides"}))
//
// Whatever the layout, the files become one tree of [strict.Node], whose nodes
// know the file they are from; the tree is decoded once, and the result checked
// once. CrewAI's keys are turned into Orkeon's on the way.
package crew

import (
	"time"

	"crewhost/config/strict"
)

// Pos, Issue and Issues are those of the strict decoder.
type (
	Pos    = strict.Pos
	Issue  = strict.Issue
	Issues = strict.Issues
)

// Text is a text with its place.
type Text = strict.At[string]

// The formats of crew files.
const (
	Orkeon = "orkeon"
	CrewAI = "crewai"
)

// Process is how the tasks of a crew are run.
type Process string

// The six processes.
const (
	Sequential   Process = "sequential"
	Hierarchical Process = "hierarchical"
	Parallel     Process = "parallel"
	Consensual   Process = "consensual"
	Graph        Process = "graph"
	Autonomous   Process = "autonomous"
)

// Crew is a crew as declared. Agents and tasks keep the order of the files.
type Crew struct {
	Path   string // absolute: the file or the folder that was loaded
	Format string // [Orkeon] or [CrewAI]

	Name           Text
	Goal           Text
	Process        Process // [Sequential] unless said
	ProcessPos     Pos
	Verbose        bool
	Memory         bool
	MemoryProvider Text // in-memory, redis, sqlite, chroma, pinecone, lance
	Planning       bool
	ManagerAgent   Text
	MaxRPM         strict.At[int]
	LLM            *LLM
	// MaxConcurrency is how many tasks may run at once where the process lets
	// several; 0 means its own default.
	MaxConcurrency int
	// MaxDuration bounds the whole run; 0 means none.
	MaxDuration  time.Duration
	Graph        *GraphConfig
	Hierarchical *HierarchicalConfig // nil: [DefaultReviews]
	Consensus    *ConsensusConfig    // nil: [DefaultConsensus]
	Autonomous   *AutonomousConfig   // nil: [DefaultBudget]
	Links        []Link
	Mounts       []Text
	RAG          *RAG

	Agents []*Agent
	Tasks  []*Task

	// Inputs are variables that the files themselves give; those of the run win.
	Inputs Inputs

	// Warnings are what a person should know of the files though they can be
	// run, sorted by place.
	Warnings Issues
}

// Agent returns the agent of that key, or nil.
func (c *Crew) Agent(key string) *Agent {
	for _, a := range c.Agents {
		if a.Key == key {
			return a
		}
	}
	return nil
}

// Task returns the task of that key, or nil.
func (c *Crew) Task(key string) *Task {
	for _, t := range c.Tasks {
		if t.Key == key {
			return t
		}
	}
	return nil
}

// Agent is a member of a crew.
type Agent struct {
	Key string // the id in the file
	Pos Pos

	Role      Text // the key, and not Set, where the file gives none
	Goal      Text
	Backstory Text
	Tools     []Text

	AllowDelegation bool // unless said: true in Orkeon's format, false in CrewAI's
	MaxIter         int  // calls to the model in one task; 20 unless said
	MaxRPM          strict.At[int]
	Verbose         bool
	LLM             *LLM
	Guardrails      *Guardrails
	Knowledge       []Knowledge
	Servers         []Server  // of the agent's own, mcp_servers (A1)
	Toolsets        []Toolset // among its tools (A2)
	// MaxExecutionTime bounds one task of the agent; 0 means none.
	MaxExecutionTime time.Duration
}

// Server is an MCP server that an agent brings along (A1): Command or URL is set.
// Its tools are named mcp__<name>__<tool> (A9). It has no credentials: those are
// the host's affair (A6).
type Server struct {
	Name    Text // unique among the agent's
	Pos     Pos
	Kind    string // [ServerURL] unless said, [ServerHTTP], [ServerSSE] or [ServerStdio]
	URL     Text
	Command Text
	Args    []Text
	Env     []Named // in the file's order
}

// Toolset says which tools of one server, or of the host, an agent may call (A2).
type Toolset struct {
	Pos     Pos
	Server  Text           // mcp_server_name; not Set in an agent_toolset
	Default ToolsetEntry   // default_config
	Tools   []ToolsetEntry // configs
}

// ToolsetEntry is an entry of a [Toolset], or its default.
type ToolsetEntry struct {
	Pos     Pos
	Tool    Text  // the server's own name of a tool; not Set in a default
	Enabled *bool // nil: as the default, and that is true
	Policy  Text  // always_ask or always_allow; not Set: as the default
}

// Task is a piece of work.
type Task struct {
	Key string // the id in the file
	Pos Pos

	Description    Text
	ExpectedOutput Text
	Agent          Text // key of an agent; empty: the process chooses
	Dependencies   []Text
	Async          bool
	HumanInput     bool
	Context        []Named // extra context, in the file's order
	Tools          []Text  // in addition to the agent's
	Deliverable    *Deliverable
	LLM            *LLM // llmOverride
	Guardrails     *Guardrails
	Timeout        time.Duration // bounds one attempt; 0 means none
}

// Named is a named text.
type Named struct {
	Name  string
	Value Text
}

// LLM overrides parts of the profile that a crew, an agent or a task uses. The
// cascade is profile, crew, agent, task; unset fields inherit.
type LLM struct {
	Pos            Pos
	Profile        Text
	Provider       Text // the vendor in CrewAI's "vendor/model"; not set otherwise
	Model          Text
	Temperature    *float64
	MaxTokens      *int
	TopP           *float64
	Thinking       *Thinking
	ResponseFormat Text // text, json_object, json_schema
	ResponseSchema *ResponseSchema
	Cache          *Cache
}

// Thinking asks a reasoning model to think; unset fields inherit.
type Thinking struct {
	Enabled      *bool
	Effort       Text // low, medium, high, max
	BudgetTokens *int
}

// ResponseSchema is the JSON Schema of an answer.
type ResponseSchema struct {
	Name   string // "response" unless said
	Schema string // JSON
	Strict bool   // true unless said
	Pos    Pos
}

// Cache asks for prompt caching where the provider has it.
type Cache struct {
	System bool
	Tools  bool
	TTL    string // 5m, 1h, or empty: the provider's own
}

// Guardrails are rules that the prompt carries.
type Guardrails struct {
	Preset    Text // analysis, strict, creative
	Header    string
	Rules     []Text
	ToolRules []ToolRules // in the file's order
}

// ToolRules are the rules of one tool.
type ToolRules struct {
	Tool  Text
	Rules []Text
}

// Knowledge is a collection that an agent's prompts are enriched from.
type Knowledge struct {
	Collection       Text
	TopK             int // 5 unless said
	MinScore         *float64
	Profile          string
	MaxContextTokens int // 2000 unless said
}

// Deliverable is a file that a task leaves.
type Deliverable struct {
	Pos          Pos
	Path         Text
	Source       string // final_message, structured_output, tool_call (unless said), none
	Format       string // markdown (unless said), yaml, json, text, or what the file says
	Sanitize     bool   // true unless said
	SchemaPath   Text
	SchemaInline Text // a JSON object
}

// GraphConfig bounds the graph process.
type GraphConfig struct {
	MaxRetryCycles  int    // 2 unless said
	Preset          string // strict, default, permissive
	MaxTransitions  *int
	MaxStateVisits  *int
	MaxTotalSeconds *int
}

// Link is a permission between crews on a hub.
type Link struct {
	To            Text
	Direction     string // outbound, inbound, bidirectional
	AllowedTopics []string
}

// RAG declares collections of documents.
type RAG struct {
	Pos         Pos
	Collections []Collection
	Profile     string // defaults.profile
}

// Collection is a collection of documents.
type Collection struct {
	Name      string
	Sources   []Text
	Strategy  string // recursive unless said
	MaxTokens int    // 512 unless said
	Overlap   int    // 64 unless said
}

// Catalog is what a crew is judged against: the names that the host offers.
type Catalog interface {
	// Tools returns the names of the tools that any agent may name, sorted: those
	// of agents' own servers are not among them.
	Tools() []string
	// Profiles returns the ids of all model profiles, sorted.
	Profiles() []string
	// Missing says why a tool is not there though a server was to offer it (a
	// server that failed, a collision), or "".
	Missing(tool string) string
	// Off says of a tool of the host's own that is not there why that is, and how to
	// turn it on, as the end of a sentence that begins with its name; or "".
	Off(tool string) string
	// Offers returns what toolsets choose from: the tools of an agent's own server
	// or, where server is nil, those of the host that are not of any server. Why says
	// why nothing is known of the server, or is "".
	Offers(server *Server) (offers []Offer, why string)
}
