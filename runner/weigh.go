package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"crewhost/config"
	"crewhost/crew"
	"crewhost/runner/agent"
	"crewhost/runner/llm"
	"crewhost/runner/llm/provider"
	"crewhost/runner/llm/replay"
)

// Weights are what the definitions of tools take of a model's context, in tokens.
// They are estimates, by [llm.EstimateTokens], of what a request holds on the wire:
// names and schemas are fitted to each provider as a run fits them.
type Weights struct {
	Providers []ProviderWeight // sorted by provider; of the profiles of the settings
	Agents    []AgentWeight    // in the crew's order
}

// ProviderWeight is what all tools that are there would take where all were offered.
type ProviderWeight struct {
	Provider string
	Profiles []string // that are told of tools in the same way, sorted
	InText   bool     // the prompt tells of them, since the model has no calls of its own
	Servers  []ServerWeight
	Tools    int // of all servers
	Tokens   int
}

// ServerWeight is the part of one MCP server, or of the host's own tools.
type ServerWeight struct {
	Server string // empty: the host's own
	Tools  int
	Tokens int
}

// AgentWeight is what an agent's requests hold of tools: of its tasks, the one whose
// requests hold most.
type AgentWeight struct {
	Agent, Task string // keys; no task where the agent only works for others
	Profile     string
	Provider    string
	Tools       int
	Tokens      int
}

// Weigh says what the definitions of the tools take: of all that are there, and of
// those that the agents of a crew hold. The crew may be nil. No provider is asked,
// and no key is needed. An agent whose tools are not all there has no weight.
func (h *Host) Weigh(ctx context.Context, c *crew.Crew, inputs crew.Inputs) Weights {
	s := scale{host: h, ways: map[string]way{}}
	w := Weights{Providers: s.providers(ctx)}
	if c != nil {
		w.Agents = s.agents(ctx, c.Expand(inputs))
	}
	return w
}

// scale weighs tools in the ways of the settings' profiles.
type scale struct {
	host *Host
	ways map[string]way // by the canonical id of the profile
}

// way is how a profile's model is told of tools.
type way struct {
	profile config.Profile
	dialect llm.SchemaDialect
	inText  bool
}

// Generate implements [llm.Model] for the sake of the loop, which asks nothing here.
func (w way) Generate(context.Context, llm.Request) (*llm.Response, error) {
	return nil, errors.New("weighing tools: no model is asked")
}

// SchemaDialect implements [llm.Dialectal].
func (w way) SchemaDialect() llm.SchemaDialect { return w.dialect }

// way finds out how a profile is told of tools.
func (s scale) way(id string) (way, error) {
	key := strings.ToLower(cmp.Or(id, config.DefaultProfile))
	if w, ok := s.ways[key]; ok {
		return w, nil
	}
	p, err := s.host.models.llm.Select(id)
	if err != nil {
		return way{}, err
	}
	w := way{profile: p, inText: s.host.models.settings(id).TextCalls}
	if row, ok := rowOf(p); ok {
		w.dialect = row.Dialect(paper(p, row.BaseURL))
	} else if p.Provider == config.ProviderReplay && s.host.cfg.Models == nil {
		if tape, err := replay.Open(p.Tape); err == nil { // else it is an issue of its own
			w.dialect = llm.DialectOf(tape)
		}
	}
	s.ways[key] = w
	return w, nil
}

// loop is an agents' loop that offers tools as a run does.
func (s scale) loop() (*agent.Loop, error) {
	return agent.New(agent.Config{
		Models: func(profile string) (llm.Model, agent.Settings, error) {
			w, err := s.way(profile)
			return w, s.host.models.settings(profile), err
		},
		Toolbox: s.host.guard, Definitions: s.host.guard.Definitions,
	})
}

// providers weighs all tools once for each way of telling of them.
func (s scale) providers(ctx context.Context) []ProviderWeight {
	defs := s.host.Tools()
	hand := &crew.Agent{Key: "all"}
	servers := map[string]string{}
	for _, d := range defs {
		hand.Tools = append(hand.Tools, crew.Text{V: d.Name})
		servers[d.Name] = d.Server
	}
	var all []ProviderWeight
	var seen []way
	for _, id := range s.host.models.ids() {
		w, err := s.way(id)
		if err != nil || w.profile.Provider == "" {
			continue
		}
		if i := slices.IndexFunc(seen, w.alike); i >= 0 {
			all[i].Profiles = append(all[i].Profiles, id)
			continue
		}
		loop, err := s.loop()
		if err != nil {
			continue
		}
		task := &crew.Task{Key: "all", LLM: &crew.LLM{Profile: crew.Text{V: id}}}
		offer, err := loop.Offer(agent.Input{Crew: &crew.Crew{Agents: []*crew.Agent{hand}}, Agent: hand, Task: task})
		if err != nil {
			continue
		}
		sizes := w.sizes(ctx, offer)
		of := map[string]*ServerWeight{}
		weight := ProviderWeight{Provider: w.profile.Provider, Profiles: []string{id}, InText: w.inText, Tokens: llm.EstimateTokens(len(offer.Lead))}
		for i, name := range offer.Names {
			server := servers[name]
			if of[server] == nil {
				of[server] = &ServerWeight{Server: server}
			}
			of[server].Tools++
			of[server].Tokens += llm.EstimateTokens(sizes[i])
		}
		for _, part := range of {
			weight.Servers = append(weight.Servers, *part)
			weight.Tools += part.Tools
			weight.Tokens += part.Tokens
		}
		slices.SortFunc(weight.Servers, func(a, b ServerWeight) int { return cmp.Compare(a.Server, b.Server) })
		seen, all = append(seen, w), append(all, weight)
	}
	slices.SortStableFunc(all, func(a, b ProviderWeight) int { return cmp.Compare(a.Provider, b.Provider) })
	return all
}

// agents weighs what each agent of a crew is offered in its tasks.
func (s scale) agents(ctx context.Context, c *crew.Crew) []AgentWeight {
	loop, err := s.loop()
	if err != nil {
		return nil
	}
	heaviest := map[*crew.Agent]AgentWeight{}
	for _, a := range asksOf(c) {
		if a.agent == nil || a.task == nil && !agent.Delegates(c.Process) {
			continue // it is asked without tools
		}
		task := a.task
		if task == nil {
			task = &crew.Task{}
		}
		offer, err := loop.Offer(agent.Input{Crew: c, Agent: a.agent, Task: task})
		if err != nil {
			continue // the verdict has it
		}
		profile := agent.Elect(a.levels...)
		w, err := s.way(profile)
		if err != nil {
			continue
		}
		weight := AgentWeight{
			Agent: a.agent.Key, Task: task.Key, Profile: cmp.Or(profile, config.DefaultProfile), Provider: w.profile.Provider,
			Tools: len(offer.Names), Tokens: llm.EstimateTokens(len(offer.Lead)),
		}
		for _, size := range w.sizes(ctx, offer) {
			weight.Tokens += llm.EstimateTokens(size)
		}
		if before, ok := heaviest[a.agent]; !ok || weight.Tokens > before.Tokens {
			heaviest[a.agent] = weight
		}
	}
	var all []AgentWeight
	for _, a := range c.Agents {
		if w, ok := heaviest[a]; ok {
			all = append(all, w)
		}
	}
	return all
}

// alike reports whether two profiles are told of tools alike.
func (w way) alike(other way) bool {
	return w.profile.Provider == other.profile.Provider && w.inText == other.inText && fmt.Sprint(w.dialect) == fmt.Sprint(other.dialect)
}

// sizes are how many bytes tell of each tool. What is no vendor gets them in the
// host's own terms.
func (w way) sizes(ctx context.Context, offer agent.Offer) []int {
	sizes := make([]int, len(offer.Tools))
	for i, text := range offer.Texts {
		sizes[i] = len(text)
	}
	if len(offer.Texts) > 0 {
		return sizes
	}
	if row, ok := rowOf(w.profile); ok {
		if sent, err := row.Sent(ctx, paper(w.profile, row.BaseURL), offer.Tools); err == nil {
			for i, tool := range sent {
				sizes[i] = len(tool)
			}
			return sizes
		}
	}
	for i, tool := range offer.Tools {
		if text, err := json.Marshal(tool); err == nil {
			sizes[i] = len(text)
		}
	}
	return sizes
}

// paper is a configuration in which a request can be written and not be sent: with
// neither the address of the settings nor a key.
func paper(p config.Profile, base string) provider.Config {
	return provider.Config{
		BaseURL: cmp.Or(base, "http://localhost"), Model: p.Model, Deployment: cmp.Or(p.Deployment, "any"), APIVersion: p.APIVersion,
		PlainSchemas: p.ToolSchemas == config.SchemasPlain,
	}
}
